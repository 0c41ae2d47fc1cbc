//! Random operations in queues that forward to each other: every accepted message is somewhere, was received, has expired or
//! was deleted with its queue, and none exists twice.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use proptest::prelude::*;
use servicebus_broker::{
    EntityStatus, EventKind, Expiry, FailedForwards, Outcome, PropertyChanges, ReceiveMode,
    SubQueue,
};

use crate::bus::{Rules, message, rules, secs};
use crate::world::World;

/// Seven, so that a chain of them has more hops than allowed.
const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// What a client does.
#[derive(Debug, Clone)]
enum Step {
    Send(&'static str, Sent),
    Receive(&'static str, SubQueue, ReceiveMode),
    Settle(&'static str, End),
    Status(&'static str, EntityStatus),
    Size(&'static str, u64),
    Target(&'static str, Option<&'static str>),
    DeadLetterTarget(&'static str, Option<&'static str>),
    Delete(&'static str),
    Advance(u64),
    /// Just before the entity is reached the next time, perhaps while others are forwarded.
    Meanwhile(&'static str, Box<Self>),
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    count: usize,
    bytes: usize,
    time_to_live: Option<u64>,
    scheduled_in: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Complete,
    Abandon,
    Defer,
    DeadLetter,
}

/// The fate of messages, as far as events and stores do not show it. Shared, and borrowed only briefly: steps run within
/// others.
type Ledger = Rc<RefCell<Entries>>;

#[derive(Debug, Default)]
struct Entries {
    sent: usize,
    accepted: BTreeSet<String>,
    gone: Vec<String>,
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn sent() -> impl Strategy<Value = Sent> {
    let bytes = prop_oneof![4 => Just(10usize), 1 => Just(400_000)];
    let time_to_live = prop_oneof![3 => Just(None), 1 => (1..100u64).prop_map(Some)];
    let scheduled_in = prop_oneof![4 => Just(None), 1 => (0..100u64).prop_map(Some)];
    (1..4usize, bytes, time_to_live, scheduled_in).prop_map(
        |(count, bytes, time_to_live, scheduled_in)| Sent {
            count,
            bytes,
            time_to_live,
            scheduled_in,
        },
    )
}

/// Operations that may run during transfers: none that removes a queue, because messages at the target would then be gone
/// with their source.
fn small_step() -> impl Strategy<Value = Step> {
    let store = prop::sample::select(&SubQueue::ALL[..]);
    let mode = prop_oneof![
        Just(ReceiveMode::PeekLock),
        Just(ReceiveMode::ReceiveAndDelete)
    ];
    let end = prop_oneof![
        Just(End::Complete),
        Just(End::Abandon),
        Just(End::Defer),
        Just(End::DeadLetter)
    ];
    let status = prop::sample::select(&EntityStatus::ALL[..]);
    prop_oneof![
        8 => (name(), sent()).prop_map(|(name, sent)| Step::Send(name, sent)),
        3 => (name(), store, mode).prop_map(|(name, store, mode)| Step::Receive(name, store, mode)),
        4 => (name(), end).prop_map(|(name, end)| Step::Settle(name, end)),
        1 => (name(), status).prop_map(|(name, status)| Step::Status(name, status)),
        2 => name().prop_map(|name| Step::Status(name, EntityStatus::Active)),
        1 => (name(), 1..3u64).prop_map(|(name, size)| Step::Size(name, size)),
        2 => (name(), prop::option::of(name())).prop_map(|(name, to)| Step::Target(name, to)),
        2 => (name(), prop::option::of(name()))
            .prop_map(|(name, to)| Step::DeadLetterTarget(name, to)),
        2 => (0..100u64).prop_map(Step::Advance),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => small_step(),
        1 => name().prop_map(Step::Delete),
        1 => (name(), small_step()).prop_map(|(name, step)| Step::Meanwhile(name, Box::new(step))),
    ]
}

/// A chain of queues whose dead letters go to the last.
fn world(base: &Rules) -> World {
    let mut world = World::new();
    for pair in NAMES.windows(2) {
        let mut chained = base.clone().forward_to(pair[1]);
        if pair[1] != "g" {
            chained = chained.forward_dead_letters_to("g");
        }
        world.declare(pair[0], chained);
    }
    world.declare("g", base.clone());
    world
}

impl Step {
    fn take(self, world: &mut World, ledger: &Ledger) {
        match self {
            Self::Send(name, sent) => send(world, ledger, name, sent),
            Self::Receive(name, store, mode) => {
                let taken = world.take(name, store, mode);
                if let Some(delivery) = taken.filter(|_| mode == ReceiveMode::ReceiveAndDelete) {
                    let id = delivery.message.id().into_owned();
                    ledger.borrow_mut().gone.push(id);
                }
            }
            Self::Settle(name, end) => settle(world, ledger, name, end),
            Self::Status(name, status) => world.update(name, |queue| queue.status = status),
            Self::Size(name, size) => {
                world.update(name, |queue| queue.max_size_in_megabytes = size);
            }
            Self::Target(name, to) => {
                let to = to.filter(|to| *to != name).map(|to| to.parse().unwrap());
                world.update(name, |queue| queue.forward_to = to);
            }
            Self::DeadLetterTarget(name, to) => {
                let to = to.filter(|to| *to != name).map(|to| to.parse().unwrap());
                world.update(name, |queue| queue.forward_dead_lettered_messages_to = to);
            }
            Self::Delete(name) => {
                for kind in SubQueue::ALL {
                    ledger.borrow_mut().gone.extend(world.held(name, kind));
                }
                world.delete(name);
                world.declare(name, rules());
            }
            Self::Advance(by) => world.advance(secs(by)),
            Self::Meanwhile(name, step) => {
                let ledger = Rc::clone(ledger);
                world.interrupt_before(name, move |world| step.take(world, &ledger));
            }
        }
    }
}

fn send(world: &mut World, ledger: &Ledger, name: &str, sent: Sent) {
    let now = world.now;
    let first = ledger.borrow().sent;
    ledger.borrow_mut().sent += sent.count;
    let ids: Vec<String> = (first..first + sent.count)
        .map(|id| id.to_string())
        .collect();
    let messages: Vec<_> = ids
        .iter()
        .map(|id| {
            let mut message = message(id).body(sent.bytes);
            if let Some(seconds) = sent.time_to_live {
                message = message.time_to_live(secs(seconds));
            }
            match sent.scheduled_in {
                Some(seconds) => message.scheduled_at(now + secs(seconds)),
                None => message,
            }
        })
        .collect();
    if world.post_all(name, &messages).is_ok() {
        ledger.borrow_mut().accepted.extend(ids);
    }
}

fn settle(world: &mut World, ledger: &Ledger, name: &str, end: End) {
    let Some(delivery) = world.take(name, SubQueue::Active, ReceiveMode::PeekLock) else {
        return;
    };
    let changes = PropertyChanges::new();
    let outcome = match end {
        End::Complete => Outcome::Complete,
        End::Abandon => Outcome::Abandon { changes },
        End::Defer => Outcome::Defer { changes },
        End::DeadLetter => Outcome::DeadLetter {
            reason: None,
            description: None,
            changes,
        },
    };
    let token = delivery.token;
    let settled = world.operate(name, |entity, cx| {
        entity.settle(cx, SubQueue::Active, token, outcome)
    });
    if settled.is_ok() && matches!(end, End::Complete) {
        let id = delivery.message.id().into_owned();
        ledger.borrow_mut().gone.push(id);
    }
}

/// Compares the accepted messages with where they are, or how they left.
fn check(world: &World, ledger: &Entries) {
    let mut found = world.everything();
    found.extend(ledger.gone.iter().cloned());
    let distinct: BTreeSet<String> = found.iter().cloned().collect();
    assert_eq!(distinct.len(), found.len(), "something is there twice");
    let expired = world.events.iter();
    let expired = expired
        .filter(|event| event.kind == EventKind::Expired)
        .count();
    let missing: Vec<&String> = ledger.accepted.difference(&distinct).collect();
    assert_eq!(missing.len(), expired, "not to be found: {missing:?}");
    assert!(distinct.is_subset(&ledger.accepted));
    for name in NAMES {
        assert!(!world.entity(name).is_forwarding(), "{name} is stuck");
    }
}

proptest! {
    #[test]
    fn random_steps_neither_lose_nor_duplicate_messages(
        dead_letters in any::<bool>(),
        on_receive in any::<bool>(),
        buries in any::<bool>(),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut base = rules().of_one_megabyte().max_delivery_count(2);
        base.queue.dead_lettering_on_message_expiration = buries;
        if dead_letters {
            base.settings.failed_forwards = FailedForwards::DeadLetter;
        }
        if on_receive {
            base.settings.expiry = Expiry::OnReceive;
        }
        let mut world = world(&base);
        let ledger = Ledger::default();
        for step in steps {
            step.take(&mut world, &ledger);
            check(&world, &ledger.borrow());
        }
    }
}
