//! A client attaches a link, and links go away.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, AttachRequest, LinkId, LinkRole, SenderSettleMode};
use servicebus_broker::{EntityKind, EntityPath, ReceiveMode, SubQueue, Tier};

use super::browse::Browser;
use super::clients;
use super::links::{Link, Node, Receiver, Replies, Requests, Sender};
use super::peer::ClientConnection;
use crate::auth::Claim;
use crate::namespace::SharedEntity;
use crate::nodes::{Address, Condition, Destination, ServiceError, SessionRequest};

/// Link property: largest batch in bytes. A long, because .NET takes nothing else (spec/observed.md 49).
const MAX_BATCH: &str = "com.microsoft:max-message-batch-size";
/// Link property: where messages go on to from the entity they are sent to.
const DESTINATION: &str = "com.microsoft:transfer-destination-address";
/// Link property: what kind of entity the client takes the address for (spec/observed.md 60).
const ENTITY_TYPE: &str = "com.microsoft:entity-type";
/// Kinds of entities as clients number them, with the names of the service's refusal.
const ENTITY_TYPES: [&str; 3] = ["Queue", "Topic", "Subscriber"];
/// Bytes that a request may have beside the messages or the session state in it, which have limits of their own.
const ENVELOPE: u64 = 64 * 1024;

impl ClientConnection {
    pub(super) fn on_attach(&mut self, link: LinkId, attach: &AttachRequest) {
        if self.shared.options.outcome_delay && clients::begins_as_fe2o3(attach.session_windows()) {
            self.held.delay();
        }
        match self.resolve(attach) {
            Ok(Link::Waiting(waiting)) => {
                self.bell.connected();
                self.name_receiver(link, waiting.receiver.receiver_id);
                self.receivers.insert(waiting.receiver.receiver_id, link);
                self.waiting.insert((waiting.until, link));
                self.links.insert(link, Link::Waiting(waiting));
                self.answer_waiting(link);
            }
            Ok(resolved) => {
                if let Link::Receiver(receiver) = &resolved {
                    self.receivers.insert(receiver.receiver_id, link);
                    self.name_receiver(link, receiver.receiver_id);
                } else if !resolved.is_cbs() {
                    self.bell.connected();
                }
                let reply = self.attach_reply(&resolved);
                self.links.insert(link, resolved);
                self.accept_attach(link, reply);
            }
            Err((refusal, entity)) => {
                self.attempt.operation = Cow::Borrowed(match attach.role() {
                    LinkRole::Sender => "attach a sender",
                    LinkRole::Receiver => "attach a receiver",
                });
                let place = entity.as_deref().map(|entity| (entity, SubQueue::Active));
                let error = self.refuse(&refusal, place);
                if !self.is_unanswered(link) {
                    self.engine.refuse_attach(link, error);
                }
            }
        }
    }

    /// Answers an attach, unless the client must not hear of it.
    pub(super) fn accept_attach(&mut self, link: LinkId, reply: AttachReply) {
        if !self.is_unanswered(link) {
            self.engine.accept_attach(link, reply);
        }
    }

    fn resolve(
        &mut self,
        attach: &AttachRequest,
    ) -> Result<Link, (ServiceError, Option<Arc<SharedEntity>>)> {
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
        let entity = self.find(&address).map_err(|refusal| (refusal, None))?;
        let refused = |refusal| (refusal, Some(Arc::clone(&entity)));
        match address.destination {
            Destination::Store(kind) => self.resolve_store(&entity, kind, attach).map_err(refused),
            Destination::Management(kind) => {
                self.check_any_claim(&management_path(&entity, kind))
                    .map_err(refused)?;
                let destination = self.destination(attach).map_err(refused)?;
                let node = Node::Management(Arc::clone(&entity), kind);
                Ok(request_link(node, attach, destination))
            }
            Destination::Cbs => Ok(request_link(Node::Cbs, attach, None)),
        }
    }

    /// A connection has one link to `$cbs` in each direction, over all its sessions (spec/observed.md 66).
    fn check_cbs(&self, role: LinkRole) -> Result<(), ServiceError> {
        let is_there = self.links.values().any(|link| match (link, role) {
            (Link::Requests(requests), LinkRole::Sender) => matches!(requests.node, Node::Cbs),
            (Link::Replies(replies), LinkRole::Receiver) => matches!(replies.node, Node::Cbs),
            _ => false,
        });
        match is_there {
            true => Err(ServiceError::cbs_is_open(self.id.0)),
            false => Ok(()),
        }
    }

    /// The kind of entity that a client expects; what is no int says nothing (spec/observed.md 60).
    fn check_entity_type(
        &self,
        entity: &SharedEntity,
        attach: &AttachRequest,
    ) -> Result<(), ServiceError> {
        let Some(Value::Int(expected)) = attach.property(ENTITY_TYPE) else {
            return Ok(());
        };
        let Some(namespace) = &self.namespace else {
            return Ok(());
        };
        let is = match namespace.read(entity, |entity| entity.kind()) {
            EntityKind::Queue => 0,
            EntityKind::Topic => 1,
            EntityKind::Subscription => 2,
        };
        let client = usize::try_from(*expected)
            .ok()
            .and_then(|expected| ENTITY_TYPES.get(expected));
        match client {
            Some(client) if *client != ENTITY_TYPES[is] => {
                Err(ServiceError::other_entity_type(client, ENTITY_TYPES[is]))
            }
            _ => Ok(()),
        }
    }

    fn resolve_store(
        &mut self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
    ) -> Result<Link, ServiceError> {
        self.check_entity_type(entity, attach)?;
        match attach.role() {
            LinkRole::Sender => {
                self.check_claim(&store_path(entity, kind), Claim::Send)?;
                if kind != SubQueue::Active {
                    let address = store_path(entity, kind);
                    return Err(ServiceError::is_filled_by_the_broker(&address));
                }
                self.check_direction(entity, kind, LinkRole::Sender)?;
                self.check_sending(entity)?;
                Ok(Link::Sender(Sender {
                    entity: Arc::clone(entity),
                    destination: self.destination(attach)?,
                    session: attach.session(),
                    unsettled: 0,
                    answered: 0,
                }))
            }
            LinkRole::Receiver => {
                self.check_claim(&store_path(entity, kind), Claim::Listen)?;
                self.check_direction(entity, kind, LinkRole::Receiver)?;
                let tier = self.tier();
                let is_known = |key: &str, filter| SessionRequest::is_known(key, filter, tier);
                if attach
                    .described_filters()
                    .any(|(key, filter)| !is_known(key, filter))
                {
                    return Err(ServiceError::invalid_filter(attach.name()));
                }
                self.check_receiving(entity, kind)?;
                self.check_crossing(attach.session(), entity)?;
                if attach.distribution_mode() == Some("copy") {
                    return Browser::of_copies(entity, kind, attach, tier);
                }
                let request = SessionRequest::read(attach, &entity.path);
                match (self.requires_session(entity, kind), request) {
                    (true, Ok(Some(request))) if Browser::is_wanted(attach) => {
                        Browser::of_session(entity, attach, &request)
                    }
                    (true, Ok(Some(request))) => {
                        self.open_session_receiver(entity, attach, request)
                    }
                    (true, Ok(None)) => Err(ServiceError::requires_session()),
                    (true, Err(refusal)) => Err(refusal),
                    (false, Ok(None)) => {
                        Ok(Link::Receiver(self.open_receiver(entity, kind, attach)))
                    }
                    (false, Ok(Some(_)) | Err(_)) => Err(ServiceError::receives_no_sessions()),
                }
            }
        }
    }

    /// Where the messages of a link go on to (wire.md §8). It must be there when the link is attached (decision D3).
    fn destination(&self, attach: &AttachRequest) -> Result<Option<EntityPath>, ServiceError> {
        let written = match attach.property(DESTINATION) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(written)) => written.as_str(),
            Some(_) => {
                let text =
                    format!("{DESTINATION} must be a string: the address of a queue or topic.");
                return Err(ServiceError::new(Condition::ArgumentError, text));
            }
        };
        let address = Address::parse(written);
        if address.destination != Destination::Store(SubQueue::Active) {
            let text =
                format!("Messages cannot be sent on to '{written}': only to a queue or topic.");
            return Err(ServiceError::new(Condition::NotAllowed, text));
        }
        let entity = self.find(&address)?;
        self.check_claim(entity.path.as_str(), Claim::Send)?;
        self.check_direction(&entity, SubQueue::Active, LinkRole::Sender)?;
        Ok(Some(entity.path.clone()))
    }

    /// Topics are sent to, subscriptions received from (semantics §1); what a topic could not forward can be read.
    fn check_direction(
        &self,
        entity: &SharedEntity,
        kind: SubQueue,
        role: LinkRole,
    ) -> Result<(), ServiceError> {
        let Some(namespace) = &self.namespace else {
            return Ok(());
        };
        let is = namespace.read(entity, |entity| entity.kind());
        match (is, role) {
            (EntityKind::Subscription, LinkRole::Sender) => {
                Err(ServiceError::takes_nothing(entity.path.as_str()))
            }
            (EntityKind::Topic, LinkRole::Receiver) if kind != SubQueue::TransferDeadLetter => {
                Err(ServiceError::gives_nothing(&store_path(entity, kind)))
            }
            _ => Ok(()),
        }
    }

    fn open_receiver(
        &mut self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
    ) -> Receiver {
        let (receiver, mode) = self.new_receiver(entity, kind, attach);
        if let Some(namespace) = &self.namespace {
            namespace.operate(entity, &mut self.caller, |entity, _| {
                entity.attach_receiver(kind, receiver.receiver_id, mode);
            });
        }
        receiver
    }

    /// A receiver that the broker does not know yet, and how it receives.
    pub(super) fn new_receiver(
        &mut self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
    ) -> (Receiver, ReceiveMode) {
        self.consumers_made += 1;
        let receiver_id = self.id.receiver_id(self.consumers_made);
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

    fn find(&self, address: &Address) -> Result<Arc<SharedEntity>, ServiceError> {
        let Some(namespace) = &self.namespace else {
            let text = "No namespace is chosen yet: put a token at $cbs first.";
            return Err(ServiceError::new(Condition::Unauthorized, text));
        };
        // First of all: a stranger does not learn which names exist.
        self.check_any_claim(&address.path())?;
        let path = EntityPath::of_address(&address.entity);
        let entity = path.and_then(|path| namespace.entity(&path));
        let entity = entity.ok_or_else(|| ServiceError::not_found(&self.host, &address.entity))?;
        self.check_whole(&entity)?;
        Ok(entity)
    }

    pub(super) fn check_claim(&self, path: &str, claim: Claim) -> Result<(), ServiceError> {
        let unix_seconds = self.shared.real.unix_seconds();
        match self.is_open() || self.grants.allows(path, claim, unix_seconds) {
            true => Ok(()),
            false => Err(ServiceError::unauthorized(claim.name(), &self.host, path)),
        }
    }

    pub(super) fn check_any_claim(&self, path: &str) -> Result<(), ServiceError> {
        let claims = [Claim::Listen, Claim::Send, Claim::Manage];
        match claims
            .iter()
            .any(|&claim| self.check_claim(path, claim).is_ok())
        {
            true => Ok(()),
            false => Err(ServiceError::unauthorized(
                "Send or Listen",
                &self.host,
                path,
            )),
        }
    }

    /// What the client learns of a link: how large its messages may be (semantics §17.2).
    fn attach_reply(&self, link: &Link) -> AttachReply {
        let tier = self.tier().max_message_size();
        let Link::Sender(Sender { entity, .. }) = link else {
            // Generous where messages go out: go-amqp takes it for what it may be sent (wire.md §10.15).
            let requests = matches!(link, Link::Requests(_));
            let filter = if let Link::Browser(browser) = link {
                browser.filter()
            } else {
                Vec::new()
            };
            return AttachReply {
                max_message_size: if requests { tier + ENVELOPE } else { 0 },
                filter,
                ..AttachReply::default()
            };
        };
        let own = self.namespace.as_ref().map_or(tier, |namespace| {
            namespace.read(entity, |entity| entity.max_message_size())
        });
        let batch = i64::try_from(tier).unwrap_or(i64::MAX);
        AttachReply {
            max_message_size: own,
            properties: vec![(MAX_BATCH.to_owned(), Value::Long(batch))],
            ..AttachReply::default()
        }
    }

    pub(super) fn tier(&self) -> Tier {
        let namespace = self.namespace.as_ref();
        namespace.map_or_else(Tier::default, |namespace| namespace.config.settings.tier)
    }

    /// The link is gone.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.books.note_replies();
        self.forget_spoiled(link);
        self.leave_identifier(link);
        let receiver = match self.links.remove(&link) {
            Some(Link::Receiver(receiver)) => receiver,
            Some(Link::Waiting(waiting)) => {
                self.waiting.remove(&(waiting.until, link));
                waiting.receiver
            }
            Some(Link::Coordinator(_)) => return self.forget_coordinator(link),
            Some(Link::Sender(sender)) => return sender.give_up(),
            _ => return,
        };
        self.receivers.remove(&receiver.receiver_id);
        if let Some(namespace) = &self.namespace {
            namespace.operate(&receiver.entity, &mut self.caller, |entity, cx| {
                entity.detach_receiver(cx, receiver.kind, receiver.receiver_id);
            });
            namespace.forget_receiver(receiver.receiver_id);
        }
    }
}

/// The path that a token must cover: Python signs for the sub-queue alone, JavaScript for `$management` too.
pub(super) fn store_path(entity: &SharedEntity, kind: SubQueue) -> String {
    format!("{}{}", entity.path, kind.suffix())
}

pub(super) fn management_path(entity: &SharedEntity, kind: SubQueue) -> String {
    format!("{}/$management", store_path(entity, kind))
}

fn request_link(node: Node, attach: &AttachRequest, destination: Option<EntityPath>) -> Link {
    match attach.role() {
        LinkRole::Sender => Link::Requests(Requests {
            node,
            session: attach.session(),
            destination,
        }),
        LinkRole::Receiver => Link::Replies(Replies {
            node,
            session: attach.session(),
            name: attach.name().to_owned(),
            target: attach.target_address().map(str::to_owned),
            settled: attach.sender_settle_mode() != SenderSettleMode::Unsettled,
            waiting: VecDeque::new(),
        }),
    }
}
