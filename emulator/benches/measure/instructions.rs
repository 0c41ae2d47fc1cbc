//! The emulator's instructions per message, counted by callgrind: equal in all runs to within a few per thousand, whatever
//! else the machine does.

use std::fs;
use std::io;

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::message;
use crate::process::{Emulator, scratch};
use crate::receiver::{Accept, Receiver};
use crate::report::Report;
use crate::sender::Sender;
use crate::statistics::Rounds;

/// Messages that are sent, and then received and accepted.
const BLOCK: u32 = 50;
const BODY: usize = 1024;
/// What is watched for changes.
pub(crate) const WHAT: &str = "a message of 1 KiB, sent, received and completed";

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    if effort == Effort::Quick {
        return Ok(play(&Emulator::start()?, 2)?);
    }
    let (few, many) = (100, 500);
    let mut all = Rounds::default();
    for _ in 0..3 {
        match (count(few), count(many)) {
            (Ok(less), Ok(more)) => all.push((more - less) / f64::from((many - few) * BLOCK)),
            (Err(error), _) | (_, Err(error)) => {
                report.miss(WHAT, &error.to_string());
                return Ok(());
            }
        }
    }
    report.show(WHAT, &all, "");
    Ok(())
}

/// Returns the instructions of a process that serves so many blocks.
fn count(blocks: u32) -> io::Result<f64> {
    let log = scratch("callgrind.log");
    let emulator = Emulator::start_under_callgrind(&log)?;
    play(&emulator, blocks)?;
    emulator.end()?;
    let log = fs::read_to_string(log)?;
    let counted = log.lines().find_map(|line| line.split_once("Collected : "));
    let counted = counted.and_then(|(_, counted)| counted.trim().parse().ok());
    counted.ok_or_else(|| io::Error::other(format!("callgrind counted nothing: {log}")))
}

fn play(emulator: &Emulator, blocks: u32) -> io::Result<()> {
    let mut sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
    let mut receiver = Receiver::attach(emulator.amqp)?;
    for _ in 0..blocks {
        sender.send(BLOCK, BLOCK)?;
        receiver.grant(BLOCK)?;
        receiver.receive(BLOCK, 0, Accept::Ranges(BLOCK), |_| {})?;
    }
    Ok(())
}
