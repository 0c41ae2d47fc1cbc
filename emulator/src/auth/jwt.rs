//! JSON web tokens, by their shape only.
//!
//! No signature is checked: an emulator has no directory to ask. A token must be one, though, and must not
//! have expired, so that a client that never renews is found out.

use std::sync::Once;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::TokenError;

/// When the token expires, in seconds since the Unix epoch; an error when it has, or is no such token.
pub(super) fn check(token: &str, now: i64) -> Result<i64, TokenError> {
    let expires_at = expiry(token)?;
    if expires_at <= now {
        return Err(TokenError::Expired {
            expired_at: expires_at,
            now,
        });
    }
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "JSON web tokens are accepted without a check of their signature; \
             refuse them with \"Jwt\": \"refuse\" in the namespace's Emulator block"
        );
    });
    Ok(expires_at)
}

fn expiry(token: &str) -> Result<i64, TokenError> {
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed(
            "neither a shared access signature nor a JSON web token, which has three parts with dots between",
        ));
    };
    let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part.trim_end_matches('='));
    let (Ok(_), Ok(payload), Ok(_)) = (decode(header), decode(payload), decode(signature)) else {
        return Err(TokenError::Malformed(
            "a part of the JSON web token is not base64url",
        ));
    };
    let claims: Option<Map<String, Value>> = serde_json::from_slice(&payload).ok();
    let expiry = claims.and_then(|claims| claims.get("exp")?.as_f64());
    // A saturating cast: what is beyond the range expires never, or did long ago.
    expiry
        .map(|seconds| seconds as i64)
        .ok_or(TokenError::Malformed(
            "the claims of the JSON web token are no JSON with a number exp",
        ))
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
    fn a_token_lives_until_its_expiry() {
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
    fn other_texts_are_malformed() {
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

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-zA-Z0-9_.=-]{0,60}") {
            let _ = check(&text, 0);
        }
    }
}
