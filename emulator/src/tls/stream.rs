//! A TLS stream whose bytes are copied in small pieces, on their way in and out.
//!
//! From some 2 KiB on a copy of glibc is one instruction of the processor, and there are processors (measured on an AMD
//! EPYC) on which that instruction takes fifteen times as long when its target does not begin with a cache line.
//! Records begin with a header of 5 bytes, so almost no target does.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Most bytes in one copy: the least of the sizes from which glibc may copy in the other way.
pub(crate) const PIECE: usize = 2 * 1024;
/// Pieces given to the TLS library at once: twice what it takes.
const PIECES: usize = 64;

/// The server's side of TLS with a peer. Beneath it the socket is read in large pieces: rustls alone asks for 4 KiB at
/// a time.
#[derive(Debug)]
pub(crate) struct Secured(Box<TlsStream<BufReader<TcpStream>>>);

impl Secured {
    /// After the handshake.
    pub(crate) fn new(stream: TlsStream<BufReader<TcpStream>>) -> Self {
        Self(Box::new(stream))
    }

    /// The name that the client asked for.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.0.get_ref().1.server_name()
    }

    /// The socket beneath.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.0.get_ref().0.get_ref()
    }

    fn stream(&mut self) -> Pin<&mut TlsStream<BufReader<TcpStream>>> {
        Pin::new(&mut self.0)
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let there = ready!(self.stream().poll_fill_buf(cx))?;
        let read = there.len().min(buffer.remaining());
        for piece in there[..read].chunks(PIECE) {
            buffer.put_slice(piece);
        }
        self.consume(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncBufRead for Secured {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Pin::new(&mut self.get_mut().0).poll_fill_buf(cx)
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        self.stream().consume(count);
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let all = slices.iter().flat_map(|slice| slice.chunks(PIECE));
        let mut count = 0;
        for (place, piece) in pieces.iter_mut().zip(all) {
            *place = IoSlice::new(piece);
            count += 1;
        }
        self.stream().poll_write_vectored(cx, &pieces[..count])
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
