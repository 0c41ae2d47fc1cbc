//! The keys that hold at one entity alone: those of its authorization rules.

use servicebus_broker::EntityPath;

use super::{AuthorizationRule, Namespace};
use crate::auth::{Key, Policy};
use crate::nodes::Address;

impl Namespace {
    /// Asks the rules for who may enter, by the keys of the namespace and of the entity at an address.
    pub(crate) fn with_policy<T>(
        &self,
        address: Option<&str>,
        ask: impl FnOnce(&Policy<'_>) -> T,
    ) -> T {
        let entity_keys = address.map(|address| self.entity_keys(address));
        ask(&Policy {
            entity_keys: entity_keys.as_deref().unwrap_or_default(),
            ..self.config.policy()
        })
    }

    /// The keys of the queue or topic that an address belongs to: they hold there and below, nowhere else.
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
