//! Session receivers: links whose attach is answered once they have a session, and which are detached when its lock ends.
//!
//! A receiver that asks for the next available session may have to wait. Until there is one, or the client's timeout in real
//! time is over (decision D19), its attach is not answered and the link is [`Link::Waiting`]; if either side detaches
//! meanwhile, the session is released.
//!
//! Also follows changes and deletions of the entities of attached links.

use std::sync::Arc;
use std::time::Duration;

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, AttachRequest, LinkId};
use servicebus_broker::{AcceptSessionError, AcceptedSession, ReceiverId, SessionName, SubQueue};

use super::links::{Link, Waiting};
use super::peer::ClientConnection;
use crate::namespace::SharedEntity;
use crate::nodes::{Condition, Request, ServiceError, SessionRequest};

/// Link property: the end of the session's lock.
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";
/// Application property of a request: the name of the receiver for which it is made (wire.md §6.1).
const ASSOCIATED_LINK: &str = "associated-link-name";
/// How long a link stays after it has lost its session, in real time (decision D19).
const LOST_FOR: Duration = Duration::from_secs(1);
/// .NET ticks, ten million per second, from the year 1 to the Unix epoch.
const EPOCH_TICKS: i64 = 621_355_968_000_000_000;
const TICKS_PER_MILLISECOND: i64 = 10_000;

impl ClientConnection {
    /// Asks the broker for a session; [`Self::answer_waiting`] answers the link, now or later.
    pub(crate) fn open_session_receiver(
        &mut self,
        entity: &Arc<SharedEntity>,
        attach: &AttachRequest,
        request: SessionRequest,
    ) -> Result<Link, ServiceError> {
        let (receiver, mode) = self.new_receiver(entity, SubQueue::Active, attach);
        if let Some(namespace) = &self.client.namespace {
            let opened = namespace.operate(entity, &mut self.client.caller, |entity, cx| {
                let wanted = request.session.as_ref();
                entity.attach_session_receiver(
                    cx,
                    receiver.receiver_id,
                    mode,
                    wanted,
                    request.access,
                )
            });
            opened.map_err(|AcceptSessionError::Locked(session)| {
                ServiceError::session_cannot_be_locked(session.as_str())
            })?;
        }
        Ok(Link::Waiting(Waiting {
            receiver,
            until: self.client.shared.real.elapsed() + request.wait_timeout,
            request,
        }))
    }

    /// Answers an attach that waits for a session, if it has one by now.
    pub(crate) fn answer_waiting(&mut self, link: LinkId) {
        let Some(accepted) = self.accepted_session(link) else {
            return;
        };
        let Some(Link::Waiting(waiting)) = self.links.remove(link) else {
            return;
        };
        let filter = waiting.request.granted(&accepted.session, accepted.token);
        let until = (LOCKED_UNTIL.to_owned(), Value::Long(self.ticks(&accepted)));
        self.links.insert(link, Link::Receiver(waiting.receiver));
        let reply = AttachReply {
            properties: vec![until],
            filter: vec![filter],
            ..AttachReply::default()
        };
        self.accept_attach(link, reply);
        self.turn.is_answered_late = true;
    }

    fn accepted_session(&self, link: LinkId) -> Option<AcceptedSession> {
        let (Some(namespace), Some(Link::Waiting(waiting))) =
            (&self.client.namespace, self.links.get(link))
        else {
            return None;
        };
        let receiver_id = waiting.receiver.receiver_id;
        namespace.read(&waiting.receiver.entity, |entity| {
            entity.accepted_session(receiver_id)
        })
    }

    /// Returns the end of a session's lock in the client's time (decision D20), in ticks.
    fn ticks(&self, accepted: &AcceptedSession) -> i64 {
        let namespace = self.client.namespace.as_ref();
        let ahead = namespace.map_or(0, |namespace| namespace.clock.ahead());
        let until = accepted.locked_until.as_millis().saturating_sub(ahead);
        until
            .saturating_mul(TICKS_PER_MILLISECOND)
            .saturating_add(EPOCH_TICKS)
    }

    /// Returns the receiver that a request to `$management` names, which may be empty (wire.md §10.26); for an unknown name
    /// the connection itself, which holds no session.
    pub(crate) fn requested_by(&self, request: &Request) -> Option<ReceiverId> {
        let name = request.property(ASSOCIATED_LINK)?;
        if name.is_empty() {
            return None;
        }
        let named = self.links.values().find_map(|link| {
            let Link::Receiver(receiver) = link else {
                return None;
            };
            (*receiver.name == *name).then_some(receiver.receiver_id)
        });
        Some(named.unwrap_or_else(|| self.client.id.receiver_id(0)))
    }

    /// Returns this connection's receiver that holds the session in a request to `$management`, which need not name it (wire.md
    /// §10a.10).
    pub(crate) fn session_receiver(
        &self,
        entity: &SharedEntity,
        request: &Request,
    ) -> Option<LinkId> {
        let Some(Value::String(session)) = request.field("session-id") else {
            return None;
        };
        let (namespace, session) = (self.client.namespace.as_ref()?, SessionName::new(session)?);
        let holder = namespace.read(entity, |entity| entity.session_holder(&session));
        self.links.of_receiver(holder?)
    }

    /// Returns whether a request to `$management` is made for a receiver that only browses the session in it.
    pub(crate) fn browses(&self, request: &Request) -> bool {
        let (name, session) = (
            request.property(ASSOCIATED_LINK),
            request.field("session-id"),
        );
        let (Some(name), Some(Value::String(session))) = (name, session) else {
            return false;
        };
        let sees = |session: &SessionName| {
            self.links.values().any(|link| {
                matches!(link, Link::Browser(browser) if *browser.name == *name && browser.sees(session))
            })
        };
        SessionName::new(session).is_some_and(|session| sees(&session))
    }

    /// Refuses links whose wait for a session has timed out.
    pub(crate) fn refuse_timed_out(&mut self, now: Duration) {
        while let Some(link) = self.links.next_timed_out(now) {
            // It may have been granted one at the last moment.
            self.answer_waiting(link);
            let Some(Link::Waiting(waiting)) = self.links.get(link) else {
                continue;
            };
            let refusal = ServiceError::timed_out(waiting.request.wait_timeout);
            let entity = Arc::clone(&waiting.receiver.entity);
            self.detach_refused(link, &refusal, (&entity, SubQueue::Active));
        }
    }

    /// Schedules the detach of links that have lost their sessions, a second later as in the service. Requests for them are
    /// refused meanwhile (spec/observed.md 63).
    pub(crate) fn detach_lost(&mut self) {
        for receiver_id in std::mem::take(&mut self.client.caller.lost) {
            if let Some(link) = self.links.of_receiver(receiver_id) {
                let until = self.client.shared.real.elapsed() + LOST_FOR;
                self.links.lose_session(link, until);
            }
        }
    }

    /// Detaches the links whose lost session is due, a few in each turn. Settlements that the clients send before they learn of
    /// it are refused with the same error.
    pub(crate) fn detach_due(&mut self, now: Duration) {
        let mut detached = 0;
        while detached < DETACHED
            && let Some(link) = self.links.next_lost(now)
        {
            let (Some(Link::Receiver(receiver)) | Some(Link::Waiting(Waiting { receiver, .. }))) =
                self.links.get(link)
            else {
                continue;
            };
            let entity = Arc::clone(&receiver.entity);
            let refusal = ServiceError::session_lock_lost();
            self.detach_refused(link, &refusal, (&entity, SubQueue::Active));
            self.links.insert(link, Link::Detached(refusal));
            detached += 1;
        }
        if detached > 0 {
            self.forget_detached();
        }
    }
}

/// Maximum number of detached links whose late settlements are still answered, and of those that one turn detaches.
const DETACHED: usize = 256;

impl ClientConnection {
    /// Detaches the links whose entities are deleted or no longer deliver to them. Senders of a disabled entity stay: each
    /// of their messages is refused. `$management` links stay too: each request is refused (decision D27).
    pub(crate) fn detach_from_changed_entities(&mut self) {
        let lost: Vec<_> = self
            .links
            .iter()
            .filter_map(|(id, link)| self.lost(id, link))
            .collect();
        for (link, entity, kind, refusal) in lost {
            let is_sender = matches!(self.links.get(link), Some(Link::Sender(_)));
            self.detach_refused(link, &refusal, (&entity, kind));
            // A settlement never gets the error that its entity is gone (wire.md §4.4).
            let late = match entity.is_deleted() && !is_sender {
                true => self.client.lock_gone(&entity, kind),
                false => refusal,
            };
            self.links.insert(link, Link::Detached(late));
        }
        self.forget_detached();
    }

    /// Closes the connection of a namespace that is removed.
    pub(crate) fn close_for_removed_namespace(&mut self) {
        let namespace = self.client.namespace.as_ref();
        let name = namespace.map_or("", |namespace| namespace.name());
        let text = format!("The namespace '{name}' was removed.");
        let refusal = ServiceError::new(Condition::ConnectionForced, text);
        let error = self.client.refuse(&refusal, None);
        self.engine.close(Some(error));
    }

    /// Detaches a link with an error that is not about its entity.
    pub(crate) fn detach_for(&mut self, link: LinkId, refusal: &ServiceError) {
        let error = self.client.refuse(refusal, None);
        self.engine.detach(link, Some(error));
        self.forget(link);
    }

    /// Detaches a link, answered or not, and releases what it held.
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

    /// Forgets the oldest detached links: no event tells when a client has learned of a detach.
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
