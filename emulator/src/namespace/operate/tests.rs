//! Operations that panic or affect several entities, and the errors for their clients.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use servicebus_broker::{EntityDescription, Message};

use super::*;
use crate::blocking::run_blocking;
use crate::namespace::Ids;
use crate::namespace::tests::{active, path, with_queues};

/// A namespace with two queues.
fn namespace() -> Namespace {
    with_queues(["a", "b"], &EntityDescription::default())
}

fn message() -> Message {
    let body: &[u8] = &[0x00, 0x53, 0x75, 0xa0, 0x01, b'x'];
    Message::parse(body.to_vec().into(), &mut Ids::new(Some(1), 1)).expect("it is legal")
}

fn send(namespace: &Namespace, name: &str) -> Result<(), String> {
    let message = message();
    let entity = namespace.entity(&path(name)).ok_or("it is not there")?;
    let sent = namespace.operate_as_broker(&entity, |entity, cx| entity.send(cx, message));
    sent.map(drop).map_err(|error| error.to_string())
}

/// Panics in the middle of an operation, as a bug in it would.
fn panic_in(namespace: &Namespace, name: &str) -> Box<dyn Any + Send> {
    let entity = namespace.entity(&path(name)).expect("it is there");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        namespace.operate_as_broker(&entity, |entity, cx| {
            entity.touch(cx);
            panic!("on purpose");
        });
    }));
    panicked.expect_err("it panics")
}

#[test]
fn a_panic_fails_only_its_entity_and_is_logged_once() {
    let namespace = namespace();
    send(&namespace, "a").expect("it is whole");
    let payload = panic_in(&namespace, "a");
    assert!(payload.is::<Broken>(), "a connection is told which");
    namespace.failures.add_panic("a connection", &*payload);
    let failure = Failure {
        namespace: Some("one".to_owned()),
        entity: Some("a".to_owned()),
        reason: "panicked: on purpose".to_owned(),
    };
    assert_eq!(namespace.failures.all(), [failure]);
    let refused = send(&namespace, "a").expect_err("it is broken");
    assert!(refused.contains("panicked: on purpose"), "{refused}");
    assert_eq!(active(&namespace, "a"), 0, "nothing of it is used any more");
    send(&namespace, "b").expect("another one");
    assert_eq!(active(&namespace, "b"), 1);
}

#[test]
fn a_panic_in_a_read_fails_the_entity() {
    let namespace = namespace();
    let entity = namespace.entity(&path("a")).expect("it is there");
    let looked = catch_unwind(AssertUnwindSafe(|| {
        namespace.read(&entity, |_| panic!("on purpose"));
    }));
    looked.expect_err("it panics");
    assert!(entity.broken().is_some());
}

#[test]
fn a_reset_restores_a_failed_declared_entity() {
    let namespace = namespace();
    panic_in(&namespace, "a");
    namespace.reset();
    assert_eq!(namespace.failures.all(), []);
    send(&namespace, "a").expect("it is whole again");
    assert_eq!(active(&namespace, "a"), 1);
}

#[test]
fn a_backlog_is_forwarded_in_batches() {
    let namespace = namespace();
    let messages = 3 * FORWARDED_AT_ONCE;
    for _ in 0..messages {
        send(&namespace, "a").expect("there is room");
    }
    let entity = namespace.entity(&path("a")).expect("it is there");
    let forwards = EntityDescription {
        forward_to: Some(path("b")),
        ..EntityDescription::default()
    };
    assert!(namespace.update(&entity, forwards));
    assert_eq!(active(&namespace, "b"), FORWARDED_AT_ONCE);
    send(&namespace, "b").expect("others go on meanwhile");
    let mut pieces = 0;
    while namespace.forward_pending() {
        pieces += 1;
    }
    assert!((2..=4).contains(&pieces), "{pieces} pieces");
    assert_eq!(active(&namespace, "a"), 0);
    assert_eq!(active(&namespace, "b"), messages + 1);
}

#[test]
#[should_panic(expected = "is locked under what comes later")]
fn taking_an_entity_lock_under_its_metadata_panics() {
    let namespace = namespace();
    let entity = namespace.entity(&path("a")).expect("it is there");
    entity.metadata(|_| active(&namespace, "a"));
}

#[test]
fn the_end_of_a_namespace_does_not_delay_other_tasks() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).build().expect("it is built");
    let namespace = Arc::new(namespace());
    let index = namespace.index_of_entities();
    let own = Arc::clone(&namespace);
    let end = runtime.spawn(async move { own.end() });
    let (tell, received) = std::sync::mpsc::channel();
    runtime.spawn(async move { tell.send(()) });
    let received = received.recv_timeout(std::time::Duration::from_secs(60));
    drop(index);
    runtime.block_on(end).expect("it ends");
    received.expect("the other task ran");
}

#[test]
fn a_long_blocking_step_does_not_delay_other_tasks() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).build().expect("it is built");
    let long = runtime.spawn(async {
        let (tell, received) = std::sync::mpsc::channel();
        run_blocking(|| {
            tokio::spawn(async move { tell.send(()) });
            received.recv_timeout(std::time::Duration::from_secs(60))
        })
    });
    let received = runtime.block_on(long).expect("it ends");
    received.expect("the other task ran");
}
