//! Serves HTTP to a peer, and AMQP over WebSocket after an upgrade.

mod upgrade;

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::HOST;
use axum::http::{Response, StatusCode, Version};
use futures_util::FutureExt as _;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use super::AcceptedConnection;
use crate::access::Peer;
use crate::body_account::BodyAccount;
use crate::connection::{self, Unread, WebSocket};
use crate::http::{Abort, StopSignal, internal_error, malformed, too_much};
use crate::namespaces::ConnectionOrigin;
use crate::nodes::quote;
use crate::rest::{self, ConnectionInfo, HeaderCaseStream};
use crate::shared::Shared;
use upgrade::Slot;

/// Paths that are answered however many connections there are.
const HEALTH: [&str; 2] = ["/health", "/$emulator/v1/health"];

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
    let AcceptedConnection {
        shared,
        router,
        mut stop,
        address,
        ..
    } = accepted;
    let slot = Slot::default();
    let router = TowerToHyperService::new(router);
    let (stream, heads) = rest::tap(stream);
    let connection_info = ConnectionInfo {
        heads,
        is_secured: security == ConnectionSecurity::Tls,
        stop: stop.clone(),
    };
    let stopping = StopSignal::from(stop.clone());
    let origin = Arc::new(origin);
    let service = service_fn(|mut request: Request<Incoming>| {
        let known = request.extensions_mut();
        known.insert(connection_info.clone());
        known.insert(Arc::clone(&origin));
        known.insert(stopping.clone());
        known.insert(Peer(address.ip()));
        let shared = Arc::clone(&shared);
        let router = router.clone();
        let slot = slot.clone();
        async move {
            match is_reserved && !HEALTH.contains(&request.uri().path()) {
                true => Ok(limit_reached()),
                false => answer(request, router, slot, shared).await,
            }
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .keep_alive(!is_reserved)
        .header_read_timeout(step_timeout);
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
        .downcast::<TokioIo<HeaderCaseStream<S>>>()
        .map_err(|_| io::Error::other("a stream came back as another"))?;
    let socket = WebSocket::new(parts.io.into_inner().into_inner(), parts.read_buf).await;
    let origin = ConnectionOrigin::clone(&origin).with_host(upgrade.host);
    let origin = origin.over(security.transport());
    connection::serve(socket, &origin, shared, stop).await
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
    request.extensions_mut().insert(account.clone());
    let request = request.map(|body| account.count(body));
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
    let Ok(response) = answered.unwrap_or_else(|payload| {
        shared.namespaces.failures.add_panic(&place, &*payload);
        Ok(internal_error(&*payload))
    });
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
