//! HTTP with a peer, and AMQP over WebSocket where it asks for that.

mod upgrade;

use std::convert::Infallible;
use std::io;

use axum::body::Body;
use axum::http::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use super::doors::Doors;
use crate::connection::{self, WebSocket};
use crate::rest::{self, Line, Tapped};
use upgrade::Slot;

/// Whether requests come through TLS.
#[derive(Debug, Clone)]
pub(super) enum Cover {
    Plain,
    /// With the name of the emulator, where the client has said one.
    Tls(Option<String>),
}

/// Serves requests, and AMQP once a request has asked for it.
pub(super) async fn serve<S>(stream: S, cover: Cover, doors: Doors) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Doors {
        shared,
        router,
        mut stop,
        ..
    } = doors;
    let slot = Slot::default();
    let router = TowerToHyperService::new(router);
    let (stream, heads) = rest::tap(stream);
    let line = Line {
        heads,
        is_secured: matches!(cover, Cover::Tls(_)),
        stop: stop.clone(),
    };
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(line.clone());
        answer(request, router.clone(), slot.clone())
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(shared.options.patience);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection.with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    served.map_err(io::Error::other)?;
    let Some(upgrade) = slot.take() else {
        return Ok(());
    };
    let upgraded = upgrade.stream.await.map_err(io::Error::other)?;
    let parts = upgraded
        .downcast::<TokioIo<Tapped<S>>>()
        .map_err(|_| io::Error::other("a stream came back as another"))?;
    let socket = WebSocket::new(parts.io.into_inner().into_inner(), parts.read_buf).await;
    let host = match cover {
        Cover::Tls(Some(host)) => Some(host),
        Cover::Tls(None) | Cover::Plain => upgrade.host,
    };
    connection::serve(socket, host.as_deref(), shared, stop).await
}

async fn answer(
    mut request: Request<Incoming>,
    router: TowerToHyperService<axum::Router>,
    slot: Slot,
) -> Result<Response<Body>, Infallible> {
    if upgrade::is_meant(&request) {
        return Ok(upgrade::answer(&mut request, &slot));
    }
    router.call(request).await
}
