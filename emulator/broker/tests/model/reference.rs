//! Naive queues: lists, linear scans, one unit of credit at a time, and no index.

mod forwarding;
mod look;
mod numbers;
mod queue;
mod sending;
mod sessions;
mod settling;
mod time;

use std::collections::{BTreeMap, VecDeque};

use servicebus_broker::{EntityDescription, LocksOnDetach, NamespaceSettings, SubQueue};

use queue::Store;
pub(crate) use queue::{ModelMessage, Queue, State};
pub(crate) use sessions::ListedSession;

use crate::event::{ModelEvent, ModelKind};
use crate::history::{Answer, NAMES, ObservedMessage, QUEUES, Rules, Step, StoreAddress};

#[derive(Debug)]
pub(crate) struct Reference {
    settings: NamespaceSettings,
    pub(crate) now: i64,
    queues: [Option<Queue>; QUEUES],
    tokens: usize,
    /// The partition of every message ever, by the last one with its number.
    partitions: BTreeMap<(usize, usize, u64), u64>,
    /// Events since this was last cleared.
    pub(crate) log: Vec<ModelEvent>,
    /// Stores with messages to forward, in the order of their effects, and whether they retry.
    agenda: VecDeque<StoreAddress>,
    leaving: Vec<usize>,
    /// Receivers that lost their sessions, since this was last cleared.
    pub(crate) lost: Vec<u64>,
    /// Queues that a step changed, since this was last cleared.
    pub(crate) touched: [bool; QUEUES],
}

impl Reference {
    pub(crate) fn new(rules: &Rules, now: i64) -> Self {
        let mut reference = Self {
            settings: rules.settings,
            now,
            queues: [(); QUEUES].map(|()| None),
            tokens: 0,
            partitions: BTreeMap::new(),
            log: Vec::new(),
            agenda: VecDeque::new(),
            leaving: Vec::new(),
            lost: Vec::new(),
            touched: [false; QUEUES],
        };
        for (at, description) in rules.queues.iter().enumerate() {
            reference.create(at, description.clone());
        }
        reference
    }

    pub(crate) fn apply(&mut self, step: &Step) -> Answer {
        let answer = self.answer(step);
        while !self.agenda.is_empty() || !self.leaving.is_empty() {
            self.forward();
            for q in std::mem::take(&mut self.leaving) {
                self.queues[q] = None;
            }
        }
        answer
    }

    pub(crate) fn queue(&self, q: usize) -> Option<&Queue> {
        self.queues.get(q)?.as_ref()
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = (usize, &Queue)> {
        let queues = self.queues.iter().enumerate();
        queues.filter_map(|(q, queue)| Some((q, queue.as_ref()?)))
    }

    fn answer(&mut self, step: &Step) -> Answer {
        match step {
            &Step::Advance(to) => self.now = to,
            &Step::Open((q, kind), id, mode, selects) => {
                let store = self.store(q, kind);
                store.receivers.push((id, mode));
                store.selecting.extend(selects.then_some(id));
            }
            Step::Create(q, description) => self.create(*q, EntityDescription::clone(description)),
            &Step::Drop(q) => {
                self.touched[q] = true;
                self.queues[q] = None;
            }
            Step::Restart => self.restart(),
            &Step::Timeout(q) => self.let_pass(q),
            &Step::LoseLocks(q) => {
                self.let_pass(q);
                self.lose_locks(q);
                self.serve(q);
            }
            Step::Send(q, parcels, batch) => {
                let answer = Answer::Sent(self.send(*q, parcels, *batch));
                self.serve(*q);
                return answer;
            }
            &Step::Close(place, id) => self.close(place, id),
            &Step::Credit(place, id, credit) => self.credit(place, id, credit as usize),
            &Step::Skip(place, id) => self.skip(place, id),
            &Step::Take(place, id, max) => return Answer::Messages(self.take(place, id, max)),
            Step::Settle(place, key, outcome) => {
                return self.settle_all(*place, &[*key], outcome);
            }
            Step::SettleAll(place, keys, outcome) => {
                return self.settle_all(*place, keys, outcome);
            }
            Step::Renew(place, keys) => return Answer::Renewed(self.renew(*place, keys)),
            Step::ReceiveDeferred(place, numbers, mode, id, session) => {
                let received = self.receive_deferred(*place, numbers, *mode, *id, *session);
                return Answer::Deferred(received);
            }
            &Step::Accept(q, id, mode, wanted) => return self.accept_session(q, id, mode, wanted),
            &Step::Session(q, session, what) => return self.of_session(q, session, what),
            Step::Cancel(q, numbers) => return Answer::Cancelled(self.cancel(*q, numbers)),
            &Step::DeleteMessages(place, max, before) => {
                return Answer::Deleted(self.delete(place, max, before, None));
            }
            Step::Update(q, description) => self.update(*q, EntityDescription::clone(description)),
            &Step::Browse(place, from, max) => {
                return Answer::Messages(self.peek(place, from, max, None));
            }
            &Step::Reset(q) => self.reset(q),
        }
        Answer::Done
    }

    fn create(&mut self, q: usize, description: EntityDescription) {
        self.touched[q] = true;
        self.queues[q] = Some(Queue::new(description, self.now));
    }

    fn close(&mut self, (q, kind): StoreAddress, id: u64) {
        self.begin(q);
        let release = self.settings.locks_on_detach == LocksOnDetach::Release;
        let store = self.store(q, kind);
        store.receivers.retain(|&(other, _)| other != id);
        store.waiting.retain(|&(waits, _)| waits != id);
        for number in store.reserved_to(id) {
            store.message(number).state = State::Ready;
        }
        let held =
            |l: &&ModelMessage| matches!(l.state, State::Locked { receiver, .. } if receiver == id);
        let held: Vec<u64> = store
            .messages
            .iter()
            .filter(held)
            .map(|l| l.number)
            .collect();
        let has_sessions = self.at(q).has_sessions(kind);
        let released = release && !has_sessions;
        for number in held.into_iter().filter(|_| released) {
            self.note((q, kind), number, ModelKind::Released);
            self.unlock((q, kind), number, self.now);
        }
        if has_sessions {
            self.leave_session(q, id);
        }
        self.serve(q);
    }

    fn credit(&mut self, (q, kind): StoreAddress, id: u64, credit: usize) {
        self.begin(q);
        if self.at(q).has_sessions(kind) && !self.at(q).sessions.knows(id) {
            return;
        }
        let store = self.store(q, kind);
        let mut reserved = store.reserved_to(id);
        for number in reserved.split_off(reserved.len().min(credit)) {
            store.message(number).state = State::Ready;
        }
        let wanted = credit - reserved.len();
        match store.waiting.iter_mut().find(|(waits, _)| *waits == id) {
            Some((_, credit)) => *credit = wanted,
            None => store.waiting.push((id, wanted)),
        }
        store.waiting.retain(|&(_, credit)| credit > 0);
        // Messages that waited for a receiver expire now that there is one.
        self.run_due(q, self.now);
        self.serve(q);
    }

    /// Moves what a receiver would take next to the next other receiver, if one waits.
    fn skip(&mut self, (q, kind): StoreAddress, id: u64) {
        self.begin(q);
        let has_sessions = self.at(q).has_sessions(kind);
        let store = self.store(q, kind);
        let reserved = store.reserved_to(id);
        let takes_all = |waits| waits != id && !store.selecting.contains(&waits);
        let waiting = store
            .waiting
            .iter()
            .position(|&(waits, _)| takes_all(waits));
        if let (false, Some(&number), Some(at)) = (has_sessions, reserved.first(), waiting) {
            let (other, credit) = &mut store.waiting[at];
            *credit -= 1;
            let other = *other;
            store.waiting.retain(|&(_, credit)| credit > 0);
            store.message(number).state = State::Assigned(other);
            store.restore(id);
        }
        self.serve(q);
    }

    fn reset(&mut self, q: usize) {
        self.begin(q);
        self.forget_sessions(q);
        for kind in SubQueue::ALL {
            let messages = &self.store(q, kind).messages;
            let numbers: Vec<u64> = messages.iter().map(|message| message.number).collect();
            for number in numbers {
                self.remove((q, kind), number);
                self.note((q, kind), number, ModelKind::Removed);
            }
        }
        self.at(q).seen.clear();
        self.serve(q);
    }

    fn peek(
        &mut self,
        (q, kind): StoreAddress,
        from: u64,
        max: usize,
        session: Option<u8>,
    ) -> Vec<ObservedMessage> {
        self.begin(q);
        let queue = self.at(q);
        let messages = queue.store(kind).messages.iter();
        let from = from & 0xffff_ffff_ffff;
        let messages = messages.filter(|message| message.number >= from);
        let messages = messages.filter(|l| session.is_none() || l.draft.session == session);
        let seen = messages.take(max).map(|l| queue.browsed(kind, l));
        seen.collect()
    }

    /// Applies an operation of a client to a queue.
    fn begin(&mut self, q: usize) {
        self.let_pass(q);
        self.at(q).used_at = self.now;
    }

    /// Serves the first ready message to the first waiting receiver, or forwards it.
    fn serve(&mut self, q: usize) {
        self.grant_sessions(q);
        self.serve_granted(q);
    }

    /// The same without granting sessions.
    fn serve_granted(&mut self, q: usize) {
        self.serve_sessions(q);
        for kind in SubQueue::ALL {
            let queue = self.queues[q].as_mut().expect("the queue is there");
            // Only their holders get the messages of sessions, but forwarding applies to them as to others.
            let serves = queue.serves(kind) && !queue.has_sessions(kind);
            let sends_on = queue.sends_on(kind);
            let store = queue.store_mut(kind);
            for at in 0..store.messages.len() {
                let message = &store.messages[at];
                if message.state != State::Ready {
                    continue;
                }
                if sends_on && !message.stays {
                    // It comes back only if it could not be forwarded.
                    store.messages[at].former = None;
                    if !std::mem::replace(&mut store.is_announced, true) {
                        self.agenda.push_back((q, kind));
                    }
                }
            }
            let stays = |message: &ModelMessage| serves && (!sends_on || message.stays);
            while let Some((at, receiver)) = store.next_pair(stays) {
                store.spend_credit(receiver);
                store.messages[at].state = State::Assigned(receiver);
                store.messages[at].former = None;
            }
        }
    }

    fn remove(&mut self, (q, kind): StoreAddress, number: u64) -> ModelMessage {
        let store = self.store(q, kind);
        let mut messages = store.messages.iter();
        let at = messages.position(|message| message.number == number);
        let message = store.messages.remove(at.expect("the message is there"));
        if let State::Assigned(receiver) = message.state {
            store.restore(receiver);
        }
        message
    }

    fn at(&mut self, q: usize) -> &mut Queue {
        self.touched[q] = true;
        self.queues[q].as_mut().expect("the queue is there")
    }

    fn store(&mut self, q: usize, kind: SubQueue) -> &mut Store {
        self.at(q).store_mut(kind)
    }

    /// Adds a message to the end of a store.
    fn push(&mut self, (q, kind): StoreAddress, message: ModelMessage) {
        let known = (q, kind as usize, message.number);
        self.partitions.insert(known, message.partition);
        self.store(q, kind).messages.push(message);
    }

    /// Records an event of a client, now.
    fn note(&mut self, place: StoreAddress, number: u64, what: ModelKind) {
        self.write(self.now, place, number, true, what);
    }

    /// Records an event of the broker itself.
    fn note_at(&mut self, at: i64, place: StoreAddress, number: u64, what: ModelKind) {
        self.write(at, place, number, false, what);
    }

    fn write(
        &mut self,
        at: i64,
        (queue, store): StoreAddress,
        number: u64,
        by_client: bool,
        what: ModelKind,
    ) {
        let partition = self.partitions.get(&(queue, store as usize, number));
        self.log.push(ModelEvent {
            at,
            queue,
            store,
            number: number | partition.unwrap_or(&0) << 48,
            by_client,
            what,
        });
    }
}

fn name(q: usize) -> &'static str {
    NAMES[q]
}
