//! Serves the peers of a simulation, which supplies their streams.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use servicebus_amqp::Output;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, BufReader};

use super::AcceptedConnection;
use super::protocol;
use super::serve_peer;
use super::web::ConnectionSecurity;
use crate::connection::{Unread, Wire};
use crate::namespaces::ConnectionOrigin;
use crate::shared::Shared;

/// Bytes read at once.
const BLOCK: usize = 64 * 1024;

/// Serves a peer as if a listener at `at` had accepted it.
pub(crate) fn serve<S>(
    shared: &Arc<Shared>,
    router: axum::Router,
    stream: S,
    from: SocketAddr,
    at: SocketAddr,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    shared.listeners.spawn(|stop| {
        let accepted = AcceptedConnection {
            address: from,
            shared: Arc::clone(shared),
            router,
            stop,
            is_reserved: false,
        };
        let stream = BufReader::with_capacity(BLOCK, stream);
        let served = protocol::serve(
            accepted,
            stream,
            ConnectionOrigin::at(at),
            ConnectionSecurity::Plain,
        );
        serve_peer(Arc::clone(shared), from, served)
    });
}

impl<S> Unread for BufReader<S> {
    /// The runtime knows at once what such a stream has.
    fn has_unread(&self) -> bool {
        false
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire for BufReader<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        input.reserve(BLOCK);
        pin!(self.read_buf(input)).poll(cx)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<io::Result<()>> {
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 16];
            let count = output.chunks(&mut slices);
            let stream = Pin::new(&mut *self);
            let written = ready!(stream.poll_write_vectored(cx, &slices[..count]))?;
            output.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_shutdown(cx)
    }

    fn acknowledge(&self) {}
}
