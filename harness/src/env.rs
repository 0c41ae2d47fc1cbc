//! The environment variables by which a child process finds its namespace.

use crate::service_bus::ServiceBus;

/// The variables with a connection string that clients and their samples read.
const CONNECTION_STRING: [&str; 3] = [
    "SERVICEBUS_CONNECTION_STRING",
    "SERVICEBUS_CONNECTION_STR",
    "AZURE_SERVICEBUS_CONNECTION_STRING",
];
/// The endpoint to which SDKs connect instead of the host in the connection string.
const CUSTOM_ENDPOINT: &str = "SERVICEBUS_CUSTOM_ENDPOINT";
/// The fully qualified name of the namespace, for clients with a credential instead of a connection string.
const HOST: &str = "SERVICEBUS_FULLY_QUALIFIED_NAMESPACE";
/// The endpoint for those, which their SDKs call a custom endpoint.
const TLS_ENDPOINT: &str = "SERVICEBUS_TLS_ENDPOINT";
/// Where `DefaultAzureCredential` of every SDK gets its tokens, and the header that it sends there.
const IDENTITY: [&str; 2] = ["IDENTITY_ENDPOINT", "IDENTITY_HEADER"];
const ADMIN_CONNECTION_STRING: &str = "SERVICEBUS_ADMIN_CONNECTION_STRING";
/// The CA certificate to trust in addition to others.
const MORE_AUTHORITIES: [&str; 2] = ["SERVICEBUS_CA_FILE", "NODE_EXTRA_CA_CERTS"];
/// The only CA certificate to trust.
const ONLY_AUTHORITY: [&str; 2] = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"];

impl ServiceBus {
    /// Returns the environment variables for a child process that uses this namespace, to be passed to
    /// [`Command::envs`](std::process::Command::envs).
    ///
    /// | variable | value |
    /// | --- | --- |
    /// | `SERVICEBUS_CONNECTION_STRING`, `SERVICEBUS_CONNECTION_STR`, `AZURE_SERVICEBUS_CONNECTION_STRING` | [`Self::connection_string`] |
    /// | `SERVICEBUS_ADMIN_CONNECTION_STRING` | [`Self::admin_connection_string`] |
    /// | `SERVICEBUS_FULLY_QUALIFIED_NAMESPACE` | the host of [`Self::client_settings`], for clients with a credential |
    /// | `SERVICEBUS_TLS_ENDPOINT` | the endpoint for those: the custom endpoint of their SDK |
    /// | `IDENTITY_ENDPOINT`, `IDENTITY_HEADER` | where `DefaultAzureCredential` gets a token that this namespace accepts |
    /// | `SERVICEBUS_CUSTOM_ENDPOINT` | the custom endpoint of SDKs that support one, while a comparison records a namespace whose host is a name |
    /// | `SERVICEBUS_CA_FILE`, `NODE_EXTRA_CA_CERTS` | [`Self::ca_certificate_file`], if there is one |
    /// | `SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE` | the same, with [`Builder::tls`](crate::Builder::tls) only: clients that read these trust no other CA |
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # fn test(servicebus: &ServiceBus) -> std::io::Result<()> {
    /// let mut worker = std::process::Command::new("target/debug/worker");
    /// worker.envs(servicebus.env()).spawn()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn env(&self) -> Vec<(&'static str, String)> {
        let named = |names: &[&'static str], value: &str| {
            let pairs = names.iter().map(|name| (*name, value.to_owned()));
            pairs.collect::<Vec<_>>()
        };
        let mut env = named(&CONNECTION_STRING, self.connection_string());
        env.extend(named(
            &[ADMIN_CONNECTION_STRING],
            self.admin_connection_string(),
        ));
        if let Some(settings) = self.client_settings() {
            let url = format!("http://{}/msi/token", self.endpoints().http);
            let [endpoint, header] = IDENTITY;
            env.extend([
                (HOST, settings.host),
                (TLS_ENDPOINT, format!("https://{}", settings.amqps)),
                (endpoint, url),
                (header, self.identity_header()),
            ]);
        }
        env.extend(self.custom_endpoint().map(|url| (CUSTOM_ENDPOINT, url)));
        if let Some(file) = self.ca_certificate_file() {
            let file = file.to_string_lossy();
            env.extend(named(&MORE_AUTHORITIES, &file));
            if self.uses_tls() {
                env.extend(named(&ONLY_AUTHORITY, &file));
            }
        }
        env
    }
}
