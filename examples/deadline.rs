//! A deadline with a reply queue: who asks waits a minute, and what was not taken by then goes to a slow queue.
//!
//! Expired jobs come back from the dead-letter queue. `cargo run --example deadline`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]
#![expect(clippy::large_futures, reason = "the futures of the SDK are")]

use std::{borrow::Cow, error::Error, time::Duration};

use azservicebus::{ServiceBusClient, ServiceBusMessage, ServiceBusReceiverOptions};
use azservicebus::{core::BasicRetryPolicy, primitives::sub_queue::SubQueue};
use servicebus_harness::prelude::*;

type Client = ServiceBusClient<BasicRetryPolicy>;

const MINUTE: Duration = Duration::from_secs(60);

/// Does one job of a queue and answers where the job says.
async fn work(client: &mut Client, queue: &str) -> Result<(), Box<dyn Error>> {
    let options = ServiceBusReceiverOptions::default();
    let mut jobs = client.create_receiver_for_queue(queue, options).await?;
    let job = jobs.receive_message().await?;
    let reply_to = job.reply_to().ok_or("a job says where its answer goes")?;
    let mut replies = client.create_sender(reply_to, Default::default()).await?;
    let mut reply = ServiceBusMessage::new(format!("done by way of {queue}"));
    reply.set_correlation_id(job.message_id().map(Cow::into_owned));
    replies.send_message(reply).await?;
    jobs.complete_message(&job).await?;
    replies.dispose().await?;
    Ok(jobs.dispose().await?)
}

/// Moves one job that came too late to the slow queue, where it has all the time it needs.
async fn rescue(client: &mut Client) -> Result<(), Box<dyn Error>> {
    let options = ServiceBusReceiverOptions {
        sub_queue: SubQueue::DeadLetter,
        ..Default::default()
    };
    let mut expired = client.create_receiver_for_queue("jobs", options).await?;
    let mut slow = client.create_sender("slow", Default::default()).await?;
    let job = expired.receive_message().await?;
    let mut again = ServiceBusMessage::new(job.body()?);
    again.set_message_id(job.message_id().ok_or("a job has an id")?)?;
    again.set_reply_to(job.reply_to().map(str::to_owned));
    slow.send_message(again).await?;
    expired.complete_message(&job).await?;
    slow.dispose().await?;
    Ok(expired.dispose().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let jobs = Queue::new("jobs").dead_lettering_on_message_expiration(true);
    let topology = Topology::new().queue(jobs).queue(Queue::new("slow"));
    let topology = topology.queue(Queue::new("replies"));
    let servicebus = ServiceBus::builder().topology(topology).start().await?;
    let (jobs, replies) = (servicebus.queue("jobs"), servicebus.queue("replies"));
    let mut client = servicebus.client().await;
    let job = |id| Message::from("resize").id(id).reply_to("replies");

    jobs.send(job("in-time").time_to_live(MINUTE)).await;
    work(&mut client, "jobs").await?;

    jobs.send(job("too-late").time_to_live(MINUTE)).await;
    servicebus.clock().advance(MINUTE).await;
    assert_expired!(jobs, message_id = "too-late", count = 1).await;
    rescue(&mut client).await?;
    work(&mut client, "slow").await?;

    for reply in replies.peek().await {
        let job = reply.correlation_id.as_deref().unwrap_or("no job");
        println!("{job}: {}", reply.body_text());
    }
    assert_empty!(jobs.dead_letters()).await;
    Ok(client.dispose().await?)
}
