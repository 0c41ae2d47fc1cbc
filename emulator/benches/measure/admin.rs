//! Creates queues one by one through the administration API, by one client on one connection, and measures the server's cost
//! of each, the last as the first. Then shows one of them through Azure Resource Manager, as `az servicebus queue show`
//! does.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use servicebus_emulator::auth::{Key, sas};

use crate::Outcome;
use crate::arguments::Effort;
use crate::connection::connect;
use crate::memory::{processor_time, resident};
use crate::process::Emulator;
use crate::report::Report;
use crate::statistics::Rounds;

/// Memory and threads settle within this time.
const REST: Duration = Duration::from_millis(200);
/// Later than any run: 2100.
const EXPIRY: i64 = 4_102_444_800;
const BODY: &str = "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><QueueDescription \
    xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\"><LockDuration>PT1M</LockDuration>\
    <MaxSizeInMegabytes>1024</MaxSizeInMegabytes><MaxDeliveryCount>10</MaxDeliveryCount></QueueDescription></content>\
    </entry>";

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    // One more is declared.
    let queues = effort.pick(200, 9_990);
    let part = effort.pick(50, 1_000);
    let (mut each, mut growth) = (Rounds::default(), Rounds::default());
    let (mut memory, mut shown) = (Rounds::default(), Rounds::default());
    for _ in 0..effort.rounds() {
        let emulator = Emulator::start()?;
        let mut client = Client::connect(&emulator)?;
        client.make("warm-up")?;
        thread::sleep(REST);
        let before = resident(emulator.pid())?;
        let first = client.make_all(&emulator, 0..part)?;
        let middle = client.make_all(&emulator, part..queues - part)?;
        let last = client.make_all(&emulator, queues - part..queues)?;
        let grown = resident(emulator.pid())?.saturating_sub(before);
        each.push((first + middle + last) / f64::from(queues));
        growth.push(last / first);
        memory.push(grown as f64 / f64::from(queues));
        let started = Instant::now();
        for _ in 0..part {
            client.show("queue-00000")?;
        }
        shown.push(started.elapsed().as_secs_f64() * 1e6 / f64::from(part));
    }
    report.at_most("make a queue", &each, " µs", 100.0);
    let what = "the last thousand ÷ the first";
    report.at_most(what, &growth, "", 1.5);
    report.at_most("memory of a queue", &memory, " bytes", 2048.0);
    let what = "show one over Azure Resource Manager";
    report.at_most(what, &shown, " µs", 2000.0);
    Ok(())
}

/// A client of the administration API and of the control API.
pub(crate) struct Client {
    stream: TcpStream,
    token: String,
}

impl Client {
    pub(crate) fn connect(emulator: &Emulator) -> io::Result<Self> {
        Ok(Self {
            stream: connect(emulator.http)?,
            token: sas::sign("sb://localhost/", &Key::well_known(), EXPIRY),
        })
    }

    /// Returns the server's processor time for creating these queues, in microseconds.
    fn make_all(&mut self, emulator: &Emulator, numbers: Range<u32>) -> io::Result<f64> {
        let make = |client: &mut Self, number| client.make(&format!("queue-{number:05}"));
        self.cost(emulator, numbers, make)
    }

    /// Returns the server's processor time for an operation on each of these numbers, in microseconds.
    pub(crate) fn cost(
        &mut self,
        emulator: &Emulator,
        mut numbers: Range<u32>,
        each: impl Fn(&mut Self, u32) -> io::Result<()>,
    ) -> io::Result<f64> {
        let before = processor_time(emulator.pid())?;
        numbers.try_for_each(|number| each(self, number))?;
        thread::sleep(REST);
        let used = processor_time(emulator.pid())?.saturating_sub(before);
        Ok(used.as_secs_f64() * 1e6)
    }

    fn make(&mut self, name: &str) -> io::Result<()> {
        let (token, length) = (&self.token, BODY.len());
        let request = format!(
            "PUT /{name}?api-version=2021-05 HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n\
             Content-Type: application/atom+xml\r\nContent-Length: {length}\r\n\r\n{BODY}"
        );
        self.exchange(&request, "HTTP/1.1 201")
    }

    fn show(&mut self, name: &str) -> io::Result<()> {
        let request = format!(
            "GET /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/sbemulatorns/queues/{name}\
             ?api-version=2021-11-01 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer any\r\n\r\n"
        );
        self.exchange(&request, "HTTP/1.1 200")
    }

    /// Sends a request to a path below that of the control API, which must be granted.
    pub(crate) fn control(&mut self, method: &str, path: &str, body: &str) -> io::Result<()> {
        let request = format!(
            "{method} /$emulator/v1/{path} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.exchange(&request, "HTTP/1.1 20")
    }

    /// Sends a request and reads its response, which must begin with `expected`.
    fn exchange(&mut self, request: &str, expected: &str) -> io::Result<()> {
        self.stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut block = [0; 8 * 1024];
        while !is_whole(&answer) {
            match self.stream.read(&mut block)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => answer.extend_from_slice(&block[..read]),
            }
        }
        match answer.starts_with(expected.as_bytes()) {
            true => Ok(()),
            false => Err(io::Error::other(
                String::from_utf8_lossy(&answer).into_owned(),
            )),
        }
    }
}

/// Returns whether a response has its head and the announced bytes of body, if it announces any.
fn is_whole(answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer);
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse().ok())?
    });
    length.is_none_or(|length: usize| body.len() >= length)
}
