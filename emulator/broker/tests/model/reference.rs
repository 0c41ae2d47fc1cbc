//! A queue told naively: lists, linear scans, one unit of credit at a time, and no index anywhere.

use std::time::Duration;

use servicebus_broker::{LocksOnDetach, ReceiveMode, StoreKind};

mod store;
mod time;

use store::{Letter, State, Store, Unit};

use crate::transition::{Answer, Key, Outcome, Properties, Rules, STORES, Seen, Step};

#[derive(Debug)]
pub(crate) struct Reference {
    rules: Rules,
    pub(crate) now: i64,
    active: Store,
    dead: Store,
    arrivals: u64,
    tokens: usize,
    /// What happened, in words.
    pub(crate) log: Vec<String>,
}

impl Reference {
    pub(crate) fn new(rules: Rules, now: i64) -> Self {
        let store = Store::default;
        Self {
            rules,
            now,
            active: store(),
            dead: store(),
            arrivals: 0,
            tokens: 0,
            log: Vec::new(),
        }
    }

    pub(crate) fn apply(&mut self, step: &Step) -> Answer {
        if let &Step::Advance(to) = step {
            self.now = to;
            return Answer::Done;
        }
        if let &Step::Open(kind, id, mode) = step {
            self.store(kind).consumers.push((id, mode));
            return Answer::Done;
        }
        self.let_happen(i64::MIN);
        let answer = match step {
            Step::Send(letters) => self.send(letters),
            &Step::Close(kind, id) => self.close(kind, id),
            &Step::Credit(kind, id, credit) => self.credit(kind, id, credit as usize),
            &Step::Take(kind, id, max) => Answer::Messages(self.take(kind, id, max)),
            Step::Settle(kind, key, outcome) => Answer::Settled(self.settle(*kind, *key, outcome)),
            Step::Renew(kind, keys) => Answer::Renewed(self.renew(*kind, keys)),
            &Step::Browse(kind, from, max) => Answer::Messages(self.browse(kind, from, max)),
            Step::Reset => self.reset(),
            Step::Open(..) | Step::Advance(_) | Step::Timeout => Answer::Done,
        };
        self.serve();
        answer
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        self.next_due().map(|(at, ..)| at)
    }

    /// Messages, locked ones, and those assigned to each consumer.
    pub(crate) fn counts(&self, kind: StoreKind) -> (usize, usize, Vec<(u64, usize)>) {
        let store = self.look(kind);
        let locked = store
            .letters
            .iter()
            .filter(|l| matches!(l.state, State::Locked { .. }))
            .count();
        let assigned = |id: u64| (id, store.assigned_to(id).len());
        let assigned = store
            .consumers
            .iter()
            .map(|&(id, _)| assigned(id))
            .collect();
        (store.letters.len(), locked, assigned)
    }

    pub(crate) fn browse(&self, kind: StoreKind, from: u64, max: usize) -> Vec<Seen> {
        let from = self
            .look(kind)
            .letters
            .iter()
            .filter(|letter| letter.number >= from);
        from.take(max)
            .map(|letter| self.see(kind, letter, letter.own.is_some(), None))
            .collect()
    }

    fn send(&mut self, letters: &[(String, Option<u32>)]) -> Answer {
        let first = self.active.last + 1;
        for (id, own) in letters {
            let own = own.map(u64::from);
            let lifetime = self.lifetime(own);
            let number = self.active.last + 1;
            let expires_at = lifetime.map(|lifetime| self.now + lifetime as i64);
            let letter = Letter {
                number,
                enqueued_number: number,
                id: id.clone(),
                enqueued_at: self.now,
                own,
                expires_at,
                count: 0,
                properties: Properties::new(),
                state: State::Ready,
            };
            self.active.last = number;
            self.active.letters.push(letter);
            self.note(
                StoreKind::Active,
                number,
                format!("enqueued {id} until {expires_at:?}"),
            );
        }
        Answer::Sent(first)
    }

    fn close(&mut self, kind: StoreKind, id: u64) -> Answer {
        let release = self.rules.settings.locks_on_detach == LocksOnDetach::Release;
        let store = self.store(kind);
        store.consumers.retain(|&(other, _)| other != id);
        store.waiting.retain(|unit| unit.consumer != id);
        for number in store.assigned_to(id) {
            store.letter(number).state = State::Ready;
        }
        let held = |letter: &&Letter| matches!(letter.state, State::Locked { consumer, .. } if consumer == id);
        let held: Vec<u64> = store
            .letters
            .iter()
            .filter(held)
            .map(|letter| letter.number)
            .collect();
        for number in held.into_iter().filter(|_| release) {
            self.note(kind, number, "released".into());
            self.unlock(kind, number, self.now);
        }
        Answer::Done
    }

    fn credit(&mut self, kind: StoreKind, id: u64, credit: usize) -> Answer {
        self.arrivals += 1;
        let unit = Unit {
            arrival: self.arrivals,
            consumer: id,
        };
        let store = self.store(kind);
        let mut assigned = store.assigned_to(id);
        for number in assigned.split_off(assigned.len().min(credit)) {
            store.letter(number).state = State::Ready;
        }
        let wanted = credit - assigned.len();
        let mut waiting = store
            .waiting
            .iter()
            .filter(|unit| unit.consumer == id)
            .count();
        while waiting < wanted {
            store.waiting.push(unit);
            waiting += 1;
        }
        while waiting > wanted {
            let latest = store.waiting.iter().rposition(|unit| unit.consumer == id);
            store.waiting.remove(latest.unwrap());
            waiting -= 1;
        }
        // What waited for a receiver expires now that there is one.
        self.let_happen(self.now);
        Answer::Done
    }

    fn take(&mut self, kind: StoreKind, id: u64, max: usize) -> Vec<Seen> {
        let lock = millis(self.rules.queue.lock_duration) as i64;
        let until = self.now + lock;
        let numbers = self.store(kind).assigned_to(id);
        let mode = self
            .store(kind)
            .consumers
            .iter()
            .find(|c| c.0 == id)
            .unwrap()
            .1;
        let mut seen = Vec::new();
        for number in numbers.into_iter().take(max) {
            let token = self.tokens;
            self.tokens += 1;
            let mut letter = self.store(kind).letter(number).clone();
            if mode == ReceiveMode::ReceiveAndDelete {
                self.store(kind)
                    .letters
                    .retain(|letter| letter.number != number);
                self.note(kind, number, "received and deleted".into());
                seen.push(self.see(kind, &letter, true, None));
            } else {
                letter.state = State::Locked {
                    token,
                    until,
                    consumer: id,
                };
                *self.store(kind).letter(number) = letter.clone();
                self.note(
                    kind,
                    number,
                    format!("delivered {} until {until}", letter.count + 1),
                );
                seen.push(self.see(kind, &letter, true, Some(until)));
            }
        }
        seen
    }

    fn settle(&mut self, kind: StoreKind, key: Key, outcome: &Outcome) -> Option<&'static str> {
        let Some(number) = self.locked_by(kind, key) else {
            return Some("lock lost");
        };
        let letter = self.store(kind).letter(number);
        match outcome {
            Outcome::Complete => {
                self.remove(kind, number);
                self.note(kind, number, "completed".into());
            }
            Outcome::Abandon(properties) => {
                letter.count += 1;
                letter.properties.extend(properties.clone());
                let count = letter.count;
                self.note(kind, number, format!("abandoned {count}"));
                self.unlock(kind, number, self.now);
            }
            Outcome::Release => {
                self.note(kind, number, "released".into());
                self.unlock(kind, number, self.now);
            }
            Outcome::DeadLetter(..) if kind == StoreKind::DeadLetters => {
                return Some("dead already");
            }
            Outcome::DeadLetter(reason, description, properties) => {
                letter.properties.extend(properties.clone());
                let (reason, description) = (reason.clone(), description.clone());
                self.bury(number, self.now, reason, description);
            }
        }
        None
    }

    fn renew(&mut self, kind: StoreKind, keys: &[Key]) -> Result<Vec<i64>, usize> {
        let renewed = self.now + millis(self.rules.queue.lock_duration) as i64;
        let numbers = keys.iter().enumerate();
        let numbers = numbers.map(|(at, &key)| self.locked_by(kind, key).ok_or(at));
        for number in numbers.collect::<Result<Vec<_>, _>>()? {
            if let State::Locked { until, .. } = &mut self.store(kind).letter(number).state {
                *until = renewed;
            }
            self.note(kind, number, format!("renewed until {renewed}"));
        }
        Ok(vec![renewed; keys.len()])
    }

    fn reset(&mut self) -> Answer {
        for kind in STORES {
            let numbers: Vec<u64> = self.look(kind).letters.iter().map(|l| l.number).collect();
            for number in numbers {
                self.remove(kind, number);
                self.note(kind, number, "removed".into());
            }
        }
        Answer::Done
    }

    fn remove(&mut self, kind: StoreKind, number: u64) -> Letter {
        let store = self.store(kind);
        let at = store
            .letters
            .iter()
            .position(|letter| letter.number == number)
            .unwrap();
        let letter = store.letters.remove(at);
        if let State::Assigned(unit) = letter.state {
            store.waiting.push(unit);
            store.waiting.sort_unstable();
        }
        letter
    }

    /// The first that is ready to the first who waits.
    fn serve(&mut self) {
        for kind in STORES {
            let store = self.store(kind);
            while let Some(letter) = store.letters.iter_mut().find(|l| l.state == State::Ready)
                && !store.waiting.is_empty()
            {
                letter.state = State::Assigned(store.waiting.remove(0));
            }
        }
    }

    fn locked_by(&self, kind: StoreKind, key: Key) -> Option<u64> {
        let holds = |l: &&Letter| matches!(l.state, State::Locked { token, .. } if key == Key::Given(token));
        self.look(kind)
            .letters
            .iter()
            .find(holds)
            .map(|letter| letter.number)
    }

    /// How long a message lives: its own time under the entity's ceiling, or the entity's.
    fn lifetime(&self, own: Option<u64>) -> Option<u64> {
        let default = self.rules.queue.default_message_time_to_live.map(millis);
        own.into_iter().chain(default).min()
    }

    /// As it is received, or as it is browsed if it brought a time to live; else both stay away.
    fn see(
        &self,
        kind: StoreKind,
        letter: &Letter,
        shows_life: bool,
        locked_until: Option<i64>,
    ) -> Seen {
        let lives = kind == StoreKind::Active && shows_life;
        Seen {
            number: letter.number,
            enqueued_number: letter.enqueued_number,
            id: letter.id.clone(),
            delivery_count: letter.count,
            enqueued_at: letter.enqueued_at,
            time_to_live: if lives {
                self.lifetime(letter.own)
            } else {
                letter.own
            },
            expires_at: letter.expires_at.filter(|_| lives),
            locked_until,
            properties: letter.properties.clone(),
        }
    }

    fn note(&mut self, kind: StoreKind, number: u64, text: String) {
        self.note_at(self.now, kind, number, text);
    }

    fn note_at(&mut self, at: i64, kind: StoreKind, number: u64, text: String) {
        self.log.push(format!("{at} {kind:?} {number} {text}"));
    }

    fn store(&mut self, kind: StoreKind) -> &mut Store {
        match kind {
            StoreKind::Active => &mut self.active,
            StoreKind::DeadLetters => &mut self.dead,
        }
    }

    fn look(&self, kind: StoreKind) -> &Store {
        match kind {
            StoreKind::Active => &self.active,
            StoreKind::DeadLetters => &self.dead,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
