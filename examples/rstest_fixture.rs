//! Tests that ask for a bus by naming it: the `rstest` fixture.
//!
//! `cargo test --example rstest_fixture`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

fn main() {
    println!("this example is made of tests: cargo test --example rstest_fixture");
}

#[cfg(test)]
#[expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, and nobody minds here"
)]
mod tests {
    use std::time::Duration;

    use azservicebus::{ServiceBusReceiverOptions, receiver::DeadLetterOptions};
    use rstest::rstest;
    use servicebus_harness::prelude::*;

    /// The code under test: it rejects what is not a number.
    async fn work(servicebus: &ServiceBus) -> Result<(), Box<dyn std::error::Error>> {
        let mut client = servicebus.client().await;
        let options = ServiceBusReceiverOptions::default();
        let mut receiver = client.create_receiver_for_queue("totals", options).await?;
        let message = receiver.receive_message().await?;
        match str::from_utf8(message.body()?)?.parse::<u32>() {
            Ok(_total) => receiver.complete_message(&message).await?,
            Err(error) => {
                let options = DeadLetterOptions {
                    dead_letter_reason: Some("NotANumber".to_owned()),
                    dead_letter_error_description: Some(error.to_string()),
                    properties_to_modify: None,
                };
                receiver.dead_letter_message(&message, options).await?;
            }
        }
        Ok(client.dispose().await?)
    }

    #[rstest]
    #[case("12", 0)]
    #[case("twelve", 1)]
    #[tokio::test]
    async fn only_numbers_pass(
        #[future(awt)]
        #[with(Topology::new().queue(Queue::new("totals").lock_duration(Duration::from_secs(30))))]
        servicebus: ServiceBus,
        #[case] body: &str,
        #[case] dead: u64,
    ) {
        let totals = servicebus.queue("totals");
        totals.send(body).await;
        work(&servicebus).await.unwrap();
        assert_message_count!(totals, active = 0, dead_letter = dead).await;
    }
}
