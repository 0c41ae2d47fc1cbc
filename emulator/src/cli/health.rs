//! Queries the health of a running emulator: the image contains no other program that can.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::values::{read_host, read_port};

/// A healthy emulator responds faster, also under load.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes read from a response.
const MAX_RESPONSE: u64 = 64 * 1024;
const REQUEST: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// The address of the emulator.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct HealthOptions {
    /// Address on which the emulator listens
    #[arg(long, value_name = "ADDRESS", default_value = "localhost")]
    #[arg(value_parser = read_host, env = "SERVICEBUS_EMULATOR_HOST")]
    host: String,

    /// HTTP port of the emulator
    #[arg(long, value_name = "PORT", default_value_t = 5300)]
    #[arg(value_parser = read_port, env = "EMULATOR_HTTP_PORT")]
    http_port: u16,
}

/// Returns the health report of the emulator, or one sentence with the reason why it is not healthy.
pub fn run_health(options: &HealthOptions) -> Result<String, String> {
    let HealthOptions { host, http_port } = options;
    if *http_port == 0 {
        let text = "the port 0 stands for any free one; name the port on which the emulator listens with --http-port";
        return Err(text.to_owned());
    }
    let response =
        request(host, *http_port).map_err(|error| no_response(host, *http_port, &error))?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let report = serde_json::from_str::<Value>(body).unwrap_or_default();
    let code = head
        .strip_prefix("HTTP/1.")
        .and_then(|head| head.split_whitespace().nth(1));
    let other = format!("the server at {host}:{http_port} is not an emulator");
    match (code, report["status"].as_str()) {
        (Some("200"), Some("healthy")) => Ok(format!("{body}\n")),
        (None, _) => Err(other),
        (Some(code @ "200"), _) | (Some(code), None) => Err(format!(
            "{other}: it answers GET /health with HTTP status {code}"
        )),
        (Some(_), Some(_)) => Err(format!(
            "the emulator at {host}:{http_port} is not healthy: {body}"
        )),
    }
}

fn no_response(host: &str, port: u16, error: &io::Error) -> String {
    // Of the latter kind is a read or write that times out on Unix.
    match error.kind() == io::ErrorKind::TimedOut || error.kind() == io::ErrorKind::WouldBlock {
        true => format!(
            "no emulator answered at {host}:{port} within {} s",
            TIMEOUT.as_secs()
        ),
        false => format!("no emulator responds at {host}:{port}: {error}"),
    }
}

fn request(host: &str, port: u16) -> io::Result<String> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for mut address in (host, port).to_socket_addrs()? {
        // A client cannot connect to the unspecified address.
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return exchange(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(mut stream: TcpStream) -> io::Result<String> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(REQUEST)?;
    let mut response = Vec::new();
    stream.take(MAX_RESPONSE).read_to_end(&mut response)?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_is_named() {
        let text = |kind: io::ErrorKind| no_response("localhost", 5300, &kind.into());
        let late = "no emulator answered at localhost:5300 within 5 s";
        assert_eq!(text(io::ErrorKind::WouldBlock), late);
        assert_eq!(text(io::ErrorKind::TimedOut), late);
        let refused = text(io::ErrorKind::ConnectionRefused);
        assert!(refused.starts_with("no emulator responds at localhost:5300: "));
    }
}
