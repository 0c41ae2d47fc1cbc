//! Serves HTTP to a peer, and AMQP over WebSocket after an upgrade.

mod read_ahead;
mod upgrade;

use std::future::poll_fn;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header::{EXPECT, HOST};
use axum::http::{Response, StatusCode, Version};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch::Receiver;

use super::AcceptedConnection;
use crate::access::Peer;
use crate::body_account::{BodyAccount, discard};
use crate::connection::{self, Unread, WebSocket};
use crate::http::{Abort, StopSignal, internal_error, malformed, too_much};
use crate::namespaces::ConnectionOrigin;
use crate::nodes::quote;
use crate::rest::{self, ConnectionInfo, HeaderCaseStream};
use crate::shared::Shared;
use read_ahead::{PeerWatch, ReadAhead};
use upgrade::{Slot, Upgrade};

/// Paths that are answered however many connections there are.
const HEALTH: [&str; 2] = ["/health", "/$emulator/v1/health"];
/// Maximum number of headers of a request: each application property of a message is one. More get status 431.
const MAX_HEADERS: usize = 1000;

/// Whether requests come over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionSecurity {
    Plain,
    Tls,
}

impl ConnectionSecurity {
    /// The transport in the list of connections.
    fn transport(self) -> &'static str {
        match self {
            Self::Plain => "websocket",
            Self::Tls => "websocket-tls",
        }
    }
}

/// Serves requests, and AMQP after an upgrade. Every request carries the origin of its connection.
pub(crate) async fn serve<S>(
    stream: S,
    origin: ConnectionOrigin,
    security: ConnectionSecurity,
    accepted: AcceptedConnection,
) -> io::Result<()>
where
    S: Unread + AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (step_timeout, is_reserved) = (accepted.timeout(), accepted.is_reserved);
    let (shared, mut stop) = (accepted.shared, accepted.stop);
    let peer = Peer(accepted.address.ip());
    let router = TowerToHyperService::new(accepted.router);
    let slot = Slot::default();
    let (stream, watch) = read_ahead::watch(stream);
    let (stream, heads) = rest::tap(stream);
    let connection_info = ConnectionInfo {
        heads,
        is_secured: security == ConnectionSecurity::Tls,
        stop: stop.clone(),
    };
    let stopping = StopSignal::from(stop.clone());
    let origin = Arc::new(origin);
    let in_progress = Arc::new(AtomicBool::new(false));
    let service = service_fn(|mut request: Request<Incoming>| {
        let known = request.extensions_mut();
        known.insert(connection_info.clone());
        known.insert(Arc::clone(&origin));
        known.insert(stopping.clone());
        known.insert(peer);
        let shared = Arc::clone(&shared);
        let router = router.clone();
        let slot = slot.clone();
        let in_progress = InProgress::begin(&in_progress);
        async move {
            let response = match is_reserved && !HEALTH.contains(&request.uri().path()) {
                true => Ok(limit_reached()),
                false => answer(request, router, slot, shared).await,
            };
            response.map(|response| in_progress.follow(response))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .keep_alive(!is_reserved)
        .max_headers(MAX_HEADERS)
        .header_read_timeout(step_timeout);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection.with_upgrades());
    let served = tokio::select! {
        served = unless_gone(connection.as_mut(), &watch, &connection_info, &in_progress) => served,
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            unless_gone(connection, &watch, &connection_info, &in_progress).await
        }
    };
    let Some(served) = served else { return Ok(()) };
    served.map_err(io::Error::other)?;
    drop(watch);
    match slot.take() {
        None => Ok(()),
        Some(upgrade) => {
            let origin = ConnectionOrigin::clone(&origin).over(security.transport());
            serve_websocket::<S>(upgrade, origin, shared, stop).await
        }
    }
}

async fn serve_websocket<S>(
    upgrade: Upgrade,
    origin: ConnectionOrigin,
    shared: Arc<Shared>,
    stop: Receiver<bool>,
) -> io::Result<()>
where
    S: Unread + AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let upgraded = upgrade.stream.await.map_err(io::Error::other)?;
    let (stream, read) = parts_of::<S>(upgraded)?;
    let socket = WebSocket::new(stream, read).await;
    connection::serve(socket, &origin.with_host(upgrade.host), shared, stop).await
}

/// Polls a connection to its end. Returns `None` if its peer disconnects while a request is in progress: the caller drops the
/// connection, and with it the request.
async fn unless_gone<S>(
    mut connection: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    watch: &PeerWatch<S>,
    connection_info: &ConnectionInfo,
    in_progress: &AtomicBool,
) -> Option<hyper::Result<()>>
where
    S: Unread + AsyncRead + Unpin,
{
    poll_fn(|cx| {
        let is_gone = |cx: &mut Context<'_>| {
            in_progress.load(Ordering::Relaxed)
                && watch.is_gone(cx, connection_info.heads.has_whole_body())
        };
        // Before the request goes on: it may take a message.
        if is_gone(cx) {
            return Poll::Ready(None);
        }
        watch.begin_turn();
        match connection.as_mut().poll(cx) {
            Poll::Ready(served) => Poll::Ready(Some(served)),
            Poll::Pending if is_gone(cx) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Returns the stream of an upgraded connection, and what has been read of it.
fn parts_of<S>(upgraded: Upgraded) -> io::Result<(S, Bytes)>
where
    S: Unread + AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let parts = upgraded
        .downcast::<TokioIo<HeaderCaseStream<ReadAhead<S>>>>()
        .map_err(|_| io::Error::other("a stream came back as another"))?;
    let ahead = parts.io.into_inner().into_inner().into_parts();
    let (stream, ahead) = ahead.ok_or_else(|| io::Error::other("a stream is still watched"))?;
    let read = match ahead.is_empty() {
        true => parts.read_buf,
        false => Bytes::from_iter(parts.read_buf.into_iter().chain(ahead)),
    };
    Ok((stream, read))
}

/// Marks a connection as one with a request in progress, until this is dropped.
struct InProgress(Arc<AtomicBool>);

impl InProgress {
    fn begin(mark: &Arc<AtomicBool>) -> Self {
        mark.store(true, Ordering::Relaxed);
        Self(Arc::clone(mark))
    }

    /// Extends a request to the end of its response, if the response is made while it is written.
    fn follow(self, response: Response<Body>) -> Response<Body> {
        match response.body().size_hint().exact() {
            Some(_) => response,
            None => response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _in_progress = &self;
                    frame
                }))
            }),
        }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Returns the response to a peer that may only ask for `/health`.
fn limit_reached() -> Response<Body> {
    let text = "There are too many connections; only /health is answered.\n";
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

async fn answer(
    mut request: Request<Incoming>,
    router: TowerToHyperService<axum::Router>,
    slot: Slot,
    shared: Arc<Shared>,
) -> io::Result<Response<Body>> {
    if let Some(head_violation) = head_violation(&request) {
        return Ok(malformed(head_violation));
    }
    if upgrade::is_websocket_upgrade(&request) {
        return Ok(upgrade::answer(&mut request, &slot, &shared.access));
    }
    if upgrade::is_at_other_path(&request) {
        return Ok(upgrade::wrong_path(quote(request.uri().path())));
    }
    let place = format!("{} {}", request.method(), quote(request.uri().path()));
    let account = BodyAccount::new(&shared.memory);
    // A client that expects 100 sends no body after another status (RFC 9110 §10.1.1).
    let sends_body = !request.headers().contains_key(EXPECT);
    request.extensions_mut().insert(account.clone());
    let request = request.map(|body| account.count(body));
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
    let Ok(response) = answered.unwrap_or_else(|payload| {
        shared.namespaces.failures.add_panic(&place, &*payload);
        Ok(internal_error(&*payload))
    });
    if let Some(unread) = account.take_unread()
        && sends_body
        && response.status().is_client_error()
    {
        discard(unread).await;
    }
    if let Some(exceeded) = account.exceeded() {
        tracing::warn!(request = place, %exceeded, "refused: memory limit reached");
        return Ok(too_much(exceeded));
    }
    let response = account.answer(response);
    match response.extensions().get::<Abort>() {
        None => Ok(response),
        Some(Abort) => Err(io::Error::other("a scripted fault closes the connection")),
    }
}

/// Returns what is wrong with a request head that the HTTP library accepts (RFC 9112 §2.2 and §3.2). A proxy may read such a
/// request differently.
fn head_violation(request: &Request<Incoming>) -> Option<&'static str> {
    let connection_info = request.extensions().get::<ConnectionInfo>();
    if connection_info.is_some_and(|connection_info| !connection_info.heads.begin(request)) {
        return Some("every line of the head of a request ends with CR LF; one ends with LF alone");
    }
    match request.headers().get_all(HOST).iter().count() {
        0 if request.version() >= Version::HTTP_11 => Some("the request has no header Host"),
        0 | 1 => None,
        _ => Some("the request has more than one header Host"),
    }
}
