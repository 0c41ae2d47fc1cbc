//! Faults by chance, and that they can be repeated.

use std::time::Duration;

use servicebus_harness::{EventKind, prelude::*};

use super::{bus, raw::Client};

/// Which of a hundred sends are rejected.
async fn rejected(seed: u64) -> Vec<u32> {
    let servicebus = bus().await;
    let effects = [
        Effect::server_busy(),
        Effect::reject("com.microsoft:timeout"),
    ];
    let chance = servicebus.faults().random(seed).entity("orders");
    chance.rate_of(Operation::Send, 0.2, effects).start().await;
    let mut client = Client::connect(&servicebus, "worker").await;
    let (mut audit, mut orders) = (client.sender("audit").await, client.sender("orders").await);
    let mut rejected = Vec::new();
    for number in 0..100 {
        audit
            .send_text("elsewhere")
            .await
            .expect("what is elsewhere is left alone");
        if orders.send_text("here").await.is_err() {
            rejected.push(number);
        }
    }
    let orders = servicebus.queue("orders");
    let timeline = servicebus.timeline(&orders).await;
    assert_eq!(timeline.count(&EventKind::Fault), rejected.len() as u64);
    assert!(
        timeline
            .to_string()
            .contains(&format!("(by chance, seed {seed})"))
    );
    rejected
}

#[tokio::test]
async fn the_same_seed_spoils_the_same_operations() {
    let first = rejected(17).await;
    assert!(!first.is_empty());
    assert_eq!(rejected(17).await, first);
    assert_ne!(rejected(18).await, first);
}

#[tokio::test]
async fn chance_that_never_strikes_fails_no_test() {
    let servicebus = bus().await;
    servicebus.faults().random(1).start().await;
    servicebus.stop().await;
}

#[tokio::test]
async fn a_correct_client_loses_nothing_to_chance() {
    const SENT: u32 = 30;
    let servicebus = bus().await;
    let chance = servicebus.faults().random(4).client("worker");
    chance
        .rate(Operation::Send, 0.2)
        .rate(Operation::Complete, 0.2)
        .start()
        .await;
    let mut client = Client::connect(&servicebus, "worker").await;
    for number in 0..SENT {
        // At least once: what is not confirmed is sent again, over a new connection.
        while client.sends("orders", &number.to_string()).await.is_err() {
            client = Client::connect(&servicebus, "worker").await;
        }
    }
    let mut completed = 0;
    while completed < SENT {
        match client.completes("orders").await {
            Ok(()) => completed += 1,
            // Its lock ends, and it comes again.
            Err(_) => {
                client = Client::connect(&servicebus, "worker").await;
                servicebus
                    .clock()
                    .advance(std::time::Duration::from_secs(61))
                    .await;
            }
        }
    }
    assert_empty!(servicebus.queue("orders")).await;
}
