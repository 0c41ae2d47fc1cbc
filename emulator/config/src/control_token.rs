//! The token for the control API, which nothing shows.

use std::fmt;
use std::str::FromStr;

use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use thiserror::Error;

const SCHEME: &str = "Bearer";

/// The token that clients beyond loopback send to the control API: letters, digits and `-._~+/=` (RFC 6750 §2.1).
#[derive(Clone, PartialEq, Eq)]
pub struct ControlToken(String);

/// It cannot be sent as a token; the error does not repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("allowed: letters, digits and -._~+/=, at least one of them (RFC 6750 §2.1)")]
pub struct ControlTokenError;

impl ControlToken {
    /// The value of the header `Authorization` that shows this token.
    pub fn authorization(&self) -> String {
        format!("{SCHEME} {}", self.0)
    }

    /// Whether the value of a header `Authorization` shows this token. How long that takes does not depend on how much
    /// of it is right.
    pub fn is_shown_by(&self, authorization: &str) -> bool {
        let shown = authorization.split_once(' ');
        let Some((_, shown)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME))
        else {
            return false;
        };
        self.is(shown.trim())
    }

    /// Whether a text is this token.
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
