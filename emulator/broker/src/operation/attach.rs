//! Receivers come, ask for messages and go.

use crate::{Context, Entity, EventKind, ReceiveMode, ReceiverId, SubQueue};

impl Entity {
    /// Registers a receiver without credit.
    pub fn attach_receiver(&mut self, kind: SubQueue, id: ReceiverId, mode: ReceiveMode) {
        self.store_mut(kind).receivers.add(id, mode);
    }

    /// Says how many messages a receiver can take from now on, those reserved to it included.
    pub fn set_credit(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        id: ReceiverId,
        credit: u32,
    ) {
        self.begin(cx);
        let store = self.store_mut(kind);
        if let Some(sessions) = &mut store.sessions {
            sessions.credit_changed(id);
            if !sessions.knows(id) {
                // Its session is lost: nothing will come.
                return;
            }
        }
        for number in store.receivers.set_credit(id, credit) {
            store.put_back(number);
        }
        self.run_due(cx);
        self.reserve(cx);
    }

    /// How many messages are reserved to a receiver and wait to be taken.
    pub fn reserved(&self, kind: SubQueue, id: ReceiverId) -> usize {
        self.store(kind).receivers.reserved_to(id)
    }

    /// Forgets a receiver. What was reserved to it is ready again as if nothing had been; what it has locked
    /// follows decision D2; a session that it holds is free at once.
    pub fn detach_receiver(&mut self, cx: &mut Context<'_>, kind: SubQueue, id: ReceiverId) {
        self.begin(cx);
        let store = self.store_mut(kind);
        let released = store.receivers.remove(id);
        for number in released.reserved {
            store.put_back(number);
        }
        for number in released.held.numbers() {
            self.store(kind).record(cx, number, EventKind::Released);
            self.requeue_or_dead_letter(cx, kind, number);
        }
        if kind == SubQueue::Active {
            self.leave_session(cx, id);
        }
        self.reserve(cx);
    }

    /// Forgets a receiver that is no link, such as a request over HTTP: what was reserved to it is ready again, what it
    /// has locked stays locked until it is settled or its time is over.
    pub fn detach_keeping_locks(&mut self, cx: &mut Context<'_>, kind: SubQueue, id: ReceiverId) {
        self.begin(cx);
        let store = self.store_mut(kind);
        for number in store.receivers.remove(id).reserved {
            store.put_back(number);
        }
        self.reserve(cx);
    }
}
