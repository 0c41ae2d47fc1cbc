//! Twenty thousand sends, none of which hangs (D31); in as many rounds as `MANY_SENDS` says.
//!
//! The AMQP library under this SDK puts a message on the wire before it notes that it waits for the outcome: an outcome that
//! comes back faster than that is lost, and the send waits for ever. A broker in the same process is that fast, once in about
//! a thousand sends. The SDK would try again after a minute and hide the loss; these sends have deadlines of their own.

use std::time::{Duration, Instant};

use servicebus_harness::azservicebus::core::BasicRetryPolicy;
use servicebus_harness::azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusRetryOptions,
};
use servicebus_harness::prelude::*;

const SENDS: usize = 20_000;
/// Senders on a connection each. More of them would keep the workers so busy that no outcome could overtake; with these,
/// sends hang in every run against a broker that tells each outcome once.
const SENDERS: usize = 4;
/// A send takes milliseconds; one that takes this long waits for an outcome that is lost.
const SEND_DEADLINE: Duration = Duration::from_secs(45);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_concurrent_sends_complete() {
    let rounds = std::env::var("MANY_SENDS").map_or(1, |rounds| {
        rounds.parse().expect("MANY_SENDS is a number of rounds")
    });
    for _ in 0..rounds {
        none_of_a_round_hangs().await;
    }
}

async fn none_of_a_round_hangs() {
    let servicebus = ServiceBus::builder()
        .topology(Topology::new().queue(Queue::new("orders")))
        .start()
        .await;
    let started = Instant::now();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let connection_string = servicebus.connection_string().to_owned();
            tokio::spawn(async move { send_share(&connection_string, sender).await })
        })
        .collect();
    for sender in senders {
        sender
            .await
            .expect("every send of every sender is accepted");
    }
    eprintln!("{SENDS} sends took {:?}", started.elapsed());
    assert_message_count!(servicebus.queue("orders"), active = SENDS as u64).await;
}

/// Sends one message after the other, each when the one before is accepted.
async fn send_share(connection_string: &str, sender_number: usize) {
    // With the SDK's own retries a lost outcome would be another try.
    let options = ServiceBusClientOptions {
        retry_options: ServiceBusRetryOptions {
            max_retries: 0,
            ..ServiceBusRetryOptions::default()
        },
        ..ServiceBusClientOptions::default()
    };
    let connecting = ServiceBusClient::<BasicRetryPolicy>::unsecured()
        .new_from_connection_string(connection_string, options);
    let mut client = Box::pin(connecting).await.expect("the client connects");
    let sender = client.create_sender("orders", Default::default());
    let mut sender = Box::pin(sender).await.expect("the sender's link opens");
    for number in 0..SENDS / SENDERS {
        let sending = sender.send_message(format!("{sender_number}/{number}"));
        tokio::time::timeout(SEND_DEADLINE, sending)
            .await
            .unwrap_or_else(|_| panic!("send {number} of sender {sender_number} hangs"))
            .expect("the message is accepted");
    }
    Box::pin(sender.dispose()).await.expect("the sender closes");
}
