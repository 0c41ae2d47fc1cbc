//! The keys and connection strings of a namespace: with limited rights, for TLS, and hidden in logs.
//!
//! Keys with limited rights are declared with the namespace, under names that are unique within an emulator. Connection
//! strings with them need no request, and work in every mode that starts an emulator. A namespace that runs elsewhere has
//! only its owner's keys. The connection strings for TLS are those of the service: without `UseDevelopmentEmulator`, which
//! would make a client connect without TLS, and without ports that every client knows.

use std::net::SocketAddr;

use servicebus_config::{
    AMQPS_PORT,
    auth::{Claim, Claims, ConnectionString, Jwt, Key},
    config::Config,
};

use crate::{
    address::random_number,
    endpoints::{Endpoints, Namespace, Secret, with_change},
};

/// The prefix of the names of these keys.
const PREFIX: &str = "harness-";

/// The keys of one namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    with_claims: Vec<Key>,
    /// Keys that identify the clients of parties.
    parties: Vec<Key>,
}

impl Keys {
    /// Declares the limited keys in the first namespace of a configuration. A namespace that shares its emulator and
    /// declares no keys also gets a new name for its own key, because names are unique within an emulator.
    pub(crate) fn declare(config: &mut Config, is_shared: bool) -> Self {
        let Some(namespace) = config.namespaces.first_mut() else {
            return Self::default();
        };
        if is_shared && namespace.keys == [Key::well_known()] {
            namespace.keys = vec![generate("all", Claims::ALL)];
        }
        // The limited keys are for tests, and tests use unsigned tokens unless the configuration forbids them.
        if namespace.jwt == Jwt::Unset && namespace.keys.iter().all(|key| key.claims == Claims::ALL)
        {
            namespace.jwt = Jwt::Accept;
        }
        let with_claims = vec![
            generate("send", Claims::SEND),
            generate("listen", Claims::LISTEN),
            generate("send-listen", Claims::SEND | Claims::LISTEN),
        ];
        namespace.keys.extend(with_claims.iter().cloned());
        Self {
            with_claims,
            parties: Vec::new(),
        }
    }

    /// Declares `count` further keys with all rights, which identify the clients of parties.
    pub(crate) fn with_parties(mut self, config: &mut Config, count: usize) -> Self {
        // The same in each run, because each has an emulator of its own.
        let parties = (1..=count).map(|number| Key {
            name: format!("{PREFIX}party-{number}"),
            ..generate("party", Claims::ALL)
        });
        self.parties = parties.collect();
        if let Some(namespace) = config.namespaces.first_mut() {
            namespace.keys.extend(self.parties.iter().cloned());
        }
        self
    }

    /// Returns the name of the key of a party, counted from 0, and the connection string with that key; `None` if there is
    /// no such key.
    #[cfg(feature = "explore")]
    pub(crate) fn for_party(
        &self,
        connection_string: &str,
        party: usize,
    ) -> Option<(String, String)> {
        let key = self.parties.get(party)?;
        Some((key.name.clone(), with_key(connection_string, key)?))
    }

    /// Returns the connection string with the key that has these rights; `None` without such a key. As in the service, the
    /// right to manage includes all others, so a request for it returns the string unchanged.
    pub(crate) fn with_claims(&self, connection_string: &str, claims: Claims) -> Option<String> {
        if claims.contains(Claim::Manage) {
            return Some(connection_string.to_owned());
        }
        let key = self.with_claims.iter().find(|key| key.claims == claims)?;
        with_key(connection_string, key)
    }
}

fn with_key(connection_string: &str, key: &Key) -> Option<String> {
    let read: ConnectionString = connection_string.parse().ok()?;
    let keyed = ConnectionString {
        key_name: Some(key.name.clone()),
        key: Some(key.key.clone()),
        ..read
    };
    Some(keyed.to_string())
}

/// Returns whether the harness declared a key, by its name.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with(PREFIX)
}

fn generate(what: &str, claims: Claims) -> Key {
    Key {
        name: format!("{PREFIX}{what}-{:016x}", random_number()),
        key: format!("{:016x}{:016x}", random_number(), random_number()),
        claims,
    }
}

/// The default port of HTTP clients.
const HTTPS_PORT: u16 = 443;

/// Returns the namespace with its connection strings for TLS.
pub(crate) fn tls_namespace(namespace: &Namespace, endpoints: Endpoints) -> Namespace {
    let (amqp, admin) = (
        &namespace.connection_string,
        &namespace.admin_connection_string,
    );
    let https = endpoints.https.unwrap_or(endpoints.http);
    Namespace {
        name: namespace.name.clone(),
        connection_string: tls_connection_string(amqp, endpoints.amqps, AMQPS_PORT),
        admin_connection_string: tls_connection_string(admin, https, HTTPS_PORT),
    }
}

/// Returns the string with the port of an endpoint, unless clients know it; a string that cannot be parsed stays unchanged.
fn tls_connection_string(plain: &str, endpoint: SocketAddr, default_port: u16) -> Secret {
    with_change(plain, |string| {
        string.port = Some(endpoint.port()).filter(|&port| port != default_port);
        string.development_emulator = false;
    })
}

#[cfg(test)]
mod tests {
    use servicebus_config::config::Config;

    use super::*;
    use crate::service_bus::Builder;

    #[test]
    fn default_ports_are_omitted() {
        let plain = "Endpoint=sb://127.64.0.1:5300;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;";
        let endpoint = |port| SocketAddr::from(([127, 64, 0, 1], port));
        let rest = "SharedAccessKeyName=n;SharedAccessKey=k";
        for (port, expected) in [(443, "127.64.0.1"), (5300, "127.64.0.1:5300")] {
            let expected = format!("Endpoint=sb://{expected};{rest}");
            assert_eq!(
                *tls_connection_string(plain, endpoint(port), HTTPS_PORT),
                expected
            );
        }
        assert_eq!(
            &*tls_connection_string("nothing", endpoint(1), 2),
            "nothing"
        );
    }

    #[test]
    fn debug_output_hides_keys() {
        let string = "Endpoint=sb://localhost;SharedAccessKeyName=n;SharedAccessKey=hunter2;";
        let mut config = Config::default();
        config.namespaces[0].keys[0].key = "hunter2".to_owned();
        let read = string.parse::<ConnectionString>().unwrap();
        for rendered in [
            format!("{:?}", Secret::from(string.to_owned())),
            format!("{:?}", Builder::default().connection_string(string)),
            format!("{:?}", Keys::declare(&mut config, false)),
            format!("{config:?} {read:?}"),
        ] {
            assert!(!rendered.contains("hunter2"), "{rendered}");
        }
    }
}
