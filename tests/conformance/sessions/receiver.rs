//! Session receivers as the tests want them, like the plain ones of `client`.

use std::time::Duration;

use servicebus_harness::azservicebus::{ServiceBusReceivedMessage, ServiceBusSessionReceiver};

use crate::conformance::client::{Client, bodies, done, within};
use crate::conformance::observed::Shown;

/// For asserting that nothing comes: the SDK waits that long before it says so.
pub(super) const NOTHING: Duration = Duration::from_millis(300);

/// A receiver of one session of a queue.
pub(super) async fn accept(
    client: &mut Client,
    queue: &str,
    session: &str,
) -> ServiceBusSessionReceiver {
    let accepting = client.accept_session_for_queue(queue, session, Default::default());
    done("the session", accepting).await
}

/// A receiver of the next session of a queue.
pub(super) async fn accept_next(client: &mut Client, queue: &str) -> ServiceBusSessionReceiver {
    let accepting = client.accept_next_session_for_queue(queue, Default::default());
    done("a session", accepting).await
}

/// A receiver of one session of a subscription.
pub(super) async fn accept_of_subscription(
    client: &mut Client,
    topic: &str,
    subscription: &str,
    session: &str,
) -> ServiceBusSessionReceiver {
    let accepting =
        client.accept_session_for_subscription(topic, subscription, session, Default::default());
    done("the session", accepting).await
}

/// Closes a receiver, which frees its session.
pub(super) async fn close(receiver: ServiceBusSessionReceiver) {
    done("the receiver's end", receiver.dispose()).await;
}

/// Receives exactly one message.
pub(super) async fn receive_one(
    receiver: &mut ServiceBusSessionReceiver,
) -> ServiceBusReceivedMessage {
    let received = within("a message", receiver.receive_message()).await;
    received.shown("a message").expect("the receiver receives")
}

/// Receives exactly `count` messages.
pub(super) async fn receive(
    receiver: &mut ServiceBusSessionReceiver,
    count: u32,
) -> Vec<ServiceBusReceivedMessage> {
    let what = format!("{count} messages");
    let received = within(&what, receiver.receive_messages(count)).await;
    received.shown("a message").expect("the receiver receives")
}

/// Asserts that the receiver gets nothing although it asks.
pub(super) async fn receive_nothing(receiver: &mut ServiceBusSessionReceiver) {
    let receiving = receiver.receive_messages_with_max_wait_time(1, NOTHING);
    let messages = within("an empty receive", receiving)
        .await
        .shown("a message although none was expected")
        .expect("the receiver receives");
    assert_eq!(bodies(&messages), Vec::<String>::new());
}

/// Completes a message.
pub(super) async fn complete(
    receiver: &mut ServiceBusSessionReceiver,
    message: &ServiceBusReceivedMessage,
) {
    within("the settlement", receiver.complete_message(message))
        .await
        .shown("a completion")
        .expect("the message can be completed");
}

/// Completes the messages, in their order.
pub(super) async fn complete_all(
    receiver: &mut ServiceBusSessionReceiver,
    messages: &[ServiceBusReceivedMessage],
) {
    for message in messages {
        complete(receiver, message).await;
    }
}

/// Abandons a message and leaves its properties alone.
pub(super) async fn abandon(
    receiver: &mut ServiceBusSessionReceiver,
    message: &ServiceBusReceivedMessage,
) {
    within("the settlement", receiver.abandon_message(message, None))
        .await
        .shown("an abandonment")
        .expect("the message can be abandoned");
}

/// Defers a message.
pub(super) async fn defer(
    receiver: &mut ServiceBusSessionReceiver,
    message: &ServiceBusReceivedMessage,
) {
    within("the settlement", receiver.defer_message(message, None))
        .await
        .shown("a deferral")
        .expect("the message can be deferred");
}
