//! The stream of a peer over TCP, TLS or WebSocket, which is read and written in turns.
//!
//! Each kind is a type of its own, so that the turn over plain TCP has no overhead.

pub(crate) mod websocket;

pub(crate) mod latency;
mod messages;

use std::io;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use servicebus_amqp::Output;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::net::TcpStream;

use super::account::{READ_BLOCK, READ_TURN};
use crate::tls::Secured;

/// A stream that can report unread input.
pub(crate) trait Unread {
    /// Returns whether the operating system has unread bytes from the peer; the runtime may not know of them yet.
    fn has_unread(&self) -> bool;

    /// Returns whether the operating system knows that the peer sends nothing more and has no unread bytes from it.
    fn has_ended(&self) -> bool {
        false
    }
}

/// A stream of AMQP. A method that returns `Pending` wakes the context when it should be called again.
pub(crate) trait Wire: Unread {
    /// Appends available bytes, up to the limit of a turn; returns their number, 0 at the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>>;

    /// Writes output; ready when the operating system has all of it.
    fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<io::Result<()>>;

    /// Ends the stream cleanly; all output has been written.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reports to the peer that its last input is not part of the protocol, if the stream has a way to do so.
    fn poll_refuse(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Returns the bytes of buffered input, and of output beside the given one.
    fn held(&self) -> usize {
        0
    }

    /// Records that the peer has exceeded a limit; returns whether [`Wire::poll_refuse`] can report it.
    fn set_close_reason(&mut self, _reason: &str) -> bool {
        false
    }

    /// Acknowledges input at once, if no output is written that would include the acknowledgement.
    fn acknowledge(&self);
}

impl Unread for TcpStream {
    fn has_unread(&self) -> bool {
        // The runtime learns of unread bytes a moment later than a peer that asks for something elsewhere.
        let mut first = [MaybeUninit::uninit()];
        matches!(socket2::SockRef::from(self).peek(&mut first), Ok(1..))
    }

    fn has_ended(&self) -> bool {
        let mut first = [MaybeUninit::uninit()];
        match socket2::SockRef::from(self).peek(&mut first) {
            Ok(read) => read == 0,
            Err(error) => {
                let may_go_on = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                !may_go_on.contains(&error.kind())
            }
        }
    }
}

impl Wire for TcpStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        input.reserve(READ_BLOCK);
        let mut read = ready!(pin!(self.read_buf(input)).poll(cx))?;
        let mut last = read;
        // A full block means that there may be more.
        while last >= READ_BLOCK && read < READ_TURN {
            input.reserve(READ_BLOCK);
            last = match self.try_read_buf(input) {
                Ok(last) => last,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Poll::Ready(Err(error)),
            };
            read += last;
        }
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<io::Result<()>> {
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 16];
            let count = output.chunks(&mut slices);
            match self.try_write_vectored(&slices[..count]) {
                Ok(written) => output.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.poll_write_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_shutdown(cx)
    }

    #[cfg(target_os = "linux")]
    fn acknowledge(&self) {
        // A failure is harmless: the peer waits 40 ms.
        let _ = socket2::SockRef::from(self).set_tcp_quickack(true);
    }

    #[cfg(not(target_os = "linux"))]
    fn acknowledge(&self) {}
}

impl Unread for Secured {
    fn has_unread(&self) -> bool {
        self.get_ref().0.get_ref().has_unread()
    }

    fn has_ended(&self) -> bool {
        self.get_ref().0.get_ref().has_ended()
    }
}

impl Wire for Secured {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        let mut read = 0;
        // Each read returns one record.
        while read < READ_TURN {
            input.reserve(READ_BLOCK);
            let polled = pin!(self.read_buf(input)).poll(cx);
            if polled.is_pending() && read > 0 {
                break;
            }
            match ready!(polled)? {
                0 => break,
                more => read += more,
            }
        }
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<io::Result<()>> {
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 16];
            let count = output.chunks(&mut slices);
            let stream = Pin::new(&mut *self);
            let written = ready!(stream.poll_write_vectored(cx, &slices[..count]))?;
            output.advance(written);
        }
        Pin::new(self).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_shutdown(cx)
    }

    fn acknowledge(&self) {
        self.get_ref().0.get_ref().acknowledge();
    }
}
