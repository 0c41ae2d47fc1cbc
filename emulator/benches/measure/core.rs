//! Calls the broker's core directly: the cost of a message without a socket, and whether a queue of a million makes it
//! higher. Events go into a timeline, as in the emulator.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use servicebus_broker::{
    ClientId, Context, Delivery, Effects, Entity, EntityDescription, EntityId, EntityKind, Events,
    IdSource, Message, NamespaceSettings, Outcome as Settle, ReceiveMode, ReceiverId,
    SequenceNumber, SubQueue, Timeline, Timestamp,
};

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::message;
use crate::report::Report;
use crate::statistics::{Rounds, number};

const SHALLOW: u32 = 1_000;
const BODY: usize = 100;
/// Messages under one lock, as connections commit and take them.
const BATCH: u32 = 64;
const LIFETIME: Duration = Duration::from_secs(3_600);
/// Messages that arrive within one millisecond when a queue is filled.
const PER_MILLISECOND: u32 = 500;
const CONSUMER: ReceiverId = ReceiverId(1);
const ACTIVE: SubQueue = SubQueue::Active;

/// Nanoseconds for each message.
#[derive(Debug, Default)]
struct Costs {
    send: f64,
    receive: f64,
    browse: f64,
    expiry: f64,
}

/// Distinct numbers, from a counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(u64);

impl IdSource for Counter {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

/// A queue with the state that surrounds it in the emulator.
#[derive(Debug)]
struct Core {
    entity: Entity,
    ids: Counter,
    effects: Effects,
    events: Events,
    timeline: Timeline,
    now: Timestamp,
    encoded: Bytes,
    taken: Vec<Delivery>,
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let deep = effort.pick(2_000, 1_000_000);
    let batches = effort.pick(2, 2_000);
    let mut pairs = Vec::new();
    for _ in 0..effort.rounds() {
        let shallow = costs(SHALLOW, batches, effort.pick(1, 100));
        pairs.push((shallow, costs(deep, batches, 1)));
    }
    let whole = pairs
        .iter()
        .map(|(shallow, _)| shallow.send + shallow.receive);
    let whole: Rounds = whole.collect();
    report.note(
        "send + take + complete, 1,000 messages deep",
        format!("{whole} ns"),
    );
    compare(report, "send", &pairs, |costs| costs.send);
    compare(report, "take and complete", &pairs, |costs| costs.receive);
    compare(report, "browse", &pairs, |costs| costs.browse);
    compare(report, "expiry", &pairs, |costs| costs.expiry);
    Ok(())
}

fn compare(report: &mut Report, what: &str, pairs: &[(Costs, Costs)], of: fn(&Costs) -> f64) {
    let shallow: Rounds = pairs.iter().map(|(shallow, _)| of(shallow)).collect();
    let deep: Rounds = pairs.iter().map(|(_, deep)| of(deep)).collect();
    let ratio: Rounds = pairs
        .iter()
        .map(|(shallow, deep)| of(deep) / of(shallow))
        .collect();
    let (shallow, deep) = (number(shallow.median()), number(deep.median()));
    report.note(
        &format!("{what}, ns per message"),
        format!("{deep} against {shallow}"),
    );
    report.at_most(&format!("{what}, a million ÷ a thousand"), &ratio, "", 5.0);
}

fn costs(depth: u32, batches: u32, expiries: u32) -> Costs {
    let mut core = Core::filled(depth, None);
    core.entity
        .attach_receiver(ACTIVE, CONSUMER, ReceiveMode::PeekLock);
    let (mut send, mut receive, mut browse) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for batch in 0..batches {
        let messages = core.messages(BATCH);
        send += timed(|| core.send(messages));
        receive += timed(|| core.receive(BATCH));
        let middle = u64::from(batch * BATCH + depth / 2);
        browse += timed(|| core.browse(middle, BATCH));
        core.taken.clear();
    }
    let mut expiry = Duration::ZERO;
    for _ in 0..expiries {
        let mut core = Core::filled(depth, Some(LIFETIME));
        expiry += timed(|| core.expire());
        assert!(
            core.entity.store(ACTIVE).is_empty(),
            "everything has expired"
        );
    }
    let each = |took: Duration, messages: u32| took.as_nanos() as f64 / f64::from(messages);
    Costs {
        send: each(send, batches * BATCH),
        receive: each(receive, batches * BATCH),
        browse: each(browse, batches * BATCH),
        expiry: each(expiry, expiries * depth),
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

impl Core {
    /// Returns a queue of `depth` messages that arrived at the pace of a fast sender.
    fn filled(depth: u32, lifetime: Option<Duration>) -> Self {
        let (queue, settings) = (EntityDescription::default(), NamespaceSettings::default());
        let lifetime_ms = lifetime.map(|lifetime| lifetime.as_millis() as u32);
        let now = Timestamp::from_millis(1_700_000_000_000);
        let path = "core".parse().expect("our own name is sound");
        let mut core = Self {
            entity: Entity::new(EntityKind::Queue, EntityId(1), path, queue, &settings, now),
            ids: Counter::default(),
            effects: Effects::new(),
            events: Events::new(),
            timeline: Timeline::new(Timeline::CAPACITY),
            now,
            encoded: message(BODY, lifetime_ms).into(),
            taken: Vec::new(),
        };
        let mut left = depth;
        while left > 0 {
            let count = left.min(PER_MILLISECOND);
            let messages = core.messages(count);
            core.send(messages);
            core.now = core.now + Duration::from_millis(1);
            left -= count;
        }
        core
    }

    fn messages(&mut self, count: u32) -> Vec<Message> {
        let ids = &mut self.ids;
        let parse =
            |_| Message::parse(self.encoded.clone(), ids).expect("our own message is sound");
        (0..count).map(parse).collect()
    }

    fn send(&mut self, messages: Vec<Message>) {
        self.operate(|entity, cx| {
            // One by one, as transfers are.
            for message in messages {
                entity.send(cx, message).expect("there is room");
            }
        });
    }

    fn receive(&mut self, count: u32) {
        let mut taken = std::mem::take(&mut self.taken);
        self.operate(|entity, cx| entity.set_credit(cx, ACTIVE, CONSUMER, count));
        self.operate(|entity, cx| {
            entity.acquire(cx, ACTIVE, CONSUMER, count as usize, usize::MAX, &mut taken)
        });
        self.operate(|entity, cx| {
            for delivery in &taken {
                let settled = entity.settle(cx, ACTIVE, delivery.token, Settle::Complete);
                settled.expect("its lock is held");
            }
        });
        self.taken = taken;
    }

    fn browse(&mut self, from: u64, count: u32) {
        let from = SequenceNumber(from);
        self.operate(|entity, cx| {
            black_box(entity.peek(cx, ACTIVE, from, count as usize, None));
        });
    }

    fn expire(&mut self) {
        self.now = self.now + 2 * LIFETIME;
        self.operate(|entity, cx| entity.handle_timeout(cx));
    }

    fn operate<T>(&mut self, work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T) -> T {
        let mut cx = Context {
            now: self.now,
            has_room: true,
            client: ClientId(1),
            ids: &mut self.ids,
            effects: &mut self.effects,
            events: &mut self.events,
        };
        let result = work(&mut self.entity, &mut cx);
        self.timeline.absorb(&mut self.events);
        self.effects.clear();
        result
    }
}
