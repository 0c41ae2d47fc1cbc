//! The namespaces of a process, and its health.

use std::{fmt, net::SocketAddr, path::PathBuf};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A namespace, with its connection strings.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Namespace"))]
pub struct NamespaceInfo {
    /// Its name, which is not case-sensitive.
    pub name: String,
    /// The connection string for clients that send and receive.
    pub connection_string: String,
    /// The connection string for such clients over TLS, as in production.
    #[serde(default)]
    pub tls_connection_string: String,
    /// The connection string for administration clients.
    pub admin_connection_string: String,
    /// Whether tokens are checked: `signature`, or `none` where every client has every right.
    #[serde(default)]
    pub token_check: String,
    /// Which JSON web tokens are accepted: `accept` (unsigned ones, each with every right), `check` (those signed by a key
    /// of the configured set) or `refuse`.
    #[serde(default)]
    pub jwt: String,
    /// Warnings about access that its configuration grants beyond its keys; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl fmt::Debug for NamespaceInfo {
    /// Omits connection strings, because they include keys, which must not be logged.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NamespaceInfo")
            .field("name", &self.name)
            .field("token_check", &self.token_check)
            .field("jwt", &self.jwt)
            .finish_non_exhaustive()
    }
}

/// The line that a process prints once every listener accepts. Listeners that were not requested are null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// `ready`.
    pub event: String,
    /// A message for people.
    #[serde(default)]
    pub message: String,
    /// The version of the emulator.
    pub version: String,
    /// The id of the process.
    pub pid: u32,
    /// The address for AMQP.
    pub amqp: SocketAddr,
    /// The address for AMQP over TLS.
    pub amqps: Option<SocketAddr>,
    /// The address for HTTP.
    pub http: SocketAddr,
    /// The address for HTTP over TLS.
    pub https: Option<SocketAddr>,
    /// The URL of the inspector, a page for browsers.
    #[serde(default)]
    pub inspector: String,
    /// Who may use the control API: `loopback`, or clients that send the `token`.
    #[serde(default)]
    pub control_api: String,
    /// The file with the CA certificates that clients over TLS must trust.
    pub ca_certificate: Option<PathBuf>,
    /// The same certificates as a PKCS#12 file, for Java.
    #[serde(default)]
    pub trust_store: Option<PathBuf>,
    /// The namespaces of the process.
    pub namespaces: Vec<NamespaceInfo>,
}

/// Whether the emulator had internal failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub enum Health {
    /// It had none.
    Healthy {
        /// A message for people.
        message: String,
        /// The memory that connections use.
        memory: MemoryUsage,
        /// The disk of the data directory; missing if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk: Option<DiskState>,
    },
    /// It had some, through errors of its own.
    Unhealthy {
        /// A message for people.
        message: String,
        /// The first 100 failures, the oldest first.
        failures: Vec<Failure>,
    },
}

/// Whether the disk of the data directory has free space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DiskState {
    /// It has.
    Available,
    /// It has none: sends are refused.
    Full,
}

/// The memory that connections use, beside messages in entities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryUsage {
    /// Unfinished messages, bodies of requests, unread output, links and other state of all connections.
    pub held_bytes: usize,
    /// The limit for all connections; a connection that needs more is closed.
    pub limit_bytes: usize,
    /// The limit for one connection: higher if the maximum message size of its namespace exceeds half of it, 1 MiB until a
    /// token was accepted.
    pub connection_limit_bytes: usize,
    /// The number of connections that were closed by either limit.
    pub closed_connections: u64,
}

/// An internal failure of the emulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// The namespace, if it happened in one.
    pub namespace: Option<String>,
    /// The entity that the failure has broken, if any.
    pub entity: Option<String>,
    /// The description.
    pub reason: String,
}

/// A problem that fails a test although it has passed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndCheck {
    /// The failure message; null if there is no problem.
    pub problem: Option<String>,
}

/// The outcome of the test of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndTest {
    /// Whether the test has passed.
    pub passed: bool,
}

/// The report of a test that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestReport {
    /// For a test that has passed, the text with which it must fail, or null if nothing is wrong; for one that has failed, the text
    /// to add to its failure. Both contain the timeline of the namespace.
    pub report: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_a_namespace_hides_its_keys() {
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
