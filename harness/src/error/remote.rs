//! Why a `ServiceBus` did not start in a namespace.

use std::io;

use servicebus_emulator::auth::ConnectionStringError;

use super::control::ControlError;
use crate::{
    catalog::EntityKind,
    file_lock::FileLockError,
    variables::{CONNECTION_STRING_VARIABLE, MAX_REAL_WAIT_VARIABLE},
};

/// Where the right connection string is found.
const WHERE: &str = "takes the connection string of a key of the whole namespace with the right Manage: in the portal under \"Shared access policies\", of an emulator its `tls_admin_connection_string`";

/// Why a `ServiceBus` did not start in the namespace that was named.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// Neither the builder nor the environment names a namespace.
    #[error(
        "mode \"namespace\" works in the namespace that {CONNECTION_STRING_VARIABLE} names, which is not set; it {WHERE}"
    )]
    NotNamed,
    /// The text is something else.
    #[error("{CONNECTION_STRING_VARIABLE} is no connection string: {0}; it {WHERE}")]
    Unreadable(ConnectionStringError),
    /// It has a finished token, or nothing, instead of a key.
    #[error(
        "{CONNECTION_STRING_VARIABLE} has no SharedAccessKey with its SharedAccessKeyName; it {WHERE}"
    )]
    NoKey,
    /// It is limited to one entity.
    #[error("{CONNECTION_STRING_VARIABLE} is that of the entity \"{entity}\" alone; it {WHERE}")]
    EntityOnly {
        /// Which.
        entity: String,
    },
    /// The limit of waiting is no number.
    #[error("{MAX_REAL_WAIT_VARIABLE} is \"{value}\"; allowed: whole seconds, such as 90")]
    MaxRealWait {
        /// What the variable holds.
        value: String,
    },
    /// The host is not found.
    #[error("the host {host} of {CONNECTION_STRING_VARIABLE} is not found: {source}")]
    UnknownHost {
        /// The host.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// No authority is trusted.
    #[error(
        "no certificate authority is trusted here, so that no namespace could be: {0}; for an emulator name its ca.pem in SSL_CERT_FILE"
    )]
    NoTrust(String),
    /// Another `ServiceBus` works there, or its lock cannot be read.
    #[error(
        "{0}; one `ServiceBus` of a machine at a time works there, and a test that holds two at once starts them with `.prefixed()`"
    )]
    FileLock(FileLockError),
    /// It does not answer, or not to this key.
    #[error(
        "cannot work in the namespace at {host}: {source}; {CONNECTION_STRING_VARIABLE} {WHERE}"
    )]
    Refused {
        /// The host and port of its administration API.
        host: String,
        /// What it said.
        source: ControlError,
    },
    /// An entity of this name exists there.
    #[error(
        "the namespace has a {kind} \"{name}\" that no test made: remove it, or use a namespace for tests alone"
    )]
    NotOurs {
        /// What it is.
        kind: EntityKind,
        /// Its name.
        name: String,
    },
    /// The topology asks for what cannot be had there.
    #[error("could not check: {0}")]
    Uncheckable(String),
    /// An entity was not made.
    #[error("cannot make the {kind} \"{name}\" in the namespace: {source}")]
    Make {
        /// What was to be made.
        kind: EntityKind,
        /// Its name.
        name: String,
        /// What the namespace said.
        source: ControlError,
    },
}
