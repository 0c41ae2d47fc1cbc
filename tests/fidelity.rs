//! What is received is what was sent, bit for bit (the emulator's promise about messages): a matrix of messages
//! through `fe2o3-amqp`. The same matrix goes through Proton in `tests/sdks`.

mod client;
mod proxy;

use servicebus_harness::prelude::*;
use servicebus_test_support::{
    comparison::differences,
    matrix::{self, Case},
    message::PROPERTIES,
};

use client::Client;
use proxy::RecordingProxy;

const QUEUE: &str = "matrix";

/// What was on the wire of one case.
struct Recorded {
    name: String,
    sent: Vec<u8>,
    received: Vec<u8>,
}

/// Sends cases one after the other, receives them, and returns both sides.
async fn pass(cases: Vec<Case>) -> Vec<Recorded> {
    let servicebus = bus().await;
    let proxy = RecordingProxy::before(client::address(&servicebus)).await;
    let mut client = Client::connect(&servicebus, proxy.address).await;
    for case in &cases {
        let message = client::message(&case.bytes);
        client.send(QUEUE, &case.name, message).await;
    }
    let mut shown = Vec::new();
    for case in &cases {
        shown.push(client.receive(QUEUE, &case.name).await);
    }
    client.close().await;
    let [sent, received] = proxy.payloads().await;
    assert_eq!(sent.len(), cases.len());
    assert_eq!(received.len(), cases.len());
    for ((case, sent), shown) in cases.iter().zip(&sent).zip(shown) {
        // What the client makes of the bytes: it sends an empty body as a null.
        client::assert_same(&case.name, &client::message(sent), &shown);
    }
    let both = sent.into_iter().zip(received);
    let named = cases.into_iter().zip(both);
    named
        .map(|(case, (sent, received))| Recorded {
            name: case.name,
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
async fn fe2o3_receives_what_it_sends() {
    let mut failed = Vec::new();
    for passed in pass(matrix::all()).await {
        let differences = differences(&passed.sent, &passed.received);
        if !differences.is_empty() {
            failed.push((passed.name, differences));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test]
async fn the_comparison_detects_every_changed_byte() {
    let mut cases = matrix::all();
    cases.retain(|case| case.name == "everything at once");
    let passed = pass(cases).await.remove(0);
    assert_eq!(differences(&passed.sent, &passed.received), [""; 0]);
    // From the properties on, all bytes are the sender's.
    let properties = [0, 0x53, PROPERTIES];
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
