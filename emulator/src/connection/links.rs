//! The links of a connection: what each is for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::SessionId;
use servicebus_broker::{EntityPath, ReceiverId, SubQueue};

use super::browse::Browser;
use crate::namespace::SharedEntity;
use crate::nodes::{ServiceError, SessionRequest};

/// One link, by what its owner does with it.
#[derive(Debug)]
pub(super) enum Link {
    /// The client sends messages to an entity.
    Sender(Sender),
    /// The client receives from a store.
    Receiver(Receiver),
    /// The client waits for a session; its attach is not answered.
    Waiting(Waiting),
    /// The client declares and discharges transactions.
    Coordinator(SessionId),
    /// The client looks at what is there and takes nothing.
    Browser(Browser),
    /// The client sends requests to a node.
    Requests(Requests),
    /// The client receives the replies of a node.
    Replies(Replies),
    /// We have detached it; what the client settled before it heard of that is refused in this way.
    Detached(ServiceError),
}

/// A link that messages come in on.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    pub(super) entity: Arc<SharedEntity>,
    /// Where they go on to from there, if they do (send-via, semantics §12).
    pub(super) destination: Option<EntityPath>,
    pub(super) session: SessionId,
    /// Transfers whose outcome is not in the socket.
    pub(super) unsettled: u32,
    /// Those of them whose outcome is on its way there.
    pub(super) answered: u32,
}

/// A link that messages go out on.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) name: Box<str>,
    pub(super) entity: Arc<SharedEntity>,
    pub(super) kind: SubQueue,
    pub(super) receiver_id: ReceiverId,
    pub(super) session: SessionId,
    /// Sent settled: receive-and-delete.
    pub(super) settled: bool,
    /// The client waits to hear that nothing more comes.
    pub(super) drain: bool,
}

/// A link that has no session yet.
#[derive(Debug)]
pub(super) struct Waiting {
    /// What it becomes.
    pub(super) receiver: Receiver,
    pub(super) request: SessionRequest,
    /// When it has waited for long enough, in real time.
    pub(super) until: Duration,
}

/// Where requests are answered.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// `$cbs`.
    Cbs,
    /// `$management` of a store.
    Management(Arc<SharedEntity>, SubQueue),
}

/// A link that requests come in on.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    pub(super) node: Node,
    pub(super) session: SessionId,
    /// Where messages that are scheduled over it go on to when they are due (spec/observed.md 61).
    pub(super) destination: Option<EntityPath>,
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

impl Link {
    /// Whether it carries requests to `$cbs`, or their replies.
    pub(super) fn is_cbs(&self) -> bool {
        match self {
            Self::Requests(requests) => matches!(requests.node, Node::Cbs),
            Self::Replies(replies) => matches!(replies.node, Node::Cbs),
            Self::Sender(_)
            | Self::Receiver(_)
            | Self::Waiting(_)
            | Self::Coordinator(_)
            | Self::Browser(_)
            | Self::Detached(_) => false,
        }
    }
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
