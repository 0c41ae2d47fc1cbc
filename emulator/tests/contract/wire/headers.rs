//! What a message may carry beside its body: sizes, lengths and types (semantics §1, §20.2).

use servicebus_codec::Writer;

use crate::support::*;

const KIB: usize = 1024;
/// Observed at the service for a property that is too large.
const TOO_LARGE: &str = "The service was unable to process the request; please retry the operation. For more \
    information on exception types and proper exception handling, please refer to \
    http://go.microsoft.com/fwlink/?LinkId=761101";

/// A described section.
fn section(code: u8, content: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.descriptor(code);
    content(&mut writer);
    out
}

/// A section that is a map of one entry.
fn entry(code: u8, name: &str, value: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    section(code, |out| {
        let mark = out.begin_map();
        out.string(name);
        value(out);
        out.end(mark, 2);
    })
}

/// Properties with a message id and a session id.
fn properties(id: &str, session: &str) -> Vec<u8> {
    section(0x73, |out| {
        let mark = out.begin_list();
        out.string(id);
        (1..10).for_each(|_| out.null());
        out.string(session);
        out.end(mark, 11);
    })
}

/// Four application properties that have this many bytes together.
fn four_properties(bytes: usize) -> Vec<u8> {
    section(0x74, |out| {
        let mark = out.begin_map();
        for name in ["a", "b", "c", "d"] {
            out.string(name);
            out.string(&"x".repeat(bytes / 4));
        }
        out.end(mark, 8);
    })
}

fn large(code: u8, size: usize) -> Vec<u8> {
    entry(code, "large", |out| out.string(&"x".repeat(size)))
}

fn empty_list(out: &mut Writer<'_>) {
    let mark = out.begin_list();
    out.end(mark, 0);
}

#[test]
fn what_is_within_the_limits_is_accepted() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let ids = "i".repeat(128);
    let fitting = [
        large(0x72, 32 * KIB),
        large(0x74, 32 * KIB),
        four_properties(63 * KIB),
        properties(&ids, &ids),
        entry(0x74, "none", |out| out.null()),
    ];
    for payload in &fitting {
        let id = peer.transfer(&sender, 0, false, payload);
        assert_eq!(peer.outcome(&sender, id), Ok(()));
    }
    assert_eq!(bus.http.held("q"), (fitting.len() as u64, 0));
}

#[test]
fn headers_that_are_too_large_are_refused_in_the_words_of_the_service() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let payloads = [
        large(0x71, 32 * KIB + 1),
        large(0x72, 32 * KIB + 1),
        large(0x74, 32 * KIB + 1),
        four_properties(64 * KIB),
    ];
    for payload in payloads {
        let refusal = peer.send_in_vain(&sender, &payload);
        assert_eq!(refusal.condition, "amqp:internal-error");
        assert_eq!(refusal.words(), TOO_LARGE);
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn ids_and_types_that_the_service_does_not_take_are_named() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let long = "i".repeat(129);
    let schedule = "x-opt-scheduled-enqueue-time";
    let payloads = [
        (properties(&long, "s"), "the message id has 129 characters"),
        (properties("m", &long), "the session id has 129 characters"),
        (
            entry(0x72, "x-opt-partition-key", |out| out.string(&long)),
            "the partition key has 129 characters",
        ),
        (
            entry(0x74, "order", empty_list),
            "the application property 'order' is not of a primitive type",
        ),
        (entry(0x72, schedule, |out| out.string("noon")), schedule),
    ];
    for (payload, named) in payloads {
        let refusal = peer.send_in_vain(&sender, &payload);
        assert_eq!(refusal.condition, "com.microsoft:argument-error");
        assert!(refusal.words().contains(named), "{refusal:?}");
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}
