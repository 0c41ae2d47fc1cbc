//! The token for the control API, which nothing shows.

use std::fmt;
use std::str::FromStr;

use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use super::AccessError;

const SCHEME: &str = "Bearer";

/// The token that clients beyond loopback send to the control API: letters, digits and `-._~+/=` (RFC 6750 §2.1).
#[derive(Clone, PartialEq, Eq)]
pub struct ControlToken(String);

impl ControlToken {
    /// The value of the header `Authorization` that shows this token.
    pub fn authorization(&self) -> String {
        format!("{SCHEME} {}", self.0)
    }

    /// Whether the value of a header `Authorization` shows this token. How long that takes does not depend on how much
    /// of it is right.
    pub(crate) fn is_shown_by(&self, authorization: &str) -> bool {
        let shown = authorization.split_once(' ');
        let Some((_, shown)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME))
        else {
            return false;
        };
        self.is(shown.trim())
    }

    /// Whether a text is this token.
    pub(crate) fn is(&self, shown: &str) -> bool {
        let key = |text: &str| Key::new(HMAC_SHA256, text.as_bytes());
        let shown = sign(&key(shown), &[]);
        verify(&key(&self.0), &[], shown.as_ref()).is_ok()
    }
}

impl FromStr for ControlToken {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        match !text.is_empty() && text.bytes().all(is_allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(AccessError::Token),
        }
    }
}

impl fmt::Debug for ControlToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("ControlToken")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_shows_itself() {
        let token: ControlToken = "S3cret-token".parse().unwrap();
        assert_eq!(token.authorization(), "Bearer S3cret-token");
        for shown in [
            "Bearer S3cret-token",
            "bearer S3cret-token",
            "Bearer  S3cret-token ",
        ] {
            assert!(token.is_shown_by(shown), "{shown}");
        }
        for shown in [
            "",
            "Bearer",
            "Bearer ",
            "S3cret-token",
            "Basic S3cret-token",
            "Bearer S3cret-toke",
            "Bearer S3cret-token1",
            "Bearer s3cret-token",
        ] {
            assert!(!token.is_shown_by(shown), "{shown}");
        }
    }

    #[test]
    fn nothing_shows_a_token() {
        let token: ControlToken = "S3cret".parse().unwrap();
        assert_eq!(format!("{token:?}"), "ControlToken(..)");
        for wrong in ["", "a b", "gehe\u{ef}m", "a\r\nb", "a,b"] {
            let error = wrong.parse::<ControlToken>().unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(told.starts_with("allowed: letters"), "{told}");
            assert!(wrong.is_empty() || !told.contains(wrong), "{told}");
        }
    }
}
