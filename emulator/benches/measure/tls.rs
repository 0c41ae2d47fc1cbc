//! The maximum throughput through TLS, and through WebSocket over TLS, compared with the same bytes through an echo over the
//! same libraries.

use std::io;
use std::thread;
use std::time::Instant;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use servicebus_test_support::stream::{Stream, WebSocketFraming};

use crate::Outcome;
use crate::arguments::Effort;
use crate::connection::{Connection, HUNG};
use crate::frames::{Transfers, message};
use crate::process::{Emulator, SecuredEcho};
use crate::receiver::Receiver;
use crate::report::Report;
use crate::secured_echo::{Listener, Wrapping, pour};
use crate::sender::Sender;
use crate::statistics::Rounds;
use crate::throughput::{RoundResult, at_rest, pass, passed};

/// Outstanding sends, credit of the receiver, and frames in flight through the echo.
const IN_FLIGHT: u32 = 1000;
const BODY: usize = 1024;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let count = effort.pick(2_000, 400_000);
    let emulator = Emulator::start()?;
    let trusted = CertificateDer::from_pem_file(&emulator.ca_certificate)?;
    let ours = Listener {
        address: emulator.amqps,
        certificate: trusted,
    };
    for shape in &SHAPES {
        let echo = SecuredEcho::start(shape.wrapping)?;
        let (mut raw, mut through) = (Vec::new(), Vec::new());
        for round in 0..=effort.rounds() {
            let passed = (
                through_echo(shape, &echo, count)?,
                through_emulator(shape, (&emulator, &ours), count)?,
            );
            // The first round is a warm-up.
            if round > 0 {
                raw.push(passed.0);
                through.push(passed.1);
            }
        }
        tell(shape, &raw, &through, report);
    }
    Ok(())
}

fn tell(shape: &Shape, raw: &[RoundResult], through: &[RoundResult], report: &mut Report) {
    let name = shape.name;
    for (what, passed) in [("raw echo", raw), ("emulator", through)] {
        let speeds: Rounds = passed.iter().map(|passed| passed.per_second).collect();
        let costs: Rounds = passed.iter().map(|passed| passed.cost).collect();
        let line = format!("{what} over {name}, messages per second");
        report.show(&line, &speeds, "");
        let line = format!("{what} over {name}, processor µs per message");
        report.show(&line, &costs, "");
    }
    let pairs = through.iter().zip(raw);
    let ratio: Rounds = pairs
        .map(|(ours, raw)| ours.per_second / raw.per_second)
        .collect();
    let what = format!("emulator ÷ raw echo, {name}");
    match shape.limit {
        Some(limit) => report.at_least(&what, &ratio, "", limit),
        None => report.show(&what, &ratio, ""),
    }
}

/// What the bytes are wrapped in, and how.
struct Shape {
    wrapping: Wrapping,
    cut: WebSocketFraming,
    name: &'static str,
    limit: Option<f64>,
}

const SHAPES: [Shape; 3] = [
    Shape {
        wrapping: Wrapping::Tls,
        cut: WebSocketFraming::PerWrite,
        name: "TLS",
        limit: Some(0.4),
    },
    Shape {
        wrapping: Wrapping::WebSocket,
        cut: WebSocketFraming::PerFrame,
        name: "WebSocket over TLS",
        limit: Some(0.4),
    },
    // No SDK does this: with 50 times fewer messages the echo has next to nothing to do.
    Shape {
        wrapping: Wrapping::WebSocket,
        cut: WebSocketFraming::PerWrite,
        name: "WebSocket over TLS, 50 transfers in a message",
        limit: None,
    },
];

fn connect(shape: &Shape, listener: &Listener) -> io::Result<Stream> {
    let trusted = [listener.certificate.clone()];
    let stream = Stream::secured_by(listener.address, "localhost", trusted)?;
    stream.set_read_timeout(HUNG);
    if shape.wrapping == Wrapping::Tls {
        return Ok(stream);
    }
    // Without a subprotocol, which the echo does not know.
    let upgraded = stream.upgraded("/$servicebus/websocket", None);
    let (socket, _) = upgraded.map_err(io::Error::other)?;
    Ok(Stream::messages(socket, shape.cut))
}

fn through_emulator(
    shape: &Shape,
    (emulator, listener): (&Emulator, &Listener),
    count: u32,
) -> io::Result<RoundResult> {
    let open = || Connection::open_over(connect(shape, listener)?);
    let sender = Sender::attach_on(open()?, &message(BODY, None))?;
    let receiver = Receiver::attach_on(open()?)?;
    pass(emulator, sender, receiver, count)
}

/// Uses as many threads and connections as the emulator's client, and in total as many frames in flight.
fn through_echo(shape: &Shape, echo: &SecuredEcho, count: u32) -> io::Result<RoundResult> {
    let mut streams = [
        connect(shape, &echo.listener)?,
        connect(shape, &echo.listener)?,
    ];
    let before = at_rest(echo.pid())?;
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
    let took = begin.elapsed();
    Ok(passed(count, took, at_rest(echo.pid())? - before))
}
