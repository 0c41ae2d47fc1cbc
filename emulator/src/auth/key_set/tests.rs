use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};

use super::super::{TokenError, jwt};
use super::*;

const NOW: i64 = 1_800_000_000;

/// An issuer that signs with ES256.
struct Signer(EcdsaKeyPair);

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap())
    }

    /// Its public key as it stands in a set.
    fn public(&self, more: &str) -> String {
        let point = self.0.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"{more}}}"#)
    }

    fn token(&self, header: &str, claims: &str) -> String {
        let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{header}.{claims}");
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature.unwrap());
        format!("{signed}.{signature}")
    }
}

fn set(keys: &[String], audience: Option<&str>) -> KeySet {
    let text = format!(r#"{{"keys":[{}]}}"#, keys.join(","));
    KeySet::parse(&text, audience.map(str::to_owned)).unwrap()
}

const HEADER: &str = r#"{"alg":"ES256","kid":"one"}"#;
const CLAIMS: &str = r#"{"exp":1900000000,"aud":["x","https://servicebus.azure.net/"]}"#;

#[test]
fn a_token_of_a_key_in_the_set_is_accepted() {
    let signer = Signer::new();
    let token = signer.token(HEADER, CLAIMS);
    for more in ["", r#","kid":"one""#, r#","alg":"ES256","use":"sig""#] {
        let keys = set(&[signer.public(more)], Some("https://servicebus.azure.net"));
        assert_eq!(jwt::verify(&token, &keys, NOW), Ok(1_900_000_000), "{more}");
    }
    let nameless = signer.token(r#"{"alg":"ES256"}"#, CLAIMS);
    let keys = set(&[Signer::new().public(""), signer.public("")], None);
    assert_eq!(jwt::verify(&nameless, &keys, NOW), Ok(1_900_000_000));
}

#[test]
fn a_signature_of_openssl_is_accepted() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/tokens/");
    let read = |name| std::fs::read_to_string(format!("{path}{name}")).unwrap();
    let keys = KeySet::parse(&read("jwks.json"), None).unwrap();
    let token = read("rs256.jwt");
    assert_eq!(jwt::verify(token.trim(), &keys, NOW), Ok(4_000_000_000));
}

#[test]
fn every_other_token_is_refused() {
    let signer = Signer::new();
    let keys = set(&[signer.public(r#","kid":"one""#)], None);
    let good = signer.token(HEADER, CLAIMS);
    let forged = Signer::new().token(HEADER, CLAIMS);
    let (_, signature) = good.rsplit_once('.').unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.encode(r#"{"exp":1900000001}"#);
    let changed = format!("{}.{claims}.{signature}", good.split('.').next().unwrap());
    let bare = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let none = format!("{bare}.{claims}.");
    let named = TokenError::BadSignature("one".into());
    let nameless = TokenError::BadSignature("of the key set".into());
    for (token, error) in [
        (forged, named.clone()),
        (changed, named.clone()),
        (none, nameless),
        (
            signer.token(r#"{"alg":"ES384","kid":"one"}"#, CLAIMS),
            named.clone(),
        ),
        (
            signer.token(r#"{"alg":"HS256","kid":"one"}"#, CLAIMS),
            named,
        ),
        (
            signer.token(r#"{"alg":"ES256","kid":"two"}"#, CLAIMS),
            TokenError::BadSignature("two".into()),
        ),
    ] {
        assert_eq!(jwt::verify(&token, &keys, NOW), Err(error), "{token}");
    }
    let expired = jwt::verify(&good, &keys, 1_900_000_000);
    assert!(matches!(expired, Err(TokenError::Expired { .. })));
    // A key that is for another algorithm checks nothing here.
    let keys = set(&[signer.public(r#","alg":"ES384""#)], None);
    assert!(jwt::verify(&good, &keys, NOW).is_err());
}

#[test]
fn a_token_must_be_for_the_audience_of_the_set() {
    let signer = Signer::new();
    let keys = set(&[signer.public("")], Some("https://servicebus.azure.net"));
    for claims in [
        r#"{"exp":1900000000}"#,
        r#"{"exp":1900000000,"aud":"https://vault.azure.net"}"#,
        r#"{"exp":1900000000,"aud":7}"#,
    ] {
        let refused = jwt::verify(&signer.token(HEADER, claims), &keys, NOW);
        assert!(
            matches!(refused, Err(TokenError::Audience { .. })),
            "{claims}"
        );
    }
}

#[test]
fn a_set_without_a_key_to_check_with_is_refused() {
    for text in [
        "",
        "[]",
        r#"{"keys":[]}"#,
        r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#,
        r#"{"keys":[{"kty":"RSA","n":"!","e":"AQAB"}]}"#,
        r#"{"keys":[{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}]}"#,
        r#"{"keys":[{"kty":"RSA","n":"AA","e":"AQAB","use":"enc"}]}"#,
    ] {
        assert!(KeySet::parse(text, None).is_err(), "{text}");
    }
}
