//! Session receivers as the tests want them, like the plain ones of `client`.

use servicebus_harness::azservicebus::{ServiceBusReceivedMessage, ServiceBusSessionReceiver};

use crate::conformance::client::{Client, NOTHING, bodies, done, receives, within};
use crate::conformance::observed::Shown;

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

receives!(ServiceBusSessionReceiver);
