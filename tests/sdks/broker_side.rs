//! What the broker recorded of a case, where that says more than its SDK could see.

use servicebus_harness::EventKind;
use servicebus_harness::prelude::*;

/// Asserts the broker's side of a case that has one.
pub(crate) async fn check(case: &str, servicebus: &ServiceBus) {
    let orders = servicebus.queue("orders");
    let limited = servicebus.queue("limited");
    let unique = servicebus.queue("unique");
    let inbox = servicebus.queue("inbox");
    let carts = servicebus.queue("carts");
    match case {
        "send.single" => assert_completed!(orders, count = 2).await,
        "send.list_of_messages" => assert_completed!(orders, count = 5).await,
        "receive.receive_and_delete" => recorded(&orders, EventKind::ReceivedAndDeleted, 2).await,
        "receive.several" => assert_completed!(orders, count = 20).await,
        "settle.completes" => assert_completed!(orders, count = 1).await,
        "settle.abandons" => recorded(&orders, EventKind::Abandoned, 1).await,
        "settle.abandons_to_the_limit" => recorded(&limited, EventKind::Abandoned, 3).await,
        "scheduling.by_request" => recorded(&orders, EventKind::Activated, 3).await,
        "scheduling.cancelled" => recorded(&orders, EventKind::Cancelled, 2).await,
        "deferral.by_number" => recorded(&orders, EventKind::Deferred, 2).await,
        "duplicates.dropped" => recorded(&unique, EventKind::DuplicateDropped, 1).await,
        "forwarding.chain" => recorded(&inbox, EventKind::Forwarded, 1).await,
        "locks.not_overtaken" => {
            assert_completed!(orders, count = 1000).await;
            recorded(&orders, EventKind::LockExpired, 0).await;
        }
        "locks.renews" => recorded(&orders, EventKind::LockRenewed, 2).await,
        "locks.loses_lock" => recorded(&orders, EventKind::LockExpired, 3).await,
        "locks.expires_to_the_limit" => recorded(&limited, EventKind::LockExpired, 3).await,
        "sessions.by_id" => assert_completed!(carts, count = 2).await,
        "session_messages.in_order" => recorded(&carts, EventKind::Abandoned, 3).await,
        "session_locks.renews" => recorded(&carts, EventKind::SessionLockRenewed, 2).await,
        "session_locks.loses_lock" => recorded(&carts, EventKind::SessionLockExpired, 3).await,
        "session_state.cleared" => recorded(&carts, EventKind::SessionStateSet, 4).await,
        _ => {}
    }
}

/// Asserts how often something happened to a queue.
async fn recorded(queue: &QueueClient, kind: EventKind, times: u64) {
    let timeline = queue
        .timeline()
        .result()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        timeline.count(&kind),
        times,
        "times {}\n{timeline}",
        kind.name()
    );
}
