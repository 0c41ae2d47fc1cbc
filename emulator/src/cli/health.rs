//! Asks a running emulator whether it is healthy: the image has no other program that could.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use clap::Args;

/// Longer than a healthy emulator takes, whatever else it does.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 * 1024;
const REQUEST: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Which emulator.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct HealthOptions {
    /// Address that the emulator listens on
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "localhost",
        env = "SERVICEBUS_EMULATOR_HOST"
    )]
    host: String,

    /// Its port of HTTP
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 5300,
        value_parser = clap::value_parser!(u16).range(1..),
        env = "EMULATOR_HTTP_PORT"
    )]
    http_port: u16,
}

/// What the emulator says of its health, or why it is not healthy: one sentence.
pub fn run_health(options: &HealthOptions) -> Result<String, String> {
    let HealthOptions { host, http_port } = options;
    let answer = ask(host, *http_port)
        .map_err(|error| format!("no emulator answers at {host}:{http_port}: {error}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split(' ').nth(1) {
        Some("200") => Ok(format!("{body}\n")),
        Some(_) => Err(format!(
            "the emulator at {host}:{http_port} is not healthy: {body}"
        )),
        None => Err(format!("what answers at {host}:{http_port} is no emulator")),
    }
}

fn ask(host: &str, port: u16) -> io::Result<String> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for mut address in (host, port).to_socket_addrs()? {
        // What listens on all addresses is asked at its own.
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return exchange(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(mut stream: TcpStream) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
