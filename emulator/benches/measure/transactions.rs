//! Transactions: the cost of completing one message and sending another in a transaction, compared with the same two
//! operations alone.
//!
//! The client waits for every answer before it continues, as SDKs do, so that a transaction has two exchanges more: its
//! declare and its discharge.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use servicebus_codec::{Reader, Writer};

use crate::Outcome;
use crate::arguments::Effort;
use crate::connection::Connection;
use crate::frames::{self, AMQP, Role, Transfers, append, code, message, sized};
use crate::process::{Emulator, QUEUE};
use crate::report::Report;
use crate::sender::Sender;
use crate::throughput::{RoundResult, at_rest, passed};

/// How much more the two may cost in a transaction.
const LIMIT: f64 = 4.0;
const BODY: usize = 1024;
/// Messages in circulation.
const MESSAGES: u32 = 16;

const RECEIVER: u32 = 0;
const SENDER: u32 = 1;
const COORDINATOR: u32 = 2;

/// Descriptors of what is said about transactions.
const DECLARE: u8 = 0x31;
const DISCHARGE: u8 = 0x32;
const DECLARED: u8 = 0x33;
const TRANSACTIONAL: u8 = 0x34;
const AMQP_VALUE: u8 = 0x77;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let count = effort.pick(100, 20_000);
    let emulator = Emulator::start()?;
    let mut sender = Sender::attach_to(
        emulator.amqp,
        QUEUE,
        Transfers::of(&message(BODY, None), MESSAGES as usize),
    )?;
    sender.send(MESSAGES, MESSAGES)?;
    let mut worker = Worker::attach(emulator.amqp)?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        let alone = worker.run(&emulator, count, Worker::work_alone)?;
        let within = worker.run(&emulator, count, Worker::work_in_transaction)?;
        rounds.push((alone, within));
    }
    report.compare(
        "complete and send, alone and in a transaction, µs",
        "in a transaction ÷ alone",
        rounds.iter().map(|(a, b)| (a.time(), b.time())),
        LIMIT,
    );
    report.compare(
        "the same, processor µs",
        "in a transaction ÷ alone, processor",
        rounds.iter().map(|(a, b)| (a.cost, b.cost)),
        LIMIT,
    );
    Ok(())
}

/// A client that repeatedly completes a message and sends another to the same queue.
#[derive(Debug)]
struct Worker {
    connection: Connection,
    /// Delivery ids of the messages that it holds.
    held: VecDeque<u32>,
    /// Delivery id of its next transfer.
    next: u32,
    encoded: Vec<u8>,
}

impl Worker {
    fn attach(address: SocketAddr) -> io::Result<Self> {
        let mut connection = Connection::open(address)?;
        connection.attach(Role::Sender, SENDER, QUEUE)?;
        connection.attach_with(&coordinator())?;
        connection.attach(Role::Receiver, RECEIVER, QUEUE)?;
        let mut credit = Vec::new();
        frames::flow(&mut credit, RECEIVER, 0, 1 << 30);
        connection.write(&credit)?;
        Ok(Self {
            connection,
            held: VecDeque::new(),
            next: 0,
            encoded: message(BODY, None),
        })
    }

    fn run(
        &mut self,
        emulator: &Emulator,
        count: u32,
        work: fn(&mut Self) -> io::Result<()>,
    ) -> io::Result<RoundResult> {
        let before = at_rest(emulator.pid())?;
        let begin = Instant::now();
        for _ in 0..count {
            work(self)?;
        }
        let took = begin.elapsed();
        Ok(passed(count, took, at_rest(emulator.pid())? - before))
    }

    fn work_alone(&mut self) -> io::Result<()> {
        let id = self.hold()?;
        self.settle(id, accepted)?;
        self.expect(code::ACCEPTED)?;
        let encoded = std::mem::take(&mut self.encoded);
        self.transfer(SENDER, &encoded, None)?;
        self.encoded = encoded;
        self.expect(code::ACCEPTED).map(drop)
    }

    fn work_in_transaction(&mut self) -> io::Result<()> {
        let id = self.hold()?;
        let declare = demand(DECLARE, 0, |_| {});
        self.transfer(COORDINATOR, &declare, None)?;
        let transaction = self.expect(DECLARED)?;
        self.settle(id, |out| transactional(out, &transaction, Some(accepted)))?;
        self.expect(TRANSACTIONAL)?;
        let encoded = std::mem::take(&mut self.encoded);
        self.transfer(SENDER, &encoded, Some(&transaction))?;
        self.encoded = encoded;
        self.expect(TRANSACTIONAL)?;
        let discharge = demand(DISCHARGE, 2, |out| {
            out.binary(&transaction);
            out.bool(false);
        });
        self.transfer(COORDINATOR, &discharge, None)?;
        // The settlement is answered with the commit, before the discharge (spec/observed.md 41).
        self.expect(TRANSACTIONAL)?;
        self.expect(code::ACCEPTED).map(drop)
    }

    /// Returns a held message; waits for one if needed.
    fn hold(&mut self) -> io::Result<u32> {
        loop {
            if let Some(id) = self.held.pop_front() {
                return Ok(id);
            }
            while let Some(frame) = self.connection.frame()? {
                if frame.code == code::TRANSFER {
                    self.held.push_back(frame.delivery_id()?);
                }
            }
            if self.held.is_empty() {
                self.connection.read()?;
            }
        }
    }

    fn settle(&mut self, id: u32, state: impl FnOnce(&mut Writer<'_>)) -> io::Result<()> {
        let mut out = Vec::new();
        append(&mut out, AMQP, 0, code::DISPOSITION, |fields| {
            fields.bool(true);
            fields.uint(id);
            fields.uint(id);
            fields.bool(false);
            state(fields);
            5
        });
        self.connection.write(&out)
    }

    fn transfer(
        &mut self,
        handle: u32,
        payload: &[u8],
        transaction: Option<&[u8]>,
    ) -> io::Result<()> {
        let mut out = Vec::with_capacity(payload.len() + 128);
        append(&mut out, AMQP, 0, code::TRANSFER, |fields| {
            fields.uint(handle);
            fields.uint(self.next);
            fields.binary(&self.next.to_be_bytes());
            fields.uint(0);
            fields.bool(false);
            fields.bool(false);
            fields.null();
            match transaction {
                Some(transaction) => transactional(fields, transaction, None),
                None => fields.null(),
            }
            8
        });
        out.extend_from_slice(payload);
        self.next += 1;
        self.connection.write(&sized(out, 0))
    }

    /// Waits for an answer of this kind; returns its first field if that is a binary.
    fn expect(&mut self, wanted: u8) -> io::Result<Vec<u8>> {
        loop {
            while let Some(frame) = self.connection.frame()? {
                match frame.code {
                    code::TRANSFER => self.held.push_back(frame.delivery_id()?),
                    code::DISPOSITION => return content(frame.state()?, wanted),
                    _ => {}
                }
            }
            self.connection.read()?;
        }
    }
}

/// A link to the coordinator.
fn coordinator() -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, AMQP, 0, code::ATTACH, |fields| {
        fields.string("coordinator");
        fields.uint(COORDINATOR);
        fields.bool(false);
        fields.ubyte(0);
        fields.ubyte(0);
        for descriptor in [code::SOURCE, 0x30] {
            fields.descriptor(descriptor);
            let list = fields.begin_list();
            fields.end(list, 0);
        }
        fields.null();
        fields.null();
        fields.uint(0);
        10
    });
    out
}

/// A message to the coordinator.
fn demand(descriptor: u8, count: u32, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut out = Writer::new(&mut encoded);
    out.descriptor(AMQP_VALUE);
    out.descriptor(descriptor);
    let list = out.begin_list();
    write(&mut out);
    out.end(list, count);
    encoded
}

fn accepted(out: &mut Writer<'_>) {
    out.descriptor(code::ACCEPTED);
    let list = out.begin_list();
    out.end(list, 0);
}

fn transactional(out: &mut Writer<'_>, transaction: &[u8], outcome: Option<fn(&mut Writer<'_>)>) {
    out.descriptor(TRANSACTIONAL);
    let list = out.begin_list();
    out.binary(transaction);
    if let Some(outcome) = outcome {
        outcome(out);
    }
    out.end(list, 1 + u32::from(outcome.is_some()));
}

/// The first field of a state of this kind, which is a binary if there is one.
fn content(state: &[u8], wanted: u8) -> io::Result<Vec<u8>> {
    let [0, 0x53, kind, ..] = *state else {
        return Err(io::Error::other(format!("no answer: {state:?}")));
    };
    if kind != wanted {
        let text = String::from_utf8_lossy(state);
        return Err(io::Error::other(format!("answered {kind:#x}: {text}")));
    }
    let read = || {
        let mut reader = Reader::new(state);
        reader.descriptor()?;
        reader.fields()?.binary()
    };
    let content = read().map_err(io::Error::other)?;
    Ok(content.unwrap_or_default().to_vec())
}
