//! Messages that are handled and yet dead-lettered, or deferred or parked and then forgotten.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use azservicebus::{ServiceBusReceivedMessage, ServiceBusReceiver};
use tokio::time::sleep;

use crate::support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    TakesEachErrorForItsOwn,
    RemembersTheNumberInMemory,
    CompletesBeforeItParks,
}

/// Charges each order; one that could not be charged is dead-lettered when it comes again.
async fn charge(
    bus: Party,
    charged: &CountTable,
    failed: &CountTable,
    bug: Option<Bug>,
) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut orders = receiver(&mut client, "orders").await?;
    loop {
        let mut order = next(&mut orders).await?;
        let id = id(&order);
        if failed.has(&id) {
            orders
                .dead_letter_message(&order, Default::default())
                .await?;
            continue;
        }
        if let Err(error) = charge_one(&mut orders, &mut order, charged).await {
            if bug == Some(Bug::TakesEachErrorForItsOwn) {
                failed.add(&id);
            }
            return Err(error);
        }
    }
}

async fn charge_one(
    orders: &mut ServiceBusReceiver,
    order: &mut ServiceBusReceivedMessage,
    charged: &CountTable,
) -> Outcome {
    let id = id(order);
    if !charged.has(&id) {
        // The bank answers.
        sleep(Duration::from_secs(1)).await;
        charged.add(&id);
        with_timeout(orders.renew_message_lock(order)).await?;
    }
    Ok(orders.complete_message(&*order).await?)
}

fn charging(bug: Option<Bug>) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        put_orders(run).await;
        let (bank, failed) = (CountTable::default(), CountTable::default());
        let charged = bank.clone();
        run.party("worker", async move |bus| {
            charge(bus, &charged, &failed, bug).await
        });
        run.wait_idle().await;
        bank.assert_once(&IDS);
        assert_empty!(run.queue("orders")).await;
        assert_empty!(run.queue("orders").dead_letters()).await;
    }
}

#[test]
fn dead_letters_an_order_whose_lock_could_not_be_renewed_after_it_was_charged() {
    let fault = "lose-lock at worker.renew-lock(renew-lock)@orders/o-1#1";
    finds_in_orders(Bug::TakesEachErrorForItsOwn, fault, charging);
}

/// The number by which the deferred invoice is received, in a table.
type Deferred = Arc<Mutex<Option<i64>>>;

/// Books an order and its invoice. The invoice waits for its order.
async fn book(bus: Party, booked: &CountTable, deferred: &Deferred, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut papers = receiver(&mut client, "orders").await?;
    let deferred = match bug {
        Some(Bug::RemembersTheNumberInMemory) => Deferred::default(),
        _ => Arc::clone(deferred),
    };
    loop {
        let paper = next(&mut papers).await?;
        let id = id(&paper);
        if id == "invoice" && !booked.has("order") {
            *deferred.lock().unwrap() = Some(paper.sequence_number());
            papers.defer_message(&paper, None).await?;
            continue;
        }
        if !booked.has(&id) {
            booked.add(&id);
        }
        let number = *deferred.lock().unwrap();
        if let Some(number) = number.filter(|_| !booked.has("invoice")) {
            let receiving = papers.receive_deferred_message(number);
            let invoice = with_timeout(receiving)
                .await?
                .ok_or("the invoice is deferred")?;
            booked.add("invoice");
            with_timeout(papers.complete_message(&invoice)).await?;
        }
        papers.complete_message(&paper).await?;
    }
}

fn booking(bug: Option<Bug>) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        let (books, deferred) = (CountTable::default(), Deferred::default());
        let booked = books.clone();
        run.party("worker", async move |bus| {
            book(bus, &booked, &deferred, bug).await
        });
        for id in ["invoice", "order"] {
            put_order(run, id).await;
            sleep(Duration::from_secs(5)).await;
        }
        run.wait_idle().await;
        books.assert_once(&["invoice", "order"]);
    }
}

#[test]
fn keeps_the_number_of_a_deferred_message_in_memory() {
    let fault = "crash-after at worker.defer@orders/invoice#1";
    finds_in_orders(Bug::RemembersTheNumberInMemory, fault, booking);
}

/// Sends the result of an order, or parks the order where that is not possible.
async fn answer_or_park(bus: Party, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut orders = receiver(&mut client, "orders").await?;
    let mut results = sender(&mut client, "results").await?;
    let mut parked = sender(&mut client, "parked").await?;
    loop {
        let order = next(&mut orders).await?;
        let id = id(&order);
        let is_answered = send(&mut results, &id, &id).await.is_ok();
        if bug == Some(Bug::CompletesBeforeItParks) {
            orders.complete_message(&order).await?;
        }
        if !is_answered {
            send(&mut parked, &id, &id).await?;
        }
        if bug != Some(Bug::CompletesBeforeItParks) {
            orders.complete_message(&order).await?;
        }
    }
}

fn answering_or_parking(bug: Option<Bug>) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        put_order(run, "o-1").await;
        run.party("worker", async move |bus| answer_or_park(bus, bug).await);
        run.wait_idle().await;
        let mut known = bodies(run, "results").await;
        known.extend(bodies(run, "parked").await);
        assert!(known.contains(&"o-1".to_owned()), "o-1 is lost");
    }
}

#[test]
fn loses_an_order_that_can_neither_be_answered_nor_parked() {
    let topology = orders()
        .queue(Queue::new("results"))
        .queue(Queue::new("parked"));
    let fault =
        "server-busy at worker.send@results/o-1#1 and crash-before at worker.send@parked/o-1#1";
    let explore = |_| Explore::new(topology.clone()).faults(2);
    finds(
        Bug::CompletesBeforeItParks,
        fault,
        explore,
        answering_or_parking,
    );
}
