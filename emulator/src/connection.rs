//! One peer: its stream, its AMQP engine and its links, in one task.
//!
//! A turn reads the available bytes, lets the engine parse them, commits what arrived under one lock per entity, takes what
//! is reserved for the connection's receivers, and writes once (protocol-layer §4). No lock is held across an await.

mod account;
mod attach;
mod browse;
mod client;
mod commit;
mod deliver;
mod faults;
mod identifiers;
mod idle;
mod jms;
mod links;
mod outcomes;
mod peer;
mod requests;
mod sessions;
mod tokens;
mod transact;
mod transactions;
mod view;
mod wire;
mod withheld;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use servicebus_amqp::Output;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::namespaces::ConnectionOrigin;
use crate::shared::Shared;
use account::{OUTPUT_FULL, OUTPUT_HIGH, READ_TURN};
use peer::ClientConnection;
pub(crate) use view::{ConnectionView, LinkView};
use wire::latency::LatencyTransport;
pub(crate) use wire::websocket::WebSocket;
pub(crate) use wire::{Unread, Wire};
use withheld::Withheld;

/// Timeout for the last output and the close of a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The progress of a peer's stream.
enum StreamProgress {
    Read(usize),
    Wrote,
}

/// Serves a peer until either side ends the connection.
pub(crate) async fn serve<W: Wire>(
    wire: W,
    origin: &ConnectionOrigin,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let (mut wire, mut input) = (LatencyTransport::new(wire), BytesMut::new());
    let mut peer = ClientConnection::new(Arc::clone(&shared), origin);
    let wake_handle = Arc::clone(&peer.client.wake_handle);
    let mut withheld = Withheld::new(shared.namespaces.store.clone());
    let (mut stopping, mut more, mut written, mut has_read) = (false, false, true, false);
    while peer.turn_or_end(&mut input, || has_read || wire.has_unread()) {
        if peer.has_woken_others() {
            // Woken connections run first: a message reaches its receiver before its sender gets the outcome.
            yield_now().await;
        }
        wire.set_round_trip(peer.round_trip());
        let (is_read_paused, is_write_paused) = (peer.is_read_paused(), peer.is_write_paused());
        written = match is_write_paused {
            true => false,
            false => write_turn(&mut wire, &mut peer, &mut withheld, written)?,
        };
        if let Some(exceeded) = peer.update_account(wire.held() + withheld.len() + input.len()) {
            if !wire.set_close_reason(&exceeded.to_string()) {
                continue;
            }
            return write_and_refuse(&mut wire, &mut peer, &mut withheld).await;
        }
        let is_waiting = withheld.is_waiting() && !is_write_paused;
        let may_read = !is_read_paused && has_room(&mut peer, is_waiting);
        peer.turn_ended(written && !is_waiting, || may_read && wire.has_unread());
        if peer.is_over() {
            break;
        }
        if more {
            yield_now().await;
        }
        let may_go_on = peer.has_postponed() && withheld.len() + peer.unwritten() < OUTPUT_HIGH;
        let wake_at = peer.next_timeout().map(|at| shared.real.instant(at));
        (more, has_read) = (false, false);
        tokio::select! {
            biased;
            committed = withheld.committed(), if is_waiting => committed?,
            moved = poll_fn(|cx| {
                if may_read && let Poll::Ready(read) = wire.poll_read(cx, &mut input) {
                    return Poll::Ready(read.map(StreamProgress::Read));
                }
                let is_written = written || is_write_paused;
                poll_written(&mut wire, &mut peer, &mut withheld, is_written, cx)
            }) => match moved {
                Ok(StreamProgress::Read(0)) => break,
                Ok(StreamProgress::Read(read)) => (more, has_read) = (read >= READ_TURN, true),
                Ok(StreamProgress::Wrote) => {}
                Err(error) => return refuse(&mut wire, Err(error)).await,
            },
            () = wake_handle.woken() => {}
            // The socket has accepted output: postponed work has room, and no other event reports that.
            () = yield_now(), if may_go_on => {}
            () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {}
            _ = stop.changed(), if !stopping => {
                stopping = true;
                peer.send_close();
            }
        }
    }
    let is_clean = write_rest(&mut wire, &mut peer, &mut withheld).await?;
    // What its links hold is free before the peer has closed.
    drop(peer);
    close(&mut wire, is_clean).await
}

/// Writes as much as the stream accepts without waiting; returns whether that was everything.
fn write_some(wire: &mut impl Wire, output: &mut Output) -> io::Result<bool> {
    match wire.poll_write(&mut Context::from_waker(Waker::noop()), output) {
        Poll::Ready(written) => written.map(|()| true),
        Poll::Pending => Ok(false),
    }
}

/// Returns whether the connection may read more: output is below its limit, and earlier input was processed.
fn has_room(peer: &mut ClientConnection, is_waiting: bool) -> bool {
    let unwritten = peer.unwritten();
    let has_room = unwritten < OUTPUT_FULL && (unwritten == 0 || !is_waiting);
    has_room && !peer.is_interrupted()
}

/// Resolves when the stream has accepted some output, not only when it has accepted everything: more may follow.
fn poll_written(
    wire: &mut impl Wire,
    peer: &mut ClientConnection,
    withheld: &mut Withheld,
    is_written: bool,
    cx: &mut Context<'_>,
) -> Poll<io::Result<StreamProgress>> {
    if is_written {
        return Poll::Pending;
    }
    let mut nothing = Output::default();
    let output = withheld.next(peer.output())?.unwrap_or(&mut nothing);
    let before = output.len();
    let polled = wire.poll_write(cx, output);
    if polled.is_pending() && output.len() < before {
        return Poll::Ready(Ok(StreamProgress::Wrote));
    }
    polled.map_ok(|()| StreamProgress::Wrote)
}

/// Writes the output of a turn, if any; returns whether that was everything.
fn write_turn(
    wire: &mut impl Wire,
    peer: &mut ClientConnection,
    withheld: &mut Withheld,
    mut written: bool,
) -> io::Result<bool> {
    let (mut is_nothing, mut nothing) = (written, Output::default());
    loop {
        let output = withheld.next(peer.output())?.unwrap_or(&mut nothing);
        if output.is_empty() && written {
            break;
        }
        is_nothing = false;
        written = write_some(wire, output)?;
        if !written {
            break;
        }
    }
    if is_nothing {
        // A client with Nagle's algorithm waits for this acknowledgement before it sends the rest.
        wire.acknowledge();
    }
    if !written && withheld.len() + peer.unwritten() >= OUTPUT_HIGH {
        peer.give_back();
    }
    Ok(written)
}

/// Writes the pending error and closes a stream whose input exceeded a limit, without reading on.
async fn write_and_refuse(
    wire: &mut impl Wire,
    peer: &mut ClientConnection,
    withheld: &mut Withheld,
) -> io::Result<()> {
    let output = withheld.all(peer.output()).await?;
    // A peer that does not read gets only what its socket buffer takes.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, write_all(wire, output)).await;
    refuse(wire, Ok(())).await
}

async fn write_all(wire: &mut impl Wire, output: [&mut Output; 2]) -> io::Result<()> {
    for part in output {
        poll_fn(|cx| wire.poll_write(cx, part)).await?;
    }
    Ok(())
}

/// Reports what was wrong with the input, within the close timeout; returns `result`.
async fn refuse(wire: &mut impl Wire, result: io::Result<()>) -> io::Result<()> {
    // A peer that does not read misses the report.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, poll_fn(|cx| wire.poll_refuse(cx))).await;
    result
}

/// Writes the rest of the output within the close timeout; returns whether the stream then ends cleanly, which a fault may not
/// want.
async fn write_rest(
    wire: &mut LatencyTransport<impl Wire>,
    peer: &mut ClientConnection,
    withheld: &mut Withheld,
) -> io::Result<bool> {
    let is_clean = !peer.is_aborted();
    let output = withheld.all(peer.output()).await?;
    let close_timeout = CLOSE_TIMEOUT + wire.round_trip();
    match tokio::time::timeout(close_timeout, write_all(wire, output)).await {
        Ok(written) => written.map(|()| is_clean),
        Err(_) => Ok(false),
    }
}

/// Ends the stream within the close timeout: cleanly, or by closing the socket.
async fn close(wire: &mut LatencyTransport<impl Wire>, is_clean: bool) -> io::Result<()> {
    if !is_clean {
        return Ok(());
    }
    let close_timeout = CLOSE_TIMEOUT + wire.round_trip();
    tokio::time::timeout(close_timeout, poll_fn(|cx| wire.poll_close(cx)))
        .await
        .unwrap_or(Ok(()))
}
