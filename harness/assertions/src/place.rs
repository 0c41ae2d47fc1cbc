//! Where messages are: in a queue, topic or subscription, or in one of its sub-queues.

use crate::{
    catalog::{Catalog, EntityKind, subscription_path},
    text,
};

/// Between an entity and the name of its dead-letter queue.
const DEAD_LETTER_QUEUE: &str = "$DeadLetterQueue";
const TRANSFER_DEAD_LETTER_QUEUE: &str = "$Transfer/$DeadLetterQueue";

/// A queue, topic or subscription, or a dead-letter queue of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    kind: EntityKind,
    owner: String,
    path: String,
}

impl Place {
    /// Names an entity.
    pub fn new(kind: EntityKind, owner: String) -> Self {
        Self {
            kind,
            path: owner.clone(),
            owner,
        }
    }

    /// Reads an address, in any case. An entity that there is has the name that it was declared with; of one that there is
    /// not, the most similar name tells the kind.
    pub fn at(address: &str, catalog: &Catalog) -> Self {
        let (owner, below) = split(address);
        let mut names = catalog.names();
        if let Some((kind, name)) = names.find(|(_, name)| name.eq_ignore_ascii_case(owner)) {
            return Self::new(kind, name.to_owned()).sub_queue(below);
        }
        let place = match subscription(owner) {
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
        place.sub_queue(below)
    }

    fn sub_queue(self, below: &str) -> Self {
        match below {
            "" => self,
            below => self.below(below),
        }
    }

    /// Returns what kind of entity it belongs to.
    pub fn kind(&self) -> EntityKind {
        self.kind
    }

    /// Returns the queue, topic or subscription it belongs to.
    pub fn owner_path(&self) -> &str {
        &self.owner
    }

    /// Returns the address, such as `orders/$DeadLetterQueue`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the whole that it belongs to, or is.
    pub fn owner(&self) -> Self {
        Self::new(self.kind, self.owner.clone())
    }

    /// Returns its dead-letter queue; a dead-letter queue is its own.
    pub fn dead_letter_queue(&self) -> Self {
        match (self.is_owner(), self.kind) {
            (false, _) => self.clone(),
            (true, EntityKind::Topic) => self.transfer_dead_letter_queue(),
            (true, EntityKind::Queue | EntityKind::Subscription) => self.below(DEAD_LETTER_QUEUE),
        }
    }

    /// Returns the queue of messages that could not be forwarded.
    pub fn transfer_dead_letter_queue(&self) -> Self {
        self.below(TRANSFER_DEAD_LETTER_QUEUE)
    }

    /// Returns whether it is an entity of its own and not its dead letters.
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

/// The entity of an address, and which sub-queue of it is meant.
fn split(address: &str) -> (&str, &'static str) {
    // The longer one first: the other is its end.
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

/// The path of a subscription, however its middle is written.
fn subscription(path: &str) -> Option<String> {
    const BETWEEN: &str = "/subscriptions/";
    let at = path.to_ascii_lowercase().find(BETWEEN)?;
    Some(subscription_path(&path[..at], &path[at + BETWEEN.len()..]))
}
