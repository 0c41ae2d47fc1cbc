//! The addresses of messages: a queue, topic or subscription, or one of its sub-queues.

use crate::{
    catalog::{Catalog, EntityKind, subscription_path},
    text,
};

/// The name of the dead-letter queue in an address.
const DEAD_LETTER_QUEUE: &str = "$DeadLetterQueue";
const TRANSFER_DEAD_LETTER_QUEUE: &str = "$Transfer/$DeadLetterQueue";

/// The address of a queue, topic or subscription, or of a dead-letter queue of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityAddress {
    kind: EntityKind,
    owner: String,
    path: String,
}

impl EntityAddress {
    /// Creates the address of an entity, or of a sub-queue of one: `orders/$DeadLetterQueue`.
    pub fn new(kind: EntityKind, address: String) -> Self {
        let (owner, below) = split(&address);
        let entity = Self {
            kind,
            path: owner.to_owned(),
            owner: owner.to_owned(),
        };
        entity.sub_queue(below)
    }

    /// Parses an address in any case. An existing entity keeps its declared name; for another one, the most similar name
    /// determines the kind.
    pub fn at(address: &str, catalog: &Catalog) -> Self {
        let (owner, below) = split(address);
        let mut names = catalog.names();
        if let Some((kind, name)) = names.find(|(_, name)| name.eq_ignore_ascii_case(owner)) {
            return Self::new(kind, name.to_owned()).sub_queue(below);
        }
        let address = match subscription(owner) {
            Some(path) => Self::new(EntityKind::Subscription, path),
            None => {
                let alike = catalog
                    .names()
                    .filter(|(kind, _)| *kind != EntityKind::Subscription)
                    .take(text::COMPARED);
                let nearest = alike.min_by_key(|(_, name)| text::distance(owner, name));
                let kind = nearest.map_or(EntityKind::Queue, |(kind, _)| kind);
                Self::new(kind, owner.to_owned())
            }
        };
        address.sub_queue(below)
    }

    fn sub_queue(self, below: &str) -> Self {
        match below {
            "" => self,
            below => self.below(below),
        }
    }

    /// Returns the kind of its entity.
    pub fn kind(&self) -> EntityKind {
        self.kind
    }

    /// Returns the path of its queue, topic or subscription.
    pub fn owner_path(&self) -> &str {
        &self.owner
    }

    /// Returns the address, such as `orders/$DeadLetterQueue`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the address of its entity.
    pub fn owner(&self) -> Self {
        Self::new(self.kind, self.owner.clone())
    }

    /// Returns the address of its dead-letter queue; a dead-letter queue returns itself.
    pub fn dead_letter_queue(&self) -> Self {
        match (self.is_owner(), self.kind) {
            (false, _) => self.clone(),
            (true, EntityKind::Topic) => self.transfer_dead_letter_queue(),
            (true, EntityKind::Queue | EntityKind::Subscription) => self.below(DEAD_LETTER_QUEUE),
        }
    }

    /// Returns the address of its transfer dead-letter queue.
    pub fn transfer_dead_letter_queue(&self) -> Self {
        self.below(TRANSFER_DEAD_LETTER_QUEUE)
    }

    /// Returns whether it is an entity, not a sub-queue.
    pub fn is_owner(&self) -> bool {
        self.path == self.owner
    }

    fn below(&self, suffix: &str) -> Self {
        Self {
            path: format!("{}/{suffix}", self.owner),
            ..self.clone()
        }
    }
}

/// Splits an address into entity and sub-queue.
fn split(address: &str) -> (&str, &'static str) {
    // The longer one first, because it ends with the other.
    for below in [TRANSFER_DEAD_LETTER_QUEUE, DEAD_LETTER_QUEUE] {
        let end = address.len().checked_sub(below.len());
        let parts = end.and_then(|end| address.split_at_checked(end));
        if let Some((owner, end)) = parts
            && end.eq_ignore_ascii_case(below)
            && let Some(owner) = owner.strip_suffix('/')
        {
            return (owner, below);
        }
    }
    (address, "")
}

/// Normalizes the path of a subscription, whose middle part may be in any case.
fn subscription(path: &str) -> Option<String> {
    const BETWEEN: &str = "/subscriptions/";
    let at = path.to_ascii_lowercase().find(BETWEEN)?;
    Some(subscription_path(&path[..at], &path[at + BETWEEN.len()..]))
}
