//! A connection of the harness, over TLS or not, as one type; and one HTTP request over it.
//!
//! A protocol's code is compiled anew for every type of connection that it goes over, and that of AMQP is long; what a
//! call through a pointer costs is nothing beside a system call.

use std::{fmt::Debug, io};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, StatusCode, client::conn::http1::handshake};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// What bytes can be read from and written to.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Debug + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Debug + Unpin + Send> Stream for T {}

/// Sends a request and returns the answer, which has so many bytes at most. The connection ends with the answer: a test
/// asks rarely, and a connection that is not kept cannot be stale.
pub(crate) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    most: usize,
) -> io::Result<(StatusCode, Bytes)> {
    let begun = handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = begun.map_err(io::Error::other)?;
    let answer = async move {
        let response = sender.send_request(request).await;
        let response = response.map_err(io::Error::other)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), most).collect().await;
        Ok((status, body.map_err(io::Error::other)?.to_bytes()))
    };
    // The connection makes progress only while it is polled; the answer ends both.
    tokio::pin!(connection);
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        _ = &mut connection => answer.await,
    }
}
