//! What a peer speaks, told by its first bytes: AMQP, HTTP, or TLS with either of them inside.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::peers::{AcceptedConnection, RESERVED_TIMEOUT};
use super::secure;
use super::web::{self, Cover};
use crate::connection::{self, Wire};
use crate::namespaces::ConnectionOrigin;

/// The beginning of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;

/// What a peer speaks.
enum Protocol {
    Amqp,
    Http,
    Tls,
    Unknown(u8),
}

/// Serves a peer in what it speaks.
pub(crate) async fn open(mut accepted: AcceptedConnection, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    let peeked = accepted.unless_stopped(stream.peek(&mut first)).await;
    let Some(peeked) = peeked else { return Ok(()) };
    if peeked? == 0 {
        return Ok(());
    }
    let arrival = ConnectionOrigin::at(stream.local_addr()?);
    match Protocol::by(first[0]) {
        Protocol::Amqp if accepted.is_reserved => accepted.refuse(),
        Protocol::Amqp => connection::serve(stream, &arrival, accepted.shared, accepted.stop).await,
        Protocol::Http => web::serve(stream, arrival, Cover::Plain, accepted).await,
        Protocol::Tls => open_secured(accepted, stream, arrival).await,
        Protocol::Unknown(byte) => {
            complain(&accepted, byte);
            // What a peer that speaks another version of AMQP is owed (AMQP 1.0 §2.2).
            stream.try_write(b"AMQP\x03\x01\x00\x00").map(drop)
        }
    }
}

async fn open_secured(
    accepted: AcceptedConnection,
    stream: TcpStream,
    arrival: ConnectionOrigin,
) -> io::Result<()> {
    let shaking = secure::handshake(&accepted.shared, stream, accepted.address, &arrival);
    let mut stop = accepted.stop.clone();
    let secured = tokio::select! {
        shaken = shaking => match shaken {
            Some(secured) => secured,
            None => return Ok(()),
        },
        () = sleep(RESERVED_TIMEOUT), if accepted.is_reserved => return Ok(()),
        _ = stop.changed() => return Ok(()),
    };
    let host = secured.get_ref().1.server_name().map(str::to_owned);
    serve(accepted, secured, arrival.asking_for(host), Cover::Tls).await
}

/// Serves a peer whose first byte can be looked at without the socket.
pub(crate) async fn serve<S>(
    mut accepted: AcceptedConnection,
    mut stream: S,
    arrival: ConnectionOrigin,
    cover: Cover,
) -> io::Result<()>
where
    S: Wire + AsyncBufRead + AsyncWrite + Unpin + Send + 'static,
{
    let first = accepted.unless_stopped(stream.fill_buf()).await;
    let Some(first) = first else { return Ok(()) };
    let Some(&first) = first?.first() else {
        return Ok(());
    };
    match Protocol::by(first) {
        Protocol::Amqp if accepted.is_reserved => accepted.refuse(),
        Protocol::Amqp => connection::serve(stream, &arrival, accepted.shared, accepted.stop).await,
        Protocol::Http => web::serve(stream, arrival, cover, accepted).await,
        Protocol::Tls | Protocol::Unknown(_) => {
            complain(&accepted, first);
            stream.shutdown().await
        }
    }
}

fn complain(accepted: &AcceptedConnection, byte: u8) {
    tracing::warn!(
        address = %accepted.address,
        first_byte = byte,
        "closed: neither AMQP nor HTTP nor TLS; old clients must choose AMQP as their transport"
    );
}

impl Protocol {
    fn by(first: u8) -> Self {
        match first {
            b'A' => Self::Amqp,
            b'C' | b'D' | b'G' | b'H' | b'O' | b'P' | b'T' => Self::Http,
            HANDSHAKE => Self::Tls,
            other => Self::Unknown(other),
        }
    }
}
