//! An outbox: messages are stored with their data, and sent until the namespace has acknowledged them.
//!
//! A message whose acknowledgement was lost is sent twice. Its id is that of its row, so the queue detects and drops the
//! duplicate. `cargo run --example outbox`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{collections::VecDeque, error::Error, time::Duration};

use azservicebus::{ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage};
use servicebus_harness::{EventKind, prelude::*};
use tokio::time::timeout;

/// The SDK does not detect a lost acknowledgement; it gives up after this time.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Messages to send by the id of their row, oldest first. In production a table.
pub(crate) type Outbox = VecDeque<(&'static str, &'static str)>;

/// Sends the messages in the outbox. A row is removed only after the namespace has acknowledged its message.
pub(crate) async fn relay(outbox: &mut Outbox, bus: &str) -> Result<(), Box<dyn Error>> {
    let mut options = ServiceBusClientOptions::default();
    options.retry_options.max_retries = 0; // the caller tries again
    options.retry_options.try_timeout = TIMEOUT;
    let connecting = ServiceBusClient::unsecured().new_from_connection_string(bus, options);
    let mut client = connecting.await?;
    let opening = client.create_sender("events", Default::default());
    let mut events = timeout(TIMEOUT, opening).await??;
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
