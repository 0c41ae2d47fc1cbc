//! What a turn brings for one entity is committed under one lock.

use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::{DeliveryNumber, LinkId, Outcome as Wire, Settlement, Transfer};
use servicebus_broker::{LockToken, Message, MessageError, Outcome, SettleError, StoreKind};

use super::links::Link;
use super::peer::Peer;
use crate::namespace::Entity;
use crate::nodes::{Condition, Refusal, settle_refusal};

/// Message format of a batch (wire.md §3.3).
const BATCH: u32 = 0x8001_3700;

/// Sends and settlements of one entity, in order.
#[derive(Debug, Default)]
pub(super) struct Work {
    entity: Option<Arc<Entity>>,
    items: Vec<Item>,
}

#[derive(Debug)]
enum Item {
    Send {
        answer: Option<Answer>,
        message: Message,
    },
    SendBatch {
        answer: Option<Answer>,
        messages: Vec<Message>,
    },
    Settle {
        kind: StoreKind,
        token: LockToken,
        outcome: Outcome,
        settlement: Settlement,
        failure: Option<SettleError>,
    },
    Committed(Option<Answer>),
}

/// A transfer whose sender waits to hear.
#[derive(Debug, Clone, Copy)]
struct Answer {
    arrived: Duration,
    link: LinkId,
    delivery: DeliveryNumber,
}

impl Work {
    /// Whether work for another entity must be committed before work for this one.
    pub(super) fn is_elsewhere(&self, entity: &Arc<Entity>) -> bool {
        self.entity
            .as_ref()
            .is_some_and(|own| !Arc::ptr_eq(own, entity))
    }

    pub(super) fn settle(
        &mut self,
        entity: Arc<Entity>,
        kind: StoreKind,
        token: LockToken,
        outcome: Outcome,
        settlement: Settlement,
    ) {
        self.entity = Some(entity);
        self.items.push(Item::Settle {
            kind,
            token,
            outcome,
            settlement,
            failure: None,
        });
    }
}

impl Peer {
    pub(super) fn on_transfer(&mut self, transfer: Transfer, now: Duration, work: &mut Work) {
        let entity = match self.links.get(&transfer.link) {
            Some(Link::Sender(entity)) => Arc::clone(entity),
            Some(Link::Requests(node, session)) => {
                let (node, session) = (node.clone(), *session);
                self.commit(work);
                self.on_request(&node, session, &transfer, now);
                return;
            }
            // A link that was refused: its transfers were on their way.
            Some(Link::Receiver(_) | Link::Replies(_)) | None => return,
        };
        if work.is_elsewhere(&entity) {
            self.commit(work);
        }
        let answer = (!transfer.settled).then_some(Answer {
            arrived: now,
            link: transfer.link,
            delivery: transfer.delivery,
        });
        let ids = self.caller.ids();
        let item = match transfer.message_format {
            _ if transfer.transaction.is_some() => Err(no_transactions()),
            BATCH => Message::parse_batch(&transfer.payload, ids)
                .map(|messages| Item::SendBatch { answer, messages })
                .map_err(|error| message_refusal(&error)),
            _ => Message::parse(transfer.payload, ids)
                .map(|message| Item::Send { answer, message })
                .map_err(|error| message_refusal(&error)),
        };
        match item {
            Ok(item) => {
                work.entity = Some(entity);
                work.items.push(item);
            }
            Err(refusal) => {
                self.commit(work);
                let (link, delivery) = (transfer.link, transfer.delivery);
                self.refuse_transfer(link, delivery, transfer.settled, now, &refusal);
            }
        }
    }

    /// Rejects a transfer; one that was sent settled is dropped, and the record says so (semantics §2.1).
    pub(super) fn refuse_transfer(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        settled: bool,
        now: Duration,
        refusal: &Refusal,
    ) {
        let entity = match self.links.get(&link) {
            Some(Link::Sender(entity)) => Some(Arc::clone(entity)),
            _ => None,
        };
        let place = entity.as_deref().map(|entity| (entity, StoreKind::Active));
        let error = self.refuse(refusal, place);
        if !settled {
            self.answer(now, link, delivery, Wire::Rejected { error: Some(error) });
        }
    }

    /// Commits what has gathered, under one lock, and answers it.
    pub(super) fn commit(&mut self, work: &mut Work) {
        let (Some(entity), Some(namespace)) = (work.entity.take(), &self.namespace) else {
            work.items.clear();
            return;
        };
        namespace.operate(&entity, &mut self.caller, |mailbox, cx| {
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
                        *failure = mailbox.settle(cx, *kind, *token, outcome).err();
                    }
                    Item::Send { answer, .. } | Item::SendBatch { answer, .. } => {
                        let answer = *answer;
                        match std::mem::replace(item, Item::Committed(answer)) {
                            Item::Send { message, .. } => mailbox.send(cx, [message]),
                            Item::SendBatch { messages, .. } => mailbox.send(cx, messages),
                            Item::Settle { .. } | Item::Committed(_) => continue,
                        };
                    }
                    Item::Committed(_) => {}
                }
            }
        });
        for item in work.items.drain(..) {
            self.answer_item(item, &entity);
        }
    }

    fn answer_item(&mut self, item: Item, entity: &Entity) {
        match item {
            Item::Committed(Some(answer)) => {
                self.answer(answer.arrived, answer.link, answer.delivery, Wire::Accepted);
            }
            Item::Settle {
                kind,
                settlement,
                failure,
                ..
            } => {
                let outcome = match failure {
                    None => confirmed(settlement.outcome),
                    Some(error) => {
                        let error = self.refuse(&settle_refusal(&error), Some((entity, kind)));
                        Wire::Rejected { error: Some(error) }
                    }
                };
                if !settlement.settled {
                    self.engine
                        .settle(settlement.link, settlement.delivery, outcome);
                }
            }
            Item::Committed(None) | Item::Send { .. } | Item::SendBatch { .. } => {}
        }
    }
}

/// The answer to a settlement that happened: the same outcome, without the client's own words in it. A
/// `rejected` that repeats its error fails Python and JavaScript (wire.md §10a.7).
fn confirmed(outcome: Wire) -> Wire {
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

/// Observed at the service (semantics §20.2).
const HEADERS_TOO_LARGE: &str = "The service was unable to process the request; please retry the operation. For \
     more information on exception types and proper exception handling, please refer to \
     http://go.microsoft.com/fwlink/?LinkId=761101";

fn message_refusal(error: &MessageError) -> Refusal {
    let condition = match error {
        MessageError::Malformed(_) | MessageError::Section(_) => Condition::DecodeError,
        // Observed at the service (semantics §4).
        MessageError::ZeroTimeToLive => Condition::InternalError,
        MessageError::TooLarge(_) => Condition::MessageSizeExceeded,
        MessageError::HeadersTooLarge { .. } | MessageError::PropertyTooLarge { .. } => {
            return Refusal::new(Condition::InternalError, HEADERS_TOO_LARGE);
        }
        MessageError::TooLong { .. }
        | MessageError::IllegalProperty { .. }
        | MessageError::PropertyName
        | MessageError::ScheduledTime => Condition::ArgumentError,
    };
    Refusal::new(condition, format!("The message was refused: {error}."))
}

fn no_transactions() -> Refusal {
    Refusal::new(
        Condition::NotImplemented,
        "Transactions are not supported by this version of the emulator.",
    )
}
