//! Creates and removes virtual namespaces over the control API, one after the other by one client on one connection: the
//! server's cost of a pair, alone and beside many others.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::arguments::Effort;
use crate::connection::connect;
use crate::memory::{processor_time, resident};
use crate::process::Emulator;
use crate::report::{Limit, Report};
use crate::statistics::Rounds;

/// Memory and threads settle within this time.
const REST: Duration = Duration::from_millis(200);
/// A test's declaration: a queue, a topic and a subscription.
const BODY: &str = r#"{"UserConfig":{"Namespaces":[{"Name":"any","Queues":[{"Name":"orders","Properties":{"MaxDeliveryCount":3}}],"Topics":[{"Name":"prices","Subscriptions":[{"Name":"all"}]}]}]}}"#;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let pairs = effort.pick(50, 5_000);
    let staying = effort.pick(10, 500);
    let (mut alone, mut beside, mut memory) =
        (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..effort.rounds() {
        let emulator = Emulator::start()?;
        let mut client = Client::connect(&emulator)?;
        client.make_and_remove(&emulator, effort.pick(5, 500))?;
        alone.push(client.make_and_remove(&emulator, pairs)?);
        let before = resident(emulator.pid())?;
        for number in 0..staying {
            client.ask("PUT", &format!("staying-{number}"), BODY)?;
        }
        thread::sleep(REST);
        let grown = resident(emulator.pid())?.saturating_sub(before);
        memory.push(grown as f64 / f64::from(staying));
        beside.push(client.make_and_remove(&emulator, pairs)?);
    }
    let most = Limit::AtMost(100.0);
    report.judge("make and remove a namespace", &alone, " µs", most);
    report.judge("the same beside 500 others", &beside, " µs", most);
    report.note("memory of a namespace", format!("{memory} bytes"));
    Ok(())
}

/// A client of the control API.
struct Client {
    stream: TcpStream,
}

impl Client {
    fn connect(emulator: &Emulator) -> io::Result<Self> {
        Ok(Self {
            stream: connect(emulator.http)?,
        })
    }

    /// Returns the server's processor time for one pair, in microseconds.
    fn make_and_remove(&mut self, emulator: &Emulator, pairs: u32) -> io::Result<f64> {
        let before = processor_time(emulator.pid())?;
        for number in 0..pairs {
            let name = format!("namespace-{number}");
            self.ask("PUT", &name, BODY)?;
            self.ask("DELETE", &name, "")?;
        }
        thread::sleep(REST);
        let used = processor_time(emulator.pid())?.saturating_sub(before);
        Ok(used.as_secs_f64() * 1e6 / f64::from(pairs))
    }

    fn ask(&mut self, method: &str, name: &str, body: &str) -> io::Result<()> {
        let request = format!(
            "{method} /$emulator/v1/namespaces/{name} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut block = [0; 4 * 1024];
        while !is_whole(&answer) {
            match self.stream.read(&mut block)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => answer.extend_from_slice(&block[..read]),
            }
        }
        match answer.starts_with(b"HTTP/1.1 20") {
            true => Ok(()),
            false => Err(io::Error::other(String::from_utf8_lossy(&answer))),
        }
    }
}

/// Returns whether the response is complete: its head, and the object in its body, if it has one.
fn is_whole(answer: &[u8]) -> bool {
    let is_empty = answer.starts_with(b"HTTP/1.1 204");
    match is_empty {
        true => answer.ends_with(b"\r\n\r\n"),
        false => answer.ends_with(b"}"),
    }
}
