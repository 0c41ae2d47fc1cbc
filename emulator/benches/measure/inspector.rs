//! The cost of inspection: an open inspector during traffic, reads of the control API during sends at a steady rate, and
//! queues created one by one over the control API.
//!
//! The viewer here sends the page's requests: it follows changes, and lists entities and messages after each.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::admin::Client;
use crate::arguments::Effort;
use crate::connection::connect;
use crate::latency::{self, Pace};
use crate::process::Emulator;
use crate::report::Report;
use crate::statistics::{Rounds, number};
use crate::throughput;

const CHANGES: &str = "/changes";
/// The lists that the page reads after each change.
const LISTS: [&str; 2] = [
    "/entities?order=path&limit=50",
    "/messages?entity=bench&limit=50",
];
/// Every kind of read.
const READS: [&str; 9] = [
    "/entities?order=dead-letter&limit=1000",
    "/messages?entity=bench&limit=200",
    "/messages?entity=bench&where=1%3D2&limit=200",
    "/timeline?limit=1000&order=newest",
    "/timeline?limit=1000&order=oldest",
    "/timeline?limit=1000&order=oldest&after=100000",
    "/connections",
    "/due",
    "/receivers?entity=bench",
];
/// Between two reads.
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    viewed(effort, report)?;
    read_beside_sends(effort, report)?;
    made(effort, report)
}

fn viewed(effort: Effort, report: &mut Report) -> Outcome {
    let emulator = Emulator::start()?;
    let count = effort.pick(2_000, 300_000);
    throughput::through_emulator(&emulator, count / 10)?;
    let mut ratio = Rounds::default();
    for _ in 0..effort.rounds() {
        let alone = throughput::through_emulator(&emulator, count)?;
        let viewed = beside(&emulator, view, || {
            throughput::through_emulator(&emulator, count)
        })?;
        ratio.push(viewed.per_second / alone.per_second);
    }
    let what = "throughput with a viewer ÷ alone";
    report.at_least(what, &ratio, "", 0.95);
    Ok(())
}

fn read_beside_sends(effort: Effort, report: &mut Report) -> Outcome {
    let emulator = Emulator::start()?;
    let count = effort.pick(200, 50_000);
    let worst = |seen: hdrhistogram::Histogram<u64>| seen.value_at_quantile(0.999) as f64 / 1000.0;
    let (mut alone, mut ratio) = (Rounds::default(), Rounds::default());
    for _ in 0..effort.rounds() {
        let send = || latency::through_emulator(&emulator, Pace::Steady, count);
        let without = worst(send()?);
        let with = worst(beside(&emulator, read, send)?);
        alone.push(without);
        ratio.push(with / without);
    }
    report.note(
        "10,000 a second, p99.9 alone",
        format!("{} µs", number(alone.median())),
    );
    let what = "p99.9 beside reads of the control API ÷ alone";
    report.at_most(what, &ratio, "", 2.0);
    Ok(())
}

fn made(effort: Effort, report: &mut Report) -> Outcome {
    // One more is declared.
    let queues = effort.pick(200, 9_990);
    let part = effort.pick(50, 1_000);
    let mut each = Rounds::default();
    for _ in 0..effort.rounds() {
        let emulator = Emulator::start()?;
        let mut client = Client::connect(&emulator)?;
        let put = |client: &mut Client, number| {
            let path = format!("namespaces/sbemulatorns/queues/queue-{number:05}");
            client.control("PUT", &path, "{}")
        };
        client.cost(&emulator, 0..queues - part, put)?;
        let last = client.cost(&emulator, queues - part..queues, put)?;
        each.push(last / f64::from(part));
    }
    let what = "PUT of a queue over the control API, the last thousand of 10,000";
    report.at_most(what, &each, " µs", 100.0);
    Ok(())
}

/// Runs work while another thread reads.
fn beside<T>(
    emulator: &Emulator,
    look: fn(SocketAddr, &AtomicBool) -> io::Result<()>,
    what: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let (over, address) = (AtomicBool::new(false), emulator.http);
    thread::scope(|scope| {
        let looking = scope.spawn(|| look(address, &over));
        let done = what();
        over.store(true, Ordering::Relaxed);
        looking.join().expect("a viewer does not panic")?;
        done
    })
}

fn view(address: SocketAddr, over: &AtomicBool) -> io::Result<()> {
    let mut changes = ask(address, CHANGES)?;
    let mut line = String::new();
    while !over.load(Ordering::Relaxed) {
        line.clear();
        changes.read_line(&mut line)?;
        if line.starts_with("data: ") {
            LISTS.iter().try_for_each(|list| get(address, list))?;
        }
    }
    Ok(())
}

fn read(address: SocketAddr, over: &AtomicBool) -> io::Result<()> {
    for path in READS.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        get(address, path)?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Reads an answer to its end.
fn get(address: SocketAddr, path: &str) -> io::Result<()> {
    let mut answer = Vec::new();
    ask(address, path)?.read_to_end(&mut answer)?;
    match answer.starts_with(b"HTTP/1.1 200") {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&answer).into_owned(),
        )),
    }
}

fn ask(address: SocketAddr, path: &str) -> io::Result<BufReader<TcpStream>> {
    let mut stream = connect(address)?;
    let request = format!(
        "GET /$emulator/v1/namespaces/sbemulatorns{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    Ok(BufReader::new(stream))
}
