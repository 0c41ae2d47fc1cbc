//! Requests to `$cbs` and `$management`, and the delivery of their replies.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_amqp::Value;
use servicebus_amqp::{Delivery as Frame, DeliveryNumber, Error, Event, LinkId, Outcome, Transfer};
use servicebus_broker::{Entity, LockToken, SubQueue};
use uuid::Uuid;

use super::links::{Link, Node, Replies, Requests};
use super::peer::ClientConnection;
use super::transact::in_transaction;
use crate::auth::Claim;
use crate::namespace::{Attempt, Namespace, SharedEntity};
use crate::nodes::{
    Condition, Management, Reply, ReplyMessages, Request, ServiceError, change_refusal,
    enumerate_rules, is_about_rules, is_batch_delete, no_namespace, quote, rule_change, spelling,
};

/// Maximum number of replies that wait for credit on one link, and their bytes if there is more than one.
const WAITING: usize = 1024;
const WAITING_BYTES: usize = 16 * 1024 * 1024;

impl ClientConnection {
    /// Answers a request with its result, or with that of a fault.
    pub(crate) fn on_request(
        &mut self,
        requests: &Requests,
        transfer: &Transfer,
        now: Duration,
        scripted: Option<Reply>,
    ) {
        let node = &requests.node;
        let request = match Request::parse(&transfer.payload) {
            Ok(request) => request,
            Err(refusal) => {
                let (link, delivery) = (transfer.link, transfer.delivery);
                self.refuse_transfer(link, delivery, transfer.settled, now, &refusal);
                return;
            }
        };
        let reply_to = request.reply_to.as_deref();
        let Some(reply_link) = self.reply_link(requests, reply_to) else {
            let text = match &request.reply_to {
                Some(address) => format!(
                    "No receiver for the reply is attached: reply-to is '{}'.",
                    quote(address)
                ),
                None => "No receiver for the reply is attached: there is no reply-to.".to_owned(),
            };
            let refusal = ServiceError::new(Condition::NotAllowed, text);
            let (link, delivery) = (transfer.link, transfer.delivery);
            self.refuse_transfer(link, delivery, transfer.settled, now, &refusal);
            return;
        };
        let performed = match scripted {
            Some(reply) => Ok(reply),
            None => self.perform(requests, &request, transfer.transaction.as_deref()),
        };
        let reply = performed.unwrap_or_else(|refusal| self.refused(node, &request, &refusal));
        if !transfer.settled {
            let state = match transfer.transaction.clone() {
                Some(transaction) => in_transaction(transaction, Outcome::Accepted),
                None => Outcome::Accepted.into(),
            };
            self.answer(now, transfer.link, transfer.delivery, state);
        }
        self.reply_to(node, &request, reply_link, &reply);
    }

    /// Refuses a request above the limit of its link with a reply, for which clients wait. If the first bytes do not show where
    /// to, the link is detached: an outcome does not end the wait (spec/newest.md §8).
    pub(crate) fn refuse_large(
        &mut self,
        requests: &Requests,
        (link, delivery, settled): (LinkId, DeliveryNumber, bool),
        head: &[u8],
        now: Duration,
        refusal: &ServiceError,
    ) {
        let request = Request::parse_head(head);
        let found = self.reply_link(requests, request.reply_to.as_deref());
        let Some(reply_link) = found.filter(|_| request.has_id()) else {
            self.detach_for(link, refusal);
            return;
        };
        let reply = self.refused(&requests.node, &request, refusal);
        if !settled {
            self.answer(now, link, delivery, Outcome::Accepted);
        }
        self.reply_to(&requests.node, &request, reply_link, &reply);
    }

    fn reply_to(&mut self, node: &Node, request: &Request, link: LinkId, reply: &Reply) {
        let spelling = match node {
            Node::Cbs => spelling::CBS,
            Node::Management(..) => spelling::MANAGEMENT,
        };
        self.reply(link, reply.encode(request, spelling));
    }

    fn refused(&mut self, node: &Node, request: &Request, refusal: &ServiceError) -> Reply {
        let client = &mut self.client;
        let is_token =
            matches!(node, Node::Cbs) && request.property("operation") == Some("put-token");
        // Clients such as Python's do not show the reason. Once for each connection: a client may repeat it for ever.
        if is_token && !mem::replace(&mut client.is_token_refused, true) {
            let (connection, client, text) = (client.id.0, &*client.container_id, &*refusal.text);
            tracing::warn!(connection, client, text, "a token was refused");
        }
        self.client.attempt = attempted(request);
        Reply::Refused {
            condition: refusal.condition,
            text: self.client.track(refusal, place(node)),
        }
    }

    fn perform(
        &mut self,
        requests: &Requests,
        request: &Request,
        transaction: Option<&[u8]>,
    ) -> Result<Reply, ServiceError> {
        match &requests.node {
            Node::Cbs => self.put_token(request),
            Node::Management(entity, kind) => {
                // A session and its locks belong to the client of the named receiver, which may have an identifier of its
                // own.
                let own = self.client.caller.client;
                let named = self.requested_by(request);
                let named = named.and_then(|id| self.links.of_receiver(id));
                if let Some(link) = named.or_else(|| self.session_receiver(entity, request)) {
                    self.act_as(link);
                }
                let performed = self.manage(requests, (entity, *kind), request, transaction);
                self.client.caller.client = own;
                performed
            }
        }
    }

    /// Performs a request to `$management` of an entity.
    fn manage(
        &mut self,
        requests: &Requests,
        (entity, kind): (&Arc<SharedEntity>, SubQueue),
        request: &Request,
        transaction: Option<&[u8]>,
    ) -> Result<Reply, ServiceError> {
        self.check_request(entity, kind, request)?;
        // A request in the name of a receiver counts as a use of its link.
        let receiver = self.requested_by(request);
        if let Some(link) = receiver.and_then(|id| self.links.of_receiver(id)) {
            self.record_use_of(link, self.client.shared.real.elapsed());
        }
        let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
        let path = &entity.path;
        let entity = present(namespace, entity, &self.client.host)?;
        let ahead = namespace.clock.ahead();
        if is_about_rules(request) {
            return self.perform_on_rules((&entity, kind), request, ahead);
        }
        if is_batch_delete(request) && is_of_partitioned_topic(namespace, &entity) {
            return Err(ServiceError::partitioned());
        }
        let (host, receiver_id) = (self.client.host.as_str(), self.client.id.receiver_id(0));
        let (requested_by, browses) = (self.requested_by(request), self.browses(request));
        let largest_reply = self.largest_reply();
        let mut open = match transaction {
            Some(id) => Some(self.transactions.find(id)?),
            None => None,
        };
        let mut reply_messages = None;
        let reply = namespace.try_operate(&entity, &mut self.client.caller, |entity, cx| {
            Management {
                request,
                entity,
                cx,
                kind,
                ahead,
                host,
                receiver_id,
                requested_by,
                browses,
                destination: requests.destination.as_ref(),
                transaction: open.as_mut().map(|open| &mut open.transaction),
                store: namespace.store(),
                largest_reply,
                reply_messages: &mut reply_messages,
            }
            .perform()
        });
        if let Some(open) = open {
            open.join(&entity, requests.session);
        }
        let reply = reply.unwrap_or_else(|broken| {
            Err(ServiceError::new(
                Condition::InternalError,
                broken.to_string(),
            ))
        });
        let reply = reply.and_then(|done| reply_messages.map_or(Ok(done), ReplyMessages::reply));
        // The entity may have been deleted meanwhile, or by this request.
        reply.map_err(|refusal| match entity.is_deleted() {
            true => ServiceError::not_found(host, path.as_str()),
            false => refusal,
        })
    }

    /// Whether the client may make a request, and make it there: what is scheduled is sent, later (semantics §3.3).
    fn check_request(
        &self,
        entity: &SharedEntity,
        kind: SubQueue,
        request: &Request,
    ) -> Result<(), ServiceError> {
        let Some(claim) = claim_for(request) else {
            return Ok(());
        };
        let path = entity.management_path(kind);
        self.client.check_claim(&path, claim)?;
        match claim {
            Claim::Send => entity.check_is_sent_to(kind),
            Claim::Listen | Claim::Manage => Ok(()),
        }
    }

    /// Performs a request about the rules of a subscription, which belong to its topic.
    fn perform_on_rules(
        &mut self,
        (entity, kind): (&SharedEntity, SubQueue),
        request: &Request,
        ahead: i64,
    ) -> Result<Reply, ServiceError> {
        if kind != SubQueue::Active {
            let path = entity.management_path(kind);
            let text = format!("'{path}' has no rules; its subscription has.");
            return Err(ServiceError::new(Condition::NotAllowed, text));
        }
        let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
        let topic = entity
            .path
            .topic()
            .and_then(|(topic, _)| namespace.entity(&topic));
        let topic = topic.ok_or_else(|| {
            let text = format!("'{}' is not a subscription: it has no rules.", entity.path);
            ServiceError::new(Condition::NotAllowed, text)
        })?;
        // A new rule counts as a use of the subscription (semantics §5).
        namespace.operate(entity, &mut self.client.caller, Entity::touch);
        let path = &entity.path;
        match rule_change(request, namespace.clock.now())? {
            Some(change) => {
                let changed = namespace.change_rules(&topic, path, change);
                let refusal =
                    |error| change_refusal(&error, path, namespace.name(), &self.client.host);
                changed.map(|()| Reply::done()).map_err(refusal)
            }
            None => namespace.read(&topic, |topic| {
                enumerate_rules(request, topic.rules_of(path), ahead)
            }),
        }
    }

    fn put_token(&mut self, request: &Request) -> Result<Reply, ServiceError> {
        let namespace = match (&self.client.namespace, &request.body) {
            (Some(chosen), _) => Some(Arc::clone(chosen)),
            (None, Value::String(token)) => self.client.shared.namespaces.of_token(token),
            (None, _) => None,
        };
        let namespace = namespace.ok_or_else(no_namespace)?;
        self.take_token(namespace, request)
    }

    /// Finds the link for the reply to a transfer, if it is a request. Clients that wait for a reply may watch only that link.
    pub(crate) fn reply_link_of(&self, event: &Event) -> Option<LinkId> {
        let Event::Transfer(transfer) = event else {
            return None;
        };
        let Some(Link::Requests(requests)) = self.links.get(transfer.link) else {
            return None;
        };
        let request = Request::parse(&transfer.payload).ok()?;
        self.reply_link(requests, request.reply_to.as_deref())
    }

    /// Finds the link for a reply, first match: the link whose target is the reply-to address, the link of that name (wire.md
    /// §10a.10). Without an address, or with that of the node, as Python sends it: the link that was attached as the pair of
    /// the requests' one, and none once that is gone; for requests without a pair another in the same session, any on the node.
    fn reply_link(&self, requests: &Requests, reply_to: Option<&str>) -> Option<LinkId> {
        let address = reply_to.filter(|to| !to.is_empty() && !requests.node.is_at(to));
        let candidates = self.links.iter().filter_map(|(id, link)| {
            let Link::Replies(replies) = link else {
                return None;
            };
            let is_suitable = match (address, requests.pair) {
                (Some(address), _) => {
                    replies.target.as_deref() == Some(address) || replies.name == address
                }
                (None, Some(pair)) => id == pair,
                (None, None) => true,
            };
            (is_suitable && replies.node.is(&requests.node)).then_some((id, replies))
        });
        let rank = |(id, replies): &(LinkId, &Replies)| {
            let is_addressed = address.is_some() && replies.target.as_deref() == address;
            let is_in_session = replies.session == requests.session;
            [is_addressed, Some(*id) == requests.pair, is_in_session].map(|is| !is)
        };
        candidates.min_by_key(rank).map(|(id, _)| id)
    }

    /// Sends a reply, or keeps it until there is credit for it.
    pub(crate) fn send_reply(&mut self, link: LinkId, message: Vec<u8>) {
        self.record_use_of(link, self.client.shared.real.elapsed());
        self.memory.mark_replies_changed();
        let Some(Link::Replies(replies)) = self.links.get_mut(link) else {
            return;
        };
        let size = message.len();
        replies.waiting.push_back(message);
        self.send_waiting(link);
        let Some(Link::Replies(replies)) = self.links.get(link) else {
            return;
        };
        if !replies.waiting.is_empty() {
            self.turn.replied += size;
        }
        let bytes: usize = replies.waiting.iter().map(Vec::len).sum();
        // A single reply may be as large as the message in it.
        let is_more = bytes > WAITING_BYTES && replies.waiting.len() > 1;
        if replies.waiting.len() > WAITING || is_more {
            let text = format!(
                "More than {WAITING} replies or {WAITING_BYTES} bytes of them wait for credit."
            );
            let refusal = ServiceError::new(Condition::ResourceLimitExceeded, text);
            let error: Error = self.client.refuse(&refusal, None);
            self.engine.detach(link, Some(error));
            self.forget(link);
        }
    }

    /// Sends the replies that wait for credit, and answers a drain. If the session's window delays some, the engine reports the
    /// credit and the drain again when it opens.
    pub(crate) fn send_on_credit(&mut self, link: LinkId, drain: bool) {
        self.send_waiting(link);
        if let Some(Link::Replies(replies)) = self.links.get(link)
            && drain
            && (replies.waiting.is_empty() || self.engine.link_credit(link) == 0)
        {
            self.engine.drained(link);
        }
    }

    fn send_waiting(&mut self, link: LinkId) {
        self.memory.mark_replies_changed();
        let Some(Link::Replies(replies)) = self.links.get_mut(link) else {
            return;
        };
        while self.engine.credit(link) > 0 {
            let Some(message) = replies.waiting.pop_front() else {
                break;
            };
            self.outbound.replies_sent += 1;
            let frame = Frame {
                tag: u128::from(self.outbound.replies_sent).to_be_bytes(),
                settled: replies.settled,
                message_format: 0,
                head: &message,
                tail: Bytes::new(),
            };
            self.engine.deliver(link, frame);
        }
    }
}

/// Returns whether a subscription's topic is partitioned, and so are its messages (observed 36).
fn is_of_partitioned_topic(namespace: &Namespace, entity: &SharedEntity) -> bool {
    let topic = entity.path.topic();
    let topic = topic.and_then(|(topic, _)| namespace.entity(&topic));
    topic.is_some_and(|topic| {
        namespace.read(&topic, |topic| topic.description().enable_partitioning)
    })
}

/// Returns the entity, or the current one of the same name.
fn present(
    namespace: &Namespace,
    entity: &Arc<SharedEntity>,
    host: &str,
) -> Result<Arc<SharedEntity>, ServiceError> {
    let found = match entity.is_deleted() {
        true => namespace.entity(&entity.path),
        false => Some(Arc::clone(entity)),
    };
    let found = found.ok_or_else(|| ServiceError::not_found(host, entity.path.as_str()))?;
    found.check_not_broken(host)?;
    Ok(found)
}

fn place(node: &Node) -> Option<(&SharedEntity, SubQueue)> {
    match node {
        Node::Cbs => None,
        Node::Management(entity, kind) => Some((entity, *kind)),
    }
}

/// Returns the claim that a request needs; `None` for an unknown operation, so that the client gets that error. A rule
/// manager needs `Listen` (documentation of `ServiceBusRuleManager`).
fn claim_for(request: &Request) -> Option<Claim> {
    let operation = request.property("operation")?;
    match operation.strip_prefix("com.microsoft:")? {
        "schedule-message" | "cancel-scheduled-message" => Some(Claim::Send),
        "renew-lock"
        | "peek-message"
        | "update-disposition"
        | "receive-by-sequence-number"
        | "batch-delete-messages"
        | "renew-session-lock"
        | "get-session-state"
        | "set-session-state"
        | "get-message-sessions"
        | "add-rule"
        | "remove-rule"
        | "enumerate-rules" => Some(Claim::Listen),
        _ => None,
    }
}

/// Returns the operation and message of a request, for the record.
fn attempted(request: &Request) -> Attempt {
    let name = request.property("operation").unwrap_or_default();
    let name = name.strip_prefix("com.microsoft:").unwrap_or(name);
    let tokens = request.elements("lock-tokens").unwrap_or_default();
    let number = tokens.first().and_then(|token| {
        let Value::Uuid(uuid) = token else {
            return None;
        };
        Some(Uuid::from_bytes(uuid.clone().into_inner()))
    });
    Attempt {
        operation: Cow::Owned(name.to_owned()),
        number: number.map(|token| LockToken::from(token).sequence_number()),
    }
}
