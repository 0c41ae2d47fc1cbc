//! The memory of a message beside its payload, measured on the heap (design: at most 400 bytes).

use std::alloc::System;

use bytes::Bytes;
use cap::Cap;
use servicebus_broker::{
    ClientId, Context, Effects, Entity, EntityDescription, EntityId, EntityKind, Events,
    LocksOnDetach, Message, NamespaceSettings, Outcome, ReceiveMode, ReceiverId, SplitMix64,
    SubQueue, Timestamp,
};
use servicebus_codec::Writer;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const MESSAGES: usize = 100_000;
const PAYLOAD: usize = 100;
/// Maximum bytes of a message beside its payload, in any state.
const BUDGET: usize = 400;
/// Maximum bytes of an empty queue: one block of each store, buffers of receivers.
const REST: usize = 64 * 1024;

struct Bench {
    queue: Entity,
    now: Timestamp,
    ids: SplitMix64,
}

impl Bench {
    /// The most expensive settings: every lock is recorded with its holder as well.
    fn new() -> Self {
        let settings = NamespaceSettings {
            locks_on_detach: LocksOnDetach::Release,
            ..NamespaceSettings::default()
        };
        let path = "memory".parse().unwrap();
        let now = Timestamp::from_millis(1_700_000_000_000);
        let description = EntityDescription::default();
        Self {
            queue: Entity::new(
                EntityKind::Queue,
                EntityId(1),
                path,
                description,
                &settings,
                now,
            ),
            now,
            ids: SplitMix64(0),
        }
    }

    /// Drops the events, whose memory in a timeline has a limit of its own.
    fn operate<T>(&mut self, work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T) -> T {
        let mut cx = Context {
            now: self.now,
            has_room: true,
            client: ClientId(1),
            ids: &mut self.ids,
            effects: &mut Effects::new(),
            events: &mut Events::new(),
        };
        work(&mut self.queue, &mut cx)
    }

    fn fill(&mut self) {
        for number in 0..MESSAGES {
            let message = Message::parse(payload(number), &mut self.ids).unwrap();
            assert_eq!(message.size() as usize, PAYLOAD);
            self.operate(|entity, cx| entity.send(cx, message)).unwrap();
        }
    }
}

#[test]
fn a_message_costs_little_and_leaves_nothing_behind() {
    let mut bench = Bench::new();
    let kind = SubQueue::Active;
    let receiver = ReceiverId(1);
    let empty = HEAP.allocated();
    bench.fill();
    report("ready", empty);

    bench
        .queue
        .attach_receiver(kind, receiver, ReceiveMode::PeekLock);
    bench.operate(|entity, cx| entity.set_credit(cx, kind, receiver, u32::MAX));
    report("reserved", empty);

    let mut tokens = Vec::with_capacity(MESSAGES);
    while bench.queue.reserved(kind, receiver) > 0 {
        let mut taken = Vec::new();
        bench.operate(|entity, cx| entity.acquire(cx, kind, receiver, 100, usize::MAX, &mut taken));
        tokens.extend(taken.iter().map(|delivery| delivery.token));
    }
    let tokens_cost = tokens.capacity() * size_of_val(&tokens[0]);
    report("locked", empty + tokens_cost);

    for &token in &tokens {
        bench
            .operate(|entity, cx| entity.settle(cx, kind, token, Outcome::Complete))
            .unwrap();
    }
    assert_returned("completed", empty + tokens_cost);

    bench.fill();
    bench.operate(Entity::reset);
    assert_returned("removed while reserved", empty + tokens_cost);
}

/// Measures what each message costs now beside its payload.
fn report(state: &str, before: usize) {
    let each = (HEAP.allocated() - before) / MESSAGES - PAYLOAD;
    print(&format!(
        "{state}: {each} bytes for each message beside its payload"
    ));
    assert!(
        each <= BUDGET,
        "{each} bytes for each {state} message; the budget is {BUDGET}"
    );
}

fn assert_returned(state: &str, before: usize) {
    let left = HEAP.allocated().saturating_sub(before);
    print(&format!("{state}: {left} bytes left"));
    assert!(left <= REST, "{left} bytes are left when all are {state}");
}

#[expect(clippy::print_stdout, reason = "a measurement is there to be read")]
fn print(line: &str) {
    println!("{line}");
}

fn payload(number: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(PAYLOAD);
    let mut out = Writer::new(&mut bytes);
    out.descriptor(0x70);
    let header = out.begin_list();
    out.null();
    out.null();
    out.uint(3_600_000);
    out.end(header, 3);
    out.descriptor(0x73);
    let properties = out.begin_list();
    out.string(&format!("{number:08}"));
    out.end(properties, 1);
    out.descriptor(0x75);
    let left = PAYLOAD - out.position() - 2;
    out.binary(&vec![7; left]);
    bytes.into()
}
