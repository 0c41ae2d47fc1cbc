//! What is received is what was sent, bit for bit (the emulator's promise about letters): a matrix of messages
//! through `fe2o3-amqp`. The same matrix goes through Proton in `tests/sdks`.

mod client;
mod tap;

use servicebus_harness::prelude::*;
use servicebus_test_support::{
    comparison::differences,
    letters::{self, Letter},
};

use client::Client;
use tap::Tap;

const QUEUE: &str = "letters";

/// What was on the wire of one letter.
struct Passed {
    name: String,
    sent: Vec<u8>,
    received: Vec<u8>,
}

/// Sends letters one after the other, receives them, and returns both sides.
async fn pass(letters: Vec<Letter>) -> Vec<Passed> {
    let servicebus = bus().await;
    let tap = Tap::before(client::address(&servicebus)).await;
    let mut client = Client::connect(&servicebus, tap.address).await;
    for letter in &letters {
        let message = client::message(&letter.bytes);
        client.send(QUEUE, &letter.name, message).await;
    }
    let mut shown = Vec::new();
    for letter in &letters {
        shown.push(client.receive(QUEUE, &letter.name).await);
    }
    client.close().await;
    let [sent, received] = tap.payloads().await;
    assert_eq!(sent.len(), letters.len());
    assert_eq!(received.len(), letters.len());
    for ((letter, sent), shown) in letters.iter().zip(&sent).zip(shown) {
        // What the client makes of the bytes: it sends an empty body as a null.
        client::assert_same(&letter.name, &client::message(sent), &shown);
    }
    let both = sent.into_iter().zip(received);
    let named = letters.into_iter().zip(both);
    named
        .map(|(letter, (sent, received))| Passed {
            name: letter.name,
            sent,
            received,
        })
        .collect()
}

async fn bus() -> ServiceBus {
    let topology = Topology::new().queue(Queue::new(QUEUE));
    let starting = ServiceBus::builder().topology(topology).start();
    starting.await
}

#[tokio::test]
async fn what_fe2o3_sends_it_receives() {
    let mut failed = Vec::new();
    for passed in pass(letters::all()).await {
        let differences = differences(&passed.sent, &passed.received);
        if !differences.is_empty() {
            failed.push((passed.name, differences));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test]
async fn the_comparison_sees_every_byte_that_the_broker_does_not_own() {
    let mut letters = letters::all();
    letters.retain(|letter| letter.name == "everything at once");
    let passed = pass(letters).await.remove(0);
    assert_eq!(differences(&passed.sent, &passed.received), [""; 0]);
    // From the properties on, all bytes are the sender's.
    let properties = [0, 0x53, letters::PROPERTIES];
    let own = passed
        .received
        .windows(3)
        .position(|window| window == properties);
    for at in own.unwrap()..passed.received.len() {
        let mut damaged = passed.received.clone();
        damaged[at] ^= 1;
        assert!(!differences(&passed.sent, &damaged).is_empty(), "byte {at}");
    }
    let shorter = &passed.received[..passed.received.len() - 1];
    assert!(!differences(&passed.sent, shorter).is_empty());
}
