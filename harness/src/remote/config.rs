//! The configuration of a namespace that runs elsewhere: its connection string, and how long a test may wait in real time.

use std::{env, net::SocketAddr, time::Duration};

use servicebus_config::auth::{Claims, ConnectionString, Key};

use crate::{
    error::Error,
    stream::unknown_host,
    variables::{CONNECTION_STRING_VARIABLE, MAX_REAL_WAIT_VARIABLE},
};

/// AMQP over TLS.
pub(crate) const AMQPS_PORT: u16 = servicebus_config::AMQPS_PORT;
/// HTTP over TLS, if the connection string has no port.
const HTTPS_PORT: u16 = 443;

/// Where to find the right connection string.
pub(crate) const WHERE: &str = "takes the connection string of a key of the whole namespace with the claim Manage: in the portal under \"Shared access policies\", for an emulator the `admin_connection_string` of its ready line";

/// A parsed connection string.
#[derive(Debug, Clone)]
pub(crate) struct RemoteConfig {
    pub(crate) host: String,
    /// The port of the administration API, as in the strings of the official emulator.
    port: Option<u16>,
    pub(crate) key: Key,
}

impl RemoteConfig {
    /// Reads the connection string of the builder, else of the environment.
    pub(crate) fn read(given: Option<String>) -> Result<Self, Error> {
        let source = match given {
            Some(_) => "the connection string of the builder",
            None => CONNECTION_STRING_VARIABLE,
        };
        let given = given.or_else(|| env::var(CONNECTION_STRING_VARIABLE).ok());
        let text = given.filter(|text| !text.trim().is_empty());
        let text = text.ok_or_else(|| {
            Error::namespace(format!(
                "mode \"namespace\" uses the namespace that {CONNECTION_STRING_VARIABLE} names, which is not set; it {WHERE}"
            ))
        });
        Self::parse(source, &text?)
    }

    fn parse(source: &str, text: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::namespace(format!("{source} {what}; it {WHERE}"));
        let read = text.parse::<ConnectionString>();
        let read = read.map_err(|error| wrong(format!("is not a connection string: {error}")))?;
        if let Some(entity) = read.entity_path {
            return Err(wrong(format!("belongs to the entity \"{entity}\" only")));
        }
        let (Some(name), Some(key)) = (read.key_name, read.key) else {
            return Err(wrong(
                "has no SharedAccessKey with its SharedAccessKeyName".to_owned(),
            ));
        };
        Ok(Self {
            host: read.host,
            port: read.port,
            key: Key {
                name,
                key,
                claims: Claims::ALL,
            },
        })
    }

    /// Returns the port of the administration API.
    pub(crate) fn admin_port(&self) -> u16 {
        self.port.unwrap_or(HTTPS_PORT)
    }

    /// Returns the host with its port, as HTTP writes it.
    pub(crate) fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }

    /// Returns the connection string for clients that send and receive: over TLS, at their default port.
    pub(crate) fn client_string(&self) -> String {
        self.string(None)
    }

    /// Returns the connection string for administration clients.
    pub(crate) fn admin_string(&self) -> String {
        self.string(self.port)
    }

    pub(crate) async fn resolve(&self, port: u16) -> Result<SocketAddr, Error> {
        let unknown = |error| unknown_host(&self.host, &error);
        let mut found = tokio::net::lookup_host((self.host.as_str(), port))
            .await
            .map_err(unknown)?;
        let nothing = || std::io::Error::other("it has no address");
        found.next().ok_or_else(|| unknown(nothing()))
    }

    fn string(&self, port: Option<u16>) -> String {
        let string = ConnectionString {
            port,
            development_emulator: false,
            ..ConnectionString::for_emulator(self.host.clone(), None, &self.key)
        };
        string.to_string()
    }
}

/// Returns how long an advance may wait: set by the builder, else by the environment, else zero.
pub(crate) fn max_real_wait(given: Option<Duration>) -> Result<Duration, Error> {
    let named = env::var(MAX_REAL_WAIT_VARIABLE).ok();
    match (given, named.filter(|text| !text.is_empty())) {
        (Some(given), _) => Ok(given),
        (None, None) => Ok(Duration::ZERO),
        (None, Some(text)) => match text.trim().parse() {
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(_) => Err(Error::namespace(format!(
                "{MAX_REAL_WAIT_VARIABLE} is \"{text}\"; allowed: whole seconds, such as 90"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "SharedAccessKeyName=n;SharedAccessKey=k";

    #[test]
    fn the_port_is_that_of_the_administration_api() {
        let text = format!("Endpoint=sb://127.64.0.1:5300/;{KEY};UseDevelopmentEmulator=true;");
        let remote_config = RemoteConfig::read(Some(text)).unwrap();
        assert_eq!(remote_config.admin_port(), 5300);
        assert_eq!(
            remote_config.client_string(),
            format!("Endpoint=sb://127.64.0.1;{KEY}")
        );
        assert_eq!(
            remote_config.admin_string(),
            format!("Endpoint=sb://127.64.0.1:5300;{KEY}")
        );
        let cloud = format!("Endpoint=sb://contoso.servicebus.windows.net/;{KEY}");
        let cloud = RemoteConfig::read(Some(cloud)).unwrap();
        assert_eq!(cloud.admin_port(), 443);
        assert_eq!(cloud.authority(), "contoso.servicebus.windows.net");
    }

    #[test]
    fn an_invalid_connection_string_is_explained() {
        let cases = [
            ("contoso", "is not a connection string: part 1 has no '='"),
            (
                "Endpoint=sb://h/;SharedAccessSignature=s",
                "has no SharedAccessKey with its SharedAccessKeyName",
            ),
            (
                "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders",
                "belongs to the entity \"orders\" only",
            ),
        ];
        let advice = "; it takes the connection string of a key of the whole namespace with the claim Manage: in the portal under \"Shared access policies\", for an emulator the `admin_connection_string` of its ready line";
        for (text, expected) in cases {
            let error = RemoteConfig::read(Some(text.to_owned()))
                .unwrap_err()
                .to_string();
            assert_eq!(
                error,
                format!("the connection string of the builder {expected}{advice}")
            );
        }
    }
}
