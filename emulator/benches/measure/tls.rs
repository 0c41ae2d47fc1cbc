//! As many messages as go through TLS, and through WebSocket over TLS, against the same bytes through an echo over the
//! same libraries.

use std::io;
use std::thread;
use std::time::Instant;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::Outcome;
use crate::arguments::Effort;
use crate::connection::Connection;
use crate::frames::{Transfers, message};
use crate::process::{Emulator, SecuredEcho};
use crate::receiver::{Accept, Receiver};
use crate::report::{Limit, Report};
use crate::secured_echo::{Door, Wrapping, pour};
use crate::sender::Sender;
use crate::statistics::Rounds;
use crate::stream::Stream;

/// Unanswered sends, credit of the receiver, and frames on their way through the echo.
const IN_FLIGHT: u32 = 1000;
const BODY: usize = 1024;
/// Messages accepted at once.
const RANGE: u32 = 64;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let count = effort.pick(2_000, 200_000);
    let emulator = Emulator::start()?;
    let trusted = CertificateDer::from_pem_file(&emulator.ca_certificate)?;
    let ours = Door {
        address: emulator.amqps,
        certificate: trusted,
    };
    for (wrapping, name) in [
        (Wrapping::Tls, "TLS"),
        (Wrapping::WebSocket, "WebSocket over TLS"),
    ] {
        let echo = SecuredEcho::start(wrapping)?;
        let (mut raw, mut through) = (Vec::new(), Vec::new());
        for round in 0..=effort.rounds() {
            let passed = (
                through_echo(wrapping, &echo.door, count)?,
                through_emulator(wrapping, &ours, count)?,
            );
            // The first is for warming up.
            if round > 0 {
                raw.push(passed.0);
                through.push(passed.1);
            }
        }
        let ratio = through.iter().zip(&raw).map(|(ours, raw)| ours / raw);
        let ratio = ratio.collect::<Rounds>();
        let each = |speeds: Vec<f64>| speeds.into_iter().collect::<Rounds>().to_string();
        report.note(
            &format!("raw echo over {name}, messages per second"),
            each(raw),
        );
        report.note(
            &format!("emulator over {name}, messages per second"),
            each(through),
        );
        let what = format!("emulator ÷ raw echo, {name}");
        report.judge(&what, &ratio, "", Limit::AtLeast(0.5));
    }
    Ok(())
}

fn connect(wrapping: Wrapping, door: &Door) -> io::Result<Stream> {
    match wrapping {
        Wrapping::Tls => Stream::secured(door.address, &door.certificate),
        Wrapping::WebSocket => Stream::websocket(door.address, &door.certificate),
    }
}

fn through_emulator(wrapping: Wrapping, door: &Door, count: u32) -> io::Result<f64> {
    let open = || Connection::open_over(connect(wrapping, door)?);
    let mut sender = Sender::attach_on(open()?, &message(BODY, None))?;
    let mut receiver = Receiver::attach_on(open()?)?;
    receiver.grant(IN_FLIGHT)?;
    let begin = Instant::now();
    thread::scope(|scope| {
        let sending = scope.spawn(move || sender.send(count, IN_FLIGHT));
        receiver.receive(count, IN_FLIGHT, Accept::Ranges(RANGE), |_| {})?;
        sending.join().expect("the sender does not panic")
    })?;
    Ok(f64::from(count) / begin.elapsed().as_secs_f64())
}

/// As many threads and connections as the emulator's client has, and together as many frames on their way.
fn through_echo(wrapping: Wrapping, door: &Door, count: u32) -> io::Result<f64> {
    let mut streams = [connect(wrapping, door)?, connect(wrapping, door)?];
    let begin = Instant::now();
    thread::scope(|scope| {
        let pouring = streams.each_mut().map(|stream| {
            scope.spawn(move || {
                let mut transfers = Transfers::of(&message(BODY, None), 50);
                pour(stream, &mut transfers, count / 2, IN_FLIGHT / 2)
            })
        });
        let mut poured = pouring
            .into_iter()
            .map(|pouring| pouring.join().expect("the client does not panic"));
        poured.try_for_each(|poured| poured)
    })?;
    Ok(f64::from(count) / begin.elapsed().as_secs_f64())
}
