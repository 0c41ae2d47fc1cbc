//! A key set for checking the signatures of JSON web tokens (RFC 7517).
//!
//! The type of a key determines the algorithms that it may check, not the header of a token: a token with another algorithm
//! than its key's, or with none, is rejected.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::{Value, json};

/// The maximum size of a key set in bytes.
pub(crate) const MAX_KEY_SET_SIZE: u64 = 1024 * 1024;

/// The maximum number of keys: a token without a key id is checked with each.
const MAX_KEYS: usize = 100;

/// The keys that may sign JSON web tokens, and the required audience.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    /// The required audience; any if `None`.
    pub audience: Option<String>,
    keys: Vec<PublicKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PublicKey {
    id: Option<String>,
    /// The only algorithm of the key, if it specifies one.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    P384(Vec<u8>),
}

/// A key in JSON. Members that are not needed are not read, above all the private parts of a key.
#[derive(Deserialize)]
struct Written {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct WrittenSet {
    keys: Vec<Written>,
}

impl KeySet {
    /// Parses a key set (RFC 7517 §5). The error describes the problem without quoting the set. Keys of other types are
    /// ignored, as RFC 7517 requires, but at least one must remain.
    pub fn parse(text: &str, audience: Option<String>) -> Result<Self, String> {
        Self::of(serde_json::from_str(text), audience)
    }

    /// As [`Self::parse`], for a set within other JSON.
    pub(crate) fn from_json(set: Value, audience: Option<String>) -> Result<Self, String> {
        Self::of(serde_json::from_value(set), audience)
    }

    fn of(set: serde_json::Result<WrittenSet>, audience: Option<String>) -> Result<Self, String> {
        let set = set.map_err(|error| not_a_set(&error))?;
        if set.keys.len() > MAX_KEYS {
            return Err(format!(
                "it has {} keys; at most {MAX_KEYS} are allowed",
                set.keys.len()
            ));
        }
        let keys: Vec<PublicKey> = set.keys.into_iter().filter_map(PublicKey::read).collect();
        if keys.is_empty() {
            return Err("it has no key of type RSA, or EC on P-256 or P-384, to check with".into());
        }
        Ok(Self { audience, keys })
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns `false`: a set has at least one key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the set in the form of RFC 7517, which parses to the same set.
    pub(crate) fn to_json(&self) -> Value {
        json!({"keys": self.keys.iter().map(PublicKey::to_json).collect::<Vec<_>>()})
    }

    /// Returns whether a key has signed `signed` with the algorithm of the token. If the token has a key id, only that key
    /// counts.
    pub(crate) fn verifies(
        &self,
        algorithm: &str,
        id: Option<&str>,
        signed: &str,
        signature: &[u8],
    ) -> bool {
        let named = |key: &&PublicKey| match (&key.id, id) {
            (Some(own), Some(meant)) => own == meant,
            (None, _) | (_, None) => true,
        };
        let mut keys = self.keys.iter().filter(named);
        keys.any(|key| key.verifies(algorithm, signed.as_bytes(), signature))
    }
}

/// Describes the error's position. The parser's message could quote a value, and so a key.
fn not_a_set(error: &serde_json::Error) -> String {
    let reason = match error.classify() {
        Category::Data => "a member is missing or of another type",
        Category::Io | Category::Syntax | Category::Eof => "this is not JSON",
    };
    let place = match (error.line(), error.column()) {
        (0, _) => String::new(),
        (line, column) => format!(" at line {line}, column {column}"),
    };
    format!("it is not a JSON web key set{place}: {reason}")
}

impl PublicKey {
    fn read(written: Written) -> Option<Self> {
        if written.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let decode = |text: Option<String>| {
            BASE64_URL_SAFE_NO_PAD
                .decode(text?.trim_end_matches('='))
                .ok()
        };
        let material = match (written.kty.as_str(), written.crv.as_deref()) {
            ("RSA", _) => Material::Rsa {
                modulus: decode(written.n)?,
                exponent: decode(written.e)?,
            },
            ("EC", Some("P-256")) => {
                Material::P256(point(&decode(written.x)?, &decode(written.y)?, 32)?)
            }
            ("EC", Some("P-384")) => {
                Material::P384(point(&decode(written.x)?, &decode(written.y)?, 48)?)
            }
            _ => return None,
        };
        Some(Self {
            id: written.kid,
            algorithm: written.alg,
            material,
        })
    }

    fn to_json(&self) -> Value {
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let curve = |name: &str, point: &[u8]| {
            // The two coordinates have equal lengths, after one byte that marks an uncompressed point.
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({"kty": "EC", "crv": name, "x": encode(x), "y": encode(y)})
        };
        let mut written = match &self.material {
            Material::Rsa { modulus, exponent } => {
                json!({"kty": "RSA", "n": encode(modulus), "e": encode(exponent)})
            }
            Material::P256(point) => curve("P-256", point),
            Material::P384(point) => curve("P-384", point),
        };
        for (name, value) in [("kid", &self.id), ("alg", &self.algorithm)] {
            if let Some(value) = value {
                written[name] = value.as_str().into();
            }
        }
        written
    }

    fn verifies(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        if self
            .algorithm
            .as_deref()
            .is_some_and(|own| own != algorithm)
        {
            return false;
        }
        let checked = match (&self.material, algorithm) {
            (Material::Rsa { modulus, exponent }, _) => {
                let Some(parameters) = rsa(algorithm) else {
                    return false;
                };
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, signed, signature)
            }
            (Material::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            (Material::P384(point), "ES384") => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(signed, signature)
            }
            (Material::P256(_) | Material::P384(_), _) => return false,
        };
        checked.is_ok()
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Returns a point from coordinates of `length` bytes each (RFC 7518 §6.2.1.2); `None` for other lengths.
fn point(x: &[u8], y: &[u8], length: usize) -> Option<Vec<u8>> {
    (x.len() == length && y.len() == length).then(|| [&[4], x, y].concat())
}

#[cfg(test)]
mod tests {
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

        /// Returns its public key as a member of a set.
        fn public(&self, more: &str) -> String {
            let point = self.0.public_key().as_ref();
            let [x, y] =
                [&point[1..33], &point[33..]].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
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
    fn a_token_signed_by_a_key_of_the_set_is_accepted() {
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
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/tokens/");
        let read = |name| std::fs::read_to_string(format!("{path}{name}")).unwrap();
        let keys = KeySet::parse(&read("jwks.json"), None).unwrap();
        let token = read("rs256.jwt");
        assert_eq!(jwt::verify(token.trim(), &keys, NOW), Ok(4_000_000_000));
    }

    #[test]
    fn tokens_not_signed_by_a_key_of_the_set_are_refused() {
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
        // A key for another algorithm checks nothing here.
        let keys = set(&[signer.public(r#","alg":"ES384""#)], None);
        assert!(jwt::verify(&good, &keys, NOW).is_err());
    }

    #[test]
    fn a_token_must_have_the_audience_of_the_key_set() {
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
    fn a_key_set_without_a_usable_key_is_refused() {
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
}
