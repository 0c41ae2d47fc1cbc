//! Idle entities are deleted (semantics §5).

use servicebus_broker::{Effect, LockToken, SendError, SequenceNumber, SubQueue};
use uuid::Uuid;

use crate::bus::{Bus, START, message, millis, rules, secs};
use crate::world::World;

const IDLE: u64 = 300;

fn bus() -> Bus {
    rules().auto_delete_on_idle(secs(IDLE)).bus()
}

fn is_deleted(bus: &Bus) -> bool {
    bus.effects
        .iter()
        .any(|effect| matches!(effect, Effect::Delete(path, _) if path.as_str() == "orders"))
}

#[test]
fn a_queue_that_is_not_used_asks_to_be_deleted_once() {
    let mut bus = bus();
    assert_eq!(bus.next_deadline(), Some(START + secs(IDLE)));
    bus.advance(secs(IDLE) - millis(1));
    assert!(!is_deleted(&bus));
    bus.advance(millis(1));
    assert!(is_deleted(&bus));
    assert_eq!(bus.next_deadline(), None);
    bus.effects.clear();
    bus.advance(secs(IDLE));
    assert!(bus.effects.is_empty());
    assert_eq!(bus.history(), [], "who deletes it says so");
}

#[test]
fn without_the_setting_it_stays() {
    let mut bus = crate::bus::bus();
    bus.advance(secs(1_000_000_000));
    assert!(bus.effects.is_empty());
}

#[test]
fn every_use_counts() {
    type Use = fn(&mut Bus);
    let uses: [(&str, Use); 10] = [
        ("send", |bus| {
            bus.send("a");
        }),
        ("refused send", |bus| {
            bus.post(&message("a").body(1024 * 1024)).unwrap_err();
        }),
        ("receive", |bus| {
            let receiver = bus.receiver();
            bus.receive(receiver, 1);
        }),
        ("receive dead letters", |bus| {
            let receiver = bus.dead_letter_receiver();
            bus.receive(receiver, 1);
        }),
        ("peek", |bus| {
            bus.peek(SubQueue::Active);
        }),
        ("peek dead letters", |bus| {
            bus.peek(SubQueue::TransferDeadLetter);
        }),
        ("update", |bus| {
            bus.update(|queue| queue.max_delivery_count = 3)
        }),
        ("renew", |bus| {
            let token = LockToken::from(Uuid::nil());
            bus.renew(&[token]).unwrap_err();
        }),
        ("cancel", |bus| {
            bus.cancel(&[SequenceNumber(1)]).unwrap_err();
        }),
        ("delete messages", |bus| {
            bus.delete_messages(1, START);
        }),
    ];
    for (name, used) in uses {
        let mut bus = rules()
            .auto_delete_on_idle(secs(IDLE))
            .of_one_megabyte()
            .bus();
        bus.advance(secs(IDLE - 1));
        used(&mut bus);
        bus.advance(secs(IDLE) - millis(1));
        assert!(!is_deleted(&bus), "{name} was not noticed");
        bus.advance(millis(1));
        assert!(is_deleted(&bus), "{name} keeps it for ever");
    }
}

#[test]
fn what_time_brings_about_is_no_use() {
    let mut bus = bus().with_ttl("a", secs(200));
    bus.send("b");
    let receiver = bus.receiver();
    bus.receive(receiver, 2);
    bus.advance(secs(IDLE));
    assert!(is_deleted(&bus), "in spite of expiry and the end of locks");
}

#[test]
fn looking_unnoticed_is_no_use() {
    let mut bus = bus();
    bus.advance(secs(IDLE - 1));
    bus.counts();
    bus.advance(secs(1));
    assert!(is_deleted(&bus));
}

#[test]
fn a_receiver_with_credit_keeps_it_at_every_store() {
    for store in SubQueue::ALL {
        let mut bus = bus();
        let receiver = bus.open(store, servicebus_broker::ReceiveMode::PeekLock);
        bus.credit(receiver, 1);
        bus.advance(secs(10 * IDLE));
        assert!(!is_deleted(&bus));
        bus.credit(receiver, 0);
        bus.advance(secs(IDLE) - millis(1));
        assert!(!is_deleted(&bus));
        bus.advance(millis(1));
        assert!(is_deleted(&bus), "without credit it does not wait");
    }
}

#[test]
fn when_the_receiver_goes_the_time_begins() {
    let mut bus = bus();
    let receiver = bus.receiver_with_credit(1);
    bus.advance(secs(10 * IDLE));
    bus.close(receiver);
    bus.advance(secs(IDLE) - millis(1));
    assert!(!is_deleted(&bus));
    bus.advance(millis(1));
    assert!(is_deleted(&bus));
}

#[test]
fn a_scheduled_message_keeps_it_until_it_is_active_and_then_the_time_begins() {
    let mut bus = bus();
    bus.schedule("a", START + secs(10 * IDLE));
    bus.advance(secs(10 * IDLE));
    assert!(!is_deleted(&bus));
    assert_eq!(bus.next_deadline(), Some(START + secs(11 * IDLE)));
    bus.advance(secs(IDLE));
    assert!(is_deleted(&bus));
}

#[test]
fn a_cancelled_one_does_not() {
    let mut bus = bus();
    let number = bus.schedule("a", START + secs(10 * IDLE));
    bus.cancel(&[number]).unwrap();
    bus.advance(secs(IDLE));
    assert!(is_deleted(&bus));
}

#[test]
fn it_goes_with_its_messages() {
    let mut world = World::new();
    world.declare("a", rules().auto_delete_on_idle(secs(IDLE)));
    world.send("a", "1");
    world.advance(secs(IDLE));
    assert!(!world.exists("a"));
}

#[test]
fn a_queue_that_forwards_is_never_idle_and_one_that_is_forwarded_to_is_used_by_it() {
    let mut world = World::new();
    world.declare("b", rules().auto_delete_on_idle(secs(IDLE)));
    world.declare("a", rules().forward_to("b"));
    world.advance(secs(IDLE - 1));
    world.send("a", "1");
    world.advance(secs(IDLE - 1));
    assert!(world.exists("b"));
    world.advance(secs(1));
    assert!(!world.exists("b"));

    world.update("a", |queue| queue.auto_delete_on_idle = Some(secs(IDLE)));
    world.advance(secs(10 * IDLE));
    assert!(world.exists("a"));
    world.update("a", |queue| queue.forward_to = None);
    world.advance(secs(IDLE));
    assert!(!world.exists("a"));
}

#[test]
fn one_that_forwards_dead_letters_keeps_the_setting_and_is_never_idle() {
    let mut world = World::new();
    world.declare("dead", rules());
    let forwards = rules().forward_dead_letters_to("dead");
    world.declare("a", forwards.auto_delete_on_idle(secs(IDLE)));
    let kept = world.entity("a").description().auto_delete_on_idle;
    assert_eq!(kept, Some(secs(IDLE)));
    world.advance(secs(10 * IDLE));
    assert!(world.exists("a"));
    world.update("a", |queue| queue.forward_dead_lettered_messages_to = None);
    world.advance(secs(IDLE));
    assert!(!world.exists("a"));
}

#[test]
fn a_setting_that_comes_later_counts_from_its_update() {
    let mut bus = crate::bus::bus();
    bus.advance(secs(10 * IDLE));
    bus.update(|queue| queue.auto_delete_on_idle = Some(secs(IDLE)));
    assert_eq!(bus.next_deadline(), Some(START + secs(11 * IDLE)));
    bus.advance(secs(IDLE - 1));
    bus.update(|queue| queue.auto_delete_on_idle = None);
    bus.advance(secs(10 * IDLE));
    assert!(!is_deleted(&bus));
}

#[test]
fn nothing_is_forwarded_to_what_was_idle_for_long_enough() {
    let mut world = World::new();
    world.declare("b", rules().auto_delete_on_idle(secs(IDLE)));
    world.declare("a", rules().forward_to("b"));
    world.now = world.now + secs(IDLE);
    world.send("a", "1");
    assert!(!world.exists("b"));
    assert_eq!(world.transfer_dead_letters("a"), ["1"]);
}

#[test]
fn nor_is_anything_sent_to_it() {
    let mut bus = bus();
    bus.pass(secs(IDLE));
    let refused = bus.post(&message("a")).unwrap_err();
    assert!(matches!(refused, SendError::NotFound(_)));
    let text = "The messaging entity 'orders' could not be found. To know more visit \
                https://aka.ms/sbResourceMgrExceptions.";
    assert_eq!(refused.to_string(), text);
    assert!(is_deleted(&bus));
}
