//! A connection that keeps the container.
//!
//! The emulator counts its connections and ends when there has been none for a while. The system closes those of a
//! process however it ends, so nothing is left behind by one that was killed.

use std::{io, time::Duration};

use servicebus_emulator::ControlToken;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// How long the emulator may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const GRANTED: &[u8] = b"HTTP/1.1 200 ";

/// While this is there, so is the container.
#[derive(Debug)]
pub(crate) struct Hold {
    _open: TcpStream,
}

impl Hold {
    /// Connects to the HTTP port of the emulator and waits until it counts.
    pub(crate) async fn take(
        host: &str,
        port: u16,
        token: Option<&ControlToken>,
    ) -> io::Result<Self> {
        timeout(ANSWER_WITHIN, ask(host, port, token)).await?
    }
}

async fn ask(host: &str, port: u16, token: Option<&ControlToken>) -> io::Result<Hold> {
    let mut stream = TcpStream::connect((host, port)).await?;
    let shown = token.map(|token| format!("Authorization: {}\r\n", token.authorization()));
    let shown = shown.unwrap_or_default();
    let request = format!("GET /$emulator/v1/hold HTTP/1.1\r\nHost: localhost\r\n{shown}\r\n");
    stream.write_all(request.as_bytes()).await?;
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_token_is_shown() {
        let emulator = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = emulator.local_addr().unwrap().port();
        let token = "S3cret".parse().unwrap();
        let answering = async {
            let (mut client, _) = emulator.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            String::from_utf8(head).unwrap()
        };
        let (held, head) = tokio::join!(Hold::take("127.0.0.1", port, Some(&token)), answering);
        held.unwrap();
        assert!(
            head.contains("\r\nAuthorization: Bearer S3cret\r\n"),
            "{head}"
        );
    }
}
