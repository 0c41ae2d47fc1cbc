//! A proxy between a client and the emulator that keeps what passes: the only way to see the very bytes that a
//! client library sends and is sent.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use servicebus_test_support::frame::{self, TRANSFER};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A proxy for one connection.
pub(crate) struct RecordingProxy {
    pub(crate) address: SocketAddr,
    passed: JoinHandle<io::Result<[Vec<u8>; 2]>>,
}

impl RecordingProxy {
    /// Waits for one connection and takes it to `upstream`.
    pub(crate) async fn before(upstream: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let passed = tokio::spawn(async move {
            let (client, _) = listener.accept().await?;
            let server = TcpStream::connect(upstream).await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let (sent, received) =
                tokio::join!(pass(from_client, to_server), pass(from_server, to_client));
            Ok([sent, received])
        });
        Self { address, passed }
    }

    /// The payloads of all deliveries that the client sent, and of those that it received, once it has closed.
    pub(crate) async fn payloads(self) -> [Vec<Vec<u8>>; 2] {
        let passed = self.passed.await.expect("the proxy does not panic");
        passed
            .expect("the proxy connects")
            .map(|bytes| payloads(&bytes))
    }
}

/// Passes bytes on until either side closes, and returns them.
async fn pass(mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin) -> Vec<u8> {
    let mut passed = Vec::new();
    loop {
        let start = passed.len();
        match from.read_buf(&mut passed).await {
            Ok(1..) if to.write_all(&passed[start..]).await.is_ok() => {}
            _ => break,
        }
    }
    // The other side may have closed first.
    let _ = to.shutdown().await;
    passed
}

/// The payloads of the transfers in one direction, those of several frames joined.
fn payloads(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut whole = Vec::new();
    let mut unfinished: BTreeMap<(u16, u32), Vec<u8>> = BTreeMap::new();
    let frames = frame::split(bytes).into_iter();
    for frame in frames.filter(|frame| frame.code == TRANSFER) {
        let link = (frame.channel, frame.number(0));
        let mut payload = unfinished.remove(&link).unwrap_or_default();
        payload.extend_from_slice(&frame.payload);
        if frame.flag(5) {
            unfinished.insert(link, payload);
        } else {
            whole.push(payload);
        }
    }
    whole
}
