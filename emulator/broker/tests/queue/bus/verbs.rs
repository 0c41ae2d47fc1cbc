//! Operations of clients and operators on a queue, beside receiving.

use servicebus_broker::{
    CancelError, Delivery, Entity, EntityDescription, LockToken, Message, Outcome, PropertyChanges,
    ReceiveDeferredError, ReceiveMode, ReceiverId, RenewError, SendError, SequenceNumber,
    SettleError, SubQueue, Timestamp,
};

use super::{Bus, DROPPED, MessageBuilder, dead_letter, message};

/// The holder of locks that requests by number take: no link.
const MANAGEMENT: ReceiverId = ReceiverId(1_000_000);

impl Bus {
    pub(crate) fn post(&mut self, message: &MessageBuilder) -> Result<SequenceNumber, SendError> {
        let message = message.message(&mut self.ids);
        let sent = self.operate(|entity, cx| entity.send(cx, message));
        sent.map(|number| number.unwrap_or(DROPPED))
    }

    /// All or none.
    pub(crate) fn post_all(
        &mut self,
        messages: &[MessageBuilder],
    ) -> Result<Vec<SequenceNumber>, SendError> {
        let messages: Vec<Message> = messages
            .iter()
            .map(|message| message.message(&mut self.ids))
            .collect();
        let sent = self.operate(|entity, cx| entity.send_batch(cx, messages));
        sent.map(|numbers| numbers.into_iter().map(|n| n.unwrap_or(DROPPED)).collect())
    }

    pub(crate) fn schedule(&mut self, id: &str, at: Timestamp) -> SequenceNumber {
        self.post(&message(id).scheduled_at(at)).unwrap()
    }

    pub(crate) fn cancel(&mut self, numbers: &[SequenceNumber]) -> Result<(), CancelError> {
        self.operate(|entity, cx| entity.cancel_scheduled(cx, numbers))
    }

    pub(crate) fn settle(
        &mut self,
        store: SubQueue,
        token: LockToken,
        outcome: Outcome,
    ) -> Result<(), SettleError> {
        self.operate(|entity, cx| entity.settle(cx, store, token, outcome))
    }

    pub(crate) fn complete(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        self.settle(SubQueue::Active, delivery.token, Outcome::Complete)
    }

    pub(crate) fn abandon(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        let changes = PropertyChanges::new();
        let outcome = Outcome::Abandon { changes };
        self.settle(SubQueue::Active, delivery.token, outcome)
    }

    pub(crate) fn release(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        self.settle(SubQueue::Active, delivery.token, Outcome::Release)
    }

    pub(crate) fn defer(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        let changes = PropertyChanges::new();
        let outcome = Outcome::Defer { changes };
        self.settle(SubQueue::Active, delivery.token, outcome)
    }

    pub(crate) fn dead_letter(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        self.settle(SubQueue::Active, delivery.token, dead_letter(None, None))
    }

    pub(crate) fn renew(&mut self, tokens: &[LockToken]) -> Result<Vec<Timestamp>, RenewError> {
        self.operate(|entity, cx| entity.renew_locks(cx, SubQueue::Active, tokens))
    }

    /// Sends a message with this id, receives it and defers it.
    pub(crate) fn send_deferred(&mut self, id: &str) -> SequenceNumber {
        self.send(id);
        self.defer_next()
    }

    /// Receives the next message and defers it.
    pub(crate) fn defer_next(&mut self) -> SequenceNumber {
        let receiver = self.receiver();
        let delivery = self.receive_one(receiver);
        self.defer(&delivery).unwrap();
        delivery.broker_properties.sequence_number
    }

    pub(crate) fn receive_deferred(
        &mut self,
        numbers: &[SequenceNumber],
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.receive_deferred_from(SubQueue::Active, numbers, ReceiveMode::PeekLock)
    }

    pub(crate) fn receive_deferred_from(
        &mut self,
        store: SubQueue,
        numbers: &[SequenceNumber],
        mode: ReceiveMode,
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.operate(|entity, cx| {
            entity.receive_deferred(cx, store, numbers, mode, MANAGEMENT, None)
        })
    }

    pub(crate) fn delete_messages(&mut self, max: usize, before: Timestamp) -> usize {
        self.delete_messages_from(SubQueue::Active, max, before)
    }

    pub(crate) fn delete_messages_from(
        &mut self,
        store: SubQueue,
        max: usize,
        before: Timestamp,
    ) -> usize {
        self.operate(|entity, cx| entity.delete_messages(cx, store, max, before, None))
    }

    pub(crate) fn update(&mut self, change: impl FnOnce(&mut EntityDescription)) {
        let mut description = self.queue.description().clone();
        change(&mut description);
        self.operate(|entity, cx| entity.update(cx, description));
    }

    pub(crate) fn reset(&mut self) {
        self.operate(Entity::reset);
    }
}
