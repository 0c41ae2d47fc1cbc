//! Keys with fewer rights than all, which every namespace has beside its own.
//!
//! They are declared with the namespace, under names that no other namespace of an emulator has, so that a connection string with
//! them costs nothing and works in every mode that starts an emulator. A namespace that runs elsewhere has the keys of its owner and none of these.

use servicebus_emulator::{
    auth::{Claim, Claims, ConnectionString, Jwt, Key},
    config::Config,
};

use crate::address::random_number;

/// What the names of these keys begin with.
const PREFIX: &str = "harness-";

/// The keys of one namespace, by what they give.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(Vec<Key>);

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
        Self(limited)
    }

    /// Puts the key that gives these rights into a connection string. Managing comes with every other right, as in the
    /// service, so that asking for it leaves the string as it is; none if there is no such key.
    pub(crate) fn limited(&self, connection_string: &str, claims: Claims) -> Option<String> {
        if claims.contains(Claim::Manage) {
            return Some(connection_string.to_owned());
        }
        let key = self.0.iter().find(|key| key.claims == claims)?;
        let read: ConnectionString = connection_string.parse().ok()?;
        let limited = ConnectionString {
            key_name: Some(key.name.clone()),
            key: Some(key.key.clone()),
            ..read
        };
        Some(limited.to_string())
    }
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
