//! TCP, with nothing around it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use servicebus_amqp::Output;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::net::TcpStream;

use super::stream::{Unread, Wire};
use crate::connection::limits::{READ_BLOCK, READ_TURN};

impl Unread for TcpStream {
    fn has_unread(&self) -> bool {
        // The runtime learns of them a moment later than a peer that asks for something else elsewhere.
        let mut first = [MaybeUninit::uninit()];
        matches!(socket2::SockRef::from(self).peek(&mut first), Ok(1..))
    }
}

impl Wire for TcpStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        input.reserve(READ_BLOCK);
        let mut read = ready!(pin!(self.read_buf(input)).poll(cx))?;
        let mut last = read;
        // Whole blocks: there is more.
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
        // Not being able to is not worth an error: the peer waits 40 ms.
        let _ = socket2::SockRef::from(self).set_tcp_quickack(true);
    }

    #[cfg(not(target_os = "linux"))]
    fn acknowledge(&self) {}
}
