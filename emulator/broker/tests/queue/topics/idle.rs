//! Idle topics and subscriptions are deleted (semantics §5).

use servicebus_broker::filter::Filter;
use servicebus_broker::{Entities, EntityPath, ReceiveMode, ReceiverId, SubQueue};

use super::{A, B};
use crate::bus::{START, message, millis, secs};
use crate::world::{World, rule};

const IDLE: u64 = 300;

/// A topic that stays, with a subscription that goes when it is idle.
fn subscription() -> World {
    let mut world = World::topic(&[]);
    world.subscribe(A, |own| own.auto_delete_on_idle = Some(secs(IDLE)));
    world
}

/// A topic that goes when it is idle, with a subscription that would stay.
fn topic() -> World {
    let mut world = World::new();
    world.declare_topic("t", |topic| topic.auto_delete_on_idle = Some(secs(IDLE)));
    world.subscribe(A, |_| {});
    world
}

/// A receiver at the subscription that waits for a message.
fn wait_at_a(world: &mut World) -> ReceiverId {
    let id = ReceiverId(1_000);
    world.operate(A, |entity, cx| {
        entity.attach_receiver(SubQueue::Active, id, ReceiveMode::PeekLock);
        entity.set_credit(cx, SubQueue::Active, id, 1);
    });
    id
}

type Use = fn(&mut World);

/// What uses a subscription.
const USES: [(&str, Use); 5] = [
    ("receive", |world| {
        world.receive(A);
    }),
    ("receive dead letters", |world| {
        world.take(A, SubQueue::DeadLetter, ReceiveMode::PeekLock);
    }),
    ("peek", |world| {
        let first = servicebus_broker::SequenceNumber(1);
        world.operate(A, |entity, cx| {
            entity.peek(cx, SubQueue::Active, first, 1, None)
        });
    }),
    ("new rule", |world| {
        world.add_rule(A, rule("new", Filter::False)).unwrap();
    }),
    ("update", |world| {
        world.update(A, |own| own.max_delivery_count = 3);
    }),
];

#[test]
fn arriving_messages_do_not_keep_an_idle_subscription() {
    let mut world = subscription();
    for id in ["1", "2", "3"] {
        world.advance(secs(99));
        world.send("t", id);
    }
    world.advance(secs(3) - millis(1));
    assert!(world.exists(A));
    world.advance(millis(1));
    assert!(!world.exists(A), "it goes with its messages");
    assert!(world.exists("t"));
    world.send("t", "4");
    assert_eq!(world.everything(), [""; 0]);
}

#[test]
fn every_use_restarts_the_idle_time_of_a_subscription() {
    for (name, used) in USES {
        let mut world = subscription();
        world.advance(secs(IDLE) - millis(1));
        used(&mut world);
        world.advance(secs(IDLE) - millis(1));
        assert!(world.exists(A), "{name} was not noticed");
        world.advance(millis(1));
        assert!(!world.exists(A), "{name} keeps it for ever");
    }
}

#[test]
fn every_use_of_a_subscription_restarts_the_idle_time_of_its_topic() {
    for (name, used) in USES {
        let mut world = topic();
        world.advance(secs(IDLE - 100));
        used(&mut world);
        world.advance(secs(IDLE) - millis(1));
        assert!(world.exists("t"), "{name} was not noticed");
        world.send("t", "1");
        assert_eq!(
            world.entity(A).counts(SubQueue::Active).active,
            1,
            "it works on"
        );
        world.advance(secs(IDLE));
        assert!(!world.exists("t"), "{name} keeps it for ever");
        assert!(!world.exists(A), "a subscription goes with its topic");
    }
}

#[test]
fn sends_and_updates_restart_the_idle_time_of_a_topic() {
    let uses: [(&str, Use); 2] = [
        ("send", |world| {
            world.send("t", "1");
        }),
        ("update", |world| {
            world.update("t", |topic| topic.max_size_in_megabytes = 2048);
        }),
    ];
    for (name, used) in uses {
        let mut world = topic();
        world.advance(secs(IDLE - 1));
        used(&mut world);
        world.advance(secs(IDLE) - millis(1));
        assert!(world.exists("t"), "{name} was not noticed");
        world.advance(millis(1));
        assert!(!world.exists("t"), "{name} keeps it for ever");
    }
}

#[test]
fn a_scheduled_message_keeps_an_idle_topic_until_it_is_published() {
    let mut world = topic();
    world
        .post("t", &message("1").scheduled_at(START + secs(1000)))
        .unwrap();
    world.advance(secs(1000));
    assert_eq!(world.queued(A), ["1"]);
    world.advance(secs(IDLE) - millis(1));
    assert!(world.exists("t"));
    world.advance(millis(1));
    assert!(!world.exists("t"));
}

#[test]
fn a_waiting_receiver_keeps_its_idle_subscription_and_topic() {
    for mut world in [subscription(), topic()] {
        let waiting = wait_at_a(&mut world);
        world.advance(secs(10 * IDLE));
        assert!(world.exists(A) && world.exists("t"));
        let close = |world: &mut World| {
            world.operate(A, |entity, cx| {
                entity.detach_receiver(cx, SubQueue::Active, waiting);
            });
        };
        close(&mut world);
        world.advance(secs(IDLE) - millis(1));
        assert!(world.exists(A) && world.exists("t"));
        world.advance(secs(IDLE));
        assert!(!world.exists(A));
    }
}

#[test]
fn a_topic_used_through_a_subscription_accepts_a_later_send() {
    let mut world = topic();
    world.advance(secs(IDLE - 100));
    world.receive(A);
    world.now = world.now + secs(150);
    world.send("t", "1");
    assert!(world.exists("t"));
    assert_eq!(world.queued(A), ["1"]);
}

#[test]
fn a_send_to_a_topic_past_its_idle_time_is_delivered_or_refused() {
    let mut world = topic();
    world.now = world.now + secs(IDLE);
    let sent = world.post("t", &message("1"));
    let found = world.exists(A) && world.queued(A) == ["1"];
    assert_eq!(found, sent.is_ok());
}

#[test]
fn a_forwarding_subscription_is_never_idle() {
    let mut world = World::topic(&[]);
    world.declare("q", crate::bus::rules());
    world.subscribe(A, |own| {
        own.auto_delete_on_idle = Some(secs(IDLE));
        own.forward_to = Some("q".parse().unwrap());
    });
    world.advance(secs(10 * IDLE));
    assert!(world.exists(A));
}

#[test]
fn an_idle_subscription_is_deleted_without_the_others() {
    let mut world = subscription();
    world.subscribe(B, |_| {});
    world.advance(secs(IDLE));
    assert!(!world.exists(A));
    world.send("t", "1");
    assert_eq!(world.queued(B), ["1"]);
    let path: EntityPath = "t".parse().unwrap();
    let left = world.with_entity(&path, |entity, _| {
        entity.rules().map(|rules| rules.subscriptions().count())
    });
    assert_eq!(left, Some(Some(1)));
}

#[test]
fn a_subscription_created_during_the_deletion_of_its_topic_is_deleted() {
    let mut world = topic();
    world.remove_alone("t");
    world.subscribe("t/Subscriptions/late", |_| {});
    assert!(!world.exists("t/Subscriptions/late"));
    assert!(
        world.exists(A),
        "the one that was there is its topic's to delete"
    );
}
