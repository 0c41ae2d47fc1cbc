//! Detects that a peer has disconnected while its request is in progress.
//!
//! The HTTP library reads nothing more from a connection while it holds unread bytes of it, for example a pipelined request or
//! a body that no handler reads. The end of the stream would go unseen, and a waiting receive would take a message for a
//! client that is gone. So the stream is read ahead into a limited buffer, from which the library reads first.

use std::io;
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes, BytesMut};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::connection::Unread;

/// Maximum number of bytes that are read ahead. A peer that sends more during one request is not seen to disconnect.
const LIMIT: usize = 64 * 1024;
/// Bytes read ahead at once.
const BLOCK: usize = 4 * 1024;

/// A stream whose end can be detected while its reader does not read.
#[derive(Debug)]
pub(super) struct ReadAhead<S>(Arc<Mutex<State<S>>>);

/// The view of such a stream by the task that polls its reader.
#[derive(Debug)]
pub(super) struct PeerWatch<S>(Arc<Mutex<State<S>>>);

#[derive(Debug)]
struct State<S> {
    stream: S,
    ahead: BytesMut,
    /// Whether the stream has ended behind the bytes read ahead.
    has_ended: bool,
    /// What the reader's last read in the current turn returned.
    last_read: LastRead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastRead {
    /// It does not read: it may hold unread bytes.
    None,
    /// Bytes, of which the reader may not have processed all.
    Bytes,
    /// The reader waits for more, and will see the end itself.
    Pending,
}

/// Wraps a stream, and returns the view of it.
pub(super) fn watch<S>(stream: S) -> (ReadAhead<S>, PeerWatch<S>) {
    let state = Arc::new(Mutex::new(State {
        stream,
        ahead: BytesMut::new(),
        has_ended: false,
        last_read: LastRead::None,
    }));
    (ReadAhead(Arc::clone(&state)), PeerWatch(state))
}

impl<S> ReadAhead<S> {
    /// Returns the stream and the bytes read ahead, for another protocol; `None` while it has a view.
    pub(super) fn into_parts(self) -> Option<(S, Bytes)> {
        let state = Arc::into_inner(self.0)?.into_inner();
        Some((state.stream, state.ahead.freeze()))
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.0.lock()
    }
}

impl<S: Unread + AsyncRead + Unpin> PeerWatch<S> {
    /// Begins a turn of the reader.
    pub(super) fn begin_turn(&self) {
        self.0.lock().last_read = LastRead::None;
    }

    /// Returns whether the peer has disconnected and the reader would not notice after its latest turn. Otherwise the task is
    /// woken when that may have changed. A request whose body is incomplete fails by itself.
    pub(super) fn is_gone(&self, cx: &mut Context<'_>, has_whole_body: bool) -> bool {
        let mut state = self.0.lock();
        match state.last_read {
            // The runtime may learn of the end later than of an event that lets the handler go on.
            LastRead::Pending => has_whole_body && state.stream.has_ended(),
            LastRead::None => state.read_ahead(cx) || state.stream.has_ended(),
            // The next turn shows whether the reader waits for more.
            LastRead::Bytes => {
                cx.waker().wake_by_ref();
                false
            }
        }
    }
}

impl<S: AsyncRead + Unpin> State<S> {
    /// Reads up to the limit; returns whether the stream has ended.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> bool {
        while !self.has_ended && self.ahead.len() < LIMIT {
            self.ahead.reserve(BLOCK);
            match pin!(self.stream.read_buf(&mut self.ahead)).poll(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => self.has_ended = true,
                Poll::Pending => return false,
            }
        }
        self.has_ended
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let state = &mut *self.state();
        let polled = if !state.ahead.is_empty() {
            let length = buffer.remaining().min(state.ahead.len());
            buffer.put_slice(&state.ahead[..length]);
            state.ahead.advance(length);
            Poll::Ready(Ok(()))
        } else if state.has_ended {
            Poll::Ready(Ok(()))
        } else {
            Pin::new(&mut state.stream).poll_read(cx, buffer)
        };
        state.last_read = match polled.is_pending() {
            true => LastRead::Pending,
            false => LastRead::Bytes,
        };
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.state().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.state().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.state().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.state().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.state().stream.is_write_vectored()
    }
}
