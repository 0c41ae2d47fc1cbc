//! A session workflow: the steps of an order come in any order and are done in theirs, whoever works on them.
//!
//! What was done, and where early steps wait, is kept with the session. `cargo run --example session_workflow`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]
#![expect(clippy::large_futures, reason = "the futures of the SDK are")]

use std::{cmp::Ordering, collections::BTreeMap, error::Error};

use azservicebus::{ServiceBusClient, core::BasicRetryPolicy};
use serde_json::json;
use servicebus_harness::prelude::*;

const STEPS: [&str; 3] = ["placed", "paid", "shipped"];

/// Steps that are done, and the numbers of messages that were put aside, by their step.
type State = (usize, BTreeMap<usize, i64>);

/// Takes the next order that nobody has and carries it on until so many steps are done.
async fn carry_on(
    client: &mut ServiceBusClient<BasicRetryPolicy>,
    until: usize,
) -> Result<(), Box<dyn Error>> {
    let accepting = client.accept_next_session_for_queue("orders", Default::default());
    let mut order = accepting.await?;
    let (mut done, mut early) = match order.session_state().await {
        Ok(state) => serde_json::from_slice(&state)?,
        // What a new session has for a state, this SDK cannot read.
        Err(error) if format!("{error:?}").contains("MessageDecode") => State::default(),
        Err(error) => return Err(error.into()),
    };
    while done < until {
        let message = match early.remove(&done) {
            Some(number) => order.receive_deferred_message(number).await?,
            None => Some(order.receive_message().await?),
        };
        let message = message.ok_or("a message lies where it was put aside")?;
        let body = str::from_utf8(message.body()?)?;
        let step = STEPS.iter().position(|step| *step == body);
        let step = step.ok_or("a step has a name")?;
        let turn = step.cmp(&done);
        match turn {
            Ordering::Less => println!("{body} again, which changes nothing"),
            Ordering::Equal => {
                println!("{body}");
                done += 1;
            }
            Ordering::Greater => drop(early.insert(step, message.sequence_number())),
        }
        // Before the message is settled: a crash between the two repeats a message, never a step.
        let state = serde_json::to_vec(&(done, &early))?;
        order.set_session_state(state).await?;
        match turn {
            Ordering::Greater => order.defer_message(&message, None).await?,
            Ordering::Less | Ordering::Equal => order.complete_message(&message).await?,
        }
    }
    Ok(order.dispose().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders").requires_session(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await?;
    let orders = servicebus.queue("orders");
    for step in ["shipped", "placed", "placed", "paid"] {
        orders.send(Message::from(step).session_id("o-17")).await;
    }

    let (mut first, mut second) = (servicebus.client().await, servicebus.client().await);
    carry_on(&mut first, 1).await?;
    assert_session_state!(orders, session = "o-17", json = json!([1, {"2": 1}])).await;
    assert_deferred!(orders, count = 1).await;

    println!("somebody else goes on");
    carry_on(&mut second, STEPS.len()).await?;
    assert_session_state!(orders, session = "o-17", json = json!([3, {}])).await;
    assert_empty!(orders).await;
    first.dispose().await?;
    Ok(second.dispose().await?)
}
