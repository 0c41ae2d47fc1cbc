//! A session workflow: one worker at a time has an order, and its session state stores the completed steps. So another
//! worker can continue after a failure, and a redelivered step is processed once. `cargo run --example session_workflow`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{error::Error, time::Duration};

use azservicebus::{ServiceBusClient, core::BasicRetryPolicy};
use serde_json::json;
use servicebus_harness::prelude::*;
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);
type Client = ServiceBusClient<BasicRetryPolicy>;

/// Accepts the next available order, and processes its steps until none arrives for a second.
pub(crate) async fn carry_on(mut client: Client) -> Result<(), Box<dyn Error>> {
    let accepting = client.accept_next_session_for_queue("orders", Default::default());
    let mut order = timeout(MINUTE, accepting).await??;
    let state = timeout(MINUTE, order.session_state()).await??;
    let mut done: Vec<String> = serde_json::from_slice(&state)?;
    loop {
        let receiving = order.receive_messages_with_max_wait_time(1, Some(Duration::from_secs(1)));
        let Some(message) = timeout(MINUTE, receiving).await??.pop() else {
            return Ok(order.dispose().await?);
        };
        let step = str::from_utf8(message.body()?)?.to_owned();
        if !done.contains(&step) {
            println!("{step}");
            done.push(step);
        }
        // Before the message is settled: a crash between the two repeats a message, never a step.
        timeout(MINUTE, order.set_session_state(serde_json::to_vec(&done)?)).await??;
        order.complete_message(&message).await?;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders").requires_session(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    // This SDK cannot read a missing session state.
    let opened = orders.accept_session("o-17").await;
    opened.set_state("[]").await;
    opened.close().await;
    let step = |step| Message::from(step).session_id("o-17");
    orders.send_all(["placed", "placed"].map(step)).await;
    carry_on(servicebus.client().await).await?;
    assert_session_state!(orders, session = "o-17", json = json!(["placed"])).await;
    println!("another worker continues");
    orders.send_all(["paid", "shipped"].map(step)).await;
    carry_on(servicebus.client().await).await?;
    let done = json!(["placed", "paid", "shipped"]);
    assert_session_state!(orders, session = "o-17", json = done).await;
    assert_empty!(orders).await;
    Ok(())
}
