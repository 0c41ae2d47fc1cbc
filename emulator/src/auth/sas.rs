//! Shared access signatures: `SharedAccessSignature sr=<uri>&sig=<hmac>&se=<unix>&skn=<key name>`.
//!
//! The signature is HMAC-SHA256 over the encoded `sr` and `se`, keyed with the text of the key. SDKs differ
//! in how they encode (wire.md §2.2), so what was received is checked first and other spellings of the
//! same resource after it. Nothing in an error comes from a key but its name.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::hmac;

use super::error::quote;
use super::{Claims, Key, TokenError, audience_path};

const PREFIX: &str = "SharedAccessSignature ";
/// What a URI component keeps as it is (RFC 3986, unreserved).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// What a valid token proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The key that signed it.
    pub key_name: String,
    /// The rights of that key.
    pub claims: Claims,
    /// The path that was signed, normalised by [`audience_path`].
    pub audience_path: String,
    /// End of its validity, in seconds since the Unix epoch.
    pub expires_at: i64,
}

/// Whether the text is meant as a shared access signature.
pub fn is_sas(token: &str) -> bool {
    token
        .get(..PREFIX.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

/// The name of the key that a token claims to be signed with, before anything is proved.
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

/// Judges a token against the keys of a namespace at `now_unix_seconds` of the real clock.
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

/// A token taken apart; the pieces that were signed are as received.
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
        let mut fields = Fields::default();
        for parameter in token[PREFIX.len()..].trim().split('&') {
            fields.put(parameter)?;
        }
        let resource = fields
            .resource
            .ok_or(TokenError::Malformed("sr, the resource, is missing"))?;
        let signature = fields
            .signature
            .ok_or(TokenError::Malformed("sig, the signature, is missing"))?;
        let expiry = fields
            .expiry
            .ok_or(TokenError::Malformed("se, the expiry, is missing"))?;
        let key_name = fields.key_name.ok_or(TokenError::Malformed(
            "skn, the name of the key, is missing",
        ))?;
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

/// The parameters of a token, each at most once.
#[derive(Default)]
struct Fields<'a> {
    resource: Option<&'a str>,
    signature: Option<&'a str>,
    expiry: Option<&'a str>,
    key_name: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn put(&mut self, parameter: &'a str) -> Result<(), TokenError> {
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(TokenError::Malformed("a parameter has no '='"));
        };
        let field = match name {
            "sr" => &mut self.resource,
            "sig" => &mut self.signature,
            "se" => &mut self.expiry,
            "skn" => &mut self.key_name,
            _ => return Ok(()),
        };
        match field.replace(value) {
            None => Ok(()),
            Some(_) => Err(TokenError::Malformed("a parameter stands twice")),
        }
    }
}

/// A key as it signs: with its text.
fn signing(key: &Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key.key.as_bytes())
}

/// What a token signs.
fn signed_text(resource: &str, expiry: &str) -> String {
    format!("{resource}\n{expiry}")
}

fn decode(text: &str) -> Result<Cow<'_, str>, TokenError> {
    percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| TokenError::Malformed("a parameter is not UTF-8"))
}

/// The hexadecimal digits of percent signs in lower case, as .NET writes them.
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
mod tests;
