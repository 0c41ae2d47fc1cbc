//! The namespaces of a process, and whether it is healthy.

use std::{fmt, net::SocketAddr, path::PathBuf};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A namespace as its users reach it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(rename = "Namespace", deny_unknown_fields)
)]
pub struct NamespaceInfo {
    /// Its name; upper and lower case make no difference.
    pub name: String,
    /// For clients that send and receive.
    pub connection_string: String,
    /// For clients that do so over TLS, as in production.
    #[serde(default)]
    pub tls_connection_string: String,
    /// For administration clients.
    pub admin_connection_string: String,
    /// Whether tokens are checked: `signature`, or `none` where every client has every right.
    #[serde(default)]
    pub token_check: String,
    /// Which JSON web tokens are accepted: `accept` (unsigned ones, each with every right), `check` (those that a key of
    /// its set has signed) or `refuse`.
    #[serde(default)]
    pub jwt: String,
    /// What its configuration opens further than its keys say; left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl fmt::Debug for NamespaceInfo {
    /// Without connection strings: keys, which must not reach a log, are part of them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NamespaceInfo")
            .field("name", &self.name)
            .field("token_check", &self.token_check)
            .field("jwt", &self.jwt)
            .finish_non_exhaustive()
    }
}

/// The line that a process prints once every listener accepts. Listeners that were not asked for are null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// `ready`.
    pub event: String,
    /// The same for people.
    #[serde(default)]
    pub message: String,
    /// The version of the emulator.
    pub version: String,
    /// The id of the process.
    pub pid: u32,
    /// AMQP.
    pub amqp: SocketAddr,
    /// AMQP over TLS.
    pub amqps: Option<SocketAddr>,
    /// HTTP.
    pub http: SocketAddr,
    /// HTTP over TLS.
    pub https: Option<SocketAddr>,
    /// Where a browser is shown what the emulator holds.
    #[serde(default)]
    pub inspector: String,
    /// Who may use the control API: `loopback`, or clients that show the `token`.
    #[serde(default)]
    pub control_api: String,
    /// The file with the certificates that clients of TLS must trust.
    pub ca_certificate: Option<PathBuf>,
    /// The same certificates as a PKCS#12 file, for Java.
    #[serde(default)]
    pub trust_store: Option<PathBuf>,
    /// The namespaces that are served.
    pub namespaces: Vec<NamespaceInfo>,
}

/// Whether anything has failed inside the emulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub enum Health {
    /// Nothing has.
    Healthy {
        /// The same for people.
        message: String,
        /// What connections make the emulator keep.
        memory: MemoryUsage,
    },
    /// Something has, by a mistake of the emulator.
    Unhealthy {
        /// The same for people.
        message: String,
        /// The first 100, oldest first.
        failures: Vec<Failure>,
    },
}

/// What connections make the emulator keep, beside messages that entities hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct MemoryUsage {
    /// Unfinished messages, bodies of requests, unread output, links and other state of all connections.
    pub held_bytes: usize,
    /// The most of it; a connection that asks for more is closed.
    pub limit_bytes: usize,
    /// The most of one connection: more where a message of its namespace may have more than half of that, 1 MiB until a
    /// token was accepted.
    pub connection_limit_bytes: usize,
    /// Connections that were closed because of either limit.
    pub closed_connections: u64,
}

/// Something that failed inside the emulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Failure {
    /// The namespace, if it happened in one.
    pub namespace: Option<String>,
    /// The entity that is broken by it, if one is.
    pub entity: Option<String>,
    /// What it says.
    pub reason: String,
}

/// What a test that has passed fails for nevertheless.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct EndCheck {
    /// The text to fail it with; null where nothing is wrong.
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_key() {
        let string = "Endpoint=sb://localhost;SharedAccessKeyName=n;SharedAccessKey=S3cret;";
        let info = NamespaceInfo {
            name: "bus".into(),
            connection_string: string.into(),
            tls_connection_string: string.into(),
            admin_connection_string: string.into(),
            token_check: "signature".into(),
            jwt: "accept".into(),
            warnings: Vec::new(),
        };
        let shown = format!("{info:?}");
        assert!(
            shown.contains("bus") && !shown.contains("S3cret"),
            "{shown}"
        );
    }
}
