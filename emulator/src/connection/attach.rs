//! A client attaches a link, and links go away.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, AttachRequest, LinkId, LinkRole, SenderSettleMode};
use servicebus_broker::{EntityPath, ReceiveMode, StoreKind, Tier};

use super::links::{Link, Node, Receiver, Replies};
use super::peer::Peer;
use crate::auth::Claim;
use crate::namespace::Entity;
use crate::nodes::{Address, Condition, Destination, Refusal};

const SESSION_FILTER: &str = "com.microsoft:session-filter";
/// Link property: largest batch in bytes, where single messages may be larger (semantics §17.1).
const MAX_BATCH: &str = "com.microsoft:max-message-batch-size";

impl Peer {
    pub(super) fn on_attach(&mut self, link: LinkId, attach: &AttachRequest) {
        match self.resolve(attach) {
            Ok(resolved) => {
                if let Link::Receiver(receiver) = &resolved {
                    self.consumers.insert(receiver.consumer, link);
                }
                let reply = self.attach_reply(&resolved);
                self.links.insert(link, resolved);
                self.engine.accept_attach(link, reply);
            }
            Err((refusal, entity)) => {
                let place = entity.as_deref().map(|entity| (entity, StoreKind::Active));
                let error = self.refuse(&refusal, place);
                self.engine.refuse_attach(link, error);
            }
        }
    }

    fn resolve(&mut self, attach: &AttachRequest) -> Result<Link, (Refusal, Option<Arc<Entity>>)> {
        if attach.is_coordinator() {
            let text = "Transactions are not supported by this version of the emulator.";
            return Err((Refusal::new(Condition::NotImplemented, text), None));
        }
        let written = attach.address().unwrap_or_default();
        let address = Address::parse(written);
        if address.destination == Destination::Cbs {
            return Ok(request_link(Node::Cbs, attach));
        }
        let entity = self.find(&address).map_err(|refusal| (refusal, None))?;
        let refused = |refusal| (refusal, Some(Arc::clone(&entity)));
        match address.destination {
            Destination::Store(kind) => self.resolve_store(&entity, kind, attach).map_err(refused),
            Destination::Management(kind) => {
                self.check_any_claim(&management_path(&entity, kind))
                    .map_err(refused)?;
                Ok(request_link(
                    Node::Management(Arc::clone(&entity), kind),
                    attach,
                ))
            }
            Destination::Cbs => Ok(request_link(Node::Cbs, attach)),
        }
    }

    fn resolve_store(
        &mut self,
        entity: &Arc<Entity>,
        kind: StoreKind,
        attach: &AttachRequest,
    ) -> Result<Link, Refusal> {
        match attach.role() {
            LinkRole::Sender => {
                self.check_claim(&store_path(entity, kind), Claim::Send)?;
                if kind != StoreKind::Active {
                    let text = format!(
                        "Messages cannot be sent to '{}{}': a dead-letter queue is filled by the broker alone.",
                        entity.path,
                        kind.suffix()
                    );
                    return Err(Refusal::new(Condition::NotAllowed, text));
                }
                self.check_sending(entity)?;
                Ok(Link::Sender(Arc::clone(entity)))
            }
            LinkRole::Receiver => {
                self.check_claim(&store_path(entity, kind), Claim::Listen)?;
                if attach.filter(SESSION_FILTER).is_some() {
                    let text = "A sessionful message receiver cannot be created on an entity that does not \
                                require sessions. Ensure RequiresSession is set to true when creating a Queue \
                                or Subscription to enable sessionful behavior.";
                    return Err(Refusal::new(Condition::NotAllowed, text));
                }
                self.check_receiving(entity, kind)?;
                Ok(Link::Receiver(self.open_receiver(entity, kind, attach)))
            }
        }
    }

    fn open_receiver(
        &mut self,
        entity: &Arc<Entity>,
        kind: StoreKind,
        attach: &AttachRequest,
    ) -> Receiver {
        self.consumers_made += 1;
        let consumer = self.id.consumer(self.consumers_made);
        let settled = attach.sender_settle_mode() == SenderSettleMode::Settled;
        let mode = match settled {
            true => ReceiveMode::ReceiveAndDelete,
            false => ReceiveMode::PeekLock,
        };
        if let Some(namespace) = &self.namespace {
            namespace.operate(entity, &mut self.caller, |mailbox, _| {
                mailbox.open_consumer(kind, consumer, mode);
            });
        }
        Receiver {
            entity: Arc::clone(entity),
            kind,
            consumer,
            settled,
            drain: false,
        }
    }

    fn find(&self, address: &Address) -> Result<Arc<Entity>, Refusal> {
        let Some(namespace) = &self.namespace else {
            let text = "No namespace is chosen yet: put a token at $cbs first.";
            return Err(Refusal::new(Condition::Unauthorized, text));
        };
        // First of all: a stranger does not learn which names exist.
        self.check_any_claim(&address.path())?;
        let path = address.entity.parse::<EntityPath>();
        let entity = path.ok().and_then(|path| namespace.entity(&path));
        entity.ok_or_else(|| Refusal::not_found(&self.host, &address.entity))
    }

    pub(super) fn check_claim(&self, path: &str, claim: Claim) -> Result<(), Refusal> {
        let unix_seconds = self.shared.real.unix_seconds();
        match self.is_open() || self.grants.allows(path, claim, unix_seconds) {
            true => Ok(()),
            false => Err(Refusal::unauthorized(claim.name(), &self.host, path)),
        }
    }

    fn check_any_claim(&self, path: &str) -> Result<(), Refusal> {
        let claims = [Claim::Listen, Claim::Send, Claim::Manage];
        match claims
            .iter()
            .any(|&claim| self.check_claim(path, claim).is_ok())
        {
            true => Ok(()),
            false => Err(Refusal::unauthorized("Send or Listen", &self.host, path)),
        }
    }

    /// Whether the namespace asks for no tokens at all.
    fn is_open(&self) -> bool {
        let namespace = self.namespace.as_ref();
        namespace
            .is_some_and(|namespace| namespace.config.token_check == crate::auth::TokenCheck::None)
    }

    /// What the client learns of a link: how large its messages may be (semantics §17.2).
    fn attach_reply(&self, link: &Link) -> AttachReply {
        let tier = self.tier().max_message_size();
        let Link::Sender(entity) = link else {
            // Generous where messages go out: go-amqp takes it for what it may be sent (wire.md §10.15).
            let requests = matches!(link, Link::Requests(..));
            return AttachReply {
                max_message_size: if requests { tier } else { 0 },
                ..AttachReply::default()
            };
        };
        let own = self.namespace.as_ref().map_or(tier, |namespace| {
            namespace.look(entity, |queue| queue.mailbox.max_message_size())
        });
        let batch = (MAX_BATCH.to_owned(), Value::from(tier));
        AttachReply {
            max_message_size: own,
            properties: Vec::from_iter((own > tier).then_some(batch)),
            ..AttachReply::default()
        }
    }

    pub(super) fn tier(&self) -> Tier {
        let namespace = self.namespace.as_ref();
        namespace.map_or_else(Tier::default, |namespace| namespace.config.settings.tier)
    }

    /// The link is gone.
    pub(super) fn forget(&mut self, link: LinkId) {
        let Some(Link::Receiver(receiver)) = self.links.remove(&link) else {
            return;
        };
        self.consumers.remove(&receiver.consumer);
        if let Some(namespace) = &self.namespace {
            namespace.operate(&receiver.entity, &mut self.caller, |mailbox, cx| {
                mailbox.close_consumer(cx, receiver.kind, receiver.consumer);
            });
        }
    }
}

/// The path that a token must cover: Python signs for the sub-queue alone, JavaScript for `$management` too.
fn store_path(entity: &Entity, kind: StoreKind) -> String {
    format!("{}{}", entity.path, kind.suffix())
}

pub(super) fn management_path(entity: &Entity, kind: StoreKind) -> String {
    format!("{}/$management", store_path(entity, kind))
}

fn request_link(node: Node, attach: &AttachRequest) -> Link {
    match attach.role() {
        LinkRole::Sender => Link::Requests(node, attach.session()),
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
