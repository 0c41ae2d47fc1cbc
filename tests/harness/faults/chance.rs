//! Faults by chance, and that they can be repeated.

use servicebus_harness::{EventKind, prelude::*};

use servicebus_test_support::built;

use super::{bus, raw::Client};
use crate::harness::error_of;

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
async fn the_same_seed_selects_the_same_operations() {
    let first = rejected(17).await;
    assert!(!first.is_empty());
    assert_eq!(rejected(17).await, first);
    assert_ne!(rejected(18).await, first);
}

#[tokio::test]
async fn random_faults_that_never_fire_fail_no_test() {
    let servicebus = bus().await;
    servicebus.faults().random(1).start().await;
    servicebus.stop().await;
}

#[tokio::test]
async fn impossible_random_faults_are_refused() {
    let servicebus = bus().await;
    let chance = || servicebus.faults().random(1);
    let refused = error_of(chance().rate(Operation::Send, 2.0).start()).await;
    let begins = "cannot start the random faults rate(Operation::Send, 2): ";
    assert!(refused.starts_with(begins), "{refused}");
    let senseless = chance().rate_of(Operation::Send, 0.5, [Effect::redeliver()]);
    let refused = error_of(senseless.start()).await;
    let begins = "cannot start the random faults rate_of(Operation::Send, 0.5): Effect::redeliver() is not possible at Operation::Send; possible: lose_reply, reject, ";
    assert!(refused.starts_with(begins), "{refused}");
    for (misspelt, suggested) in [("ordres", "; did you mean \"orders\"?"), ("replies", "")] {
        let refused = error_of(chance().entity(misspelt).start()).await;
        assert_eq!(
            refused,
            format!(
                "cannot start random faults: there is no queue, topic or subscription \"{misspelt}\"{suggested}"
            )
        );
    }
    chance().entity("Orders/$DeadLetterQueue").start().await;
}

#[test]
fn a_test_that_fails_reports_how_many_random_faults_fired() {
    if built::is_child() {
        return built::run_child(async {
            for refused in 0..3 {
                let failed = tokio::spawn(fail_after_refused_sends(refused)).await;
                failed.expect_err("it fails");
            }
            let failed = tokio::spawn(fail_after_refused_faults()).await;
            failed.expect_err("it fails");
        });
    }
    let output = built::rerun().output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let reported = stderr
        .lines()
        .filter(|line| line.contains("faults().random("));
    assert_eq!(
        Vec::from_iter(reported),
        [
            "no random fault fired: faults().random(0)",
            "1 random fault fired: faults().random(1)",
            "2 random faults fired: faults().random(2)",
        ],
        "{stderr}"
    );
}

/// Fails after random faults that were refused.
async fn fail_after_refused_faults() {
    let servicebus = bus().await;
    let chance = servicebus.faults().random(9).rate(Operation::Send, 2.0);
    chance.start().result().await.unwrap_err();
    panic!("the test fails here");
}

/// Fails after so many sends, of which a random fault refuses each.
async fn fail_after_refused_sends(refused: u64) {
    let servicebus = bus().await;
    let chance = servicebus.faults().random(refused);
    let chance = chance.rate_of(Operation::Send, 1.0, [Effect::server_busy()]);
    chance.start().await;
    let orders = servicebus.queue("orders");
    for _ in 0..refused {
        orders.send("hello").result().await.unwrap_err();
    }
    panic!("the test fails here");
}

#[tokio::test]
async fn a_correct_client_survives_random_faults() {
    const SENT: u32 = 30;
    let servicebus = bus().await;
    let chance = servicebus.faults().random(4).client("worker");
    // No link or connection goes under a send: this client would wait for its outcome for ever.
    let refusals = || {
        [
            Effect::server_busy(),
            Effect::reject("com.microsoft:timeout"),
        ]
    };
    let chance = chance.rate_of(Operation::Send, 0.2, refusals());
    let chance = chance.rate_of(Operation::Complete, 0.2, [Effect::lose_lock()]);
    chance.start().await;
    let mut client = Client::connect(&servicebus, "worker").await;
    let mut sender = client.sender("orders").await;
    for number in 0..SENT {
        let mut attempts = 0..20;
        while sender.send_text(&number.to_string()).await.is_err() {
            attempts.next().expect("not every send is refused");
        }
    }
    let orders = servicebus.queue("orders");
    assert_message_count!(orders, active = u64::from(SENT)).await;
    let mut attempts = 0..10 * SENT;
    while orders.counts().await.active > 0 {
        attempts.next().expect("not every lock is lost");
        // What was not completed comes again.
        if client.completes("orders").await.is_err() {
            client = Client::connect(&servicebus, "worker").await;
        }
    }
    assert_message_count!(orders, active = 0, dead_letter = 0).await;
    assert_completed!(orders, count = u64::from(SENT)).await;
}
