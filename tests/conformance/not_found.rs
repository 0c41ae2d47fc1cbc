//! Entities that do not exist: the SDK's error says so, whatever was asked of them.

use servicebus_harness::azservicebus::{ServiceBusReceiverOptions, SubQueue};

use crate::conformance::client::{bus, connect, within};

#[tokio::test]
async fn a_sender_to_a_missing_queue_is_refused() {
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    let sender = within(
        "the answer",
        client.create_sender("missing", Default::default()),
    )
    .await;
    expect_not_found(sender.expect_err("there is no such queue"));
}

#[tokio::test]
async fn a_receiver_of_a_missing_queue_is_refused() {
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    let options = ServiceBusReceiverOptions::default();
    let opening = client.create_receiver_for_queue("missing", options);
    let receiver = within("the answer", opening).await;
    expect_not_found(receiver.expect_err("there is no such queue"));
}

#[tokio::test]
async fn a_receiver_of_a_missing_queues_dead_letters_is_refused() {
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    let options = ServiceBusReceiverOptions {
        sub_queue: SubQueue::DeadLetter,
        ..ServiceBusReceiverOptions::default()
    };
    let opening = client.create_receiver_for_queue("missing", options);
    let receiver = within("the answer", opening).await;
    expect_not_found(receiver.expect_err("there is no such queue"));
}

/// The SDK has no kind for it; the service's condition is in the error, or its status.
fn expect_not_found(error: impl std::fmt::Debug) {
    let error = format!("{error:?}");
    assert!(
        error.contains("NotFound") || error.contains("404"),
        "{error}"
    );
    assert!(error.contains("missing"), "the queue is named in {error}");
}
