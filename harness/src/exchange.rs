//! One HTTP request over a connection that ends with the answer.
//!
//! A test asks rarely, and a connection that is not kept cannot be stale.

use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, StatusCode, client::conn::http1::handshake};
use hyper_util::rt::TokioIo;

use crate::stream::Stream;

/// Sends a request and returns the answer, which has so many bytes at most.
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
