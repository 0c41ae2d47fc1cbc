//! Commits a turn's work for one entity under one lock.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::{DeliveryNumber, LinkId, Outcome as Wire, Settlement, Transfer};
use servicebus_broker::{
    BatchLimit, Context, Entity, EntityPath, LockToken, Message, MessageError, Outcome, SendError,
    SettleError, SubQueue,
};

use super::links::Link;
use super::peer::ClientConnection;
use crate::namespace::{Attempt, SharedEntity};
use crate::nodes::{Condition, ServiceError, message_refusal, send_refusal, settle_refusal};

/// Message format of a batch (wire.md §3.3).
const BATCH: u32 = 0x8001_3700;
/// The service's text for a batch of too many messages (spec/observed.md 9).
const BATCH_TOO_LONG: &str = "The service was unable to process the request; please retry the operation. For more \
    information on exception types and proper exception handling, please refer to \
    http://go.microsoft.com/fwlink/?LinkId=761101";

/// The attempted operation of a refused transfer.
const SEND: Cow<'static, str> = Cow::Borrowed("send");

/// Sends and settlements of one entity, in order.
#[derive(Debug, Default)]
pub(crate) struct Work {
    entity: Option<Arc<SharedEntity>>,
    items: Vec<Item>,
}

#[derive(Debug)]
enum Item {
    Send {
        answer: Option<Answer>,
        /// The forwarding target, if any.
        destination: Option<EntityPath>,
        messages: Messages,
        failure: Option<Box<SendError>>,
    },
    Settle {
        kind: SubQueue,
        token: LockToken,
        outcome: Outcome,
        /// The answer on success, with its delivery; `None` where no delivery waits.
        answer: Option<(LinkId, DeliveryNumber, Wire)>,
        failure: Option<Box<SettleError>>,
    },
}

/// The messages of a transfer.
#[derive(Debug)]
pub(crate) enum Messages {
    One(Message),
    Batch(Vec<Message>),
    /// The broker has them.
    Gone,
}

/// A transfer whose sender waits for the outcome.
#[derive(Debug, Clone, Copy)]
struct Answer {
    arrived: Duration,
    link: LinkId,
    delivery: DeliveryNumber,
}

impl Work {
    /// Returns whether work for another entity must be committed before work for this one.
    pub(crate) fn is_elsewhere(&self, entity: &Arc<SharedEntity>) -> bool {
        self.entity
            .as_ref()
            .is_some_and(|own| !Arc::ptr_eq(own, entity))
    }

    pub(crate) fn settle(
        &mut self,
        entity: Arc<SharedEntity>,
        kind: SubQueue,
        token: LockToken,
        outcome: Outcome,
        settlement: Settlement,
    ) {
        self.entity = Some(entity);
        let Settlement { link, delivery, .. } = settlement;
        let answer = (link, delivery, confirmed(settlement.outcome));
        self.items.push(Item::Settle {
            kind,
            token,
            outcome,
            answer: (!settlement.settled).then_some(answer),
            failure: None,
        });
    }
}

impl Item {
    /// Fails all work, because the entity broke before all of it was done.
    fn fail(&mut self, entity: &SharedEntity) {
        match self {
            Self::Send { failure, .. } => *failure = entity.broken().map(Box::new),
            Self::Settle { failure, .. } => *failure = Some(Box::new(SettleError::LockLost)),
        }
    }
}

impl Messages {
    pub(crate) fn into_vec(self) -> Vec<Message> {
        match self {
            Self::One(message) => vec![message],
            Self::Batch(messages) => messages,
            Self::Gone => Vec::new(),
        }
    }

    fn send(
        self,
        entity: &mut Entity,
        cx: &mut Context<'_>,
        destination: Option<&EntityPath>,
    ) -> Result<(), SendError> {
        match (destination, self) {
            (Some(destination), messages) => entity.send_via(cx, destination, messages.into_vec()),
            (None, Self::One(message)) => entity.send(cx, message).map(drop),
            (None, Self::Batch(messages)) => entity.send_batch(cx, messages).map(drop),
            (None, Self::Gone) => Ok(()),
        }
    }
}

impl ClientConnection {
    pub(crate) fn on_transfer(&mut self, transfer: Transfer, now: Duration, work: &mut Work) {
        let sender = match self.links.get_mut(transfer.link) {
            Some(Link::Sender(sender)) => sender,
            Some(&mut Link::Coordinator(session)) => {
                self.commit(work);
                return self.on_demand(session, &transfer, now);
            }
            Some(Link::Requests(requests)) => {
                let requests = requests.clone();
                self.turn.handled += self.links.cost();
                self.commit(work);
                return self.on_request(&requests, &transfer, now, None);
            }
            // The link was refused while transfers were in flight.
            Some(
                Link::Receiver(_)
                | Link::Waiting(_)
                | Link::Browser(_)
                | Link::Replies(_)
                | Link::Detached(_),
            )
            | None => {
                return self.on_dropped(transfer.link, transfer.settled, transfer.transaction);
            }
        };
        if let Some(transaction) = transfer.transaction.clone() {
            let sender = sender.clone();
            self.commit(work);
            return self.send_in(transaction, &sender, transfer, now);
        }
        let (entity, destination) = (Arc::clone(&sender.entity), sender.destination.clone());
        if work.is_elsewhere(&entity) {
            self.commit(work);
        }
        let answer = (!transfer.settled).then_some(Answer {
            arrived: now,
            link: transfer.link,
            delivery: transfer.delivery,
        });
        let (link, delivery, settled) = (transfer.link, transfer.delivery, transfer.settled);
        match self.read(transfer) {
            Ok(messages) => {
                work.entity = Some(entity);
                work.items.push(Item::Send {
                    answer,
                    destination,
                    messages,
                    failure: None,
                });
            }
            Err(refusal) => {
                self.commit(work);
                self.refuse_transfer(link, delivery, settled, now, &refusal);
                // JavaScript's client waits for an outcome even if its link is detached.
                if refusal.condition == Condition::NotAllowed {
                    self.detach_refused(link, &refusal, (&entity, SubQueue::Active));
                }
            }
        }
    }

    /// Parses the messages of a transfer, in the namespace's time (decision D20). For a batch without messages, or above
    /// the limit, the error is [`Condition::NotAllowed`]: its link must be detached.
    pub(crate) fn read(&mut self, transfer: Transfer) -> Result<Messages, ServiceError> {
        let size = transfer.payload.len() as u64;
        let limit = self.client.tier().max_message_size();
        let (link, delivery) = (transfer.link, transfer.delivery.0);
        // Only a single message that is accepted at once may exceed the tier's limit (semantics §17.2).
        if size > limit && transfer.message_format == BATCH {
            return Err(self.no_data(link));
        }
        let refused = |error: MessageError| message_refusal(&error);
        let ids = self.client.caller.ids();
        let mut messages = match transfer.message_format {
            BATCH => {
                Messages::Batch(Message::parse_batch(&transfer.payload, ids).map_err(refused)?)
            }
            _ => Messages::One(Message::parse(transfer.payload, ids).map_err(refused)?),
        };
        if let Messages::Batch(messages) = &messages {
            if messages.is_empty() {
                return Err(self.no_data(link));
            }
            self.check_batch(messages.len())?;
        }
        let parts = match &mut messages {
            Messages::One(message) => std::slice::from_mut(message),
            Messages::Batch(messages) => messages,
            Messages::Gone => &mut [],
        };
        let scheduled = parts.iter().any(|message| message.scheduled_at().is_some());
        if let Some(namespace) = self.client.namespace.as_ref().filter(|_| scheduled) {
            let ahead = namespace.clock.ahead();
            parts
                .iter_mut()
                .for_each(|message| message.shift_to_namespace_time(ahead));
        }
        match size > limit && scheduled {
            true => Err(ServiceError::message_too_large(delivery, size, limit)),
            false => Ok(messages),
        }
    }

    fn no_data(&self, link: LinkId) -> ServiceError {
        let name = self.engine.link_name(link).unwrap_or_default();
        ServiceError::batch_without_data(name, link)
    }

    /// Checks the former limit of messages in a batch, if the namespace is set to have it (spec/observed.md 9).
    fn check_batch(&self, messages: usize) -> Result<(), ServiceError> {
        let namespace = self.client.namespace.as_ref();
        let settings = namespace.map(|namespace| namespace.config.settings);
        let limited = settings.filter(|settings| settings.batch_limit == BatchLimit::Messages);
        let limit = limited.and_then(|settings| settings.tier.max_batch_messages());
        match limit.is_some_and(|limit| messages > limit) {
            true => Err(ServiceError::new(Condition::InternalError, BATCH_TOO_LONG)),
            false => Ok(()),
        }
    }

    /// Rejects a transfer; one that was sent settled is dropped, and the record reports it (semantics §2.1).
    pub(crate) fn refuse_transfer(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        settled: bool,
        now: Duration,
        refusal: &ServiceError,
    ) {
        let entity = match self.links.get(link) {
            Some(Link::Sender(sender)) => Some(Arc::clone(&sender.entity)),
            _ => None,
        };
        let place = entity.as_deref().map(|entity| (entity, SubQueue::Active));
        self.client.attempt.operation = SEND;
        let error = self.client.refuse(refusal, place);
        if !settled {
            self.answer(now, link, delivery, Wire::from(error));
        }
    }

    /// Commits the collected work under one lock, and answers it.
    pub(crate) fn commit(&mut self, work: &mut Work) {
        let (Some(entity), Some(namespace)) = (work.entity.take(), &self.client.namespace) else {
            work.items.clear();
            return;
        };
        let done = namespace.try_operate(&entity, &mut self.client.caller, |entity, cx| {
            for item in &mut work.items {
                match item {
                    Item::Settle {
                        kind,
                        token,
                        outcome,
                        failure,
                        ..
                    } => {
                        let outcome = std::mem::replace(outcome, Outcome::Complete);
                        let settled = entity.settle(cx, *kind, *token, outcome);
                        *failure = settled.err().map(Box::new);
                    }
                    Item::Send {
                        destination,
                        messages,
                        failure,
                        ..
                    } => {
                        let messages = std::mem::replace(messages, Messages::Gone);
                        let sent = messages.send(entity, cx, destination.as_ref());
                        *failure = sent.err().map(Box::new);
                    }
                }
            }
        });
        if done.is_err() {
            work.items.iter_mut().for_each(|item| item.fail(&entity));
        }
        for item in work.items.drain(..) {
            self.answer_item(item, &entity);
        }
    }

    fn answer_item(&mut self, item: Item, entity: &SharedEntity) {
        match item {
            Item::Send {
                answer, failure, ..
            } => {
                let outcome = match failure {
                    None => Wire::Accepted,
                    Some(error) => {
                        let refusal = match entity.is_deleted() {
                            true => {
                                ServiceError::not_found(&self.client.host, entity.path.as_str())
                            }
                            false => send_refusal(&error, &self.client.host),
                        };
                        self.client.attempt.operation = SEND;
                        let error = self
                            .client
                            .refuse(&refusal, Some((entity, SubQueue::Active)));
                        Wire::from(error)
                    }
                };
                if let Some(answer) = answer {
                    self.answer(answer.arrived, answer.link, answer.delivery, outcome);
                }
            }
            Item::Settle {
                kind,
                token,
                answer,
                failure,
                ..
            } => {
                let refused = failure.map(|error| {
                    if let Some((_, _, outcome)) = &answer {
                        self.client.attempt = attempted(outcome, token);
                    }
                    // Never not-found: Python shuts its receiver down (wire.md §4.4).
                    let refusal = match (entity.is_deleted(), entity.broken()) {
                        (true, _) => self.client.lock_gone(entity, kind),
                        (false, Some(broken)) => send_refusal(&broken, &self.client.host),
                        (false, None) => settle_refusal(&error, &self.client.host, &entity.path),
                    };
                    Wire::from(self.client.refuse(&refusal, Some((entity, kind))))
                });
                match (answer, refused) {
                    (Some((link, delivery, _)), Some(refused)) => {
                        self.refuse_settlement((entity, kind), token, (link, delivery), refused);
                    }
                    (Some((link, delivery, confirmed)), None) => {
                        self.settle_delivery(link, delivery, confirmed);
                    }
                    (None, _) => {}
                }
            }
        }
    }
}

/// Returns the operation and message of a settlement, for the record.
pub(crate) fn attempted(outcome: &Wire, token: LockToken) -> Attempt {
    let operation = match outcome {
        Wire::Accepted => "complete",
        Wire::Released => "release",
        Wire::Rejected { .. } => "dead-letter",
        Wire::Modified {
            undeliverable_here: true,
            ..
        } => "defer",
        Wire::Modified { .. } => "abandon",
    };
    Attempt {
        operation: Cow::Borrowed(operation),
        number: Some(token.sequence_number()),
    }
}

/// Returns the answer to a successful settlement: the same outcome without the client's texts. A `rejected` that repeats its
/// error breaks Python and JavaScript (wire.md §10a.7).
pub(crate) fn confirmed(outcome: Wire) -> Wire {
    match outcome {
        Wire::Rejected { .. } => Wire::Rejected { error: None },
        Wire::Modified {
            delivery_failed,
            undeliverable_here,
            ..
        } => Wire::Modified {
            delivery_failed,
            undeliverable_here,
            annotations: None,
        },
        same @ (Wire::Accepted | Wire::Released) => same,
    }
}
