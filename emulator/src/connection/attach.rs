//! Attaches and detaches links.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, AttachRequest, Event, LinkId, LinkRole, SenderSettleMode};
use servicebus_broker::filter::SqlFilter;
use servicebus_broker::{EntityPath, ReceiveMode, SubQueue};

use super::browse::Browser;
use super::client;
use super::faults::link_of;
use super::jms::is_jms_filter;
use super::links::{Link, Node, Receiver, Replies, Requests, Sender};
use super::peer::ClientConnection;
use super::tokens::TokenState;
use crate::auth::Claim;
use crate::namespace::{LinkScope, SharedEntity};
use crate::nodes::{
    Address, Condition, Destination, LOCK_LOST, SESSION_LOCK_LOST, ServiceError, SessionRequest,
    no_namespace,
};

/// Link property: largest batch in bytes. A long, because .NET accepts nothing else (spec/observed.md 49).
const MAX_BATCH: &str = "com.microsoft:max-message-batch-size";
/// Maximum bytes of a request beside its messages or session state, which have limits of their own.
const ENVELOPE: u64 = 64 * 1024;
/// Maximum number of attaches of a connection that wait for a token, two for each of a few entities, and the maximum bytes of
/// each: what they take decoded does not count as memory of the connection.
const EARLY_ATTACHES: usize = 16;
const EARLY_ATTACH_SIZE: usize = 4096;

/// An attach that waits for a token.
#[derive(Debug)]
pub(crate) struct EarlyAttach {
    pub(crate) event: Event,
    /// When it is answered without the token, counted from the start of the real clock.
    pub(crate) until: Duration,
}

/// The purpose of a link, or the error with the entity.
pub(crate) type Resolved = Result<Link, (ServiceError, Option<Arc<SharedEntity>>)>;

impl ClientConnection {
    /// Returns the next attach that no longer waits for a token.
    pub(crate) fn next_early_attach(&mut self) -> Option<Event> {
        let mut early = self.early_attaches.iter();
        let index = early.position(|early| !self.waits_for_token(&early.event, early.until))?;
        Some(self.early_attaches.remove(index).event)
    }

    /// Returns until when an event waits, if it is an attach that waits for a token.
    pub(crate) fn waits_until(&self, event: &Event) -> Option<Duration> {
        if !matches!(event, Event::Attach { .. }) || self.early_attaches.len() >= EARLY_ATTACHES {
            return None;
        }
        let shared = &self.client.shared;
        let until = shared.real.elapsed() + shared.options.step_timeout;
        self.waits_for_token(event, until).then_some(until)
    }

    /// Returns whether an event is an attach that waits for a token: until the first one of the connection, and in the Java
    /// SDK until that for its entity. The Java SDK (7.0 to 7.15) attaches its links to `$management` before it puts the token
    /// for them, and does not repeat a refused attach.
    fn waits_for_token(&self, event: &Event, until: Duration) -> bool {
        let Event::Attach { attach, .. } = event else {
            return false;
        };
        let is_expected = match self.client.token_state {
            TokenState::Pending(_) => true,
            TokenState::Accepted(_) => {
                self.client.attaches_early() && self.client.shared.real.elapsed() < until
            }
        };
        let address = Address::parse(attach.address().unwrap_or_default());
        is_expected
            && matches!(address.destination, Destination::Management(_))
            && attach.encoded_size() <= EARLY_ATTACH_SIZE
            && self.client.check_any_claim(&address.path()).is_err()
    }

    /// Returns when the next attach stops waiting for a token.
    pub(crate) fn early_attach_due(&self) -> Option<Duration> {
        self.early_attaches.iter().map(|early| early.until).min()
    }

    pub(crate) fn on_attach(&mut self, link: LinkId, attach: &AttachRequest) {
        if client::begins_as_fe2o3(attach.session_windows()) {
            self.adapt_to_fe2o3();
        }
        let resolved = match self.client.is_jms {
            true => self.resolve_for_jms(link, attach),
            false => self.resolve(attach),
        };
        match resolved {
            Ok(Link::Waiting(waiting)) => {
                self.client.wake_handle.connected();
                self.name_receiver(link, waiting.receiver.receiver_id);
                let condition = Condition::SessionLockLost.symbol();
                self.engine
                    .refuse_unknown(link, condition, SESSION_LOCK_LOST);
                self.links.insert(link, Link::Waiting(waiting));
                self.answer_waiting(link);
            }
            Ok(resolved) => {
                if let Link::Receiver(receiver) = &resolved {
                    self.name_receiver(link, receiver.receiver_id);
                    let condition = Condition::MessageLockLost.symbol();
                    self.engine.refuse_unknown(link, condition, LOCK_LOST);
                } else if !resolved.is_cbs() {
                    self.client.wake_handle.connected();
                }
                let reply = self.attach_reply(link, &resolved);
                self.links.insert(link, resolved);
                self.accept_attach(link, reply);
            }
            Err((refusal, entity)) => {
                self.client.attempt.operation = Cow::Borrowed(match attach.role() {
                    LinkRole::Sender => "attach a sender",
                    LinkRole::Receiver => "attach a receiver",
                });
                let place = entity.as_deref().map(|entity| (entity, SubQueue::Active));
                let error = self.client.refuse(&refusal, place);
                if !self.is_unanswered(link) {
                    self.engine.refuse_attach(link, error);
                }
            }
        }
    }

    /// Answers an attach, unless a fault suppresses the answer.
    pub(crate) fn accept_attach(&mut self, link: LinkId, reply: AttachReply) {
        if !self.is_unanswered(link) {
            self.engine.accept_attach(link, reply);
        }
    }

    pub(crate) fn resolve(&mut self, attach: &AttachRequest) -> Resolved {
        if attach.is_coordinator() {
            return Ok(Link::Coordinator(attach.session()));
        }
        let written = attach.address().unwrap_or_default();
        let address = Address::parse(written);
        if address.destination == Destination::Cbs {
            self.check_cbs(attach.role())
                .map_err(|refusal| (refusal, None))?;
            return Ok(request_link(Node::Cbs, attach, None));
        }
        let entity = self
            .client
            .find(&address)
            .map_err(|refusal| (refusal, None))?;
        let refused = |refusal| (refusal, Some(Arc::clone(&entity)));
        match address.destination {
            Destination::Store(kind) => self.resolve_store(&entity, kind, attach).map_err(refused),
            Destination::Management(kind) => {
                if kind == SubQueue::DeadLetter {
                    // A topic has none (decision D25).
                    entity.check_is_received_from(kind).map_err(refused)?;
                }
                self.client
                    .check_any_claim(&entity.management_path(kind))
                    .map_err(refused)?;
                let destination = self.client.destination(attach).map_err(refused)?;
                let node = Node::Management(Arc::clone(&entity), kind);
                Ok(request_link(node, attach, destination))
            }
            Destination::Cbs => Ok(request_link(Node::Cbs, attach, None)),
        }
    }

    /// Allows one link to `$cbs` in each direction, over all sessions of a connection (spec/observed.md 66).
    fn check_cbs(&self, role: LinkRole) -> Result<(), ServiceError> {
        let is_there = self.links.values().any(|link| match (link, role) {
            (Link::Requests(requests), LinkRole::Sender) => matches!(requests.node, Node::Cbs),
            (Link::Replies(replies), LinkRole::Receiver) => matches!(replies.node, Node::Cbs),
            _ => false,
        });
        match is_there {
            true => Err(ServiceError::cbs_is_open(self.client.id.0)),
            false => Ok(()),
        }
    }

    pub(crate) fn resolve_store(
        &mut self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
    ) -> Result<Link, ServiceError> {
        self.client.check_entity_type(entity.kind, attach)?;
        match attach.role() {
            LinkRole::Sender => {
                self.client
                    .check_claim(&entity.store_path(kind), Claim::Send)?;
                entity.check_is_sent_to(kind)?;
                let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
                namespace.check_sending(entity, &self.client.host)?;
                Ok(Link::Sender(Sender {
                    entity: Arc::clone(entity),
                    destination: self.client.destination(attach)?,
                    session: attach.session(),
                    unsettled: 0,
                    answered: 0,
                }))
            }
            LinkRole::Receiver => {
                self.client
                    .check_claim(&entity.store_path(kind), Claim::Listen)?;
                entity.check_is_received_from(kind)?;
                self.check_filters(attach)?;
                self.client.check_receiving(entity, kind)?;
                self.check_crossing(attach.session(), entity)?;
                let selector = self.client.selector(attach)?;
                if attach.distribution_mode() == Some("copy") {
                    let tier = self.client.tier();
                    return Browser::of_copies(entity, kind, attach, tier, selector);
                }
                let request = SessionRequest::read(attach, &entity.path);
                match (self.client.requires_session(entity, kind), request) {
                    (true, Ok(Some(_))) if selector.is_some() => {
                        Err(ServiceError::invalid_filter(attach.name()))
                    }
                    (true, Ok(Some(request))) if Browser::is_wanted(attach) => {
                        Browser::of_session(entity, attach, &request)
                    }
                    (true, Ok(Some(request))) => {
                        self.open_session_receiver(entity, attach, request)
                    }
                    (true, Ok(None)) => Err(ServiceError::requires_session()),
                    (true, Err(refusal)) => Err(refusal),
                    (false, Ok(None)) => {
                        let receiver = self.open_receiver(entity, kind, attach, selector);
                        Ok(Link::Receiver(receiver))
                    }
                    (false, Ok(Some(_)) | Err(_)) => Err(ServiceError::receives_no_sessions()),
                }
            }
        }
    }

    /// Refuses described filters that are not evaluated (spec/observed.md 50).
    pub(crate) fn check_filters(&self, attach: &AttachRequest) -> Result<(), ServiceError> {
        let tier = self.client.tier();
        let is_known = |(key, filter)| {
            SessionRequest::is_known(key, filter, tier)
                || self.client.is_jms && is_jms_filter(filter)
        };
        match attach.described_filters().all(is_known) {
            true => Ok(()),
            false => Err(ServiceError::invalid_filter(attach.name())),
        }
    }

    pub(crate) fn open_receiver(
        &mut self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
        selector: Option<SqlFilter>,
    ) -> Receiver {
        let (receiver, mode) = self.new_receiver(entity, kind, attach);
        let id = receiver.receiver_id;
        if let Some(namespace) = &self.client.namespace {
            namespace.operate(
                entity,
                &mut self.client.caller,
                |entity, _| match selector {
                    Some(selector) => entity.attach_selecting_receiver(kind, id, mode, selector),
                    None => entity.attach_receiver(kind, id, mode),
                },
            );
        }
        receiver
    }

    /// Creates a receiver that the broker does not know yet, with its receive mode.
    pub(crate) fn new_receiver(
        &mut self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
    ) -> (Receiver, ReceiveMode) {
        let receiver_id = self.links.next_receiver_id(self.client.id);
        let settled = attach.sender_settle_mode() == SenderSettleMode::Settled;
        let mode = match settled {
            true => ReceiveMode::ReceiveAndDelete,
            false => ReceiveMode::PeekLock,
        };
        let receiver = Receiver {
            name: attach.name().into(),
            entity: Arc::clone(entity),
            kind,
            receiver_id,
            session: attach.session(),
            settled,
            drain: false,
        };
        (receiver, mode)
    }

    /// Returns the answer to an attach, with the maximum size of messages (semantics §17.2).
    fn attach_reply(&self, id: LinkId, link: &Link) -> AttachReply {
        let tier = self.client.tier().max_message_size();
        let temporary = self.links.scope(id).and_then(LinkScope::temporary);
        let address = temporary.map(|entity| entity.path.to_string());
        let Link::Sender(Sender { entity, .. }) = link else {
            // Generous on links that deliver: go-amqp applies the limit to the messages it may be sent (wire.md §10.15).
            let requests = matches!(link, Link::Requests(_));
            let (filter, subscription) = if let Link::Browser(browser) = link {
                (browser.filter(), browser.ended())
            } else {
                (Vec::new(), None)
            };
            return AttachReply {
                max_message_size: if requests { tier + ENVELOPE } else { 0 },
                filter,
                address,
                subscription,
                ..AttachReply::default()
            };
        };
        let own = self.client.namespace.as_ref().map_or(tier, |namespace| {
            namespace.read(entity, |entity| entity.max_message_size())
        });
        let batch = i64::try_from(tier).unwrap_or(i64::MAX);
        AttachReply {
            max_message_size: own,
            properties: vec![(MAX_BATCH.to_owned(), Value::Long(batch))],
            address,
            ..AttachReply::default()
        }
    }

    /// Handles a link that the client has detached, or closed so that its terminus must not stay.
    pub(crate) fn on_detached(&mut self, link: LinkId, closed: bool) {
        let ended = match self.links.get(link) {
            Some(Link::Browser(browser)) if closed => browser.ends().cloned(),
            _ => None,
        };
        self.forget(link);
        if let (Some(namespace), Some(ended)) = (&self.client.namespace, ended) {
            namespace.unsubscribe(&ended);
        }
    }

    pub(crate) fn forget(&mut self, link: LinkId) {
        // Dropped last: the link's entity may be deleted with it.
        let _scope = self.links.take_scope(link);
        let early = &mut self.early_attaches;
        early.retain(|early| link_of(&early.event) != Some(link));
        self.memory.mark_replies_changed();
        self.forget_faulted(link);
        self.leave_identifier(link);
        let receiver = match self.links.remove(link) {
            Some(Link::Receiver(receiver)) => receiver,
            Some(Link::Waiting(waiting)) => waiting.receiver,
            Some(Link::Coordinator(_)) => return self.forget_coordinator(link),
            Some(Link::Sender(sender)) => return sender.give_up(),
            _ => return,
        };
        if let Some(namespace) = &self.client.namespace {
            namespace.operate(&receiver.entity, &mut self.client.caller, |entity, cx| {
                entity.detach_receiver(cx, receiver.kind, receiver.receiver_id);
            });
            namespace.forget_receiver(receiver.receiver_id);
        }
    }
}

fn request_link(node: Node, attach: &AttachRequest, destination: Option<EntityPath>) -> Link {
    match attach.role() {
        LinkRole::Sender => Link::Requests(Requests {
            node,
            session: attach.session(),
            pair: None,
            destination,
        }),
        LinkRole::Receiver => Link::Replies(Replies {
            node,
            session: attach.session(),
            pair: None,
            name: attach.name().to_owned(),
            target: attach.target_address().map(str::to_owned),
            settled: attach.sender_settle_mode() != SenderSettleMode::Unsettled,
            waiting: VecDeque::new(),
        }),
    }
}
