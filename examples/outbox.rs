//! An outbox: messages wait beside the data that they tell of, and are sent until the namespace has said that it has them.
//!
//! One whose acknowledgement was lost is sent twice. Its id is that of its row, by which the queue knows it and drops the
//! second. `cargo run --example outbox`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{collections::VecDeque, error::Error, time::Duration};

use azservicebus::{ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage};
use servicebus_harness::{EventKind, prelude::*};
use tokio::time::timeout;

/// The SDK does not notice that an acknowledgement cannot come any more; after this it gives up.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is to be sent and has not been, by the id of its row; oldest first. In production a table.
pub(crate) type Outbox = VecDeque<(&'static str, &'static str)>;

/// Sends what is in the outbox. A row goes when the namespace has its message, never before.
pub(crate) async fn relay(outbox: &mut Outbox, bus: &str) -> Result<(), Box<dyn Error>> {
    let mut options = ServiceBusClientOptions::default();
    options.retry_options.max_retries = 0; // the caller tries again
    options.retry_options.try_timeout = PATIENCE;
    let connecting = ServiceBusClient::unsecured().new_from_connection_string(bus, options);
    let mut client = connecting.await?;
    let opening = client.create_sender("events", Default::default());
    let mut events = timeout(PATIENCE, opening).await??;
    while let Some((id, body)) = outbox.front() {
        let mut message = ServiceBusMessage::new(*body);
        message.set_message_id(*id)?;
        events.send_message(message).await?;
        outbox.pop_front();
    }
    Ok(client.dispose().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("events").requires_duplicate_detection(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let events = servicebus.queue("events");
    let send = |id| servicebus.faults().on(Operation::Send).message_id(id);
    send("row-1").drop_connection().await;
    send("row-2").lose_reply().await;
    let mut outbox = Outbox::from([("row-1", "placed"), ("row-2", "paid"), ("row-3", "shipped")]);
    let bus = servicebus.connection_string();
    while relay(&mut outbox, bus).await.is_err() {
        println!("{} was not acknowledged", outbox[0].0);
    }

    assert_message_count!(events, active = 3).await;
    let of_row_2 = servicebus.timeline(&events).await.of_message("row-2");
    assert!(of_row_2.count(&EventKind::DuplicateDropped) >= 1);
    for event in events.peek().await {
        println!("{}", event.body_text());
    }
    Ok(())
}
