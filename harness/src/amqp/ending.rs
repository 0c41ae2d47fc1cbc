//! The end of a connection, told to every exchange that waits.
//!
//! The client library does not wake an exchange whose connection is gone: it would wait until its time is over. The stream
//! below the connection is let go when that ends, however it ends, and tells.

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

use super::{ANSWER_WITHIN, AmqpError};
use crate::stream::Stream;

/// How long an exchange has, when its connection has ended, to say better why.
const GRACE: Duration = Duration::from_millis(100);

/// A session, and the end of its connection.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) handle: SessionHandle<()>,
    pub(crate) ending: Ending,
}

/// The end of a connection, which is to come.
#[derive(Debug, Clone)]
pub(crate) struct Ending(watch::Receiver<()>);

/// A stream that tells its end.
#[derive(Debug)]
struct Watched {
    stream: Box<dyn Stream>,
    _until_dropped: watch::Sender<()>,
}

impl Ending {
    /// Watches a stream, which is to be used in its stead.
    pub(crate) fn of(stream: Box<dyn Stream>) -> (Box<dyn Stream>, Self) {
        let (sender, receiver) = watch::channel(());
        let watched = Watched {
            stream,
            _until_dropped: sender,
        };
        (Box::new(watched), Self(receiver))
    }

    /// Gives an exchange the time it may take, and less where the connection ends.
    pub(crate) fn within<T>(
        &self,
        exchange: impl Future<Output = Result<T, AmqpError>>,
    ) -> impl Future<Output = Result<T, AmqpError>> {
        self.over(ANSWER_WITHIN, exchange)
    }

    /// The same with a time of its own.
    pub(crate) fn over<T>(
        &self,
        within: Duration,
        exchange: impl Future<Output = Result<T, AmqpError>>,
    ) -> impl Future<Output = Result<T, AmqpError>> {
        let mut ended = self.0.clone();
        // Those of the client library are large.
        let mut exchange = Box::pin(exchange);
        async move {
            tokio::select! {
                biased;
                done = &mut exchange => return done,
                // Nothing is ever sent: the error is the news.
                _ = ended.changed() => {}
                () = tokio::time::sleep(within) => return Err(AmqpError::TimedOut { within }),
            }
            let last = tokio::time::timeout(GRACE, exchange).await;
            last.unwrap_or_else(|_elapsed| Err(AmqpError::ended()))
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
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
