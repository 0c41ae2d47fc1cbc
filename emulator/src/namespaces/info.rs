//! How clients reach a namespace: its connection strings.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use crate::auth::{ConnectionString, Key};
use crate::config::words::{self, word};
use crate::config::{Address, NamespaceConfig};
use crate::options::{AMQP_PORT, Endpoints};

/// A namespace as its users reach it.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct NamespaceInfo {
    /// Its name.
    pub name: String,
    /// For the data plane.
    pub connection_string: String,
    /// For the admin API.
    pub admin_connection_string: String,
    /// Whether tokens are checked: `signature`, or `none` where everybody has every right.
    pub token_check: &'static str,
    /// Which JSON web tokens are accepted: `accept` (unsigned ones, each with every right), `check` (those that a key of
    /// its set has signed) or `refuse`.
    pub jwt: &'static str,
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

/// Where clients find the emulator.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The host of namespaces without an address of their own.
    host: String,
    /// Its listeners.
    pub(crate) endpoints: Endpoints,
}

impl Place {
    /// Of an emulator that was told to listen at `host`.
    pub(crate) fn new(host: &str, endpoints: Endpoints) -> Self {
        let is_any = host.parse().is_ok_and(|host: IpAddr| host.is_unspecified());
        let host = if is_any { "localhost" } else { host };
        Self {
            host: host.to_owned(),
            endpoints,
        }
    }

    /// Whether a namespace is reached over loopback addresses alone.
    pub(crate) fn is_local(&self, namespace: &NamespaceConfig) -> bool {
        let own = match &namespace.address {
            Some(Address::Ip(address)) => address.is_loopback(),
            Some(Address::Host(_)) | None => true,
        };
        own && self.endpoints.amqp.ip().is_loopback()
    }

    /// The connection strings of a namespace.
    pub(crate) fn info(&self, namespace: &NamespaceConfig) -> NamespaceInfo {
        let well_known = Key::well_known();
        let key = namespace.keys.first().unwrap_or(&well_known);
        let own = namespace.address.as_ref().map(ToString::to_string);
        let host = own.as_deref().unwrap_or(&self.host);
        let amqp = self.endpoints.amqp.port();
        let amqp = (amqp != AMQP_PORT).then_some(amqp);
        let http = Some(self.endpoints.http.port());
        let string = |port| ConnectionString::for_emulator(host, port, key).to_string();
        NamespaceInfo {
            name: namespace.name.clone(),
            connection_string: string(amqp),
            admin_connection_string: string(http),
            token_check: word(&words::TOKEN_CHECK, &namespace.token_check),
            jwt: namespace.jwt.word().unwrap_or("refuse"),
        }
    }
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
            admin_connection_string: string.into(),
            token_check: "signature",
            jwt: "accept",
        };
        let shown = format!("{info:?}");
        assert!(
            shown.contains("bus") && !shown.contains("S3cret"),
            "{shown}"
        );
    }
}
