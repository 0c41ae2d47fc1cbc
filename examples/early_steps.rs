//! Steps of a session that arrive too early: each is deferred, and received by its sequence number when it is due.
//!
//! The session state stores the sequence numbers for the next receiver. `cargo run --example early_steps`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{collections::BTreeMap, error::Error};

use azservicebus::{ServiceBusClient, core::BasicRetryPolicy};
use servicebus_harness::prelude::*;

type Client = ServiceBusClient<BasicRetryPolicy>;

/// Processes the message of one step of an order.
async fn carry_out(step: &str, mut client: Client) -> Result<(), Box<dyn Error>> {
    let accepting = client.accept_session_for_queue("orders", "o-17", Default::default());
    let mut order = accepting.await?;
    let state = order.session_state().await?;
    let mut noted: BTreeMap<String, i64> = serde_json::from_slice(&state)?;
    while !noted.contains_key(step) {
        let message = order.receive_message().await?;
        let body = str::from_utf8(message.body()?)?;
        noted.insert(body.to_owned(), message.sequence_number());
        // Before the message is deferred, because a deferred message whose number is lost cannot be received again.
        order.set_session_state(serde_json::to_vec(&noted)?).await?;
        order.defer_message(&message, None).await?;
    }
    let message = order.receive_deferred_message(noted[step]).await?;
    let message = message.ok_or("it lies where it was put")?;
    println!("{step}");
    order.complete_message(&message).await?;
    order.dispose().await?;
    Ok(client.dispose().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders").requires_session(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    // The receiver of an order creates the session state, because this SDK cannot read a missing one.
    let opened = orders.accept_session("o-17").await;
    opened.set_state("{}").await;
    opened.close().await;
    for step in ["shipped", "placed", "paid"] {
        orders.send(Message::from(step).session_id("o-17")).await;
    }

    carry_out("placed", servicebus.client().await).await?;
    assert_deferred!(orders, count = 1).await;
    let numbers = serde_json::json!({"shipped": 1, "placed": 2});
    assert_session_state!(orders, session = "o-17", json = numbers).await;

    carry_out("paid", servicebus.client().await).await?;
    assert_deferred!(orders, count = 1).await;
    carry_out("shipped", servicebus.client().await).await?;
    assert_empty!(orders).await;
    Ok(())
}
