//! How clients reach a namespace: its connection strings.

use std::net::IpAddr;

use serde::Serialize;

use crate::auth::{ConnectionString, Key};
use crate::config::NamespaceConfig;
use crate::emulator::{AMQP_PORT, Endpoints};

/// A namespace as its users reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamespaceInfo {
    /// Its name.
    pub name: String,
    /// For the data plane.
    pub connection_string: String,
    /// For the admin API.
    pub admin_connection_string: String,
}

/// Where clients find the emulator.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The host of namespaces without an address of their own.
    host: String,
    /// Its doors.
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

    /// The connection strings of a namespace.
    pub(super) fn info(&self, namespace: &NamespaceConfig) -> NamespaceInfo {
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
        }
    }
}
