//! A message through a namespace of one's own: start, send, receive, complete, assert.
//!
//! `cargo run --example quickstart`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]
#![expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does not matter here"
)]

use azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage, ServiceBusReceiverOptions,
    ServiceBusSenderOptions,
};
use servicebus_harness::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let topology = Topology::new().queue(Queue::new("greetings"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;

    // From here on any SDK in any language works; it needs only this string.
    let connection_string = servicebus.connection_string();
    let mut client = ServiceBusClient::unsecured()
        .new_from_connection_string(connection_string, ServiceBusClientOptions::default())
        .await?;

    let options = ServiceBusSenderOptions::default();
    let mut sender = client.create_sender("greetings", options).await?;
    sender.send_message(ServiceBusMessage::new("hello")).await?;

    let options = ServiceBusReceiverOptions::default();
    let mut receiver = client
        .create_receiver_for_queue("greetings", options)
        .await?;
    let message = receiver.receive_message().await?;
    println!("received {:?}", str::from_utf8(message.body()?)?);
    receiver.complete_message(&message).await?;

    assert_completed!(servicebus.queue("greetings"), count = 1).await;
    assert_empty!(servicebus.queue("greetings")).await;
    println!("the queue is empty and one message was completed");

    client.dispose().await?;
    Ok(())
}
