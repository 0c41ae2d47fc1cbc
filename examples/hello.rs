//! The README's Rust snippet: sends a message to a running emulator and receives it again.
#![expect(
    clippy::large_futures,
    clippy::print_stdout,
    reason = "this is the README's, word by word"
)]

use azservicebus::{ServiceBusClient, ServiceBusClientOptions};

const CONNECTION_STRING: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
    SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection_string = std::env::var("SERVICEBUS_CONNECTION_STRING");
    let connection_string = connection_string.as_deref().unwrap_or(CONNECTION_STRING);
    let mut client = ServiceBusClient::unsecured()
        .new_from_connection_string(connection_string, ServiceBusClientOptions::default())
        .await?;

    let mut sender = client.create_sender("queue.1", Default::default()).await?;
    sender.send_message("hello from Rust").await?;

    let mut receiver = client
        .create_receiver_for_queue("queue.1", Default::default())
        .await?;
    let message = receiver.receive_message().await?;
    println!("{}", String::from_utf8_lossy(message.body()?));
    receiver.complete_message(&message).await?;

    sender.dispose().await?;
    receiver.dispose().await?;
    client.dispose().await?;
    Ok(())
}
