//! Keys, tokens and the rights that they give.
//!
//! A namespace has [`Key`]s. A client proves that it has one with a shared access signature or SASL PLAIN, or sends a JSON
//! web token; [`Policy`] validates these. [`Grants`] collects the rights of a connection and answers every question about
//! them. [`audience_path`] normalizes all paths: no scheme, no host, lower case (decision D14).
//!
//! Times are seconds since the Unix epoch by the real clock, not a namespace's own (decision D19), because clients sign by
//! theirs.
//!
//! Errors are precise texts for a client's log and never contain a secret.

pub mod connection_string;
mod grants;
pub mod issued_token;
mod jwt;
mod key_set;
mod policy;
pub mod sas;

use std::fmt;

use thiserror::Error;

pub(crate) use key_set::MAX_KEY_SET_SIZE;

pub use connection_string::{ConnectionString, ConnectionStringError};
pub use grants::{Claim, Claims, Grant, Grants, audience_path, covers, path_of_audience};
pub use jwt::verify_issued;
pub use key_set::KeySet;
pub use policy::{Acceptance, Jwt, Policy, TokenCheck, verify_plain};

/// The name of the default key, as in the official emulator.
pub const WELL_KNOWN_KEY_NAME: &str = "RootManageSharedAccessKey";
/// The default key, as in the official emulator.
pub const WELL_KNOWN_KEY: &str = "SAS_KEY_VALUE";

/// A shared key of a namespace, with its rights.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The name in tokens and connection strings.
    pub name: String,
    /// The secret, used as the bytes of its text.
    pub key: String,
    /// The rights that it gives.
    pub claims: Claims,
}

impl Key {
    /// Returns the default key, which has all rights.
    pub fn well_known() -> Self {
        Self {
            name: WELL_KNOWN_KEY_NAME.to_owned(),
            key: WELL_KNOWN_KEY.to_owned(),
            claims: Claims::ALL,
        }
    }
}

impl fmt::Debug for Key {
    /// Omits the secret, which must not be logged.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Key")
            .field("name", &self.name)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}

/// The maximum number of characters of a client's text that an error quotes.
const MAX_QUOTE: usize = 100;

/// Why a token or a password is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenError {
    /// The text does not have the required form.
    #[error("malformed token: {0}")]
    Malformed(&'static str),
    /// The namespace does not have the key.
    #[error("this namespace has no key named {0:?}")]
    UnknownKey(String),
    /// Another key signed it, or it was changed.
    #[error("the signature does not match the key named {0:?}")]
    BadSignature(String),
    /// The password of SASL PLAIN is not the key.
    #[error("the password is not the key named {0:?}")]
    WrongPassword(String),
    /// It has expired; in the service's words (spec/observed.md 67).
    #[error("ExpiredToken: The token is expired. Expiration time: '{}'", instant(*.expired_at))]
    Expired {
        /// When it expired, in seconds since the Unix epoch.
        expired_at: i64,
        /// When it was received.
        now: i64,
    },
    /// It was signed for another audience.
    #[error("the token is for {signed:?} and does not cover {claimed:?}")]
    Audience {
        /// The signed path.
        signed: String,
        /// The requested path.
        claimed: String,
    },
    /// The namespace does not accept JSON web tokens.
    #[error(
        "this namespace refuses JSON web tokens; use a shared access signature, or set Jwt in the Emulator block of its \
         configuration: unsigned tokens are refused unless it is \"accept\" where a key has fewer rights, or where the \
         emulator listens beyond loopback"
    )]
    JwtRefused,
}

/// Shortens a client's text for an error.
pub(crate) fn quote(text: &str) -> String {
    text.chars().take(MAX_QUOTE).collect()
}

fn instant(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(
        |_| format!("{seconds} s after 1970"),
        |instant| instant.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}
