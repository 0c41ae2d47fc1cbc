//! Consumers come, ask for messages and go.

use crate::{ConsumerId, Context, FactKind, Mailbox, ReceiveMode, StoreKind};

impl Mailbox {
    /// Registers a consumer without credit.
    pub fn open_consumer(&mut self, kind: StoreKind, id: ConsumerId, mode: ReceiveMode) {
        self.store_mut(kind).consumers.add(id, mode);
    }

    /// Says how many messages a consumer can take from now on, those assigned to it included.
    pub fn set_credit(
        &mut self,
        cx: &mut Context<'_>,
        kind: StoreKind,
        id: ConsumerId,
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
        for number in store.consumers.set_credit(id, credit) {
            store.put_back(number);
        }
        self.run_due(cx);
        self.assign(cx);
    }

    /// How many messages are assigned to a consumer and wait to be taken.
    pub fn assigned(&self, kind: StoreKind, id: ConsumerId) -> usize {
        self.store(kind).consumers.assigned_to(id)
    }

    /// Forgets a consumer. What was assigned to it is ready again as if nothing had been; what it has locked
    /// follows decision D2; a session that it holds is free at once.
    pub fn close_consumer(&mut self, cx: &mut Context<'_>, kind: StoreKind, id: ConsumerId) {
        self.begin(cx);
        let store = self.store_mut(kind);
        let estate = store.consumers.remove(id);
        for number in estate.assigned {
            store.put_back(number);
        }
        for number in estate.held.numbers() {
            self.store(kind).note(cx, number, FactKind::Released);
            self.lock_ended(cx, kind, number);
        }
        if kind == StoreKind::Active {
            self.leave_session(cx, id);
        }
        self.assign(cx);
    }

    /// Forgets a consumer that is no link, such as a request over HTTP: what was assigned to it is ready again, what it
    /// has locked stays locked until it is settled or its time is over.
    pub fn dismiss_consumer(&mut self, cx: &mut Context<'_>, kind: StoreKind, id: ConsumerId) {
        self.begin(cx);
        let store = self.store_mut(kind);
        for number in store.consumers.remove(id).assigned {
            store.put_back(number);
        }
        self.assign(cx);
    }
}
