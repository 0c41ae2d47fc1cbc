//! The description of a connection for operators who list the connections.

use std::sync::Arc;

use servicebus_broker::{ReceiverId, SubQueue};

use super::links::{Link, Node};
use super::peer::ClientConnection;
use crate::namespace::SharedEntity;

/// A connection as its own task sees it.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionView {
    pub(crate) client: String,
    pub(crate) product: Option<String>,
    pub(crate) transport: &'static str,
    pub(crate) party: Option<Arc<str>>,
    pub(crate) links: Vec<LinkView>,
}

#[derive(Debug, Clone)]
pub(crate) struct LinkView {
    pub(crate) role: &'static str,
    pub(crate) place: Option<(Arc<SharedEntity>, SubQueue)>,
    pub(crate) node: Option<&'static str>,
    /// A receiver's id, with its credit.
    pub(crate) receiver: Option<(ReceiverId, u32)>,
}

impl ClientConnection {
    /// Answers with the connection's view, if it was asked for.
    pub(crate) fn show_view(&self) {
        let wake_handle = &self.client.wake_handle;
        if !wake_handle.take_view_request() {
            return;
        }
        let links = self.links.iter();
        let links = links.filter_map(|(id, link)| {
            let credit = || self.engine.credit(id);
            Some(LinkView::of(link, credit)).filter(|view| !view.role.is_empty())
        });
        wake_handle.publish_view(ConnectionView {
            client: self.client.container_id.clone(),
            product: self.client.product.clone(),
            transport: self.client.transport,
            party: self.client.party.clone(),
            links: links.collect(),
        });
    }
}

impl LinkView {
    fn of(link: &Link, credit: impl Fn() -> u32) -> Self {
        let at = |role, entity: &Arc<SharedEntity>, kind| Self {
            role,
            place: Some((Arc::clone(entity), kind)),
            node: None,
            receiver: None,
        };
        let nowhere = |role| Self {
            role,
            place: None,
            node: None,
            receiver: None,
        };
        let node = |role, node: &Node| match node {
            Node::Cbs => Self {
                node: Some("$cbs"),
                ..nowhere(role)
            },
            Node::Management(entity, kind) => Self {
                node: Some("$management"),
                ..at(role, entity, *kind)
            },
        };
        match link {
            Link::Sender(sender) => at("sender", &sender.entity, SubQueue::Active),
            Link::Receiver(receiver) => Self {
                receiver: Some((receiver.receiver_id, credit())),
                ..at("receiver", &receiver.entity, receiver.kind)
            },
            Link::Waiting(waiting) => Self {
                receiver: Some((waiting.receiver.receiver_id, 0)),
                ..at("waiting", &waiting.receiver.entity, waiting.receiver.kind)
            },
            Link::Coordinator(_) => nowhere("coordinator"),
            Link::Browser(browser) => at("browser", &browser.entity, browser.kind),
            Link::Requests(requests) => node("requests", &requests.node),
            Link::Replies(replies) => node("replies", &replies.node),
            // To the client it is gone.
            Link::Detached(_) => nowhere(""),
        }
    }
}
