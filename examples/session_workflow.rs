//! A session workflow: one worker at a time has an order, and what was done is kept in its session state.
//!
//! So another worker can continue where one stopped, and a step that comes twice is done once.
//! `cargo run --example session_workflow`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use azservicebus::{ServiceBusClient, core::BasicRetryPolicy};
use serde_json::json;
use servicebus_harness::prelude::*;

/// Accepts the next order that no worker has, and so many of its messages.
async fn carry_on(
    mut client: ServiceBusClient<BasicRetryPolicy>,
    messages: usize,
) -> Result<(), Box<dyn Error>> {
    let accepting = client.accept_next_session_for_queue("orders", Default::default());
    let mut order = accepting.await?;
    let mut done: Vec<String> = serde_json::from_slice(&order.session_state().await?)?;
    for _ in 0..messages {
        let message = order.receive_message().await?;
        let step = str::from_utf8(message.body()?)?.to_owned();
        if !done.contains(&step) {
            println!("{step}");
            done.push(step);
        }
        // Before the message is settled: a crash between the two repeats a message, never a step.
        order.set_session_state(serde_json::to_vec(&done)?).await?;
        order.complete_message(&message).await?;
    }
    order.dispose().await?;
    Ok(client.dispose().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders").requires_session(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    // The receiver of an order opens its session: this SDK cannot read the state of one that has none.
    let opened = orders.accept_session("o-17").await;
    opened.set_state("[]").await;
    opened.close().await;
    for step in ["placed", "placed", "paid", "shipped"] {
        orders.send(Message::from(step).session_id("o-17")).await;
    }

    carry_on(servicebus.client().await, 1).await?;
    assert_session_state!(orders, session = "o-17", json = json!(["placed"])).await;
    println!("another worker continues");
    carry_on(servicebus.client().await, 3).await?;
    let done = json!(["placed", "paid", "shipped"]);
    assert_session_state!(orders, session = "o-17", json = done).await;
    assert_empty!(orders).await;
    Ok(())
}
