//! A stream beneath a WebSocket: each read takes all that is there. The library clears the room for a whole message
//! before every read, and one record of TLS fills only a part of that.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Fills what it is given to read into, as far as there is something.
pub(super) struct Eager<S>(pub(super) S);

impl<S: AsyncRead + Unpin> AsyncRead for Eager<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let begin = buffer.filled().len();
        while buffer.remaining() > 0 {
            let before = buffer.filled().len();
            let polled = Pin::new(&mut self.0).poll_read(cx, buffer);
            if polled.is_pending() && before > begin {
                break;
            }
            ready!(polled)?;
            if buffer.filled().len() == before {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Eager<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Gives its pieces one by one, then nothing yet.
    struct Pieces(Vec<&'static [u8]>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.0.is_empty() {
                return Poll::Pending;
            }
            buffer.put_slice(self.0.remove(0));
            Poll::Ready(Ok(()))
        }
    }

    fn read(stream: &mut Eager<Pieces>, room: usize) -> Poll<Vec<u8>> {
        let mut block = vec![0; room];
        let mut buffer = ReadBuf::new(&mut block);
        let mut cx = Context::from_waker(Waker::noop());
        let polled = Pin::new(stream).poll_read(&mut cx, &mut buffer);
        polled.map(|read| {
            read.expect("it can be read");
            buffer.filled().to_vec()
        })
    }

    #[test]
    fn a_read_takes_what_is_there_and_waits_only_for_the_first() {
        let mut stream = Eager(Pieces(vec![b"ab", b"cd", b"ef"]));
        assert_eq!(read(&mut stream, 4), Poll::Ready(b"abcd".to_vec()));
        assert_eq!(read(&mut stream, 4), Poll::Ready(b"ef".to_vec()));
        assert_eq!(read(&mut stream, 4), Poll::Pending);
        stream.0.0.extend([&b"gh"[..], b""]);
        assert_eq!(read(&mut stream, 4), Poll::Ready(b"gh".to_vec()));
    }
}
