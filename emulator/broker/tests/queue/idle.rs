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
fn an_idle_queue_requests_its_deletion_once() {
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
fn a_queue_without_auto_delete_on_idle_stays() {
    let mut bus = crate::bus::bus();
    bus.advance(secs(1_000_000_000));
    assert!(bus.effects.is_empty());
}

#[test]
fn every_use_of_a_queue_restarts_its_idle_time() {
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
fn expiries_and_lock_ends_do_not_restart_the_idle_time() {
    let mut bus = bus().with_ttl("a", secs(200));
    bus.send("b");
    let receiver = bus.receiver();
    bus.receive(receiver, 2);
    bus.advance(secs(IDLE));
    assert!(is_deleted(&bus), "in spite of expiry and the end of locks");
}

#[test]
fn reading_the_counts_does_not_restart_the_idle_time() {
    let mut bus = bus();
    bus.advance(secs(IDLE - 1));
    bus.counts();
    bus.advance(secs(1));
    assert!(is_deleted(&bus));
}

#[test]
fn a_receiver_with_credit_at_any_sub_queue_keeps_the_queue() {
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
fn the_idle_time_begins_when_the_last_receiver_detaches() {
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
fn a_scheduled_message_delays_the_idle_time_until_it_is_active() {
    let mut bus = bus();
    bus.schedule("a", START + secs(10 * IDLE));
    bus.advance(secs(10 * IDLE));
    assert!(!is_deleted(&bus));
    assert_eq!(bus.next_deadline(), Some(START + secs(11 * IDLE)));
    bus.advance(secs(IDLE));
    assert!(is_deleted(&bus));
}

#[test]
fn a_cancelled_scheduled_message_does_not_keep_the_queue() {
    let mut bus = bus();
    let number = bus.schedule("a", START + secs(10 * IDLE));
    bus.cancel(&[number]).unwrap();
    bus.advance(secs(IDLE));
    assert!(is_deleted(&bus));
}

#[test]
fn an_idle_queue_is_deleted_with_its_messages() {
    let mut world = World::new();
    world.declare("a", rules().auto_delete_on_idle(secs(IDLE)));
    world.send("a", "1");
    world.advance(secs(IDLE));
    assert!(!world.exists("a"));
}

#[test]
fn a_forwarding_queue_is_never_idle_and_its_forwards_use_the_target() {
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
fn a_queue_that_forwards_dead_letters_is_never_idle() {
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
fn auto_delete_on_idle_set_later_counts_from_the_update() {
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
fn a_message_is_not_forwarded_to_a_target_past_its_idle_time() {
    let mut world = World::new();
    world.declare("b", rules().auto_delete_on_idle(secs(IDLE)));
    world.declare("a", rules().forward_to("b"));
    world.now = world.now + secs(IDLE);
    world.send("a", "1");
    assert!(!world.exists("b"));
    assert_eq!(world.transfer_dead_letters("a"), ["1"]);
}

#[test]
fn a_send_to_a_queue_past_its_idle_time_is_not_found() {
    let mut bus = bus();
    bus.pass(secs(IDLE));
    let refused = bus.post(&message("a")).unwrap_err();
    assert!(matches!(refused, SendError::NotFound(_)));
    let text = "The messaging entity 'orders' could not be found. To know more visit \
                https://aka.ms/sbResourceMgrExceptions.";
    assert_eq!(refused.to_string(), text);
    assert!(is_deleted(&bus));
}
