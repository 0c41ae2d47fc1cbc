//! Session receivers: links that are granted a session before they are answered, and detached when its lock is over.
//!
//! Who asks for the next available session may have to wait. Until there is one, or the client's time has passed in
//! real time (decision D19), its attach is not answered and the link is [`Link::Waiting`]; a detach meanwhile, by
//! either side, gives back what it was about to get.

use std::sync::Arc;
use std::time::Duration;

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, AttachRequest, LinkId};
use servicebus_broker::{AcceptSessionError, AcceptedSession, ConsumerId, StoreKind};

use super::links::{Link, Waiting};
use super::peer::Peer;
use crate::namespace::Entity;
use crate::nodes::{Refusal, Request, SessionRequest};

/// Link property: the end of the session's lock.
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";
/// Application property of a request: the name of the receiver that it is made for (wire.md §6.1).
const ASSOCIATED_LINK: &str = "associated-link-name";
/// Ticks of .NET, of which there are ten million a second, from the year 1 to the Unix epoch.
const EPOCH_TICKS: i64 = 621_355_968_000_000_000;
const TICKS_PER_MILLISECOND: i64 = 10_000;

impl Peer {
    /// Asks the broker for a session; [`Peer::answer_waiting`] answers the link, now or later.
    pub(super) fn open_session_receiver(
        &mut self,
        entity: &Arc<Entity>,
        attach: &AttachRequest,
        request: SessionRequest,
    ) -> Result<Link, Refusal> {
        let (receiver, mode) = self.new_receiver(entity, StoreKind::Active, attach);
        if let Some(namespace) = &self.namespace {
            let opened = namespace.operate(entity, &mut self.caller, |mailbox, cx| {
                let wanted = request.session.as_ref();
                mailbox.open_session_consumer(cx, receiver.consumer, mode, wanted, request.access)
            });
            opened.map_err(|AcceptSessionError::Locked(session)| {
                Refusal::session_cannot_be_locked(session.as_str())
            })?;
        }
        Ok(Link::Waiting(Waiting {
            receiver,
            until: self.shared.real.elapsed() + request.patience,
            request,
        }))
    }

    /// Answers an attach that waits for a session, if it has one by now.
    pub(super) fn answer_waiting(&mut self, link: LinkId) {
        let Some(accepted) = self.accepted_session(link) else {
            return;
        };
        let Some(Link::Waiting(waiting)) = self.links.remove(&link) else {
            return;
        };
        self.waiting.remove(&(waiting.until, link));
        let filter = waiting.request.granted(&accepted);
        let until = (LOCKED_UNTIL.to_owned(), Value::Long(self.ticks(&accepted)));
        self.links.insert(link, Link::Receiver(waiting.receiver));
        let reply = AttachReply {
            properties: vec![until],
            filter: vec![filter],
            ..AttachReply::default()
        };
        self.accept_attach(link, reply);
        self.answered_late = true;
    }

    fn accepted_session(&self, link: LinkId) -> Option<AcceptedSession> {
        let (Some(namespace), Some(Link::Waiting(waiting))) =
            (&self.namespace, self.links.get(&link))
        else {
            return None;
        };
        let consumer = waiting.receiver.consumer;
        namespace.look(&waiting.receiver.entity, |queue| {
            queue.mailbox.accepted_session(consumer)
        })
    }

    /// The end of a session's lock in the client's time (decision D20).
    fn ticks(&self, accepted: &AcceptedSession) -> i64 {
        let namespace = self.namespace.as_ref();
        let ahead = namespace.map_or(0, |namespace| namespace.clock.read().ahead);
        let until = accepted.locked_until.as_millis().saturating_sub(ahead);
        until
            .saturating_mul(TICKS_PER_MILLISECOND)
            .saturating_add(EPOCH_TICKS)
    }

    /// The receiver that a request to `$management` names as the one that it is made for; where there is none of this
    /// name, the connection itself, which holds no session.
    pub(super) fn asked_by(&self, request: &Request) -> Option<ConsumerId> {
        let name = request.property(ASSOCIATED_LINK)?;
        let named = self.links.values().find_map(|link| {
            let Link::Receiver(receiver) = link else {
                return None;
            };
            (*receiver.name == *name).then_some(receiver.consumer)
        });
        Some(named.unwrap_or_else(|| self.id.consumer(0)))
    }

    /// Refuses those who have waited for a session as long as they wanted.
    pub(super) fn refuse_impatient(&mut self, now: Duration) {
        while let Some((_, link)) = self
            .waiting
            .first()
            .copied()
            .filter(|&(until, _)| until <= now)
        {
            self.waiting.pop_first();
            // It may have been granted one at the last moment.
            self.answer_waiting(link);
            let Some(Link::Waiting(waiting)) = self.links.get(&link) else {
                continue;
            };
            let refusal = Refusal::timed_out(waiting.request.patience);
            let entity = Arc::clone(&waiting.receiver.entity);
            self.detach_refused(link, &refusal, (&entity, StoreKind::Active));
        }
    }

    /// Detaches the links whose sessions are not theirs any more. What their clients settle before they hear of it is
    /// refused in the same way.
    pub(super) fn detach_lost(&mut self) {
        if self.caller.lost.is_empty() {
            return;
        }
        for consumer in std::mem::take(&mut self.caller.lost) {
            let Some(&link) = self.consumers.get(&consumer) else {
                continue;
            };
            let (Some(Link::Receiver(receiver)) | Some(Link::Waiting(Waiting { receiver, .. }))) =
                self.links.get(&link)
            else {
                continue;
            };
            let entity = Arc::clone(&receiver.entity);
            let refusal = Refusal::session_lock_lost();
            self.detach_refused(link, &refusal, (&entity, StoreKind::Active));
            self.links.insert(link, Link::Detached(refusal));
        }
        self.forget_detached();
    }
}
