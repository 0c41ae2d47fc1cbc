//! TLS over TCP.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use servicebus_amqp::Output;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};

use super::stream::{Unread, Wire};
use crate::connection::limits::{READ_BLOCK, READ_TURN};
use crate::tls::Secured;

impl Unread for Secured {
    fn has_unread(&self) -> bool {
        self.get_ref().0.get_ref().has_unread()
    }
}

impl Wire for Secured {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        let mut read = 0;
        // Each read gives what one record held.
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
