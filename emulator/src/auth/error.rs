//! Why a client is not let in, in words for a client's log: precise, and never with a secret.

use thiserror::Error;

/// Longest piece of a client's text that is repeated to it, in characters.
const MAX_QUOTE: usize = 100;

/// Why a token or a password is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenError {
    /// Not of the form that it should have.
    #[error("malformed token: {0}")]
    Malformed(&'static str),
    /// Signed with a key that the namespace does not have.
    #[error("no key is named {0:?} in this namespace")]
    UnknownKey(String),
    /// Signed with another key, or over other bytes.
    #[error("the signature does not match the key named {0:?}")]
    BadSignature(String),
    /// The password of SASL PLAIN is not the key.
    #[error("the password is not the key named {0:?}")]
    WrongPassword(String),
    /// Valid once.
    /// In the service's words (spec/observed.md 67).
    #[error("ExpiredToken: The token is expired. Expiration time: '{}'", instant(*.expired_at))]
    Expired {
        /// End of its validity, in seconds since the Unix epoch.
        expired_at: i64,
        /// The instant at which it was shown.
        now: i64,
    },
    /// Shown for something that it was not signed for.
    #[error("the token is for {signed:?} and does not cover {claimed:?}")]
    Audience {
        /// The path that was signed.
        signed: String,
        /// The path that was asked for.
        claimed: String,
    },
    /// The namespace takes no JSON web tokens.
    #[error(
        "this namespace refuses JSON web tokens; use a shared access signature, or set Jwt in the Emulator block of its \
         configuration: unsigned tokens are refused unless it is \"accept\" where a key has fewer rights, or where the \
         emulator listens beyond loopback"
    )]
    JwtRefused,
}

/// A client's text, short enough to be repeated.
pub(crate) fn quote(text: &str) -> String {
    text.chars().take(MAX_QUOTE).collect()
}

fn instant(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(
        |_| format!("{seconds} s after 1970"),
        |instant| instant.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}
