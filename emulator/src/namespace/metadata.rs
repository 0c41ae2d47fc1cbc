//! The metadata of an entity, which does not affect its messages: its times, the values that the administration API returns
//! as given, and the keys that are valid only at the entity.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use servicebus_broker::{EntityPath, Timestamp};

use super::Namespace;
use crate::auth::{Claims, Key, Policy};
use crate::nodes::Address;

/// The service writes an entity a moment after its creation, and its users' tests know the order.
const MOMENT: Duration = Duration::from_millis(1);

/// The metadata of one entity. Small, because there may be thousands without any.
#[derive(Debug)]
pub(crate) struct EntityMetadata {
    created_at: Timestamp,
    changed_at: Timestamp,
    /// When it was last used before it was changed.
    used_before: Option<Timestamp>,
    admin_metadata: Option<Box<AdminMetadata>>,
}

/// Values that are returned as given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AdminMetadata {
    /// Forwarding targets as the client wrote them, a URI or a path, by property.
    pub(crate) targets: BTreeMap<&'static str, String>,
    pub(crate) authorization_rules: Vec<AuthorizationRule>,
}

/// A named pair of keys and their rights at an entity.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AuthorizationRule {
    pub(crate) key_name: String,
    pub(crate) claims: Claims,
    pub(crate) primary_key: String,
    pub(crate) secondary_key: String,
    /// When it was created and changed, as the client wrote it, if it did.
    pub(crate) created_time: Option<Box<str>>,
    pub(crate) modified_time: Option<Box<str>>,
}

impl EntityMetadata {
    pub(crate) fn new(created_at: Timestamp) -> Self {
        Self {
            created_at,
            changed_at: created_at,
            used_before: None,
            admin_metadata: None,
        }
    }

    /// Restores the stored times.
    pub(crate) fn of_times(
        created_at: Timestamp,
        changed_at: Timestamp,
        used_before: Option<Timestamp>,
    ) -> Self {
        Self {
            changed_at,
            used_before,
            ..Self::new(created_at)
        }
    }

    /// Returns when it was created and changed, and when it was last used before it was changed.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp, Option<Timestamp>) {
        (self.created_at, self.changed_at, self.used_before)
    }

    pub(crate) fn created_at(&self) -> Timestamp {
        self.created_at
    }

    pub(crate) fn updated_at(&self) -> Timestamp {
        self.changed_at.max(self.created_at + MOMENT)
    }

    /// Returns when a client last used the entity, which reports `used` itself; `None` if none did.
    pub(crate) fn accessed_at(&self, used: Timestamp) -> Option<Timestamp> {
        let since = (used > self.changed_at).then(|| used.max(self.updated_at()));
        since.or(self.used_before)
    }

    /// Notes that the entity was changed, which does not count as its use. Each change is later than the one before, because `ETag`
    /// is made of it.
    pub(crate) fn changed(&mut self, used: Timestamp, now: Timestamp) {
        self.used_before = self.accessed_at(used);
        self.changed_at = now.max(self.updated_at() + MOMENT);
    }

    pub(crate) fn admin_metadata(&self) -> AdminMetadata {
        self.admin_metadata.as_deref().cloned().unwrap_or_default()
    }

    pub(crate) fn authorization_rules(&self) -> &[AuthorizationRule] {
        let admin_metadata = self.admin_metadata.as_deref();
        admin_metadata.map_or(&[], |admin_metadata| &admin_metadata.authorization_rules)
    }

    pub(crate) fn set_admin_metadata(&mut self, admin_metadata: AdminMetadata) {
        let says_something = admin_metadata != AdminMetadata::default();
        self.admin_metadata = says_something.then(|| Box::new(admin_metadata));
    }
}

impl AuthorizationRule {
    /// Length of a key: that of 32 bytes in base64 (observed 31).
    pub(crate) const KEY_CHARACTERS: usize = 44;
    /// The legal names, besides their length, as errors state them.
    pub(crate) const NAMES: &str =
        "letters, digits, '.', '-' and '_', with a letter or digit at both ends";

    /// Returns whether a rule may have this name of at most `most` characters: it stands in connection strings and paths.
    pub(crate) fn is_name(name: &str, most: usize) -> bool {
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let mut ends = [name.bytes().next(), name.bytes().next_back()].into_iter();
        name.len() <= most
            && name.bytes().all(is_legal)
            && ends.all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
    }

    /// Returns both keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        [&self.primary_key, &self.secondary_key]
            .map(|key| Key {
                name: self.key_name.clone(),
                key: key.clone(),
                claims: self.claims,
            })
            .into_iter()
    }
}

impl fmt::Debug for AuthorizationRule {
    /// Leaves out the secrets, which must not reach a log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuthorizationRule")
            .field("key_name", &self.key_name)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}

impl Namespace {
    /// Calls `with` with the access policy of the keys of the namespace and of the entity at an address.
    pub(crate) fn with_policy<T>(
        &self,
        address: Option<&str>,
        ask: impl FnOnce(&Policy<'_>) -> T,
    ) -> T {
        let entity_keys = address.map(|address| self.entity_keys(address));
        let mut keys = Cow::Borrowed(&self.config.keys[..]);
        let added = self.added_rules.lock();
        if !added.is_empty() {
            let added = added.iter().flat_map(AuthorizationRule::keys);
            keys.to_mut().extend(added);
        }
        drop(added);
        ask(&Policy {
            keys: &keys,
            entity_keys: &entity_keys.unwrap_or_default(),
            jwt: &self.jwt,
            ..self.config.policy()
        })
    }

    /// Returns the keys of this name that the namespace and its entities have besides those of the configuration.
    pub(crate) fn added_keys(&self, name: &str) -> Vec<Key> {
        let keys_of = |rules: &[AuthorizationRule]| -> Vec<Key> {
            let named = rules.iter().filter(|rule| rule.key_name == name);
            named.flat_map(AuthorizationRule::keys).collect()
        };
        let mut keys = keys_of(&self.added_rules.lock());
        for entity in self.entities() {
            keys.extend(entity.metadata(|metadata| keys_of(metadata.authorization_rules())));
        }
        keys
    }

    /// Returns the names of all keys of the namespace and its entities.
    pub(crate) fn key_names(&self) -> BTreeSet<String> {
        let own = self.config.keys.iter().map(|key| key.name.clone());
        let mut names = BTreeSet::from_iter(own);
        let added = self.added_rules.lock();
        names.extend(added.iter().map(|rule| rule.key_name.clone()));
        drop(added);
        for entity in self.entities() {
            entity.metadata(|metadata| {
                let rules = metadata.authorization_rules().iter();
                names.extend(rules.map(|rule| rule.key_name.clone()));
            });
        }
        names
    }

    /// Returns the keys of the queue or topic of an address: they are valid there and below, nowhere else.
    fn entity_keys(&self, address: &str) -> Vec<Key> {
        let path = EntityPath::of_address(&Address::parse(address).entity);
        let topic = path.as_ref().and_then(|path| Some(path.topic()?.0));
        let entity = topic.or(path).and_then(|path| self.entity(&path));
        let Some(entity) = entity else {
            return Vec::new();
        };
        entity.metadata(|metadata| {
            let rules = metadata.authorization_rules().iter();
            rules.flat_map(AuthorizationRule::keys).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_increases_the_updated_time() {
        let now = Timestamp::from_millis(1_000);
        let mut metadata = EntityMetadata::new(now);
        for _ in 0..3 {
            let before = metadata.updated_at();
            metadata.changed(now, now);
            assert!(metadata.updated_at() > before);
        }
    }
}
