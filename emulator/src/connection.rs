//! One peer: its socket, its AMQP engine and its links, in one task.
//!
//! A turn reads what is there, lets the engine parse it, commits what arrived under one lock per entity,
//! takes what is assigned to its own consumers, and writes once (protocol-layer §4). No lock is held across
//! an await.

mod attach;
mod changes;
mod commit;
mod deliver;
mod held;
mod links;
mod peer;
mod requests;

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::server::Shared;
use peer::Peer;

/// Bytes read in one go; small payloads are copied out of the block, so that it is used again.
const READ_BLOCK: usize = 64 * 1024;
/// Bytes read in one turn before others have theirs.
const READ_TURN: usize = 256 * 1024;
/// Past this much unwritten output nothing more is taken from a store.
const OUTPUT_HIGH: usize = 256 * 1024;
/// Past this much nothing more is read either.
const OUTPUT_FULL: usize = 512 * 1024;
/// How long a peer may take to read what is left for it when the emulator stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves a peer whose first bytes are in `input` until either side has had enough.
pub(crate) async fn serve(
    mut stream: TcpStream,
    mut input: BytesMut,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut peer = Peer::new(Arc::clone(&shared));
    let mut stopping = false;
    let (mut reader, mut writer) = stream.split();
    let mut more = !input.is_empty();
    loop {
        let unwritten = peer.turn(&mut input);
        if peer.has_told_others() {
            // Who was told runs first: a message reaches its receiver before its sender hears of it.
            yield_now().await;
        }
        let wrote = unwritten > 0;
        if wrote {
            write_some(&writer, &mut peer)?;
            if peer.unwritten() >= OUTPUT_HIGH {
                peer.give_back();
            }
        } else {
            // A client with Nagle on waits for this acknowledgement before it sends the rest.
            quick_ack(writer.as_ref());
        }
        peer.turn_ended();
        if peer.is_over() {
            break;
        }
        if more {
            yield_now().await;
        }
        let output = peer.unwritten();
        let wake_at = peer
            .next_timeout()
            .map(|at| Instant::from_std(shared.real.instant(at)));
        input.reserve(READ_BLOCK);
        more = false;
        tokio::select! {
            biased;
            read = reader.read_buf(&mut input), if output < OUTPUT_FULL => {
                let read = read?;
                if read == 0 {
                    break;
                }
                more = read_rest(&reader, &mut input, read)?;
            }
            () = peer.bell.rang() => {}
            ready = writer.as_ref().writable(), if output > 0 => ready?,
            // The socket has taken it: there is room for what was postponed, and nobody else to say so.
            () = yield_now(), if peer.has_postponed() && output < OUTPUT_HIGH => {}
            () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {}
            _ = stop.changed(), if !stopping => {
                stopping = true;
                peer.say_goodbye();
            }
        }
    }
    finish(&mut writer, &mut peer).await
}

/// Reads on while whole blocks come, up to a turn's worth; says whether more may be there.
fn read_rest(reader: &ReadHalf<'_>, input: &mut BytesMut, mut read: usize) -> io::Result<bool> {
    let mut last = read;
    while last >= READ_BLOCK && read < READ_TURN {
        input.reserve(READ_BLOCK);
        last = match reader.try_read_buf(input) {
            Ok(last) => last,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        read += last;
    }
    Ok(read >= READ_TURN)
}

/// Writes as much as the socket takes without waiting.
fn write_some(writer: &WriteHalf<'_>, peer: &mut Peer) -> io::Result<()> {
    loop {
        let output = peer.output();
        if output.is_empty() {
            return Ok(());
        }
        let mut slices = [IoSlice::new(&[]); 16];
        let count = output.chunks(&mut slices);
        match writer.try_write_vectored(&slices[..count]) {
            Ok(written) => peer.output().advance(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Writes what is left, within reason, and ends the stream.
async fn finish(writer: &mut WriteHalf<'_>, peer: &mut Peer) -> io::Result<()> {
    let rest = async {
        while !peer.output().is_empty() {
            writer.writable().await?;
            write_some(writer, peer)?;
        }
        writer.shutdown().await
    };
    tokio::time::timeout(FAREWELL, rest).await.unwrap_or(Ok(()))
}

#[cfg(target_os = "linux")]
fn quick_ack(stream: &TcpStream) {
    // Not being able to is not worth an error: the peer waits 40 ms.
    let _ = socket2::SockRef::from(stream).set_tcp_quickack(true);
}

#[cfg(not(target_os = "linux"))]
fn quick_ack(_: &TcpStream) {}
