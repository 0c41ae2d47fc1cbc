//! What a peer speaks, told by its first bytes: AMQP, HTTP, or TLS with either of them inside.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::web::Cover;
use super::{Shared, secure, web};
use crate::connection::{self, Wire};
use crate::namespaces::ConnectionOrigin;

/// The beginning of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;

/// How long a peer may take for each step in a place that is kept for `/health`.
const RESERVED_PATIENCE: Duration = Duration::from_secs(1);

/// What is behind every listener, for one peer.
pub(super) struct AcceptedConnection {
    pub(super) address: SocketAddr,
    pub(super) shared: Arc<Shared>,
    pub(super) router: axum::Router,
    pub(super) stop: watch::Receiver<bool>,
    /// Whether the peer has a place for `/health` alone.
    pub(super) is_reserved: bool,
}

/// What somebody wants who has said a first byte.
enum Spoken {
    Amqp,
    Http,
    Tls,
    Unknown(u8),
}

impl AcceptedConnection {
    /// Serves a peer in what it speaks.
    pub(super) async fn open(mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut first = [0];
        let peeked = self.unless_stopped(stream.peek(&mut first)).await;
        let Some(peeked) = peeked else { return Ok(()) };
        if peeked? == 0 {
            return Ok(());
        }
        let arrival = ConnectionOrigin::at(stream.local_addr()?);
        match Spoken::by(first[0]) {
            Spoken::Amqp if self.is_reserved => self.refuse(),
            Spoken::Amqp => connection::serve(stream, &arrival, self.shared, self.stop).await,
            Spoken::Http => web::serve(stream, arrival, Cover::Plain, self).await,
            Spoken::Tls => self.open_secured(stream, arrival).await,
            Spoken::Unknown(byte) => {
                self.complain(byte);
                // What a peer that speaks another version of AMQP is owed (AMQP 1.0 §2.2).
                stream.try_write(b"AMQP\x03\x01\x00\x00").map(drop)
            }
        }
    }

    async fn open_secured(self, stream: TcpStream, arrival: ConnectionOrigin) -> io::Result<()> {
        let shaking = secure::handshake(&self.shared, stream, self.address, &arrival);
        let mut stop = self.stop.clone();
        let secured = tokio::select! {
            shaken = shaking => match shaken {
                Some(secured) => secured,
                None => return Ok(()),
            },
            () = sleep(RESERVED_PATIENCE), if self.is_reserved => return Ok(()),
            _ = stop.changed() => return Ok(()),
        };
        let host = secured.get_ref().1.server_name().map(str::to_owned);
        self.serve(secured, arrival.asking_for(host), Cover::Tls)
            .await
    }

    /// Serves a peer whose first byte can be looked at without the socket.
    pub(super) async fn serve<S>(
        mut self,
        mut stream: S,
        arrival: ConnectionOrigin,
        cover: Cover,
    ) -> io::Result<()>
    where
        S: Wire + AsyncBufRead + AsyncWrite + Unpin + Send + 'static,
    {
        let first = self.unless_stopped(stream.fill_buf()).await;
        let Some(first) = first else { return Ok(()) };
        let Some(&first) = first?.first() else {
            return Ok(());
        };
        match Spoken::by(first) {
            Spoken::Amqp if self.is_reserved => self.refuse(),
            Spoken::Amqp => connection::serve(stream, &arrival, self.shared, self.stop).await,
            Spoken::Http => web::serve(stream, arrival, cover, self).await,
            Spoken::Tls | Spoken::Unknown(_) => {
                self.complain(first);
                stream.shutdown().await
            }
        }
    }

    /// What the peer does within the time for it; none when it does not, or the emulator stops.
    async fn unless_stopped<T>(&mut self, done: impl Future<Output = T>) -> Option<T> {
        let patience = self.patience();
        tokio::select! {
            done = timeout(patience, done) => done.ok(),
            _ = self.stop.changed() => None,
        }
    }

    /// Those who have a place that is kept for `/health` must be quick: others want it, too.
    pub(super) fn patience(&self) -> Duration {
        let usual = self.shared.options.patience;
        match self.is_reserved {
            true => usual.min(RESERVED_PATIENCE),
            false => usual,
        }
    }

    fn refuse(&self) -> io::Result<()> {
        tracing::warn!(address = %self.address, "refused: too many connections");
        Ok(())
    }

    fn complain(&self, byte: u8) {
        tracing::warn!(
            address = %self.address,
            first_byte = byte,
            "closed: neither AMQP nor HTTP nor TLS; old clients must choose AMQP as their transport"
        );
    }
}

impl Spoken {
    fn by(first: u8) -> Self {
        match first {
            b'A' => Self::Amqp,
            b'C' | b'D' | b'G' | b'H' | b'O' | b'P' | b'T' => Self::Http,
            HANDSHAKE => Self::Tls,
            other => Self::Unknown(other),
        }
    }
}
