//! Connected clients of the Rust Service Bus SDK.

use std::fmt::Display;

use azservicebus::{ServiceBusClient, ServiceBusClientOptions, core::BasicRetryPolicy};

use crate::{
    action::Action,
    error::{Error, ErrorKind},
    mode::Mode,
    service_bus::ServiceBus,
};

/// Connects without TLS, with the key of a connection string.
pub(crate) async fn connect(
    connection_string: &str,
    options: ServiceBusClientOptions,
) -> Result<ServiceBusClient<BasicRetryPolicy>, Error> {
    let connecting =
        ServiceBusClient::unsecured().new_from_connection_string(connection_string, options);
    // Boxed, because the SDK's future is several pages of memory in size.
    Box::pin(connecting).await.map_err(not_connected)
}

fn not_connected(error: impl Display) -> Error {
    let sentence = format!("the Service Bus client did not connect: {error}");
    Error::new(ErrorKind::Connect, None, sentence)
}

impl ServiceBus {
    /// Connects an `azservicebus` client (feature `azservicebus`), which belongs to the test and runs on its runtime. It
    /// connects without TLS even with [`Builder::tls`](crate::Builder::tls), because it accepts a CA certificate only
    /// through the environment. Only in mode [`Mode::Namespace`] it connects over TLS.
    ///
    /// # Panics
    ///
    /// Panics if the client cannot connect.
    #[track_caller]
    pub fn client(&self) -> Action<'_, ServiceBusClient<BasicRetryPolicy>> {
        Action::new(async move {
            let custom_endpoint = self.custom_endpoint();
            let options = ServiceBusClientOptions {
                custom_endpoint_address: custom_endpoint.and_then(|endpoint| endpoint.parse().ok()),
                ..ServiceBusClientOptions::default()
            };
            let string = self.plain_connection_string();
            if self.mode() != Mode::Namespace {
                return connect(string, options).await;
            }
            let connecting = ServiceBusClient::new_from_connection_string(string, options);
            Box::pin(connecting).await.map_err(not_connected)
        })
    }
}
