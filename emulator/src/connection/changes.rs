//! Entities are changed and deleted while links are attached to them.

use std::sync::Arc;

use servicebus_amqp::LinkId;
use servicebus_broker::SubQueue;

use super::links::{Link, Waiting};
use super::peer::ClientConnection;
use crate::namespace::SharedEntity;
use crate::nodes::{Condition, ServiceError, send_refusal};

/// Detached links whose late settlements are still answered.
const DETACHED: usize = 256;

impl ClientConnection {
    /// Detaches the links whose entities are not there any more, or hand nothing out to them. Senders of a
    /// disabled entity stay: each of their messages is refused. `$management` answers by itself (decision D27).
    pub(super) fn follow_changes(&mut self) {
        let lost: Vec<_> = self
            .links
            .iter()
            .filter_map(|(&id, link)| self.lost(id, link))
            .collect();
        for (link, entity, kind, refusal) in lost {
            self.detach_refused(link, &refusal, (&entity, kind));
            // A settlement never hears that its entity is gone (wire.md §4.4).
            let late = match entity.is_deleted() {
                true => self.lock_gone(&entity, kind),
                false => refusal,
            };
            self.links.insert(link, Link::Detached(late));
        }
        self.forget_detached();
    }

    /// The namespace is gone, and nothing is left to do in it.
    pub(super) fn follow_dismissal(&mut self) {
        let namespace = self.namespace.as_ref();
        let name = namespace.map_or("", |namespace| namespace.name());
        let text = format!("The namespace '{name}' was removed.");
        let refusal = ServiceError::new(Condition::ConnectionForced, text);
        let error = self.refuse(&refusal, None);
        self.engine.close(Some(error));
    }

    /// Detaches a link, answered or not, and gives back what it held.
    pub(super) fn detach_refused(
        &mut self,
        link: LinkId,
        refusal: &ServiceError,
        place: (&SharedEntity, SubQueue),
    ) {
        let error = self.refuse(refusal, Some(place));
        self.engine.detach(link, Some(error));
        self.forget(link);
    }

    /// What becomes of locks with their entity.
    pub(super) fn lock_gone(&self, entity: &SharedEntity, kind: SubQueue) -> ServiceError {
        match self.requires_session(entity, kind) {
            true => ServiceError::session_lock_lost(),
            false => ServiceError::lock_lost(),
        }
    }

    /// Whether a store is received from by session; dead letters are not (semantics §3.3).
    pub(super) fn requires_session(&self, entity: &SharedEntity, kind: SubQueue) -> bool {
        let Some(namespace) = self.namespace.as_ref().filter(|_| kind == SubQueue::Active) else {
            return false;
        };
        namespace.read(entity, |entity| entity.description().requires_session)
    }

    /// Nobody says when a client has heard of everything: the oldest are forgotten first.
    pub(super) fn forget_detached(&mut self) {
        let detached = self
            .links
            .iter()
            .filter(|(_, link)| matches!(link, Link::Detached(_)));
        let ids: Vec<LinkId> = detached.map(|(&id, _)| id).collect();
        for id in ids.iter().rev().skip(DETACHED) {
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
                self.check_there(&sender.entity).err(),
            ),
            Link::Receiver(receiver) | Link::Waiting(Waiting { receiver, .. }) => (
                &receiver.entity,
                receiver.kind,
                self.check_receiving(&receiver.entity, receiver.kind).err(),
            ),
            Link::Browser(browser) => (
                &browser.entity,
                browser.kind,
                self.check_receiving(&browser.entity, browser.kind).err(),
            ),
            Link::Coordinator(_) | Link::Requests(_) | Link::Replies(_) | Link::Detached(_) => {
                return None;
            }
        };
        Some((id, Arc::clone(entity), kind, refusal?))
    }

    fn check_there(&self, entity: &SharedEntity) -> Result<(), ServiceError> {
        match entity.is_deleted() {
            true => Err(ServiceError::not_found(&self.host, entity.path.as_str())),
            false => Ok(()),
        }
    }

    /// Refused where the entity is broken.
    pub(super) fn check_whole(&self, entity: &SharedEntity) -> Result<(), ServiceError> {
        let broken = entity.broken();
        broken.map_or(Ok(()), |broken| Err(send_refusal(&broken, &self.host)))
    }

    /// Whether messages may be sent to an entity now (semantics §14).
    pub(super) fn check_sending(&self, entity: &SharedEntity) -> Result<(), ServiceError> {
        self.check_there(entity)?;
        let status = self
            .namespace
            .as_ref()
            .map(|namespace| namespace.read(entity, |entity| entity.description().status));
        match status.is_none_or(|status| status.can_send()) {
            true => Ok(()),
            false => Err(ServiceError::disabled(&self.host, entity.path.as_str())),
        }
    }

    /// Whether messages can be received from a store of an entity now (semantics §11, §14).
    pub(super) fn check_receiving(
        &self,
        entity: &SharedEntity,
        kind: SubQueue,
    ) -> Result<(), ServiceError> {
        self.check_there(entity)?;
        self.check_whole(entity)?;
        let Some(namespace) = &self.namespace else {
            return Ok(());
        };
        namespace.read(entity, |entity| {
            let description = entity.description();
            if !description.status.can_receive() {
                return Err(ServiceError::disabled(&self.host, entity.path().as_str()));
            }
            match description.forward_to.is_some() && kind == SubQueue::Active {
                true => Err(ServiceError::forwards()),
                false => Ok(()),
            }
        })
    }
}
