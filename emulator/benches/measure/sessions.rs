//! Sessions: whether the next available one costs more among many, and the cost of a message in a session compared with one
//! in a plain queue with as many receivers.

use std::io;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use servicebus_broker::EntityDescription;
use servicebus_codec::Writer;

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::Transfers;
use crate::local::LocalNamespace;
use crate::process::{Emulator, QUEUE, SESSIONS};
use crate::readers::{Readers, RequestedSession};
use crate::report::Report;
use crate::sender::Sender;
use crate::throughput::{RoundResult, at_rest, passed};

/// How much more the next session may cost among 100,000 than among 1,000.
const ACCEPT: f64 = 2.5;
/// How much more a message may cost in a session than in a plain queue.
const MESSAGE: f64 = 1.5;

const BODY: usize = 1024;
/// The body size of messages that only create sessions.
const SMALL: usize = 16;
const IN_FLIGHT: u32 = 1000;
/// Transfers written at once; divides every number of sessions here.
const BLOCK: usize = 50;
const CONNECTIONS: u32 = 4;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let (few, many) = effort.pick((100, 200), (1_000, 100_000));
    let receivers = effort.pick(40, 1_000);

    let turns = effort.pick(20, 50_000);
    let in_core = |sessions| accept_in_core(sessions, receivers, turns);
    let rounds = (0..effort.rounds()).map(|_| (in_core(few), in_core(many)));
    report.compare(
        "accept next, in the core, ns",
        "accept next, in the core, 100 K ÷ 1 K",
        Vec::from_iter(rounds).into_iter(),
        ACCEPT,
    );

    let (shallow, deep) = (filled(few)?, filled(many)?);
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        rounds.push((accept(&shallow, receivers)?, accept(&deep, receivers)?));
    }
    drop((shallow, deep));
    report.compare(
        "accept next, processor µs",
        "accept next, 100 K ÷ 1 K",
        rounds.into_iter(),
        ACCEPT,
    );

    let count = effort.pick(2_000, 200_000);
    let mut rounds = Vec::new();
    let emulator = Emulator::start()?;
    let pass = |queue, wanted| pass(&emulator, queue, wanted, receivers, count);
    for _ in 0..effort.rounds() {
        let plain = pass(QUEUE, RequestedSession::Nothing)?;
        rounds.push((plain, pass(SESSIONS, RequestedSession::Next)?));
    }
    report.compare(
        "a message to 1,000 receivers, plain and in sessions, µs",
        "in sessions ÷ plain",
        rounds.iter().map(|(a, b)| (a.time(), b.time())),
        MESSAGE,
    );
    report.compare(
        "the same, processor µs",
        "in sessions ÷ plain, processor",
        rounds.iter().map(|(a, b)| (a.cost, b.cost)),
        MESSAGE,
    );
    Ok(())
}

/// An encoded message of a session, whose number has leading zeros so that all messages have the same size.
fn encoded(session: u32, body: usize) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut out = Writer::new(&mut encoded);
    out.descriptor(0x73);
    let properties = out.begin_list();
    out.string("message-0123456789");
    (0..9).for_each(|_| out.null());
    out.string(&format!("session-{session:07}"));
    out.end(properties, 11);
    out.descriptor(0x75);
    out.binary(&vec![b'x'; body]);
    encoded
}

/// Returns the nanoseconds of accepting the next session among `sessions`, of which `receivers` are held by others. The
/// receiver that accepts completes its message, releases the session, and another message arrives in it.
fn accept_in_core(sessions: u32, receivers: u32, turns: u32) -> f64 {
    let mut local = LocalNamespace::new(&EntityDescription {
        requires_session: true,
        ..EntityDescription::default()
    });
    let encoded_all: Vec<Bytes> = (0..sessions + receivers)
        .map(|session| encoded(session, SMALL).into())
        .collect();
    for encoded in &encoded_all {
        local.send(encoded.clone());
    }
    for _ in 0..receivers {
        local.next_session();
    }
    let mut accepting = Duration::ZERO;
    for turn in 0..turns {
        let begin = Instant::now();
        let receiver = local.next_session();
        accepting += begin.elapsed();
        local.ask(receiver, 1);
        let taken = local.take(receiver, 1);
        assert_eq!(taken.len(), 1, "a session without a message was available");
        local.complete(taken.iter().map(|delivery| delivery.token));
        local.close(receiver);
        let next = receivers + turn % sessions;
        local.send(encoded_all[next as usize].clone());
    }
    accepting.as_nanos() as f64 / f64::from(turns)
}

/// Starts an emulator with one message in each of many sessions.
fn filled(sessions: u32) -> io::Result<Emulator> {
    let emulator = Emulator::start()?;
    let encoded_all = (0..sessions).map(|session| encoded(session, SMALL));
    let transfers = Transfers::each(encoded_all, BLOCK);
    let mut sender = Sender::attach_to(emulator.amqp, SESSIONS, transfers)?;
    sender.send(sessions, IN_FLIGHT)?;
    Ok(emulator)
}

/// Returns the processor time for each of `receivers` that accept the next session at the same time, in microseconds.
fn accept(emulator: &Emulator, receivers: u32) -> io::Result<f64> {
    let before = at_rest(emulator.pid())?;
    let readers = attach_all(emulator, SESSIONS, RequestedSession::Next, receivers)?;
    let used = at_rest(emulator.pid())? - before;
    drop(readers);
    // Until all of them are free again.
    at_rest(emulator.pid())?;
    Ok(used.as_secs_f64() * 1e6 / f64::from(receivers))
}

/// Sends messages to as many sessions as there are receivers, who accept all of them; sends the same to a plain queue.
fn pass(
    emulator: &Emulator,
    queue: &str,
    wanted: RequestedSession,
    receivers: u32,
    count: u32,
) -> io::Result<RoundResult> {
    let encoded_all = || (0..receivers).map(|session| encoded(session, BODY));
    let mut sender =
        Sender::attach_to(emulator.amqp, queue, Transfers::each(encoded_all(), BLOCK))?;
    // One for each receiver.
    sender.send(receivers, IN_FLIGHT)?;
    let mut readers = attach_all(emulator, queue, wanted, receivers)?;
    readers.iter_mut().try_for_each(Readers::grant)?;
    let drain = AtomicU32::new(receivers);
    receive_all(&mut readers, &drain)?;

    let left = AtomicU32::new(count);
    let before = at_rest(emulator.pid())?;
    let begin = Instant::now();
    thread::scope(|scope| {
        let sending = scope.spawn(move || sender.send(count, IN_FLIGHT));
        receive_all(&mut readers, &left)?;
        sending.join().expect("the sender does not panic")
    })?;
    let took = begin.elapsed();
    Ok(passed(count, took, at_rest(emulator.pid())? - before))
}

fn attach_all(
    emulator: &Emulator,
    queue: &str,
    wanted: RequestedSession,
    receivers: u32,
) -> io::Result<Vec<Readers>> {
    let each = receivers / CONNECTIONS;
    (0..CONNECTIONS)
        .map(|_| Readers::attach(emulator.amqp, queue, wanted, each))
        .collect()
}

/// Lets every connection receive until `left` messages have arrived.
fn receive_all(readers: &mut [Readers], left: &AtomicU32) -> io::Result<()> {
    thread::scope(|scope| {
        let receiving: Vec<_> = readers
            .iter_mut()
            .map(|readers| scope.spawn(|| readers.receive(left)))
            .collect();
        receiving
            .into_iter()
            .try_for_each(|receiving| receiving.join().expect("no reader panics"))
    })
}
