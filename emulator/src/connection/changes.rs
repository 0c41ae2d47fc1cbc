//! Entities are changed and deleted while links are attached to them.

use std::sync::Arc;

use servicebus_amqp::LinkId;
use servicebus_broker::SubQueue;

use super::links::{Link, Waiting};
use super::peer::ClientConnection;
use crate::namespace::SharedEntity;
use crate::nodes::{Condition, ServiceError};

/// Detached links whose late settlements are still answered.
const DETACHED: usize = 256;

impl ClientConnection {
    /// Detaches the links whose entities are not there any more, or hand nothing out to them. Senders of a
    /// disabled entity stay: each of their messages is refused. `$management` answers by itself (decision D27).
    pub(crate) fn follow_changes(&mut self) {
        let lost: Vec<_> = self
            .links
            .iter()
            .filter_map(|(id, link)| self.lost(id, link))
            .collect();
        for (link, entity, kind, refusal) in lost {
            self.detach_refused(link, &refusal, (&entity, kind));
            // A settlement never hears that its entity is gone (wire.md §4.4).
            let late = match entity.is_deleted() {
                true => self.client.lock_gone(&entity, kind),
                false => refusal,
            };
            self.links.insert(link, Link::Detached(late));
        }
        self.forget_detached();
    }

    /// The namespace is gone, and nothing is left to do in it.
    pub(crate) fn follow_dismissal(&mut self) {
        let namespace = self.client.namespace.as_ref();
        let name = namespace.map_or("", |namespace| namespace.name());
        let text = format!("The namespace '{name}' was removed.");
        let refusal = ServiceError::new(Condition::ConnectionForced, text);
        let error = self.client.refuse(&refusal, None);
        self.engine.close(Some(error));
    }

    /// Detaches a link, answered or not, and gives back what it held.
    pub(crate) fn detach_refused(
        &mut self,
        link: LinkId,
        refusal: &ServiceError,
        place: (&SharedEntity, SubQueue),
    ) {
        let error = self.client.refuse(refusal, Some(place));
        self.engine.detach(link, Some(error));
        self.forget(link);
    }

    /// Nothing says when a client has heard of everything: the oldest are forgotten first.
    pub(crate) fn forget_detached(&mut self) {
        let detached = self
            .links
            .iter()
            .filter(|(_, link)| matches!(link, Link::Detached(_)));
        let ids: Vec<LinkId> = detached.map(|(id, _)| id).collect();
        for &id in ids.iter().rev().skip(DETACHED) {
            self.links.remove(id);
        }
    }

    fn lost(
        &self,
        id: LinkId,
        link: &Link,
    ) -> Option<(LinkId, Arc<SharedEntity>, SubQueue, ServiceError)> {
        let (entity, kind, refusal) = match link {
            Link::Sender(sender) => (
                &sender.entity,
                SubQueue::Active,
                sender.entity.check_there(&self.client.host).err(),
            ),
            Link::Receiver(receiver) | Link::Waiting(Waiting { receiver, .. }) => (
                &receiver.entity,
                receiver.kind,
                self.client
                    .check_receiving(&receiver.entity, receiver.kind)
                    .err(),
            ),
            Link::Browser(browser) => (
                &browser.entity,
                browser.kind,
                self.client
                    .check_receiving(&browser.entity, browser.kind)
                    .err(),
            ),
            Link::Coordinator(_) | Link::Requests(_) | Link::Replies(_) | Link::Detached(_) => {
                return None;
            }
        };
        Some((id, Arc::clone(entity), kind, refusal?))
    }
}
