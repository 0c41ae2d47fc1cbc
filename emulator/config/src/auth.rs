//! Keys, tokens and the rights that they give.
//!
//! A namespace has [`Key`]s. A client proves that it has one with a shared access signature or SASL PLAIN,
//! or shows a JSON web token; [`Policy`] judges that. What a connection has shown so far are its
//! [`Grants`], and those answer every question about a right. Paths in here are normalised by
//! [`audience_path`]: no scheme, no host, no case (decision D14).
//!
//! Times are seconds since the Unix epoch of the real clock, not of a namespace's own
//! (decision D19): clients sign by theirs.
//!
//! Why a client is not let in, in words for a client's log: precise, and never with a secret.

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
pub use grants::{Claim, Claims, Grant, Grants, audience_path, covers};
pub use jwt::verify_issued;
pub use key_set::KeySet;
pub use policy::{Acceptance, Jwt, Policy, TokenCheck, verify_plain};

/// Name of the key that every client of an emulator knows, the official one's and ours.
pub const WELL_KNOWN_KEY_NAME: &str = "RootManageSharedAccessKey";
/// The key that every client of an emulator knows.
pub const WELL_KNOWN_KEY: &str = "SAS_KEY_VALUE";

/// A shared key of a namespace and what it gives.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The name by which tokens and connection strings mean it.
    pub name: String,
    /// The secret, used as the bytes of its text.
    pub key: String,
    /// The rights of a client that has it.
    pub claims: Claims,
}

impl Key {
    /// The key that every client of an emulator knows, with all rights.
    pub fn well_known() -> Self {
        Self {
            name: WELL_KNOWN_KEY_NAME.to_owned(),
            key: WELL_KNOWN_KEY.to_owned(),
            claims: Claims::ALL,
        }
    }
}

impl fmt::Debug for Key {
    /// Everything but the secret, which must not reach a log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Key")
            .field("name", &self.name)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}

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
