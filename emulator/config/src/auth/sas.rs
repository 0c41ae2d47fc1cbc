//! Shared access signatures: `SharedAccessSignature sr=<uri>&sig=<hmac>&se=<unix>&skn=<key name>`.
//!
//! The signature is HMAC-SHA256 over the encoded `sr` and `se`, keyed with the text of the key. SDKs encode differently
//! (wire.md §2.2), so the received spelling is checked first, then other spellings of the same resource. Errors contain only
//! the name of a key.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::hmac;

use super::{Claims, Key, TokenError, audience_path, quote};

const PREFIX: &str = "SharedAccessSignature ";
/// The characters that a URI component does not encode (RFC 3986, unreserved).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A validated token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The name of the key that signed it.
    pub key_name: String,
    /// The rights of that key.
    pub claims: Claims,
    /// The signed path, normalized by [`audience_path`].
    pub audience_path: String,
    /// When it expires, in seconds since the Unix epoch.
    pub expires_at: i64,
}

/// Returns whether the text looks like a shared access signature.
pub fn is_sas(token: &str) -> bool {
    token
        .get(..PREFIX.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

/// Returns the key name of a token, which is not validated.
pub fn claimed_key_name(token: &str) -> Option<String> {
    Parts::read(token).ok().map(|parts| parts.key_name)
}

/// Signs a token for a resource such as `sb://localhost/orders`.
pub fn sign(resource: &str, key: &Key, expires_at: i64) -> String {
    let resource = utf8_percent_encode(resource, ENCODED).to_string();
    let text = signed_text(&resource, &expires_at.to_string());
    let signature = BASE64_STANDARD.encode(hmac::sign(&signing(key), text.as_bytes()));
    format!(
        "{PREFIX}sr={resource}&sig={}&se={expires_at}&skn={}",
        utf8_percent_encode(&signature, ENCODED),
        utf8_percent_encode(&key.name, ENCODED),
    )
}

/// Validates a token with the keys of a namespace at `now_unix_seconds` of the real clock.
pub fn verify(
    token: &str,
    keys: &[Key],
    now_unix_seconds: i64,
) -> Result<VerifiedToken, TokenError> {
    let parts = Parts::read(token)?;
    let mut named = keys
        .iter()
        .filter(|key| key.name == parts.key_name)
        .peekable();
    if named.peek().is_none() {
        return Err(TokenError::UnknownKey(quote(&parts.key_name)));
    }
    let Some(key) = named.find(|key| parts.is_signed_with(key)) else {
        return Err(TokenError::BadSignature(quote(&parts.key_name)));
    };
    if parts.expires_at <= now_unix_seconds {
        return Err(TokenError::Expired {
            expired_at: parts.expires_at,
            now: now_unix_seconds,
        });
    }
    Ok(VerifiedToken {
        key_name: key.name.clone(),
        claims: key.claims,
        audience_path: audience_path(parts.resource),
        expires_at: parts.expires_at,
    })
}

/// A parsed token; the signed parts are as received.
struct Parts<'a> {
    resource: &'a str,
    expiry: &'a str,
    expires_at: i64,
    signature: Vec<u8>,
    key_name: String,
}

impl<'a> Parts<'a> {
    fn read(token: &'a str) -> Result<Self, TokenError> {
        if !is_sas(token) {
            return Err(TokenError::Malformed(
                "it does not begin with \"SharedAccessSignature \"",
            ));
        }
        let parameters = token[PREFIX.len()..].trim().split('&');
        let parameters = parameters.map(|parameter| {
            let pair = parameter.split_once('=');
            pair.ok_or(TokenError::Malformed("a parameter has no '='"))
        });
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        let field = |name, missing| {
            let mut named = parameters.iter().filter(|(own, _)| *own == name);
            match (named.next(), named.next()) {
                (Some((_, value)), None) => Ok(*value),
                (Some(_), Some(_)) => Err(TokenError::Malformed("a parameter stands twice")),
                (None, _) => Err(TokenError::Malformed(missing)),
            }
        };
        let resource = field("sr", "sr, the resource, is missing")?;
        let signature = field("sig", "sig, the signature, is missing")?;
        let expiry = field("se", "se, the expiry, is missing")?;
        let key_name = field("skn", "skn, the name of the key, is missing")?;
        let digits = expiry.bytes().all(|byte| byte.is_ascii_digit());
        let expires_at = expiry.parse().ok().filter(|_| digits);
        Ok(Self {
            resource,
            expiry,
            expires_at: expires_at.ok_or(TokenError::Malformed(
                "se, the expiry, is not a number of seconds",
            ))?,
            signature: BASE64_STANDARD
                .decode(decode(signature)?.as_bytes())
                .map_err(|_| TokenError::Malformed("sig, the signature, is not base64"))?,
            key_name: decode(key_name)?.into_owned(),
        })
    }

    fn is_signed_with(&self, key: &Key) -> bool {
        let key = signing(key);
        let signed = |resource: &str| {
            let text = signed_text(resource, self.expiry);
            hmac::verify(&key, text.as_bytes(), &self.signature).is_ok()
        };
        if signed(self.resource) {
            return true;
        }
        let Ok(plain) = decode(self.resource) else {
            return false;
        };
        let encoded = utf8_percent_encode(&plain, ENCODED).to_string();
        signed(&plain) || signed(&encoded) || signed(&lower_hex(&encoded))
    }
}

/// Returns the signing key, which is the text of the key.
fn signing(key: &Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key.key.as_bytes())
}

/// Returns the text that a token signs.
fn signed_text(resource: &str, expiry: &str) -> String {
    format!("{resource}\n{expiry}")
}

fn decode(text: &str) -> Result<Cow<'_, str>, TokenError> {
    percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| TokenError::Malformed("a parameter is not UTF-8"))
}

/// Converts the hexadecimal digits of percent encodings to lower case, as .NET writes them.
fn lower_hex(encoded: &str) -> String {
    let mut left = 0;
    encoded
        .chars()
        .map(|c| match c {
            '%' => {
                left = 2;
                c
            }
            _ if left > 0 => {
                left -= 1;
                c.to_ascii_lowercase()
            }
            _ => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    //! These signatures were computed by another implementation (Python's hmac).

    use super::*;

    const EXPIRY: i64 = 1_900_000_000;
    const NOW: i64 = EXPIRY - 1;

    /// The signature of `sb%3A%2F%2Flocalhost%2Forders`, a newline and the expiry with the default key.
    const UPPER: &str = "0wfUzNKMIgNwcGA8%2FuuZcg34aAxbW6w9HO2hCp1i594%3D";
    /// The same for `sb%3a%2f%2flocalhost%2forders`.
    const LOWER: &str = "cVaTzARgsAUJDA%2FOxxbA0bEQxghvHNTz1uZd%2BGqTED8%3D";
    /// The same for `sb://localhost/orders`.
    const RAW: &str = "frdUZf8mJb62OrAV5mM34Uf8NCsarBIs9gPiD36%2B6dQ%3D";

    fn token(resource: &str, signature: &str) -> String {
        format!(
            "SharedAccessSignature sr={resource}&sig={signature}&se=1900000000&skn=RootManageSharedAccessKey"
        )
    }

    fn verified(token: &str) -> Result<VerifiedToken, TokenError> {
        verify(token, &[Key::well_known()], NOW)
    }

    #[test]
    fn every_spelling_of_a_resource_is_verified() {
        let table = [
            ("sb%3A%2F%2Flocalhost%2Forders", UPPER, "orders"),
            ("sb%3a%2f%2flocalhost%2forders", LOWER, "orders"),
            // Signed in one spelling, sent in another.
            ("sb%3a%2f%2flocalhost%2forders", UPPER, "orders"),
            ("sb%3A%2F%2Flocalhost%2Forders", LOWER, "orders"),
            ("sb://localhost/orders", UPPER, "orders"),
            ("sb://localhost/orders", RAW, "orders"),
            ("sb%3A%2F%2Flocalhost%2Forders", RAW, "orders"),
            // Signed encoded, then encoded again.
            ("sb%253A%252F%252Flocalhost%252Forders", UPPER, "orders"),
            // A namespace-level resource, as .NET signs it.
            (
                "amqps%3a%2f%2flocalhost%2f",
                "5VVK7ZdeyzSgZeB6O2FvSaylRW1G%2BDgE6%2Fg4NGUo92g%3D",
                "",
            ),
            (
                "sb%3A%2F%2Flocalhost%2Forders%2F%24management",
                "Uifch4v8N8O1df6L8bjHJZc2kHuj8hv5YkJJKe3Xrcg%3D",
                "orders/$management",
            ),
            // An unencoded signature.
            (
                "sb%3A%2F%2Flocalhost%2Forders",
                "0wfUzNKMIgNwcGA8/uuZcg34aAxbW6w9HO2hCp1i594=",
                "orders",
            ),
        ];
        for (resource, signature, path) in table {
            let expected = VerifiedToken {
                key_name: "RootManageSharedAccessKey".into(),
                claims: Claims::ALL,
                audience_path: path.into(),
                expires_at: EXPIRY,
            };
            assert_eq!(
                verified(&token(resource, signature)),
                Ok(expected),
                "{resource}"
            );
        }
    }

    #[test]
    fn the_parameters_of_a_sas_token_may_have_any_order() {
        let shuffled = format!(
            "sharedaccesssignature skn=RootManageSharedAccessKey&x=y&se=1900000000&sig={UPPER}&sr=sb%3A%2F%2Flocalhost%2Forders"
        );
        assert!(verified(&shuffled).is_ok());
    }

    #[test]
    fn a_signed_token_equals_that_of_the_sdks() {
        let signed = sign("sb://localhost/orders", &Key::well_known(), EXPIRY);
        assert_eq!(signed, token("sb%3A%2F%2Flocalhost%2Forders", UPPER));
    }

    #[test]
    fn refusals_name_the_key_and_the_expiry_and_never_the_secret() {
        let valid = token("sb%3A%2F%2Flocalhost%2Forders", UPPER);
        let expired = verify(&valid, &[Key::well_known()], EXPIRY).unwrap_err();
        assert_eq!(
            expired.to_string(),
            "ExpiredToken: The token is expired. Expiration time: '2030-03-17 17:46:40Z'"
        );
        let other = Key {
            key: "other".into(),
            ..Key::well_known()
        };
        let wrong = verify(&valid, &[other], NOW).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "the signature does not match the key named \"RootManageSharedAccessKey\""
        );
        let unknown = verify(&valid, &[], NOW).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "this namespace has no key named \"RootManageSharedAccessKey\""
        );
        let elsewhere = verified(&token("sb%3A%2F%2Flocalhost%2Finvoices", UPPER));
        assert_eq!(
            elsewhere,
            Err(TokenError::BadSignature("RootManageSharedAccessKey".into()))
        );
        let later = valid.replace("1900000000", "1900000001");
        assert!(matches!(verified(&later), Err(TokenError::BadSignature(_))));
        assert!(!format!("{:?}", Key::well_known()).contains("SAS_KEY_VALUE"));
    }

    #[test]
    fn a_wrong_signature_is_reported_before_an_expiry() {
        let forged = token(
            "sb%3A%2F%2Flocalhost%2Forders",
            LOWER.trim_end_matches("%3D"),
        );
        assert!(matches!(
            verify(&forged, &[Key::well_known()], EXPIRY + 1),
            Err(TokenError::Malformed(_))
        ));
        let forged = token("sb%3A%2F%2Flocalhost%2Finvoices", LOWER);
        let refused = verify(&forged, &[Key::well_known()], EXPIRY + 1);
        assert!(matches!(refused, Err(TokenError::BadSignature(_))));
    }

    #[test]
    fn all_keys_of_one_name_are_tried() {
        let old = Key {
            key: "old".into(),
            ..Key::well_known()
        };
        let valid = token("sb%3A%2F%2Flocalhost%2Forders", UPPER);
        assert!(verify(&valid, &[old, Key::well_known()], NOW).is_ok());
    }

    /// Parameters of a token, and the reason.
    const MALFORMED: &str = "\
        sr | a parameter has no '='
        sig=a&se=1&skn=k | sr, the resource, is missing
        sr=a&se=1&skn=k | sig, the signature, is missing
        sr=a&sig=YQ==&skn=k | se, the expiry, is missing
        sr=a&sig=YQ==&se=1 | skn, the name of the key, is missing
        sr=a&sr=a&sig=YQ==&se=1&skn=k | a parameter stands twice
        sr=a&sig=YQ==&se=soon&skn=k | se, the expiry, is not a number of seconds
        sr=a&sig=YQ==&se=&skn=k | se, the expiry, is not a number of seconds
        sr=a&sig=YQ==&se=-1&skn=k | se, the expiry, is not a number of seconds
        sr=a&sig=YQ==&se=99999999999999999999&skn=k | se, the expiry, is not a number of seconds
        sr=a&sig=!&se=1&skn=k | sig, the signature, is not base64
        sr=a&sig=YQ==&se=1&skn=%ff | a parameter is not UTF-8";

    #[test]
    fn the_error_for_a_malformed_token_has_the_reason() {
        let assert_malformed = |text: &str, reason| {
            let refused = verified(text).unwrap_err();
            assert_eq!(refused, TokenError::Malformed(reason), "{text}");
            assert_eq!(refused.to_string(), format!("malformed token: {reason}"));
        };
        for text in ["", "Bearer x"] {
            assert_malformed(text, "it does not begin with \"SharedAccessSignature \"");
        }
        assert_malformed("SharedAccessSignature ", "a parameter has no '='");
        for line in MALFORMED.lines() {
            let (parameters, reason) = line.trim().split_once(" | ").expect("two cells");
            assert_malformed(&format!("SharedAccessSignature {parameters}"), reason);
        }
    }

    #[test]
    fn the_key_name_is_read_without_verification() {
        let text = token("x", "YQ==");
        assert_eq!(
            claimed_key_name(&text).as_deref(),
            Some("RootManageSharedAccessKey")
        );
        assert_eq!(claimed_key_name("abc"), None);
    }

    #[test]
    fn long_names_are_cut_in_errors() {
        let name = "n".repeat(5000);
        let refused = verified(&format!(
            "SharedAccessSignature sr=a&sig=YQ==&se=1&skn={name}"
        ));
        assert_eq!(refused, Err(TokenError::UnknownKey("n".repeat(100))));
    }

    proptest::proptest! {
        #[test]
        fn a_signed_token_is_verified(resource in "\\PC{1,40}", name in "[^\\x00-\\x1f;]{1,20}", secret in "\\PC*") {
            let key = Key { name, key: secret, claims: Claims::ALL };
            let verified = verify(&sign(&resource, &key, EXPIRY), std::slice::from_ref(&key), NOW);
            proptest::prop_assert_eq!(verified.map(|token| token.key_name), Ok(key.name));
        }
    }
}
