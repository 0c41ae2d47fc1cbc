//! Notifies every waiting exchange of the end of its connection.
//!
//! The client library does not wake an exchange when its connection ends: the exchange would wait until its timeout. The
//! library drops the stream below the connection when the connection ends, in whatever way, and that drop sends the
//! notification.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use fe2o3_amqp::session::SessionHandle;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
};

use super::{AmqpError, RESPONSE_TIMEOUT};
use crate::{liveness::NamespaceEnd, stream::Stream};

/// How long an exchange may take to report a more precise error after its connection has ended.
const GRACE: Duration = Duration::from_millis(100);

/// A session, with the end of its connection.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) handle: SessionHandle<()>,
    pub(crate) connection_end: ConnectionEnd,
}

/// Resolves when the connection ends; knows whether the namespace has ended with it.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionEnd(watch::Receiver<()>, NamespaceEnd);

/// A stream whose drop notifies waiting exchanges.
#[derive(Debug)]
struct WatchedStream {
    stream: Box<dyn Stream>,
    _until_dropped: watch::Sender<()>,
}

impl ConnectionEnd {
    /// Wraps a stream to watch its end; the caller uses the returned stream instead.
    pub(crate) fn of(stream: Box<dyn Stream>, end: NamespaceEnd) -> (Box<dyn Stream>, Self) {
        let (sender, receiver) = watch::channel(());
        let watched = WatchedStream {
            stream,
            _until_dropped: sender,
        };
        (Box::new(watched), Self(receiver, end))
    }

    /// Limits an exchange to [`RESPONSE_TIMEOUT`], and to [`GRACE`] after its connection has ended.
    pub(crate) fn within<T>(
        &self,
        exchange: impl Future<Output = Result<T, AmqpError>>,
    ) -> impl Future<Output = Result<T, AmqpError>> {
        self.within_timeout(RESPONSE_TIMEOUT, exchange)
    }

    /// As [`Self::within`], with a given time.
    pub(crate) fn within_timeout<T>(
        &self,
        within: Duration,
        exchange: impl Future<Output = Result<T, AmqpError>>,
    ) -> impl Future<Output = Result<T, AmqpError>> {
        let (mut ended, namespace_end) = (self.0.clone(), self.1.clone());
        let explain = move |error| match namespace_end.check() {
            Ok(()) => error,
            Err(namespace_ended) => namespace_ended.into(),
        };
        // The futures of the client library are large.
        let mut exchange = Box::pin(exchange);
        async move {
            tokio::select! {
                biased;
                done = &mut exchange => return done.map_err(explain),
                // The sender never sends: its drop is an error here.
                _ = ended.changed() => {}
                () = tokio::time::sleep(within) => return Err(AmqpError::TimedOut { within }),
            }
            let last = tokio::time::timeout(GRACE, exchange).await;
            last.unwrap_or_else(|_elapsed| Err(AmqpError::ended()))
                .map_err(explain)
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
