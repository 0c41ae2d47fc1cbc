//! The HTTP side: health, and the control API by which tests own time and look inside. Every other path belongs to the
//! administration API.

mod body;
mod certificate;
mod clock;
mod counts;
mod entity;
mod error;
mod explain;
mod faults;
mod hold;
mod namespaces;
mod queues;
mod sessions;
mod subscriptions;
mod timeline;
mod topics;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::response::Response;
use axum::routing::{any, get, post};

use crate::admin::{self, Admin};
use crate::emulator::NamespaceInfo;
use crate::rest::{Door, Route};
use crate::server::Shared;

pub(crate) use hold::Stopping;

/// Largest request body, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// What the routes work on.
#[derive(Clone)]
pub(crate) struct Control {
    shared: Arc<Shared>,
    admin: Arc<Admin>,
    messages: Arc<Door>,
    namespaces: Arc<[NamespaceInfo]>,
}

impl FromRef<Control> for Arc<Shared> {
    fn from_ref(control: &Control) -> Self {
        Self::clone(&control.shared)
    }
}

impl FromRef<Control> for Arc<Admin> {
    fn from_ref(control: &Control) -> Self {
        Self::clone(&control.admin)
    }
}

impl FromRef<Control> for Arc<Door> {
    fn from_ref(control: &Control) -> Self {
        Self::clone(&control.messages)
    }
}

/// All routes (interfaces.md, "Control API").
pub(crate) fn router(shared: Arc<Shared>, namespaces: Vec<NamespaceInfo>) -> Router {
    let control = Control {
        messages: Arc::new(Door::new(Arc::clone(&shared))),
        admin: Arc::new(Admin::new(Arc::clone(&shared))),
        shared,
        namespaces: namespaces.into(),
    };
    let namespace = Router::new()
        .route("/clock", get(clock::show))
        .route("/clock/advance", post(clock::advance))
        .route("/clock/freeze", post(clock::freeze))
        .route("/clock/resume", post(clock::resume))
        .route("/settled", post(clock::settled))
        .route("/reset", post(namespaces::reset))
        .route("/counts", get(counts::show))
        .route("/timeline", get(timeline::show))
        .route("/explain", post(explain::show))
        .route(
            "/faults",
            get(faults::list)
                .post(faults::add)
                .delete(faults::remove_all),
        )
        .route("/faults/{id}", get(faults::show).delete(faults::remove))
        .route("/sessions", get(sessions::list))
        .route("/sessions/lose", post(sessions::lose))
        .route("/queues", get(queues::list))
        .route(
            "/queues/{*queue}",
            get(queues::show).put(queues::put).delete(queues::delete),
        )
        .route("/topics", get(topics::list))
        .route(
            "/topics/{*topic}",
            get(topics::show).put(topics::put).delete(topics::delete),
        )
        .route("/subscriptions", get(subscriptions::list))
        .route(
            "/subscriptions/{*subscription}",
            get(subscriptions::show)
                .put(subscriptions::put)
                .delete(subscriptions::delete),
        );
    let first = Router::new()
        .route("/clock", get(clock::show))
        .route("/clock/advance", post(clock::advance))
        .route("/clock/freeze", post(clock::freeze))
        .route("/clock/resume", post(clock::resume));
    let v1 = Router::new()
        .route("/health", get(namespaces::health))
        .route("/ca.pem", get(certificate::show))
        .route("/hold", get(hold::show))
        .route("/namespaces", get(namespaces::list))
        .nest("/namespaces/{namespace}", namespace)
        .merge(first);
    Router::new()
        .route("/health", get(namespaces::health))
        .nest("/$emulator/v1", v1)
        .route("/$emulator", any(error::no_such_route))
        .route("/$emulator/", any(error::no_such_route))
        .route("/$emulator/{*rest}", any(error::no_such_route))
        .fallback(beside)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY))
        .with_state(control)
}

/// What is not of the control API: messages, else entities.
async fn beside(
    State(admin): State<Arc<Admin>>,
    State(messages): State<Arc<Door>>,
    request: Request,
) -> Response {
    match Route::of(request.uri().path()) {
        Some(route) => messages.serve(route, request).await,
        None => admin::serve(&admin, request).await,
    }
}
