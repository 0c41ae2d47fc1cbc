//! JSON web tokens, checked by form and expiry only, or by signature if a key set is given.
//!
//! An emulator has no directory to ask. Form and expiry are still checked, to detect clients that never renew their tokens.

use std::sync::Once;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{KeySet, TokenError, issued_token, quote};

/// By how much the issuer's clock may be ahead, in seconds.
const AHEAD: i64 = 300;

/// The header of a token.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
}

/// A parsed token.
struct Parts<'a> {
    header: Vec<u8>,
    claims: Map<String, Value>,
    /// Header and claims in their signed form.
    signed: &'a str,
    signature: Vec<u8>,
}

/// Returns when a token of this emulator expires; `None` for a token of another issuer. A token with a false claim of this
/// issuer is an error.
pub fn verify_issued(token: &str, now: i64) -> Result<Option<i64>, TokenError> {
    let parts = Parts::read(token)?;
    if parts.claims.get("iss").and_then(Value::as_str) != Some(issued_token::ISSUER) {
        return Ok(None);
    }
    if !issued_token::is_signed(parts.signed, &parts.signature) {
        return Err(TokenError::BadSignature("of this emulator".to_owned()));
    }
    parts.expiry(now).map(Some)
}

/// Returns when the token expires, in seconds since the Unix epoch; an error if it has expired or is malformed. Does not
/// check who issued it, which a warning logs once.
pub(crate) fn check(token: &str, now: i64) -> Result<i64, TokenError> {
    let expires_at = Parts::read(token)?.expiry(now)?;
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "JSON web tokens are accepted without a check of their signature; \
             give a key set, or refuse them with \"Jwt\": \"refuse\", in the namespace's Emulator block"
        );
    });
    Ok(expires_at)
}

/// As [`check`], for a token that one of the keys must have signed, for the audience of the set.
pub(crate) fn verify(token: &str, keys: &KeySet, now: i64) -> Result<i64, TokenError> {
    let parts = Parts::read(token)?;
    let header: Header = serde_json::from_slice(&parts.header).map_err(|_| {
        TokenError::Malformed("the header of the JSON web token is not JSON with an algorithm")
    })?;
    let id = header.kid.as_deref();
    if !keys.verifies(&header.alg, id, parts.signed, &parts.signature) {
        let id = id.unwrap_or("of the key set");
        return Err(TokenError::BadSignature(quote(id)));
    }
    parts.check_audience(keys)?;
    parts.expiry(now)
}

impl<'a> Parts<'a> {
    fn read(token: &'a str) -> Result<Self, TokenError> {
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Malformed(
                "neither a shared access signature nor a JSON web token, which has three parts with dots between",
            ));
        };
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part.trim_end_matches('='));
        let signed = &token[..header.len() + 1 + payload.len()];
        let (Ok(header), Ok(payload), Ok(signature)) =
            (decode(header), decode(payload), decode(signature))
        else {
            return Err(TokenError::Malformed(
                "a part of the JSON web token is not base64url",
            ));
        };
        let claims = serde_json::from_slice(&payload).map_err(|_| no_expiry())?;
        Ok(Self {
            header,
            claims,
            signed,
            signature,
        })
    }

    fn expiry(&self, now: i64) -> Result<i64, TokenError> {
        // A saturating cast: values beyond the range never expire, or did long ago.
        let instant = |name| {
            self.claims
                .get(name)?
                .as_f64()
                .map(|seconds| seconds as i64)
        };
        let expires_at = instant("exp").ok_or_else(no_expiry)?;
        if expires_at <= now {
            return Err(TokenError::Expired {
                expired_at: expires_at,
                now,
            });
        }
        if instant("nbf").is_some_and(|begin| begin > now.saturating_add(AHEAD)) {
            return Err(TokenError::Malformed("the JSON web token is not valid yet"));
        }
        Ok(expires_at)
    }

    fn check_audience(&self, keys: &KeySet) -> Result<(), TokenError> {
        let Some(expected) = &keys.audience else {
            return Ok(());
        };
        let named = match self.claims.get("aud") {
            Some(Value::Array(several)) => several.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let named: Vec<&str> = named.iter().filter_map(Value::as_str).collect();
        // Directories write it with and without a slash at the end.
        let plain = |audience: &str| audience.trim_end_matches('/').to_lowercase();
        if named
            .iter()
            .any(|audience| plain(audience) == plain(expected))
        {
            return Ok(());
        }
        Err(TokenError::Audience {
            signed: quote(&named.join(", ")),
            claimed: quote(expected),
        })
    }
}

fn no_expiry() -> TokenError {
    TokenError::Malformed("the claims of the JSON web token are not JSON with a number exp")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        let encode = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        format!(
            "{}.{}.{}",
            encode(r#"{"alg":"RS256"}"#),
            encode(claims),
            encode("signature")
        )
    }

    #[test]
    fn a_json_web_token_is_valid_until_its_expiry() {
        let fixed = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJodHRwczovL3NlcnZpY2VidXMuYXp1cmUubmV0IiwiZXhwIjoxOTAwMDAwMDAwfQ.c2ln";
        assert_eq!(check(fixed, 1_899_999_999), Ok(1_900_000_000));
        let expired = TokenError::Expired {
            expired_at: 1_900_000_000,
            now: 1_900_000_000,
        };
        assert_eq!(check(fixed, 1_900_000_000), Err(expired));
        assert_eq!(check(&token(r#"{"exp":12.5}"#), 0), Ok(12));
        assert_eq!(check(&token(r#"{"exp":1e300}"#), 0), Ok(i64::MAX));
    }

    #[test]
    fn a_json_web_token_before_its_nbf_is_refused() {
        let token = token(r#"{"exp":2000,"nbf":1000}"#);
        assert_eq!(check(&token, 700), Ok(2000));
        let early = TokenError::Malformed("the JSON web token is not valid yet");
        assert_eq!(check(&token, 699), Err(early));
    }

    #[test]
    fn invalid_json_web_tokens_are_malformed() {
        let table = [
            "",
            "abc",
            "a.b",
            "a.b.c.d",
            "!.e30.",
            ".. ",
            "..",
            "e30.e30.e30",
            &token("{}"),
            &token(r#"{"exp":"1"}"#),
            &token("[1]"),
            &token(&"[".repeat(100_000)),
        ]
        .map(str::to_owned);
        for text in table {
            assert!(
                matches!(check(&text, 0), Err(TokenError::Malformed(_))),
                "{text:.80}"
            );
        }
    }
}
