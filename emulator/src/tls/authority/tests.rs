use super::*;

const NOW: i64 = 1_800_000_000;

#[test]
fn an_authority_is_its_key_and_its_certificate() {
    let made = Authority::make().unwrap();
    let restored = Authority::restore(made.pem().to_owned(), &made.key_pem()).unwrap();
    assert_eq!(restored.pem(), made.pem());
    assert_eq!(restored.key_pem(), made.key_pem());
}

#[test]
fn files_that_do_not_belong_together_are_named() {
    let [one, other] = [Authority::make().unwrap(), Authority::make().unwrap()];
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
    let (chain, _) = Authority::make().unwrap().issue(names.iter(), NOW).unwrap();
    assert_eq!(chain.len(), 1);
}

#[test]
fn dates_are_those_of_utc() {
    assert_eq!(date(NOW), (2027, 1, 15));
    assert_eq!(date(i64::MAX), (1970, 1, 1));
}
