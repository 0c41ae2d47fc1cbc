//! What clients and managers ask a queue for, beside receiving.

use servicebus_broker::{
    CancelError, ConsumerId, Delivery, LockToken, Mailbox, Message, Outcome, PropertyChanges,
    QueueDescription, ReceiveDeferredError, ReceiveMode, RenewError, SendError, SequenceNumber,
    SettleError, StoreKind, Timestamp,
};

use super::{Bus, Letter, dead_letter, letter};

/// Who holds the locks of what is asked for by number: no link.
const MANAGEMENT: ConsumerId = ConsumerId(1_000_000);

impl Bus {
    pub(crate) fn post(&mut self, letter: &Letter) -> Result<SequenceNumber, SendError> {
        let message = letter.message(&mut self.ids);
        self.operate(|mailbox, cx| mailbox.send(cx, message))
    }

    /// All or none.
    pub(crate) fn post_all(
        &mut self,
        letters: &[Letter],
    ) -> Result<Vec<SequenceNumber>, SendError> {
        let messages: Vec<Message> = letters
            .iter()
            .map(|letter| letter.message(&mut self.ids))
            .collect();
        self.operate(|mailbox, cx| mailbox.send_batch(cx, messages))
    }

    pub(crate) fn schedule(&mut self, id: &str, at: Timestamp) -> SequenceNumber {
        self.post(&letter(id).scheduled_at(at)).unwrap()
    }

    pub(crate) fn cancel(&mut self, numbers: &[SequenceNumber]) -> Result<(), CancelError> {
        self.operate(|mailbox, cx| mailbox.cancel_scheduled(cx, numbers))
    }

    pub(crate) fn settle(
        &mut self,
        store: StoreKind,
        token: LockToken,
        outcome: Outcome,
    ) -> Result<(), SettleError> {
        self.operate(|mailbox, cx| mailbox.settle(cx, store, token, outcome))
    }

    pub(crate) fn complete(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        self.settle(StoreKind::Active, delivery.token, Outcome::Complete)
    }

    pub(crate) fn abandon(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        let changes = PropertyChanges::new();
        let outcome = Outcome::Abandon { changes };
        self.settle(StoreKind::Active, delivery.token, outcome)
    }

    pub(crate) fn release(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        self.settle(StoreKind::Active, delivery.token, Outcome::Release)
    }

    pub(crate) fn defer(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        let changes = PropertyChanges::new();
        let outcome = Outcome::Defer { changes };
        self.settle(StoreKind::Active, delivery.token, outcome)
    }

    pub(crate) fn dead_letter(&mut self, delivery: &Delivery) -> Result<(), SettleError> {
        self.settle(StoreKind::Active, delivery.token, dead_letter(None, None))
    }

    pub(crate) fn renew(&mut self, tokens: &[LockToken]) -> Result<Vec<Timestamp>, RenewError> {
        self.operate(|mailbox, cx| mailbox.renew_locks(cx, StoreKind::Active, tokens))
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
        delivery.stamp.sequence_number
    }

    pub(crate) fn receive_deferred(
        &mut self,
        numbers: &[SequenceNumber],
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.receive_deferred_from(StoreKind::Active, numbers, ReceiveMode::PeekLock)
    }

    pub(crate) fn receive_deferred_from(
        &mut self,
        store: StoreKind,
        numbers: &[SequenceNumber],
        mode: ReceiveMode,
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.operate(|mailbox, cx| {
            mailbox.receive_deferred(cx, store, numbers, mode, MANAGEMENT, None)
        })
    }

    pub(crate) fn delete_messages(&mut self, max: usize, before: Timestamp) -> usize {
        self.delete_messages_from(StoreKind::Active, max, before)
    }

    pub(crate) fn delete_messages_from(
        &mut self,
        store: StoreKind,
        max: usize,
        before: Timestamp,
    ) -> usize {
        self.operate(|mailbox, cx| mailbox.delete_messages(cx, store, max, before, None))
    }

    pub(crate) fn update(&mut self, change: impl FnOnce(&mut QueueDescription)) {
        let mut description = self.queue.mailbox.description().clone();
        change(&mut description);
        self.operate(|mailbox, cx| mailbox.update(cx, description));
    }

    pub(crate) fn reset(&mut self) {
        self.operate(Mailbox::reset);
    }
}
