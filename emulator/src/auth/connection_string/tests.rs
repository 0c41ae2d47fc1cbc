//! Reading and writing connection strings.

use super::*;

const DEFAULT: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                       SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";

#[test]
fn the_default_reads_and_writes() {
    let string = ConnectionString::for_emulator("localhost", None, &Key::well_known());
    assert_eq!(string.to_string(), DEFAULT);
    assert_eq!(DEFAULT.parse(), Ok(string));
    let admin = ConnectionString::for_emulator("::1", Some(5300), &Key::well_known());
    assert!(admin.to_string().starts_with("Endpoint=sb://[::1]:5300;"));
    assert_eq!(admin.to_string().parse(), Ok(admin));
}

#[test]
fn what_sdks_read_is_read() {
    let text = " endpoint = SB://Host:5673/ ;sharedaccesskey=a=b==;SHAREDACCESSKEYNAME=n;;EntityPath=a/b;TransportType=x";
    let string: ConnectionString = text.parse().unwrap();
    let expected = ConnectionString {
        host: "Host".into(),
        port: Some(5673),
        key_name: Some("n".into()),
        key: Some("a=b==".into()),
        signature: None,
        entity_path: Some("a/b".into()),
        development_emulator: false,
    };
    assert_eq!(string, expected);
    let signed: ConnectionString =
        "Endpoint=sb://h/;SharedAccessSignature=SharedAccessSignature sr=a&sig=b&se=1&skn=k"
            .parse()
            .unwrap();
    assert_eq!(
        signed.signature.as_deref(),
        Some("SharedAccessSignature sr=a&sig=b&se=1&skn=k")
    );
    assert!(!format!("{string:?}{signed:?}").contains("a=b"));
}

#[test]
fn other_texts_are_refused() {
    use ConnectionStringError as E;
    let table = [
        ("", E::Missing("Endpoint")),
        ("Endpoint=sb://a;oops", E::NoValue(2)),
        ("Endpoint=sb://a;endpoint=sb://b", E::Twice("Endpoint")),
        ("Endpoint=a", E::Endpoint),
        ("Endpoint=http://a", E::Endpoint),
        ("Endpoint=sb://", E::Endpoint),
        ("Endpoint=sb://a/b", E::Endpoint),
        ("Endpoint=sb://a:0", E::Endpoint),
        ("Endpoint=sb://a:65536", E::Endpoint),
        ("Endpoint=sb://a:", E::Endpoint),
        ("Endpoint=sb://[::1", E::Endpoint),
        ("Endpoint=sb://[::1]5672", E::Endpoint),
        (
            "Endpoint=sb://a;SharedAccessKey=k",
            E::Missing("SharedAccessKeyName"),
        ),
        (
            "Endpoint=sb://a;SharedAccessKeyName=n",
            E::Missing("SharedAccessKey"),
        ),
        (
            "Endpoint=sb://a;UseDevelopmentEmulator=maybe",
            E::DevelopmentEmulator,
        ),
    ];
    for (text, error) in table {
        assert_eq!(text.parse::<ConnectionString>(), Err(error), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = text.parse::<ConnectionString>();
        let _ = format!("Endpoint=sb://{text}").parse::<ConnectionString>();
    }
}
