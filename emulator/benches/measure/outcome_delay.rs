//! The duration of sends through the Rust SDK, whose AMQP library loses outcomes that arrive too early (decision D31): with
//! repeated outcomes, and without them, so that some sends hang for ever.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use servicebus_harness::azservicebus::core::BasicRetryPolicy;
use servicebus_harness::azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusSender,
};
use tokio::time::timeout;

use crate::Outcome;
use crate::arguments::Effort;
use crate::process::{Emulator, QUEUE};
use crate::report::Report;
use crate::statistics::{histogram, number};

/// Concurrent clients, each of which waits for its own outcomes.
const SIDE_BY_SIDE: usize = 8;
/// A send takes milliseconds; one that takes this long has lost its outcome.
const LOST: Duration = Duration::from_secs(3);

type Client = ServiceBusClient<BasicRetryPolicy>;

/// The result of a number of sends.
#[derive(Debug)]
struct Sent {
    took: Duration,
    each: Histogram<u64>,
    lost: usize,
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let sends = effort.pick(SIDE_BY_SIDE, 2_000);
    let switches: [(&str, &[&str]); 2] = [
        ("outcomes repeated", &[]),
        ("outcomes told once", &["--no-outcome-delay"]),
    ];
    let runtime = tokio::runtime::Runtime::new()?;
    for (name, switch) in switches {
        let emulator = Emulator::start_for_sdk(switch)?;
        let alone = runtime.block_on(side_by_side(&emulator.connection_string, 1, sends))?;
        let together = runtime.block_on(side_by_side(
            &emulator.connection_string,
            SIDE_BY_SIDE,
            sends,
        ))?;
        report.note(&format!("{name}, sends one by one"), describe(&alone));
        let a_second = [alone.per_second()].into_iter().collect();
        report.show(&format!("{name}, one by one, a second"), &a_second, "");
        report.note(
            &format!("{name}, {SIDE_BY_SIDE} clients side by side"),
            describe(&together),
        );
    }
    Ok(())
}

impl Sent {
    fn per_second(&self) -> f64 {
        let hung = LOST * self.lost as u32;
        self.each.len() as f64 / self.took.saturating_sub(hung).as_secs_f64()
    }
}

fn describe(sent: &Sent) -> String {
    let at = |quantile| number(sent.each.value_at_quantile(quantile) as f64);
    let (half, most, per_second) = (at(0.5), at(0.99), number(sent.per_second()));
    format!(
        "p50 {half} µs, p99 {most} µs, {per_second} a second, {} lost",
        sent.lost
    )
}

/// `sends` of so many clients together.
async fn side_by_side(connection_string: &str, clients: usize, sends: usize) -> io::Result<Sent> {
    let begin = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(one_by_one(connection_string.to_owned(), sends / clients)))
        .collect();
    let mut total = Sent {
        took: Duration::ZERO,
        each: histogram()?,
        lost: 0,
    };
    for task in tasks {
        let sent = task.await??;
        total.each.add(&sent.each).map_err(io::Error::other)?;
        total.lost += sent.lost;
    }
    total.took = begin.elapsed();
    Ok(total)
}

async fn one_by_one(connection_string: String, sends: usize) -> io::Result<Sent> {
    let (mut client, mut sender) = connect(&connection_string).await?;
    let mut each = histogram()?;
    let (begin, mut lost) = (Instant::now(), 0);
    for number in 0..sends {
        let begin = Instant::now();
        let sending = Box::pin(sender.send_message(format!("message {number}")));
        match timeout(LOST, sending).await {
            Ok(sent) => {
                sent.map_err(io::Error::other)?;
                each.saturating_record(begin.elapsed().as_micros() as u64);
            }
            Err(_) => {
                lost += 1;
                (client, sender) = connect(&connection_string).await?;
            }
        }
    }
    let took = begin.elapsed();
    let _ = timeout(LOST, sender.dispose()).await;
    let _ = timeout(LOST, client.dispose()).await;
    Ok(Sent { took, each, lost })
}

/// Connects, again if the outcome of the token was lost.
async fn connect(connection_string: &str) -> io::Result<(Client, ServiceBusSender)> {
    loop {
        if let Ok(connected) = timeout(LOST, try_to_connect(connection_string)).await {
            return connected;
        }
    }
}

async fn try_to_connect(connection_string: &str) -> io::Result<(Client, ServiceBusSender)> {
    let options = ServiceBusClientOptions::default();
    // Boxed: the SDK's futures are large.
    let connecting = Client::unsecured().new_from_connection_string(connection_string, options);
    let mut client = Box::pin(connecting).await.map_err(io::Error::other)?;
    let sender = Box::pin(client.create_sender(QUEUE, Default::default())).await;
    Ok((client, sender.map_err(io::Error::other)?))
}
