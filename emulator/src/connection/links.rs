//! The links of a connection: what each is for.

use std::collections::VecDeque;
use std::sync::Arc;

use servicebus_amqp::SessionId;
use servicebus_broker::{ConsumerId, StoreKind};

use crate::namespace::Entity;
use crate::nodes::Refusal;

/// One link, by what its owner does with it.
#[derive(Debug)]
pub(super) enum Link {
    /// The client sends messages to a queue.
    Sender(Arc<Entity>),
    /// The client receives from a store.
    Receiver(Receiver),
    /// The client sends requests to a node.
    Requests(Node, SessionId),
    /// The client receives the replies of a node.
    Replies(Replies),
    /// We have detached it; what the client settled before it heard of that is refused in this way.
    Detached(Refusal),
}

/// A link that messages go out on.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) entity: Arc<Entity>,
    pub(super) kind: StoreKind,
    pub(super) consumer: ConsumerId,
    /// Sent settled: receive-and-delete.
    pub(super) settled: bool,
    /// The client waits to hear that nothing more comes.
    pub(super) drain: bool,
}

/// Where requests are answered.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// `$cbs`.
    Cbs,
    /// `$management` of a store.
    Management(Arc<Entity>, StoreKind),
}

/// A link that replies go out on.
#[derive(Debug)]
pub(super) struct Replies {
    pub(super) node: Node,
    pub(super) session: SessionId,
    pub(super) name: String,
    pub(super) target: Option<String>,
    /// Whether replies go settled, as the client asked (wire.md §2.3).
    pub(super) settled: bool,
    /// Replies that wait for credit: Java grants one at a time.
    pub(super) waiting: VecDeque<Vec<u8>>,
}

impl Node {
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cbs, Self::Cbs) => true,
            (Self::Management(a, kind), Self::Management(b, other)) => {
                // By name: one half may have been attached before the entity was deleted and made anew.
                a.path == b.path && kind == other
            }
            (Self::Cbs | Self::Management(..), _) => false,
        }
    }
}
