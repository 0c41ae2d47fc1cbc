use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use servicebus_broker::{EntityDescription, ReceiveMode};

use super::*;
use crate::namespace::tests::{send_expiring, with_queues};
use crate::router::ConnectionId;

const MINUTE: Duration = Duration::from_secs(60);

/// A namespace with a queue, whose messages expire after 10, 20 and 30 s.
fn namespace() -> Namespace {
    of_queues(1)
}

/// The same with so many queues.
fn of_queues(count: usize) -> Namespace {
    let names = (0..count).map(|number| format!("q{number}"));
    let namespace = with_queues(names, &EntityDescription::default());
    for entity in namespace.entities() {
        for seconds in [10, 20, 30] {
            send_expiring(&namespace, &entity, seconds);
        }
    }
    namespace
}

#[tokio::test(start_paused = true)]
async fn at_most_a_hundred_busy_entities_are_listed() {
    let namespace = of_queues(150);
    for (number, entity) in (1..).zip(namespace.entities()) {
        namespace.operate_as_broker(&entity, |entity, cx| {
            let (kind, id) = (SubQueue::Active, ReceiverId(number));
            entity.attach_receiver(kind, id, ReceiveMode::PeekLock);
            entity.set_credit(cx, kind, id, 3);
            entity.acquire(cx, kind, id, 3, usize::MAX, &mut Vec::new());
        });
    }
    let busy = namespace.settled(Duration::ZERO, None).await.unwrap_err();
    let own = |busy: &Busy| busy.reason.starts_with("3 locked by ");
    assert_eq!(busy.iter().filter(|busy| own(busy)).count(), 100);
    assert_eq!(
        busy[100..]
            .iter()
            .map(|busy| &*busy.reason)
            .collect::<Vec<_>>(),
        ["50 more are not idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_advance_leaves_the_clock_at_its_last_step() {
    let namespace = namespace();
    let start = namespace.clock.now();
    {
        let mut advance = pin!(namespace.advance(MINUTE, u32::MAX));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(advance.as_mut().poll(&mut cx).is_pending());
        assert!(advance.as_mut().poll(&mut cx).is_pending());
    }
    let clock = namespace.clock.read();
    assert_eq!(clock.now.since(start), Duration::from_secs(20));
    assert!(!clock.frozen, "time flows as before");
    assert_eq!(
        namespace.advance(MINUTE, 1).await,
        Ok(()),
        "the third is left"
    );
    assert_eq!(
        namespace.clock.now().since(start),
        MINUTE + Duration::from_secs(20)
    );
}

/// A client that connects again and again while `work` runs, which must end.
async fn beside_connecting<T>(namespace: &Namespace, work: impl Future<Output = T>) -> T {
    let wake_handle = Arc::default();
    namespace.router.enter(ConnectionId(1), &wake_handle);
    wake_handle.connecting();
    let connecting = async {
        loop {
            wake_handle.connecting();
            sleep(CONNECTING_CHECK).await;
        }
    };
    let both = async {
        tokio::select! {
            done = work => done,
            () = connecting => unreachable!("it never ends"),
        }
    };
    let done = timeout(MINUTE, both).await;
    done.expect("a client counts as connecting for two seconds")
}

#[tokio::test(start_paused = true)]
async fn an_advance_ends_while_clients_connect_again_and_again() {
    let namespace = namespace();
    let start = namespace.clock.now();
    let advanced = beside_connecting(&namespace, namespace.advance(MINUTE, u32::MAX));
    assert_eq!(advanced.await, Ok(()));
    assert!(namespace.clock.now().since(start) >= MINUTE);
}

#[tokio::test(start_paused = true)]
async fn an_advance_stops_after_the_given_number_of_steps() {
    let namespace = namespace();
    let start = namespace.clock.now();
    namespace.freeze().await;
    let came = Duration::from_secs(20);
    assert_eq!(namespace.advance(MINUTE, 2).await, Err(came));
    assert_eq!(namespace.clock.now().since(start), came);
    assert!(namespace.clock.read().frozen, "time stands as before");
    assert_eq!(namespace.advance(MINUTE, 1).await, Ok(()));
}
