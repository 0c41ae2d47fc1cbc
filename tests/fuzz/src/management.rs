//! `$management`: every request has an answer that is a message, and leaves the entity as it can be.

use servicebus_broker::filter::Rule;
use servicebus_broker::{Message, SubQueue, Timestamp};
use servicebus_codec::{Reader, Writer};
use servicebus_emulator::fuzz;

use crate::world::{Ids, NOW, World};
use crate::{Input, message, value};

const OPERATIONS: [&str; 15] = [
    "renew-lock",
    "peek-message",
    "update-disposition",
    "schedule-message",
    "cancel-scheduled-message",
    "receive-by-sequence-number",
    "batch-delete-messages",
    "renew-session-lock",
    "get-session-state",
    "set-session-state",
    "get-message-sessions",
    "add-rule",
    "remove-rule",
    "enumerate-rules",
    "other",
];
/// How much longer an answer may be than the request and all that the entities hold.
const OVERHEAD: usize = 16 * 1024;

/// A few requests, one after the other, to entities that hold a few messages.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let mut world = World::new(vec![Rule::default_rule(Timestamp::from_millis(NOW))]);
    let mut held = 0;
    for _ in 0..input.below(3) {
        let payload = message::payload(&mut input);
        held += payload.len();
        if let Ok(message) = Message::parse(payload.into(), &mut Ids::default()) {
            world.send_everywhere(&message);
        }
    }
    for _ in 0..=input.below(3) {
        let request = request(&mut input);
        held += request.len();
        let (place, kind) = (input.below(3), input.pick(&SubQueue::ALL));
        let subscription = world.subscription.clone();
        let reply = world.operate(|entities, cx| match place {
            0 => fuzz::manage(&request, entities.queue, kind, cx),
            1 => fuzz::manage(&request, entities.sessions, kind, cx),
            _ => fuzz::manage_rules(&request, entities.topic, &subscription, cx),
        });
        if let Some(reply) = reply {
            assert!(
                reply.len() <= 4 * held + OVERHEAD,
                "{} bytes for {held}",
                reply.len()
            );
            let mut reader = Reader::new(&reply);
            while !reader.is_empty() {
                reader.descriptor().expect("a section of the reply");
                reader.validate().expect("a whole section of the reply");
            }
        }
        world.queue.check_invariants();
        world.sessions.check_invariants();
    }
}

fn request(input: &mut Input<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    if input.one_in(16) {
        return message::payload(input);
    }
    Writer::new(&mut out).descriptor(0x74);
    let map = Writer::new(&mut out).begin_map();
    Writer::new(&mut out).string("operation");
    let operation = input.pick(&OPERATIONS);
    Writer::new(&mut out).string(&format!("com.microsoft:{operation}"));
    Writer::new(&mut out).end(map, 2);
    Writer::new(&mut out).descriptor(0x77);
    match input.one_in(8) {
        true => value::value(input, 4, &mut out),
        false => body(input, operation, &mut out),
    }
    out
}

/// A map with some of the arguments that the operation knows.
fn body(input: &mut Input<'_>, operation: &str, out: &mut Vec<u8>) {
    let names: &[&str] = match operation {
        "renew-lock" => &["lock-tokens"],
        "peek-message" => &["from-sequence-number", "message-count", "session-id"],
        "update-disposition" => &[
            "disposition-status",
            "lock-tokens",
            "properties-to-modify",
            "session-id",
        ],
        "schedule-message" => &["messages"],
        "cancel-scheduled-message" => &["sequence-numbers"],
        "receive-by-sequence-number" => &["sequence-numbers", "receiver-settle-mode", "session-id"],
        "batch-delete-messages" => &["message-count", "enqueued-time-utc"],
        "set-session-state" => &["session-id", "session-state"],
        "get-message-sessions" => &["last-updated-time", "skip", "top"],
        "add-rule" => &["rule-name", "rule-description"],
        "remove-rule" => &["rule-name"],
        "enumerate-rules" => &["skip", "top"],
        _ => &["session-id"],
    };
    let map = Writer::new(out).begin_map();
    for name in names {
        Writer::new(out).string(name);
        argument(input, name, out);
    }
    Writer::new(out).end(map, 2 * names.len() as u32);
}

/// A value of the type that is due, most of the time.
fn argument(input: &mut Input<'_>, name: &str, out: &mut Vec<u8>) {
    if input.one_in(8) {
        return value::value(input, 3, out);
    }
    let mut writer = Writer::new(out);
    match name {
        "from-sequence-number" => writer.long(i64::from(input.byte()) - 1),
        "message-count" | "skip" | "top" => writer.int(i32::from(input.byte()) - 1),
        "receiver-settle-mode" => writer.uint(u32::from(input.byte() % 3)),
        "session-id" | "rule-name" => writer.string(&input.word(4)),
        "disposition-status" => {
            writer.string(input.pick(&[
                "completed",
                "abandoned",
                "suspended",
                "defered",
                "renewed",
            ]));
        }
        "lock-tokens" => {
            let tokens = [input.array(), input.array()].map(uuid::Uuid::from_bytes);
            writer.uuid_array(tokens.into_iter().take(input.below(3)));
        }
        "sequence-numbers" => {
            let numbers = [i64::from(input.byte()), i64::from(input.byte())];
            writer.long_array(numbers.into_iter().take(input.below(3)));
        }
        "last-updated-time" | "enqueued-time-utc" => writer.timestamp(NOW),
        "session-state" => writer.binary(input.bytes(16)),
        "messages" => messages(input, out),
        "rule-description" => rule(input, out),
        _ => value::map(input, 3, out),
    }
}

fn messages(input: &mut Input<'_>, out: &mut Vec<u8>) {
    let list = Writer::new(out).begin_list();
    let count = input.below(3);
    for _ in 0..count {
        let map = Writer::new(out).begin_map();
        Writer::new(out).string("message-id");
        Writer::new(out).string(&input.word(4));
        Writer::new(out).string("message");
        Writer::new(out).binary(&message::payload(input));
        Writer::new(out).end(map, 4);
    }
    Writer::new(out).end(list, count as u32);
}

fn rule(input: &mut Input<'_>, out: &mut Vec<u8>) {
    let map = Writer::new(out).begin_map();
    let is_sql = input.one_in(2);
    Writer::new(out).string(if is_sql {
        "sql-filter"
    } else {
        "correlation-filter"
    });
    let filter = Writer::new(out).begin_map();
    Writer::new(out).string(if is_sql {
        "expression"
    } else {
        "correlation-id"
    });
    Writer::new(out).string(input.pick(&["1=1", "a=1", "sys.Label LIKE 'a%'", "(", ""]));
    Writer::new(out).end(filter, 2);
    Writer::new(out).end(map, 2);
}
