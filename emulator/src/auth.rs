//! Who may do what: keys, tokens and the rights that they give.
//!
//! A namespace has [`Key`]s. A client proves that it has one with a shared access signature or SASL PLAIN,
//! or shows a JSON web token; [`Policy`] judges that. What a connection has shown so far are its
//! [`Grants`], and those answer every question about a right. Paths in here are normalised by
//! [`audience_path`]: no scheme, no host, no case (decision D14).
//!
//! Times are seconds since the Unix epoch of the real clock, not of a namespace's own
//! (decision D19): clients sign by theirs.

mod audience;
mod claims;
pub mod connection_string;
mod error;
mod grants;
pub(crate) mod issued_token;
mod jwt;
mod key_set;
mod plain;
mod policy;
pub mod sas;

use std::fmt;

pub use audience::{audience_path, covers};
pub use claims::{Claim, Claims};
pub use connection_string::{ConnectionString, ConnectionStringError};
pub use error::TokenError;
pub use grants::{Grant, Grants};
pub(crate) use jwt::verify_issued;
pub use key_set::KeySet;
pub(crate) use key_set::MAX_KEY_SET_SIZE;
pub use plain::verify_plain;
pub use policy::{Acceptance, Jwt, Policy, TokenCheck};

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
