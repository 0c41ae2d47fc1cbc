//! The transports over which the SDKs connect, and what a script is told of them.

use servicebus_harness::prelude::*;
use servicebus_test_support::temporary::TemporaryFile;

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

impl Transport {
    /// Tells a script how to connect. What is returned must outlive it.
    pub(crate) async fn set_in(
        self,
        environment: &mut Environment,
        servicebus: &ServiceBus,
    ) -> TemporaryFile {
        let authority = TemporaryFile::new(&servicebus.ca_certificate_pem().await);
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
            ("SERVICEBUS_CA_FILE", authority.path().to_owned()),
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
