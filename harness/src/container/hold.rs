//! A connection that keeps the container.
//!
//! The emulator counts its connections and ends when there has been none for a while. The system closes those of a
//! process however it ends, so nothing is left behind by one that was killed.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// How long the emulator may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const REQUEST: &[u8] = b"GET /$emulator/v1/hold HTTP/1.1\r\nHost: localhost\r\n\r\n";
const GRANTED: &[u8] = b"HTTP/1.1 200 ";

/// While this is there, so is the container.
#[derive(Debug)]
pub(super) struct Hold {
    _open: TcpStream,
}

impl Hold {
    /// Connects to a door of the emulator and waits until it counts.
    pub(super) async fn take(host: &str, port: u16) -> io::Result<Self> {
        timeout(ANSWER_WITHIN, ask(host, port)).await?
    }
}

async fn ask(host: &str, port: u16) -> io::Result<Hold> {
    let mut stream = TcpStream::connect((host, port)).await?;
    stream.write_all(REQUEST).await?;
    let mut answer = [0; GRANTED.len()];
    stream.read_exact(&mut answer).await?;
    match answer == GRANTED {
        true => Ok(Hold { _open: stream }),
        false => Err(io::Error::other(format!(
            "the emulator cannot be held: it answers {:?}",
            String::from_utf8_lossy(&answer)
        ))),
    }
}
