//! A deadline with a reply queue: a job that no worker receives within a minute expires and moves to a slow queue. In either
//! queue, its worker sends the answer to the job's reply address. `cargo run --example deadline`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{error::Error, time::Duration};

use azservicebus::{ServiceBusClient, ServiceBusMessage, core::BasicRetryPolicy};
use servicebus_harness::prelude::*;
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);
type Client = ServiceBusClient<BasicRetryPolicy>;

/// Moves an expired job from the dead-letter queue to the slow queue, which has no deadline.
pub(crate) async fn rescue(mut client: Client) -> Result<(), Box<dyn Error>> {
    let receiving = client.create_receiver_for_queue("jobs/$DeadLetterQueue", Default::default());
    let mut expired = timeout(MINUTE, receiving).await??;
    let opening = client.create_sender("slow", Default::default());
    let mut slow = timeout(MINUTE, opening).await??;
    let job = expired.receive_message().await?;
    let mut again = ServiceBusMessage::new(job.body()?);
    again.set_message_id(job.message_id().ok_or("a job has an id")?)?;
    again.set_reply_to(job.reply_to().map(str::to_owned));
    slow.send_message(again).await?;
    expired.complete_message(&job).await?;
    Ok(client.dispose().await?)
}

/// Processes a job of a queue, like a worker.
async fn work(servicebus: &ServiceBus, queue: &str) {
    let job = servicebus.queue(queue).receive().await;
    let answer = Message::from("done").correlation_id(job.message_id.as_deref().unwrap());
    let answers = servicebus.queue(job.reply_to.as_deref().unwrap());
    answers.send(answer).await;
    job.complete().await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let jobs = Queue::new("jobs").dead_lettering_on_message_expiration(true);
    let topology = Topology::new().queue(jobs).queue(Queue::new("slow"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let jobs = servicebus.queue("jobs");
    let answers = servicebus.create_queue(Queue::new("answers")).await;
    let job = Message::from("resize").time_to_live(MINUTE);
    let job = |id| job.clone().message_id(id).reply_to("answers");
    jobs.send_all(["in-time", "too-late"].map(job)).await;
    work(&servicebus, "jobs").await;
    servicebus.clock().advance(MINUTE).await;
    assert_expired!(jobs, message_id = "too-late", count = 1).await;
    rescue(servicebus.client().await).await?;
    assert_empty!(jobs.dead_letters()).await;
    work(&servicebus, "slow").await;
    for answer in answers.peek().await {
        println!("{} is done", answer.correlation_id.unwrap_or_default());
    }
    Ok(())
}
