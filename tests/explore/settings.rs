//! What is looked at only where a test asks for it: how a run ends, and orders by chance. And how long many runs take.

use std::{error::Error, time::Duration};

use azservicebus::ServiceBusMessage;
use servicebus_harness::{
    explore::{Effect, Explore, Party, Run},
    prelude::*,
};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Confirms each order before it completes it, so again when that is lost.
async fn confirm(bus: Party) -> Result<(), Box<dyn Error>> {
    let mut client = bus.client().await?;
    let sender = client.create_sender("confirmed", Default::default());
    let mut confirmed = timeout(TIMEOUT, sender).await??;
    let receiver = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = timeout(TIMEOUT, receiver).await??;
    loop {
        let order = orders.receive_message().await?;
        let confirmation = ServiceBusMessage::new(order.body()?.to_vec());
        confirmed.send_message(confirmation).await?;
        orders.complete_message(&order).await?;
    }
}

/// So many orders are confirmed, and the test looks at none.
async fn handle(run: &Run, orders: u32) {
    let orders = (1..=orders).map(|number| Message::from(format!("o-{number}")));
    run.queue("orders").send_all(orders).await;
    run.party("worker", confirm);
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
fn random_orders_are_tried_in_addition() {
    let runs = |shuffled| {
        let explore = explored()
            .only("worker.receive")
            .effects([Effect::Postpone]);
        let explore = explore.shuffled(shuffled);
        let report = explore.result(async |run| handle(run, 2).await).unwrap();
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
