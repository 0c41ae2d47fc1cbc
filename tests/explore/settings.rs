//! What is looked at only where a test asks for it: how a run ends, and orders by chance. And how long many runs take.

use std::{
    error::Error,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use azservicebus::ServiceBusMessage;
use servicebus_harness::{
    explore::{Effect, Explore, Party, Run},
    prelude::*,
};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Confirms each order, with a text before it, before it completes it, so again when that is lost.
async fn confirm(bus: Party, text: &str) -> Result<(), Box<dyn Error>> {
    let mut client = bus.client().await?;
    let sender = client.create_sender("confirmed", Default::default());
    let mut confirmed = timeout(TIMEOUT, sender).await??;
    let receiver = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = timeout(TIMEOUT, receiver).await??;
    loop {
        let order = orders.receive_message().await?;
        let confirmation = ServiceBusMessage::new([text.as_bytes(), order.body()?].concat());
        confirmed.send_message(confirmation).await?;
        orders.complete_message(&order).await?;
    }
}

/// So many orders are confirmed, and the test looks at none.
async fn handle(run: &Run, orders: u32) {
    let orders = (1..=orders).map(|number| Message::from(format!("o-{number}")));
    run.queue("orders").send_all(orders).await;
    run.party("worker", async |bus| confirm(bus, "").await);
    run.wait_idle().await;
}

fn explored() -> Explore {
    let queues = Topology::new().queue(Queue::new("orders"));
    Explore::new(queues.queue(Queue::new("confirmed")))
}

#[test]
fn different_final_messages_are_a_failure() {
    let explore = explored()
        .only("worker.complete")
        .effects([Effect::LoseLock]);
    let passed = explore.clone().result(async |run| handle(run, 2).await);
    assert!(passed.is_ok(), "{passed:?}");
    let failure = explore
        .same_end()
        .result(async |run| handle(run, 2).await)
        .unwrap_err();
    let differs = "the test passes, but ends with other messages than without faults\n     added: confirmed: active \"o-";
    assert!(failure.contains(differs), "{failure}");
}

#[test]
fn final_bodies_are_compared_beyond_what_a_report_shows() {
    let explore = explored()
        .only("worker.receive")
        .effects([Effect::CrashAfter]);
    let failure = explore.same_end().result(async |run| {
        run.queue("orders").send(Message::from("o-1")).await;
        let starts = AtomicU32::new(0);
        run.party("worker", async move |bus| {
            let start = starts.fetch_add(1, Ordering::Relaxed);
            confirm(bus, &format!("{}{start}", "x".repeat(70))).await
        });
        run.wait_idle().await;
    });
    let failure = failure.unwrap_err();
    let start = "x".repeat(60);
    for title in ["missing", "added"] {
        let line = format!("\n     {title}: confirmed: active \"{start}…\" (74 bytes, hash ");
        assert!(failure.contains(&line), "{failure}");
    }
}

#[test]
fn a_run_whose_final_messages_are_unknown_fails() {
    let failure = explored().same_end().result(async |run| {
        handle(run, 1).await;
        run.faults()
            .on(Operation::Management)
            .every(1)
            .answer(500)
            .await;
    });
    let failure = failure.unwrap_err();
    let unknown = "make it pass first\nthe messages at the end of the test cannot be compared: ";
    assert!(failure.contains(unknown), "{failure}");
}

#[test]
fn random_orders_are_tried_in_addition() {
    let runs = |shuffled| {
        let explore = explored()
            .only("worker.receive")
            .effects([Effect::Postpone]);
        let explore = explore.shuffled(shuffled);
        let report = explore.result(async |run| handle(run, 4).await).unwrap();
        let (_, runs) = report.split_once(" in ").unwrap();
        let (runs, _) = runs.split_once(" runs").unwrap();
        runs.parse::<u32>().unwrap()
    };
    assert_eq!(runs(5), runs(0) + 5);
}

/// `SERVICEBUS_EXPLORE=runs=500,within=60 cargo test --test explore five_orders -- --nocapture` tells how long 500 runs take.
#[test]
#[expect(clippy::print_stdout, reason = "what it measures is read by people")]
fn five_orders() {
    // A send whose link or connection ends panics in azservicebus 0.25.1 when it is tried again: "called after complete".
    let effects = [Effect::LoseLock, Effect::DeliverTwice, Effect::Postpone];
    let explore = explored().faults(2).budget(10).effects(effects);
    let report = explore.result(async |run| handle(run, 5).await).unwrap();
    println!("{}", report.lines().next().unwrap());
}
