//! The token of the control API, which is never displayed.

use std::fmt;
use std::str::FromStr;

use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use thiserror::Error;

const SCHEME: &str = "Bearer";

/// The token that clients beyond loopback send to the control API: letters, digits and `-._~+/=` (RFC 6750 §2.1).
#[derive(Clone, PartialEq, Eq)]
pub struct ControlToken(String);

/// The text is not a valid token; the error does not quote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("allowed: letters, digits and -._~+/=, at least one of them (RFC 6750 §2.1)")]
pub struct ControlTokenError;

impl ControlToken {
    /// Returns the value of the `Authorization` header with this token.
    pub fn authorization(&self) -> String {
        format!("{SCHEME} {}", self.0)
    }

    /// Returns whether the value of an `Authorization` header has this token. The comparison takes constant time.
    pub fn is_shown_by(&self, authorization: &str) -> bool {
        let shown = authorization.split_once(' ');
        let Some((_, shown)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME))
        else {
            return false;
        };
        self.is(shown.trim())
    }

    /// Returns whether a text equals this token.
    pub fn is(&self, shown: &str) -> bool {
        let key = |text: &str| Key::new(HMAC_SHA256, text.as_bytes());
        let shown = sign(&key(shown), &[]);
        verify(&key(&self.0), &[], shown.as_ref()).is_ok()
    }
}

impl FromStr for ControlToken {
    type Err = ControlTokenError;

    fn from_str(text: &str) -> Result<Self, ControlTokenError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        match !text.is_empty() && text.bytes().all(is_allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(ControlTokenError),
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
