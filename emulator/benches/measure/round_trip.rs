//! A program as a test would be: messages sent through the harness's handle, received and completed through its
//! client. `unoptimised.rs` runs it in two builds.

use std::time::Instant;

use servicebus_harness::ServiceBus;
use servicebus_harness::azservicebus::ServiceBusReceiverOptions;

use crate::Outcome;
use crate::report::say;

const QUEUE: &str = "queue.1";
/// Messages asked for at a time.
const BATCH: u32 = 500;

/// Sends and receives so many messages and says how many seconds that took.
pub(crate) fn play(messages: usize) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let servicebus = ServiceBus::start().await;
        let mut client = servicebus.client().await;
        let options = ServiceBusReceiverOptions::default();
        let mut receiver = Box::pin(client.create_receiver_for_queue(QUEUE, options)).await?;
        let begin = Instant::now();
        let texts = (0..messages).map(|number| format!("message {number}"));
        servicebus.queue(QUEUE).send_all(texts).await;
        let sent = begin.elapsed();
        let mut received = 0;
        while received < messages {
            // It waits for as many as it is asked for.
            let wanted = BATCH.min((messages - received) as u32);
            for message in Box::pin(receiver.receive_messages(wanted)).await? {
                Box::pin(receiver.complete_message(&message)).await?;
                received += 1;
            }
        }
        let (sent, all) = (sent.as_secs_f64(), begin.elapsed().as_secs_f64());
        say(&format!("{sent} {all}"))
    })
}
