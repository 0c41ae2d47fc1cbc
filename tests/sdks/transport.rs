//! The transports over which the SDKs connect, and what a script is told of them.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use servicebus_harness::prelude::*;

use crate::interpreter::Environment;

/// How clients reach the bus.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// AMQP over TCP.
    Plain,
    /// AMQP over TLS, as to the service.
    Tls,
    /// AMQP over WebSocket.
    WebSocket,
    /// AMQP over WebSocket over TLS.
    SecuredWebSocket,
}

/// A file with the authority to trust, removed when its script has ended.
pub(crate) struct Authority(PathBuf);

impl Transport {
    /// Tells a script how to connect. What is returned must outlive it.
    pub(crate) async fn set_in(
        self,
        environment: &mut Environment,
        servicebus: &ServiceBus,
    ) -> Authority {
        let authority = Authority::new(&servicebus.ca_certificate_pem().await);
        let connection_string = match self {
            Self::Plain | Self::WebSocket => servicebus.connection_string(),
            Self::Tls => servicebus.tls_connection_string(),
            // With a port: without one they look at 443.
            Self::SecuredWebSocket => servicebus.tls_admin_connection_string(),
        };
        environment.extend([
            ("SERVICEBUS_CONNECTION_STRING", connection_string.to_owned()),
            ("SERVICEBUS_TRANSPORT", self.name().to_owned()),
            (
                "SERVICEBUS_WEB_ADDRESS",
                servicebus.endpoints().http.to_string(),
            ),
            (
                "SERVICEBUS_ADMIN_CONNECTION_STRING",
                servicebus.tls_admin_connection_string().to_owned(),
            ),
            ("SERVICEBUS_CA_FILE", authority.0.display().to_string()),
        ]);
        authority
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tls => "tls",
            Self::WebSocket => "websocket",
            Self::SecuredWebSocket => "websocket-tls",
        }
    }
}

impl Authority {
    fn new(pem: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("servicebus-sdks-{}-{number}.pem", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, pem).expect("a temporary file can be written");
        Self(path)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
