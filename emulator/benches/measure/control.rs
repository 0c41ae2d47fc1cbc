//! The emulator's control API, as much of it as is needed: one POST over a connection of its own.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;

use crate::connection::connect;

/// Moves the namespace's clock forward, and returns when everything due on the way has happened.
pub(crate) fn advance(http: SocketAddr, seconds: u32) -> io::Result<()> {
    let body = format!("{{\"seconds\":{seconds}}}");
    let mut stream = connect(http)?;
    write!(
        stream,
        "POST /$emulator/v1/clock/advance HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(io::Error::other(answer)),
    }
}
