//! How clients reach a namespace: its connection strings.

use std::net::IpAddr;

use servicebus_control_api::NamespaceInfo;

use crate::auth::{ConnectionString, Key};
use crate::config::words::{self, word};
use crate::config::{Address, NamespaceConfig};
use crate::options::{AMQP_PORT, Endpoints};

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
            token_check: word(&words::TOKEN_CHECK, &namespace.token_check).to_owned(),
            jwt: namespace.jwt.word().unwrap_or("refuse").to_owned(),
        }
    }
}
