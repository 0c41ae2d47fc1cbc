use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore};

use super::*;

const NOW: i64 = 1_800_000_000;

fn made(scope: Scope) -> Authority {
    Authority::make(scope).unwrap()
}

#[test]
fn an_authority_is_its_key_and_its_certificate() {
    for scope in [Scope::Local, Scope::Any] {
        let made = Authority::make(scope).unwrap();
        let restored = Authority::restore(made.pem().to_owned(), &made.key_pem()).unwrap();
        assert_eq!(restored.pem(), made.pem());
        assert_eq!(restored.key_pem(), made.key_pem());
        assert_eq!(restored.scope(), scope);
    }
}

#[test]
fn files_that_do_not_belong_together_are_named() {
    let [one, other] = [Scope::Local, Scope::Any].map(made);
    for (certificate, key, reason) in [
        (
            one.pem(),
            other.key_pem(),
            "the certificate is that of another key",
        ),
        ("nothing", one.key_pem(), "the certificate: "),
        (one.pem(), "nothing".to_owned(), "the key: "),
    ] {
        let restored = Authority::restore(certificate.to_owned(), &key);
        let error = restored.map(|_| ()).unwrap_err();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[test]
fn names_that_no_certificate_can_hold_are_left_out() {
    let names = ["localhost", "::1", "two words", "ä", "", "*.example.org"].map(str::to_owned);
    let kept: Vec<_> = names.iter().filter_map(|name| alternative(name)).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    let (chain, _) = made(Scope::Any).issue(names.iter(), NOW).unwrap();
    assert_eq!(chain.len(), 1);
}

#[test]
fn dates_are_those_of_utc() {
    assert_eq!(date(NOW), (2027, 1, 15));
    assert_eq!(date(i64::MAX), (1970, 1, 1));
}

/// Why a client that trusts an authority refuses a certificate of a server that it knows by a name; none where it
/// believes it.
fn refusal(authority: &Authority, certificate: &CertificateDer<'_>, name: &str) -> Option<String> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(default_provider());
    let client = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
    let name = ServerName::try_from(name).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW as u64));
    let client = client.build().unwrap();
    let error = client
        .verify_server_cert(certificate, &[], &name, &[], now)
        .err()?;
    if let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = &error {
        return Some(other.to_string());
    }
    Some(error.to_string())
}

const LOCAL: [&str; 6] = [
    "127.0.0.1",
    "127.255.3.4",
    "::1",
    "localhost",
    "orders.localhost",
    "orders.servicebus.windows.net",
];
const FOREIGN: [&str; 7] = [
    "128.0.0.1",
    "10.0.0.1",
    "::2",
    "orders",
    "example.com",
    "notlocalhost",
    "servicebus.windows.net.example.com",
];

#[test]
fn clients_believe_a_constrained_authority_about_this_machine_alone() {
    let authority = made(Scope::Local);
    for name in LOCAL {
        assert!(is_local(name), "{name}");
        let names = [name.to_owned(), "*.servicebus.windows.net".to_owned()];
        let (chain, _) = authority.issue(names.iter(), NOW).unwrap();
        assert_eq!(refusal(&authority, &chain[0], name), None, "{name}");
    }
    for name in FOREIGN {
        assert!(!is_local(name), "{name}");
        let names = [name.to_owned(), "localhost".to_owned()];
        let (chain, _) = forged(&authority, &names);
        for judge in [name, "localhost"] {
            let refusal = refusal(&authority, &chain[0], judge);
            assert!(
                refusal.is_some_and(|why| why.contains("NameConstraint")),
                "{name}"
            );
        }
    }
}

/// What who has the key of a constrained authority can sign.
fn forged(stolen: &Authority, names: &[String]) -> Chain {
    let mut server = CertificateParams::new(names).unwrap();
    server.not_before = date_time_ymd(2026, 1, 1);
    server.not_after = date_time_ymd(2028, 1, 1);
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(description(Scope::Local), &stolen.key);
    let certificate = server.signed_by(&key, &issuer).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    (vec![certificate.der().clone()], key.into())
}

#[test]
fn a_certificate_holds_no_name_beyond_the_scope_of_its_authority() {
    let names = LOCAL.iter().chain(&FOREIGN).map(|name| (*name).to_owned());
    let names: Vec<_> = names.collect();
    let authority = made(Scope::Local);
    let (chain, _) = authority.issue(names.iter(), NOW).unwrap();
    for name in LOCAL {
        assert_eq!(refusal(&authority, &chain[0], name), None, "{name}");
    }
    let authority = made(Scope::Any);
    let (chain, _) = authority.issue(names.iter(), NOW).unwrap();
    for name in LOCAL.iter().chain(&FOREIGN) {
        assert_eq!(refusal(&authority, &chain[0], name), None, "{name}");
    }
}
