//! The keys that hold at one entity alone: those of its authorization rules.

use servicebus_broker::EntityPath;

use super::{AuthorizationRule, Namespace};
use crate::auth::Key;
use crate::nodes::Address;

impl Namespace {
    /// The keys of the queue or topic that an address belongs to: they hold there and below, nowhere else.
    pub(crate) fn entity_keys(&self, address: &str) -> Vec<Key> {
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
