//! Results and events that are not sent, or twice.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use azservicebus::ServiceBusMessage;

use crate::support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    MarksDoneFirst,
    RemovesFirst,
    SendsUnderANewId,
    TrustsRetries,
    SendsTheBatchAgain,
}

/// Sends the result of each order and marks it as done.
async fn answer(bus: Party, done: &CountTable, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut orders = receiver(&mut client, "orders").await?;
    let mut results = sender(&mut client, "results").await?;
    loop {
        let order = next(&mut orders).await?;
        let id = id(&order);
        if !done.has(&id) {
            if bug == Some(Bug::MarksDoneFirst) {
                done.add(&id);
            }
            send(&mut results, &id, &id).await?;
            if bug != Some(Bug::MarksDoneFirst) {
                done.add(&id);
            }
        }
        orders.complete_message(&order).await?;
    }
}

fn answering(bug: Option<Bug>) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        put_orders(run).await;
        let done = CountTable::default();
        run.party("worker", async move |bus| answer(bus, &done, bug).await);
        run.wait_idle().await;
        assert_eq!(bodies(run, "results").await, IDS);
    }
}

#[test]
fn marks_an_order_as_done_before_it_sends_the_result() {
    let explore = |_| Explore::new(orders().queue(deduplicating("results", true)));
    let fault = "crash-before at worker.send@results/o-1#1";
    finds(Bug::MarksDoneFirst, fault, explore, answering);
}

/// Messages that wait beside the data that they tell of, oldest first: a table.
type Outbox = Arc<Mutex<VecDeque<&'static str>>>;

const ROWS: [&str; 3] = ["row-1", "row-2", "row-3"];

/// Sends what is in the outbox.
async fn relay(bus: Party, outbox: &Outbox, tries: &mut u32, bug: Option<Bug>) -> Outcome {
    let retries = if bug == Some(Bug::TrustsRetries) {
        3
    } else {
        0
    };
    let mut client = connect_retrying(&bus, retries).await?;
    let mut events = sender(&mut client, "events").await?;
    loop {
        let Some(row) = outbox.lock().unwrap().front().copied() else {
            return Ok(());
        };
        if bug == Some(Bug::RemovesFirst) {
            outbox.lock().unwrap().pop_front();
        }
        *tries += 1;
        let new_id = format!("{row}-{tries}");
        let id = if bug == Some(Bug::SendsUnderANewId) {
            &new_id
        } else {
            row
        };
        send(&mut events, id, row).await?;
        if bug != Some(Bug::RemovesFirst) {
            outbox.lock().unwrap().pop_front();
        }
    }
}

fn relaying(bug: Option<Bug>) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        let outbox = Outbox::new(Mutex::new(VecDeque::from(ROWS)));
        let tries = Mutex::new(0);
        run.job("relay", async move |bus| {
            let mut tried = *tries.lock().unwrap();
            let relayed = relay(bus, &outbox, &mut tried, bug).await;
            *tries.lock().unwrap() = tried;
            relayed
        });
        run.wait_idle().await;
        assert_eq!(bodies(run, "events").await, ROWS);
    }
}

fn events(bug: Option<Bug>) -> Explore {
    let finds_duplicates = bug != Some(Bug::SendsTheBatchAgain);
    Explore::new(Topology::new().queue(deduplicating("events", finds_duplicates)))
}

#[test]
fn removes_a_row_of_the_outbox_before_it_is_acknowledged() {
    let fault = "drop-before at relay.send@events/row-1#1";
    finds(Bug::RemovesFirst, fault, events, relaying);
}

#[test]
fn sends_again_under_a_new_message_id() {
    let fault = "lose-reply at relay.send@events/row-1-1#1";
    finds(Bug::SendsUnderANewId, fault, events, relaying);
}

#[test]
fn trusts_the_ok_of_a_send_that_the_sdk_has_retried() {
    let fault = "server-busy at relay.send@events/row-1#1";
    finds(Bug::TrustsRetries, fault, events, relaying);
}

#[test]
fn a_refused_send_that_is_not_repeated_is_reported() {
    let bug = Some(Bug::TrustsRetries);
    let busy = events(bug).effects([Effect::ServerBusy]);
    let result = busy.result(relaying(bug));
    let expected = "it was not sent again: its sender gave up, or got a success";
    assert!(
        result
            .as_ref()
            .is_err_and(|result| result.contains(expected)),
        "{result:?}"
    );
}

/// Sends the outbox as one batch.
async fn relay_at_once(bus: Party) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut events = sender(&mut client, "events").await?;
    let mut batch = Vec::new();
    for row in ROWS {
        let mut message = ServiceBusMessage::new(row);
        message.set_message_id(row)?;
        batch.push(message);
    }
    with_timeout(events.send_messages(batch)).await
}

#[test]
fn repeats_a_batch_without_duplicate_detection() {
    let fault = "drop-after at relay.send@events/row-1#1";
    finds(Bug::SendsTheBatchAgain, fault, events, |_| {
        async move |run: &Run| {
            run.job("relay", relay_at_once);
            run.wait_idle().await;
            assert_eq!(bodies(run, "events").await, ROWS);
        }
    });
}

fn deduplicating(queue: &str, finds_duplicates: bool) -> Queue {
    Queue::new(queue).requires_duplicate_detection(finds_duplicates)
}
