//! Sends a hundred messages to a distant namespace: one after the other, ten at a time, and all at once.
//!
//! The round trip takes most of the time, so the number of messages in flight matters. `cargo run --example send_strategies`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{collections::VecDeque, error::Error, time::Duration, time::Instant};

use fe2o3_amqp::{Sender, Session, connection::Connection};
use servicebus_harness::{Effect, prelude::*};

const MESSAGES: usize = 100;
const ROUND_TRIP: Duration = Duration::from_millis(70);
const STORING: Duration = Duration::from_millis(10);

/// Sends the messages with at most `at_once` unacknowledged, and returns how long it took until all were stored.
async fn send(sender: &mut Sender, at_once: usize) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    let mut unacknowledged = VecDeque::new();
    for number in 0..MESSAGES {
        if unacknowledged.len() == at_once {
            let oldest = unacknowledged.pop_front();
            oldest.ok_or("none is on its way")?.await?;
        }
        let sent = sender.send_batchable(format!("message {number}")).await?;
        unacknowledged.push_back(sent);
    }
    for sent in unacknowledged {
        sent.await?.accepted_or("a message was refused")?;
    }
    Ok(started.elapsed())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("readings"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let faults = servicebus.faults();
    let connection = faults.on(Operation::Connect).client("sensor");
    connection.apply(Effect::latency(ROUND_TRIP)).await;
    faults
        .on(Operation::Send)
        .every(1)
        .delay_real(STORING)
        .await;

    let address = servicebus.endpoints().amqp;
    let url = format!("amqp://RootManageSharedAccessKey:SAS_KEY_VALUE@{address}");
    let mut connection = Connection::open("sensor", url.as_str()).await?;
    let mut session = Session::begin(&mut connection).await?;
    let mut sender = Sender::attach(&mut session, "readings", "readings").await?;
    for at_once in [1, 10, MESSAGES] {
        let took = send(&mut sender, at_once).await?;
        println!("{at_once} at once: {:.2} s", took.as_secs_f64());
    }
    assert_message_count!(servicebus.queue("readings"), active = 3 * MESSAGES as u64).await;
    sender.close().await?;
    session.end().await?;
    Ok(connection.close().await?)
}
