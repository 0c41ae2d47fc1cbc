//! The cost of the AMQP engine alone per message in each direction: frames of one turn in, answers out.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use servicebus_amqp::{
    AttachReply, Config, Connection, Delivery, Event, LinkId, Outcome as Settle,
};

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::{self, Role, Transfers, message};
use crate::report::Report;
use crate::statistics::Rounds;

const BODY: usize = 1024;
/// Messages of one turn, as in one read of 64 KiB.
const TURN: u32 = 56;
const ANNOTATIONS: usize = 180;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let turns = effort.pick(2, 20_000);
    let (mut incoming, mut outgoing) = (Rounds::default(), Rounds::default());
    for _ in 0..effort.rounds() {
        incoming.push(taking(turns)?);
        outgoing.push(giving(turns)?);
    }
    report.note("transfer in, outcome out, 1 KiB", format!("{incoming} ns"));
    report.note(
        "transfer out, settlement in and answered, 1 KiB",
        format!("{outgoing} ns"),
    );
    Ok(())
}

/// A connection with one link.
fn connected(role: Role) -> Result<(Connection, LinkId), &'static str> {
    let mut connection = Connection::new(Config::default(), Duration::ZERO);
    let mut input = BytesMut::from(&frames::login()[..]);
    input.extend_from_slice(&frames::attach(role, 0, "bench"));
    let mut attached = None;
    while !input.is_empty() || attached.is_none() {
        connection.receive(Duration::ZERO, &mut input);
        let event = connection.poll_event().ok_or("the engine has stopped")?;
        if let Event::Sasl { .. } = event {
            connection.sasl_outcome(true);
        } else if let Event::Attach { link, .. } = event {
            connection.accept_attach(link, AttachReply::default());
            attached = Some(link);
        }
    }
    empty(&mut connection);
    Ok((connection, attached.ok_or("no link")?))
}

fn taking(turns: u32) -> Result<f64, &'static str> {
    let (mut connection, link) = connected(Role::Sender)?;
    let mut transfers = Transfers::of(&message(BODY, None), TURN as usize);
    let mut took = Duration::ZERO;
    for turn in 0..turns {
        let mut input = BytesMut::from(transfers.numbered(turn * TURN, TURN as usize));
        let begin = Instant::now();
        connection.receive(Duration::ZERO, &mut input);
        while let Some(event) = connection.poll_event() {
            if let Event::Transfer(transfer) = event {
                connection.outcome(link, transfer.delivery, Settle::Accepted);
            }
        }
        empty(&mut connection);
        took += begin.elapsed();
    }
    Ok(took.as_nanos() as f64 / f64::from(turns * TURN))
}

fn giving(turns: u32) -> Result<f64, &'static str> {
    let (mut connection, link) = connected(Role::Receiver)?;
    let (head, tail) = (vec![0; ANNOTATIONS], Bytes::from(message(BODY, None)));
    let mut took = Duration::ZERO;
    for turn in 0..turns {
        let first = turn * TURN;
        let mut answer = Vec::new();
        frames::flow(&mut answer, 0, first, TURN);
        connection.receive(Duration::ZERO, &mut BytesMut::from(&answer[..]));
        while connection.poll_event().is_some() {}
        answer.clear();
        frames::accept(&mut answer, first, first + TURN - 1);
        let mut answer = BytesMut::from(&answer[..]);

        let begin = Instant::now();
        for number in 0..TURN {
            let delivery = Delivery {
                tag: [number as u8; 16],
                settled: false,
                message_format: 0,
                head: &head,
                tail: tail.clone(),
            };
            connection.deliver(link, delivery).ok_or("no credit")?;
        }
        empty(&mut connection);
        connection.receive(Duration::ZERO, &mut answer);
        while let Some(event) = connection.poll_event() {
            if let Event::Settle(settlement) = event {
                connection.settle(link, settlement.delivery, settlement.outcome);
            }
        }
        empty(&mut connection);
        took += begin.elapsed();
    }
    Ok(took.as_nanos() as f64 / f64::from(turns * TURN))
}

/// Discards the output as if it were written.
fn empty(connection: &mut Connection) {
    connection.flush();
    let length = connection.output().len();
    connection.output().advance(length);
}
