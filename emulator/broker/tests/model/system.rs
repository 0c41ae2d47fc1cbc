//! The real queue, driven by the same steps as the reference and told what time it is.

use bytes::Bytes;
use servicebus_broker::{
    ClientId, ConsumerId, Context, Delivery, Effects, EntityId, Fact, FactKind, Facts, IdSource,
    LockToken, Mailbox, Message, Outcome as Settlement, PropertyChanges, Queue, RenewError,
    SequenceNumber, SettleError, Stamp, StoreKind, Timestamp,
};
use servicebus_codec::{Reader, Value, Writer};
use uuid::Uuid;

use crate::transition::{Answer, Key, Outcome, Properties, Rules, Seen, Step};

/// Who asks in these histories.
const CLIENT: ClientId = ClientId(7);

#[derive(Debug)]
pub(crate) struct System {
    queue: Queue,
    now: Timestamp,
    ids: Ids,
    pub(crate) tokens: Vec<LockToken>,
    pub(crate) effects: Effects,
    pub(crate) facts: Facts,
    /// What went out, byte for byte.
    pub(crate) wire: Vec<u8>,
}

/// SplitMix64: the smallest generator that will do.
#[derive(Debug)]
pub(crate) struct Ids(u64);

impl IdSource for Ids {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

impl System {
    pub(crate) fn new(rules: &Rules, now: i64, seed: u64) -> Self {
        let path = "model".parse().unwrap();
        Self {
            queue: Queue::new(EntityId(1), path, rules.queue.clone(), &rules.settings),
            now: Timestamp::from_millis(now),
            ids: Ids(seed),
            tokens: Vec::new(),
            effects: Effects::new(),
            facts: Facts::new(),
            wire: Vec::new(),
        }
    }

    pub(crate) fn apply(&mut self, step: &Step) -> Answer {
        match step {
            Step::Send(letters) => self.send(letters),
            &Step::Open(kind, id, mode) => {
                self.queue.mailbox.open_consumer(kind, ConsumerId(id), mode);
                Answer::Done
            }
            &Step::Close(kind, id) => {
                self.operate(|mailbox, cx| mailbox.close_consumer(cx, kind, ConsumerId(id)));
                Answer::Done
            }
            &Step::Credit(kind, id, credit) => {
                self.operate(|mailbox, cx| mailbox.set_credit(cx, kind, ConsumerId(id), credit));
                Answer::Done
            }
            &Step::Take(kind, id, max) => self.take(kind, ConsumerId(id), max),
            Step::Settle(kind, key, outcome) => self.settle(*kind, *key, outcome),
            Step::Renew(kind, keys) => self.renew(*kind, keys),
            &Step::Advance(to) => {
                self.now = Timestamp::from_millis(to);
                Answer::Done
            }
            Step::Timeout => {
                self.operate(Mailbox::handle_timeout);
                Answer::Done
            }
            &Step::Browse(kind, from, max) => Answer::Messages(self.browse(kind, from, max)),
            Step::Reset => {
                self.operate(Mailbox::reset);
                Answer::Done
            }
        }
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.queue.mailbox
    }

    pub(crate) fn now(&self) -> i64 {
        self.now.as_millis()
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        self.mailbox().next_deadline().map(Timestamp::as_millis)
    }

    pub(crate) fn assigned(&self, kind: StoreKind, id: u64) -> usize {
        self.mailbox().assigned(kind, ConsumerId(id))
    }

    pub(crate) fn browse(&mut self, kind: StoreKind, from: u64, max: usize) -> Vec<Seen> {
        let from = SequenceNumber(from);
        let browsed = self.operate(|mailbox, cx| mailbox.browse(cx, kind, from, max));
        let seen = browsed
            .iter()
            .map(|browsed| see(&browsed.stamp, &browsed.message));
        seen.collect()
    }

    /// Facts since the last time, in the words of the reference.
    pub(crate) fn words(&self) -> Vec<String> {
        let word = |fact: &Fact| {
            assert_eq!(fact.entity, EntityId(1));
            let text = self.what(&fact.kind);
            format!(
                "{} {:?} {} {text}",
                fact.at.as_millis(),
                fact.store,
                fact.number
            )
        };
        self.facts.iter().map(word).collect()
    }

    fn operate<T>(&mut self, work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T) -> T {
        let mut cx = Context {
            now: self.now,
            client: CLIENT,
            ids: &mut self.ids,
            effects: &mut self.effects,
            facts: &mut self.facts,
        };
        work(&mut self.queue.mailbox, &mut cx)
    }

    fn send(&mut self, letters: &[(String, Option<u32>)]) -> Answer {
        let messages: Vec<Message> = letters
            .iter()
            .map(|(id, ttl)| Message::parse(encoded(id, *ttl), &mut self.ids).unwrap())
            .collect();
        let first = self.operate(|mailbox, cx| mailbox.send(cx, messages));
        Answer::Sent(first.0)
    }

    fn take(&mut self, kind: StoreKind, id: ConsumerId, max: usize) -> Answer {
        let mut taken: Vec<Delivery> = Vec::new();
        self.operate(|mailbox, cx| mailbox.take(cx, kind, id, max, usize::MAX, &mut taken));
        for delivery in &taken {
            self.tokens.push(delivery.token);
            let letter = delivery
                .message
                .encode(&delivery.stamp, 0, &mut self.wire)
                .unwrap();
            self.wire.extend_from_slice(&letter);
        }
        Answer::Messages(taken.iter().map(|d| see(&d.stamp, &d.message)).collect())
    }

    fn settle(&mut self, kind: StoreKind, key: Key, outcome: &Outcome) -> Answer {
        let token = self.token(key);
        let outcome = match outcome {
            Outcome::Complete => Settlement::Complete,
            Outcome::Abandon(properties) => Settlement::Abandon {
                changes: changes(properties),
            },
            Outcome::Release => Settlement::Release,
            Outcome::DeadLetter(reason, description, properties) => Settlement::DeadLetter {
                reason: reason.clone(),
                description: description.clone(),
                changes: changes(properties),
            },
        };
        let result = self.operate(|mailbox, cx| mailbox.settle(cx, kind, token, outcome));
        Answer::Settled(result.err().map(|error| match error {
            SettleError::LockLost => "lock lost",
            SettleError::AlreadyDeadLettered => "dead already",
            SettleError::Properties(_) => "properties",
        }))
    }

    fn renew(&mut self, kind: StoreKind, keys: &[Key]) -> Answer {
        let tokens: Vec<LockToken> = keys.iter().map(|&key| self.token(key)).collect();
        let result = self.operate(|mailbox, cx| mailbox.renew_locks(cx, kind, &tokens));
        let result = result.map(|ends| ends.into_iter().map(Timestamp::as_millis).collect());
        Answer::Renewed(result.map_err(|RenewError::LockLost(lost)| {
            tokens.iter().position(|&token| token == lost).unwrap()
        }))
    }

    fn token(&self, key: Key) -> LockToken {
        match key {
            Key::Given(at) => self.tokens[at],
            Key::Forged(at, bit) => LockToken::from(Uuid::from_u128(
                self.tokens[at].uuid().as_u128() ^ (1 << bit),
            )),
            Key::Garbage(bits) => LockToken::from(Uuid::from_u128(bits)),
        }
    }

    fn what(&self, kind: &FactKind) -> String {
        let read = |text| self.facts.read(text);
        match *kind {
            FactKind::Enqueued {
                message_id,
                bytes,
                expires_at,
            } => {
                assert!(bytes > 0);
                let until = Some(expires_at.as_millis()).filter(|_| expires_at < Timestamp::NEVER);
                format!("enqueued {} until {until:?}", read(message_id))
            }
            FactKind::Delivered {
                delivery,
                locked_until,
            } => {
                format!("delivered {delivery} until {}", locked_until.as_millis())
            }
            FactKind::ReceivedAndDeleted => "received and deleted".into(),
            FactKind::Completed => "completed".into(),
            FactKind::Abandoned { delivery_count } => format!("abandoned {delivery_count}"),
            FactKind::Released => "released".into(),
            FactKind::LockRenewed { locked_until } => {
                format!("renewed until {}", locked_until.as_millis())
            }
            FactKind::LockExpired { delivery_count } => format!("lock expired {delivery_count}"),
            FactKind::DeadLettered {
                moved_to,
                reason,
                description,
            } => {
                format!(
                    "dead-lettered to {moved_to}: {:?}, {:?}",
                    read(reason),
                    read(description)
                )
            }
            FactKind::Expired => "expired".into(),
            FactKind::Removed => "removed".into(),
            FactKind::ClockAdvanced { .. } | FactKind::Refused { .. } => {
                panic!("only the shell says {kind:?}")
            }
        }
    }
}

fn see(stamp: &Stamp, message: &Message) -> Seen {
    Seen {
        number: stamp.sequence_number.0,
        enqueued_number: stamp.enqueued_sequence_number.0,
        id: message.id().into_owned(),
        delivery_count: stamp.delivery_count,
        enqueued_at: stamp.enqueued_at.as_millis(),
        time_to_live: stamp.time_to_live,
        expires_at: stamp.expires_at.map(Timestamp::as_millis),
        locked_until: stamp.lock.map(|(_, until)| until.as_millis()),
        properties: properties(message.application_properties()),
    }
}

fn encoded(id: &str, time_to_live: Option<u32>) -> Bytes {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    if let Some(milliseconds) = time_to_live {
        out.descriptor(0x70);
        let header = out.begin_list();
        out.null();
        out.null();
        out.uint(milliseconds);
        out.end(header, 3);
    }
    out.descriptor(0x73);
    let properties = out.begin_list();
    out.string(id);
    out.end(properties, 1);
    out.descriptor(0x75);
    out.binary(b"body");
    bytes.into()
}

fn changes(properties: &Properties) -> PropertyChanges {
    let mut changes = PropertyChanges::new();
    for (name, text) in properties {
        changes.set_text(name, text);
    }
    changes
}

fn properties(section: &[u8]) -> Properties {
    if section.is_empty() {
        return Properties::new();
    }
    let mut reader = Reader::new(section);
    reader.descriptor().unwrap();
    let entries = reader
        .map()
        .unwrap()
        .entries()
        .map(|entry| match entry.unwrap() {
            (Value::String(name), Value::String(text)) => (name.to_owned(), text.to_owned()),
            other => panic!("only texts were set, found {other:?}"),
        });
    entries.collect()
}
