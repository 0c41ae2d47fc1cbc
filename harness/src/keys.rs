//! The keys and connection strings of a namespace: those with fewer rights than all, those over TLS, and how they are kept out
//! of logs.
//!
//! Keys with fewer rights are declared with the namespace, under names that no other namespace of an emulator has, so that a
//! connection string with them costs nothing and works in every mode that starts an emulator. A namespace that runs elsewhere
//! has the keys of its owner and none of these. The connection strings over TLS are those of the service: without
//! `UseDevelopmentEmulator`, which would have a client do without TLS, and without the ports that every client knows.

use std::net::SocketAddr;

use servicebus_config::{
    AMQPS_PORT,
    auth::{Claim, Claims, ConnectionString, Jwt, Key},
    config::Config,
};

use crate::{
    address::random_number,
    endpoints::{Endpoints, Namespace, Secret, changed},
};

/// What the names of these keys begin with.
const PREFIX: &str = "harness-";

/// The keys of one namespace, by what they give.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    limited: Vec<Key>,
    /// For clients that are told apart by them.
    parties: Vec<Key>,
}

impl Keys {
    /// Declares them in the first namespace of a configuration. One that shares its emulator, and declared no keys, is
    /// given a name for the key of its own too: the usual one would be there twice.
    pub(crate) fn declare(config: &mut Config, is_shared: bool) -> Self {
        let Some(namespace) = config.namespaces.first_mut() else {
            return Self::default();
        };
        if is_shared && namespace.keys == [Key::well_known()] {
            namespace.keys = vec![made("all", Claims::ALL)];
        }
        // Its keys with fewer rights are for tests, which show unsigned tokens where the configuration lets them.
        if namespace.jwt == Jwt::Unset && namespace.keys.iter().all(|key| key.claims == Claims::ALL)
        {
            namespace.jwt = Jwt::Accept;
        }
        let limited = vec![
            made("send", Claims::SEND),
            made("listen", Claims::LISTEN),
            made("send-listen", Claims::SEND | Claims::LISTEN),
        ];
        namespace.keys.extend(limited.iter().cloned());
        Self {
            limited,
            parties: Vec::new(),
        }
    }

    /// Declares so many keys more, all with all rights, for clients that are told apart by them.
    pub(crate) fn with_parties(mut self, config: &mut Config, count: usize) -> Self {
        // The same in each run, which has an emulator of its own.
        let parties = (1..=count).map(|number| Key {
            name: format!("{PREFIX}party-{number}"),
            ..made("party", Claims::ALL)
        });
        self.parties = parties.collect();
        if let Some(namespace) = config.namespaces.first_mut() {
            namespace.keys.extend(self.parties.iter().cloned());
        }
        self
    }

    /// Puts the key of a party, counted from 0, into a connection string, and returns it with the key's name; none where
    /// there are not so many.
    #[cfg(feature = "explore")]
    pub(crate) fn of_party(
        &self,
        connection_string: &str,
        party: usize,
    ) -> Option<(String, String)> {
        let key = self.parties.get(party)?;
        Some((key.name.clone(), with_key(connection_string, key)?))
    }

    /// Puts the key that gives these rights into a connection string. Managing comes with every other right, as in the
    /// service, so that asking for it leaves the string as it is; none if there is no such key.
    pub(crate) fn limited(&self, connection_string: &str, claims: Claims) -> Option<String> {
        if claims.contains(Claim::Manage) {
            return Some(connection_string.to_owned());
        }
        let key = self.limited.iter().find(|key| key.claims == claims)?;
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

/// Returns whether a key was declared by the harness, by its name.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with(PREFIX)
}

fn made(what: &str, claims: Claims) -> Key {
    Key {
        name: format!("{PREFIX}{what}-{:016x}", random_number()),
        key: format!("{:016x}{:016x}", random_number(), random_number()),
        claims,
    }
}

/// What HTTP clients assume.
const HTTPS_PORT: u16 = 443;

/// The namespace with its connection strings over TLS.
pub(crate) fn secured(namespace: &Namespace, endpoints: Endpoints) -> Namespace {
    let (amqp, admin) = (
        &namespace.connection_string,
        &namespace.admin_connection_string,
    );
    let https = endpoints.https.unwrap_or(endpoints.http);
    Namespace {
        name: namespace.name.clone(),
        connection_string: over_tls(amqp, endpoints.amqps, AMQPS_PORT),
        admin_connection_string: over_tls(admin, https, HTTPS_PORT),
    }
}

/// The string with the port of an endpoint, unless clients know it; one that cannot be read stays as it is.
fn over_tls(plain: &str, endpoint: SocketAddr, usual: u16) -> Secret {
    changed(plain, |string| {
        string.port = Some(endpoint.port()).filter(|&port| port != usual);
        string.development_emulator = false;
    })
}

#[cfg(test)]
mod tests {
    use servicebus_config::config::Config;

    use super::*;
    use crate::service_bus::Builder;

    #[test]
    fn usual_ports_are_left_out() {
        let plain = "Endpoint=sb://127.64.0.1:5300;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;";
        let endpoint = |port| SocketAddr::from(([127, 64, 0, 1], port));
        let rest = "SharedAccessKeyName=n;SharedAccessKey=k;";
        for (port, expected) in [(443, "127.64.0.1"), (5300, "127.64.0.1:5300")] {
            let expected = format!("Endpoint=sb://{expected};{rest}");
            assert_eq!(*over_tls(plain, endpoint(port), HTTPS_PORT), expected);
        }
        assert_eq!(&*over_tls("nothing", endpoint(1), 2), "nothing");
    }

    #[test]
    fn no_debug_text_tells_a_key() {
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
