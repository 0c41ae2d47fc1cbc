//! Orders that are charged twice or never.

use std::time::Duration;

use tokio::time::sleep;

use crate::support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    NeverLooksAtTheId,
    RemembersInMemory,
    CompletesFirst,
}

/// Charges each order and completes it.
async fn work(bus: Party, charged: &CountTable, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut orders = receiver(&mut client, "orders").await?;
    let seen = match bug {
        Some(Bug::RemembersInMemory) => CountTable::default(),
        _ => charged.clone(),
    };
    loop {
        let order = next(&mut orders).await?;
        if bug == Some(Bug::CompletesFirst) {
            orders.complete_message(&order).await?;
        }
        let id = id(&order);
        if !seen.has(&id) || bug == Some(Bug::NeverLooksAtTheId) {
            // The bank answers.
            sleep(Duration::from_millis(20)).await;
            charged.add(&id);
            if bug == Some(Bug::RemembersInMemory) {
                seen.add(&id);
            }
        }
        if bug != Some(Bug::CompletesFirst) {
            orders.complete_message(&order).await?;
        }
    }
}

fn charging(bug: Option<Bug>) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        put_orders(run).await;
        let bank = CountTable::default();
        let charged = bank.clone();
        run.party("worker", async move |bus| work(bus, &charged, bug).await);
        run.wait_idle().await;
        bank.assert_once(&IDS);
        assert_empty!(run.queue("orders")).await;
    }
}

#[test]
fn charges_without_looking_at_the_id() {
    let fault = "lose-lock at worker.complete@orders/o-1#1";
    finds_in_orders(Bug::NeverLooksAtTheId, fault, charging);
}

#[test]
fn remembers_the_ids_in_memory() {
    let fault = "crash-before at worker.complete@orders/o-1#1";
    finds_in_orders(Bug::RemembersInMemory, fault, charging);
}

#[test]
fn completes_before_it_works() {
    let fault = "crash-after at worker.complete@orders/o-1#1";
    finds_in_orders(Bug::CompletesFirst, fault, charging);
}
