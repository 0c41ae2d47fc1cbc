use std::cell::Cell;
use std::time::Duration;

use servicebus_broker::{Entities as _, SequenceNumber};

use super::*;
use crate::namespace::Namespace;
use crate::namespace::tests::{path, send_expiring, with_queues};

thread_local! {
    /// How often this thread has locked an entity.
    pub(in crate::namespace) static VISITS: Cell<usize> = const { Cell::new(0) };
}

const MINUTE: Duration = Duration::from_secs(60);

fn namespace(queues: usize) -> Namespace {
    let names = (0..queues).map(|at| format!("q{at}"));
    with_queues(names, &EntityDescription::default())
}

/// Sends a message with a time to live of so many seconds.
fn send(namespace: &Namespace, queue: &str, seconds: u32) {
    let entity = namespace.entity(&path(queue)).expect("it is there");
    send_expiring(namespace, &entity, seconds);
}

fn due_in(namespace: &Namespace) -> Option<Duration> {
    let deadline = namespace.next_deadline()?;
    Some(deadline.since(namespace.clock.now()))
}

#[tokio::test(start_paused = true)]
async fn an_advance_does_not_visit_ten_thousand_idle_queues() {
    let namespace = namespace(10_000);
    for seconds in [10, 20, 30] {
        send(&namespace, "q7", seconds);
    }
    let before = VISITS.get();
    namespace.advance(MINUTE, 10).await.expect("three steps");
    namespace.settled(MINUTE, None).await.expect("it rests");
    let visits = VISITS.get() - before;
    assert!(visits < 100, "{visits} visits");
    let entity = namespace.entity(&path("q7")).expect("it is there");
    let left = namespace.read(&entity, |entity| entity.size());
    assert_eq!(left, 0, "all have expired");
}

#[tokio::test(start_paused = true)]
async fn deadlines_of_many_queues_at_one_instant_take_one_step() {
    let namespace = namespace(1000);
    namespace.freeze().await;
    for at in 0..1000 {
        send(&namespace, &format!("q{at}"), 10);
    }
    namespace.advance(MINUTE, 10).await.expect("a few steps");
    let sizes = namespace.entities().into_iter();
    let sizes = sizes.map(|entity| namespace.read(&entity, |entity| entity.size()));
    assert_eq!(sizes.sum::<u64>(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_removed_deadline_is_skipped() {
    let namespace = namespace(2);
    namespace.freeze().await;
    send(&namespace, "q0", 10);
    send(&namespace, "q1", 20);
    assert_eq!(due_in(&namespace), Some(Duration::from_secs(10)));
    let first = namespace.entity(&path("q0")).expect("it is there");
    namespace.operate_as_broker(&first, |entity, cx| entity.reset(cx));
    assert_eq!(due_in(&namespace), Some(Duration::from_secs(20)));
    namespace.delete(&path("q1")).expect("it is there");
    assert_eq!(due_in(&namespace), None);
    namespace
        .create(
            EntityKind::Queue,
            &path("q1"),
            EntityDescription::default(),
            vec![],
        )
        .expect("its name is free");
    send(&namespace, "q1", 30);
    assert_eq!(due_in(&namespace), Some(Duration::from_secs(30)));
}

#[test]
fn an_entity_is_busy_until_its_messages_are_forwarded() {
    let namespace = namespace(2);
    let entity = namespace.entity(&path("q0")).expect("it is there");
    let forwards = EntityDescription {
        forward_to: Some(path("q1")),
        ..EntityDescription::default()
    };
    assert!(namespace.update(&entity, forwards));
    let names = |namespace: &Namespace| -> Vec<String> {
        let busy = namespace.with_entities(|entities| entities.busy());
        busy.iter().map(|entity| entity.path.to_string()).collect()
    };
    send(&namespace, "q0", 10);
    assert!(names(&namespace).is_empty(), "it has gone on at once");
    let second = namespace.entity(&path("q1")).expect("it is there");
    let seen = namespace.read(&second, |entity| {
        let seen = entity.snapshot(servicebus_broker::SubQueue::Active, SequenceNumber(1));
        seen.count()
    });
    assert_eq!(seen, 1);
}

/// Allocators use size classes, here of 256 bytes; in the next one a queue takes more than 2 KB (series F).
#[test]
#[cfg(target_pointer_width = "64")]
fn a_shared_entity_stays_in_its_size_class() {
    let counts = 2 * size_of::<usize>();
    let size = size_of::<SharedEntity>() + counts;
    assert!(size <= 1792, "{size} bytes");
}

#[test]
fn the_maximum_of_unsettled_sends_counts_simultaneous_sends() {
    let sends = Sends::default();
    sends.begin();
    sends.begin();
    sends.end(1);
    sends.begin();
    assert_eq!((sends.now(), sends.most()), (2, 2));
    sends.end(2);
    assert_eq!((sends.now(), sends.most()), (0, 2));
    sends.forget();
    assert_eq!(sends.most(), 0);
}
