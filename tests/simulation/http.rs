//! The control API, over a connection of the simulated network.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{Exchange, ExchangeFailed, within};
use crate::network::Stream;
use crate::world::World;

/// One connection, kept alive.
#[derive(Debug)]
pub(crate) struct Http(Stream);

impl Http {
    pub(crate) fn connect(world: &World) -> Self {
        let (stream, server, from) = world.network.connect();
        world.emulator.accept(server, from);
        Self(stream)
    }

    pub(crate) async fn get(&mut self, path: &str) -> Exchange<Value> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        within(path, self.exchange(&request)).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Exchange<Value> {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        within(path, self.exchange(&request)).await
    }

    async fn exchange(&mut self, request: &str) -> Exchange<Value> {
        let broken = |error: std::io::Error| ExchangeFailed(error.to_string());
        self.0.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut answer = Vec::new();
        loop {
            if self.0.read_buf(&mut answer).await.map_err(broken)? == 0 {
                return Err(ExchangeFailed("the answer ends too early".into()));
            }
            let text = String::from_utf8_lossy(&answer);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(0, |length| length.trim().parse().unwrap_or(0));
            if body.len() < length {
                continue;
            }
            if !head.starts_with("http/1.1 2") {
                return Err(ExchangeFailed(text.into_owned()));
            }
            return Ok(serde_json::from_str(body).unwrap_or(Value::Null));
        }
    }
}
