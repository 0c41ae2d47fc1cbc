//! Buses and clients as the tests want them, and the few things every test does with them.
//!
//! The SDK's calls wait long and try again before they report anything. A test wants neither: its
//! clients try once, and every wait of a test has a deadline that names what it waited for.

use std::fmt::Debug;
use std::time::Duration;

use servicebus_harness::azservicebus::core::BasicRetryPolicy;
use servicebus_harness::azservicebus::receiver::DeadLetterOptions;
use servicebus_harness::azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage, ServiceBusPeekedMessage,
    ServiceBusReceiveMode, ServiceBusReceivedMessage, ServiceBusReceiver,
    ServiceBusReceiverOptions, ServiceBusRetryOptions, ServiceBusSender, SubQueue,
};
use servicebus_harness::observe;
use servicebus_harness::prelude::*;
pub(crate) use servicebus_test_support::client::within;

use crate::conformance::observed::Shown;
use crate::conformance::transports::Transport;

/// For asserting that nothing comes: the SDK waits that long before it says so.
pub(crate) const NOTHING: Duration = Duration::from_millis(300);

/// In the refusal to renew or to settle a message whose lock has ended.
pub(crate) const LOCK_LOST: &str = "The lock supplied is invalid.";

/// A client of the Rust SDK.
pub(crate) type Client = ServiceBusClient<BasicRetryPolicy>;

/// The queues the tests use. Each of them is one that every namespace takes: `tiny` and `partitioned` stand with the
/// tests that need them.
pub(crate) fn topology() -> Topology {
    Topology::new()
        .queue(Queue::new("orders"))
        .queue(Queue::new("limited").max_delivery_count(3))
        .queue(Queue::new("expiring").dead_lettering_on_message_expiration(true))
        .queue(
            Queue::new("fleeting")
                .dead_lettering_on_message_expiration(true)
                .default_time_to_live(Duration::from_secs(300)),
        )
        .queue(
            Queue::new("unique")
                .requires_duplicate_detection(true)
                .duplicate_detection_window(Duration::from_secs(300)),
        )
}

/// A queue of a mebibyte, as no namespace of the service has one.
pub(crate) fn tiny() -> Queue {
    Queue::new("tiny").max_size_in_megabytes(1)
}

/// A bus with those queues and the default settings.
pub(crate) async fn bus() -> ServiceBus {
    start(topology()).await
}

/// A bus that holds what the topology says, over the transport by which clients connect.
pub(crate) async fn start(topology: Topology) -> ServiceBus {
    Transport::of_this_process()
        .open(ServiceBus::builder().topology(topology))
        .start()
        .await
}

/// A client that tries once.
pub(crate) async fn connect(servicebus: &ServiceBus) -> Client {
    connect_with(servicebus.connection_string(), custom_endpoint(servicebus)).await
}

/// A bus that starts, and a client of it that tries once.
pub(crate) async fn connected(starting: impl Future<Output = ServiceBus>) -> (ServiceBus, Client) {
    let servicebus = starting.await;
    let client = connect(&servicebus).await;
    (servicebus, client)
}

/// Where clients connect instead, while a comparison records.
pub(crate) fn custom_endpoint(servicebus: &ServiceBus) -> Option<String> {
    let mut env = servicebus.env().into_iter();
    env.find_map(|(name, value)| (name == "SERVICEBUS_CUSTOM_ENDPOINT").then_some(value))
}

/// Ends a case whose own clients come without TLS where the bus does not listen for them.
pub(crate) fn assert_plain(servicebus: &ServiceBus) {
    assert!(
        servicebus.mode() != Mode::Namespace,
        "could not check: what a plain client sees, which comes without TLS"
    );
}

/// A client that tries once, from a connection string and, where the bus has one, its custom endpoint.
pub(crate) async fn connect_with(
    connection_string: &str,
    custom_endpoint: Option<String>,
) -> Client {
    let custom_endpoint = custom_endpoint.as_deref().map(str::parse);
    let options = ServiceBusClientOptions {
        custom_endpoint_address: custom_endpoint
            .transpose()
            .expect("the custom endpoint is a URL"),
        transport_type: Transport::of_this_process().transport(),
        retry_options: ServiceBusRetryOptions {
            max_retries: 0,
            ..ServiceBusRetryOptions::default()
        },
        ..ServiceBusClientOptions::default()
    };
    let connecting = async {
        // The SDK ignores this key and leaves the choice to its caller.
        if connection_string.contains("UseDevelopmentEmulator=true") {
            Client::unsecured()
                .new_from_connection_string(connection_string, options)
                .await
        } else {
            Client::new_from_connection_string(connection_string, options).await
        }
    };
    done("the connection", connecting).await
}

/// A sender.
pub(crate) async fn sender(client: &mut Client, queue: &str) -> ServiceBusSender {
    let opening = client.create_sender(queue, Default::default());
    done("the sender", opening).await
}

/// Sends the messages one by one and closes the sender.
pub(crate) async fn send<M>(client: &mut Client, queue: &str, messages: impl IntoIterator<Item = M>)
where
    M: Into<ServiceBusMessage>,
{
    let mut sender = sender(client, queue).await;
    for message in messages {
        within("a send", sender.send_message(message))
            .await
            .shown("a send")
            .expect("the message is accepted");
    }
    done("the sender's end", sender.dispose()).await;
}

/// A receiver that locks what it receives.
pub(crate) async fn receiver(client: &mut Client, queue: &str) -> ServiceBusReceiver {
    receiver_with(client, queue, ServiceBusReceiverOptions::default()).await
}

/// A receiver of a queue's dead letters.
pub(crate) async fn dead_letters(client: &mut Client, queue: &str) -> ServiceBusReceiver {
    receiver_with(client, queue, of_sub_queue(SubQueue::DeadLetter)).await
}

/// A receiver of what a queue could not forward.
pub(crate) async fn transfer_dead_letters(client: &mut Client, queue: &str) -> ServiceBusReceiver {
    receiver_with(client, queue, of_sub_queue(SubQueue::TransferDeadLetter)).await
}

/// Options of a receiver that locks what a sub-queue holds.
pub(crate) fn of_sub_queue(sub_queue: SubQueue) -> ServiceBusReceiverOptions {
    ServiceBusReceiverOptions {
        sub_queue,
        ..ServiceBusReceiverOptions::default()
    }
}

/// Options of a receiver that deletes what it receives.
pub(crate) fn deleting() -> ServiceBusReceiverOptions {
    ServiceBusReceiverOptions {
        receive_mode: ServiceBusReceiveMode::ReceiveAndDelete,
        ..ServiceBusReceiverOptions::default()
    }
}

/// Options to dead-letter a message for this reason.
pub(crate) fn because(reason: &str) -> DeadLetterOptions {
    DeadLetterOptions {
        dead_letter_reason: Some(reason.to_owned()),
        ..DeadLetterOptions::default()
    }
}

/// A receiver with options of its own.
pub(crate) async fn receiver_with(
    client: &mut Client,
    queue: &str,
    options: ServiceBusReceiverOptions,
) -> ServiceBusReceiver {
    done(
        "the receiver",
        client.create_receiver_for_queue(queue, options),
    )
    .await
}

/// A receiver of a subscription, that locks what it receives.
pub(crate) async fn subscriber(
    client: &mut Client,
    topic: &str,
    subscription: &str,
) -> ServiceBusReceiver {
    subscriber_with(client, topic, subscription, Default::default()).await
}

/// A receiver of a subscription with options of its own.
pub(crate) async fn subscriber_with(
    client: &mut Client,
    topic: &str,
    subscription: &str,
    options: ServiceBusReceiverOptions,
) -> ServiceBusReceiver {
    let opening = client.create_receiver_for_subscription(topic, subscription, options);
    done("the receiver", opening).await
}

/// Defines what tests do with receivers of this type: those of the SDK have no trait in common.
macro_rules! receives {
    ($receiver:ty) => {
        /// Closes a receiver, which frees its session; one that is merely dropped takes the SDK's session with it.
        pub(crate) async fn close(receiver: $receiver) {
            done("the receiver's end", receiver.dispose()).await;
        }

        /// Receives exactly one message.
        pub(crate) async fn receive_one(receiver: &mut $receiver) -> ServiceBusReceivedMessage {
            let received = within("a message", receiver.receive_message()).await;
            received.shown("a message").expect("the receiver receives")
        }

        /// Receives exactly `count` messages.
        pub(crate) async fn receive(
            receiver: &mut $receiver,
            count: u32,
        ) -> Vec<ServiceBusReceivedMessage> {
            let what = format!("{count} messages");
            let received = within(&what, receiver.receive_messages(count)).await;
            received.shown("a message").expect("the receiver receives")
        }

        /// Asserts that the receiver gets nothing although it asks.
        pub(crate) async fn receive_nothing(receiver: &mut $receiver) {
            let receiving = receiver.receive_messages_with_max_wait_time(1, NOTHING);
            let messages = within("an empty receive", receiving)
                .await
                .shown("a message although none was expected")
                .expect("the receiver receives");
            assert_eq!(bodies(&messages), Vec::<String>::new());
        }

        /// Completes a message.
        pub(crate) async fn complete(
            receiver: &mut $receiver,
            message: &ServiceBusReceivedMessage,
        ) {
            within("the settlement", receiver.complete_message(message))
                .await
                .shown("a completion")
                .expect("the message can be completed");
        }

        /// Completes the messages, in their order.
        pub(crate) async fn complete_all(
            receiver: &mut $receiver,
            messages: &[ServiceBusReceivedMessage],
        ) {
            for message in messages {
                complete(receiver, message).await;
            }
        }

        /// Abandons a message and leaves its properties alone.
        pub(crate) async fn abandon(receiver: &mut $receiver, message: &ServiceBusReceivedMessage) {
            within("the settlement", receiver.abandon_message(message, None))
                .await
                .shown("an abandonment")
                .expect("the message can be abandoned");
        }

        /// Defers a message.
        pub(crate) async fn defer(receiver: &mut $receiver, message: &ServiceBusReceivedMessage) {
            within("the settlement", receiver.defer_message(message, None))
                .await
                .shown("a deferral")
                .expect("the message can be deferred");
        }
    };
}

pub(crate) use receives;

receives!(ServiceBusReceiver);

/// What an operation returns that must succeed; a failure has `what` it is.
pub(crate) fn done<T, E: Debug>(
    what: &str,
    operation: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = T> {
    let result = within(what, operation);
    async move {
        result
            .await
            .unwrap_or_else(|error| panic!("{what} failed: {error:?}"))
    }
}

/// Asserts that an operation is refused with an error that has these parts: the SDK has no kind for most of them.
pub(crate) fn assert_refused<T, E: Debug>(
    operation: impl Future<Output = Result<T, E>>,
    parts: &[&str],
) -> impl Future<Output = ()> {
    let answer = within("the answer", operation);
    async move {
        let error = refusal(answer.await);
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
    }
}

/// The error of an operation that is refused, with all that the SDK shows of it.
pub(crate) fn refusal<T>(outcome: Result<T, impl Debug>) -> String {
    match outcome {
        Ok(_) => panic!("the broker refuses this"),
        Err(error) => {
            let error = format!("{error:?}");
            observe("a refusal", error.as_str());
            error
        }
    }
}

/// The sequence numbers of peeked messages.
pub(crate) fn numbers(messages: &[ServiceBusPeekedMessage]) -> Vec<i64> {
    let messages = messages.iter();
    messages
        .map(ServiceBusPeekedMessage::sequence_number)
        .collect()
}

/// The bodies of messages, as text.
pub(crate) fn bodies(messages: &[ServiceBusReceivedMessage]) -> Vec<String> {
    messages.iter().map(body).collect()
}

/// The body of a message, as text.
pub(crate) fn body(message: &ServiceBusReceivedMessage) -> String {
    let bytes = message.body().expect("the body is data");
    String::from_utf8_lossy(bytes).into_owned()
}
