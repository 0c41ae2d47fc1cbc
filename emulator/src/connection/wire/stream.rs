//! A stream that carries AMQP, whatever it goes through.

use std::io;
use std::task::{Context, Poll};

use bytes::BytesMut;
use servicebus_amqp::Output;

/// A stream that can be looked into.
pub(crate) trait Unread {
    /// Whether the operating system has bytes from the peer that were not read; the runtime may not know of them yet.
    fn has_unread(&self) -> bool;
}

/// A stream that carries AMQP. What returns `Pending` wakes the context when it should be asked again.
pub(crate) trait Wire: Unread {
    /// Appends what is there, as much as one turn deals with, and says how much that was; 0 at the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>>;

    /// Takes from the output what can be taken; ready when all of it is with the operating system.
    fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<io::Result<()>>;

    /// Ends the stream in good order; all output has been written.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Tells the peer that what was read last is no part of the protocol, where the stream has words for that.
    fn poll_refuse(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Bytes that are kept of what was read, and of what is to be written beside the output.
    fn held(&self) -> usize {
        0
    }

    /// Takes down that the peer has exceeded a limit, if the stream has words for that, and says whether it has:
    /// [`Wire::poll_refuse`] tells them.
    fn blame(&mut self, _reason: &str) -> bool {
        false
    }

    /// Acknowledges what was read at once, where nothing is written that would carry the acknowledgement.
    fn acknowledge(&self);
}
