//! An outbox: messages wait beside the data that they tell of, and are sent until the bus has said that it has them.
//!
//! One whose acknowledgement was lost is sent twice. Its id is that of its row, by which the queue knows it and drops the
//! second. `cargo run --example outbox`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]
#![expect(clippy::large_futures, reason = "the futures of the SDK are")]

use std::{collections::VecDeque, error::Error, time::Duration};

use azservicebus::{ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage};
use servicebus_harness::prelude::*;

/// The SDK does not notice that an acknowledgement cannot come any more; after this it gives up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The table of what is to be told, and has not been; oldest first.
struct Outbox(VecDeque<(&'static str, &'static str)>);

impl Outbox {
    /// Sends until nothing is left.
    async fn drain(&mut self, connection_string: &str) {
        while self.relay(connection_string).await.is_err() {
            if let Some((id, _)) = self.0.front() {
                println!("{id} was not acknowledged");
            }
        }
    }

    async fn relay(&mut self, connection_string: &str) -> Result<(), Box<dyn Error>> {
        let mut options = ServiceBusClientOptions::default();
        options.retry_options.max_retries = 0; // it is tried again here
        options.retry_options.try_timeout = PATIENCE;
        let connecting =
            ServiceBusClient::unsecured().new_from_connection_string(connection_string, options);
        let mut client = connecting.await?;
        let mut events = client.create_sender("events", Default::default()).await?;
        while let Some((id, body)) = self.0.front() {
            let mut message = ServiceBusMessage::new(*body);
            message.set_message_id(*id)?;
            events.send_message(message).await?;
            // The row goes when the bus has the message, never before.
            self.0.pop_front();
        }
        Ok(client.dispose().await?)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let events = Queue::new("events").requires_duplicate_detection(true);
    let topology = Topology::new().queue(events);
    let servicebus = ServiceBus::builder().topology(topology).start().await?;
    let events = servicebus.queue("events");
    let send = |id| servicebus.faults().on(Operation::Send).message_id(id);
    send("row-1").drop_connection().await;
    send("row-2").lose_reply().await;

    let rows = [("row-1", "placed"), ("row-2", "paid"), ("row-3", "shipped")];
    let mut outbox = Outbox(rows.into());
    outbox.drain(servicebus.connection_string()).await;

    for event in events.peek().await {
        println!("{}", event.body_text());
    }
    let timeline = servicebus.timeline(&events).await.of_message("row-2");
    for event in timeline.events() {
        println!("row-2: {}", event.kind.name());
    }
    Ok(())
}
