//! A connection that does nothing but be there.
//!
//! `--exit-when-idle` counts connections. Whoever shares an emulator with others holds one for as long as it needs the
//! emulator; an answer that has not ended is not cut for silence, as a connection between two requests is.

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;

/// When the emulator stops, as every request is told.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl From<watch::Receiver<bool>> for Stopping {
    fn from(stop: watch::Receiver<bool>) -> Self {
        Self(stop)
    }
}

/// Answers with a body that is empty, and ends when the emulator stops.
pub(super) async fn show(Extension(Stopping(mut stop)): Extension<Stopping>) -> Response {
    let end = stream::once(async move {
        // An emulator that is gone has stopped.
        let _ = stop.wait_for(|&stopping| stopping).await;
        Ok::<_, std::convert::Infallible>(Bytes::new())
    });
    Response::new(Body::from_stream(end.boxed()))
}
