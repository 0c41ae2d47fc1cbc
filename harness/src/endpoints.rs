//! The addresses and connection strings of a namespace.

use std::{fmt, net::SocketAddr, ops::Deref};

use serde::Deserialize;
use servicebus_config::{HTTP_PORT, auth::ConnectionString};
use servicebus_control_api::NamespaceInfo;

use crate::error::Error;

/// The addresses at which a namespace listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// AMQP without TLS; with TLS in mode [`Mode::Namespace`](crate::Mode::Namespace), where every port requires it.
    pub amqp: SocketAddr,
    /// AMQP over TLS.
    pub amqps: SocketAddr,
    /// HTTP: the control API, and AMQP over WebSocket.
    pub http: SocketAddr,
    /// HTTP over TLS, if [`Builder::ports`](crate::Builder::ports) set a port for it. Every other port accepts TLS too.
    pub https: Option<SocketAddr>,
}

/// The ports of a namespace beside those of AMQP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HttpPorts {
    pub(crate) http: u16,
    pub(crate) https: Option<u16>,
}

impl Default for HttpPorts {
    fn default() -> Self {
        Self {
            http: HTTP_PORT,
            https: None,
        }
    }
}

impl HttpPorts {
    /// Refuses a port that the namespace uses already, which would be in use at every address.
    pub(crate) fn check(self) -> Result<(), Error> {
        let Self { http, https } = self;
        let mut ports = [Some(http), https].into_iter().flatten();
        if let Some(port) = ports.find(|port| [5671, 5672].contains(port)) {
            return Err(Error::start(format!(
                "the port {port} in `ports` is that of AMQP; choose another"
            )));
        }
        if https == Some(http) && http != 0 {
            return Err(Error::start(format!(
                "the port {http} is twice in `ports`; HTTP over TLS needs one of its own"
            )));
        }
        Ok(())
    }
}

/// A namespace with its connection strings.
#[derive(Debug, Clone)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) connection_string: Secret,
    pub(crate) admin_connection_string: Secret,
}

impl From<NamespaceInfo> for Namespace {
    fn from(info: NamespaceInfo) -> Self {
        Self {
            name: info.name,
            connection_string: info.connection_string.into(),
            admin_connection_string: info.admin_connection_string.into(),
        }
    }
}

/// Returns a connection string after a change; one that cannot be parsed stays unchanged.
pub(crate) fn with_change(string: &str, change: impl FnOnce(&mut ConnectionString)) -> Secret {
    match string.parse() {
        Ok(mut read) => {
            change(&mut read);
            Secret(read.to_string())
        }
        Err(_) => Secret(string.to_owned()),
    }
}

/// A text with a key in it, which only `Debug` hides.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.0
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(hidden)")
    }
}
