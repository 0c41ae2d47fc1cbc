//! The HTTP side: health, and the control API by which tests own time and look inside.

mod body;
mod clock;
mod counts;
mod error;
mod namespaces;
mod queues;
mod timeline;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::{get, post};

use crate::emulator::NamespaceInfo;
use crate::server::Shared;

/// Largest request body, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// What the routes work on.
#[derive(Clone)]
pub(crate) struct Control {
    shared: Arc<Shared>,
    namespaces: Arc<[NamespaceInfo]>,
}

impl FromRef<Control> for Arc<Shared> {
    fn from_ref(control: &Control) -> Self {
        Self::clone(&control.shared)
    }
}

/// All routes (interfaces.md, "Control API").
pub(crate) fn router(shared: Arc<Shared>, namespaces: Vec<NamespaceInfo>) -> Router {
    let control = Control {
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
        .route("/queues", get(queues::list))
        .route(
            "/queues/{*queue}",
            get(queues::show).put(queues::put).delete(queues::delete),
        );
    let first = Router::new()
        .route("/clock", get(clock::show))
        .route("/clock/advance", post(clock::advance))
        .route("/clock/freeze", post(clock::freeze))
        .route("/clock/resume", post(clock::resume));
    let v1 = Router::new()
        .route("/health", get(namespaces::health))
        .route("/namespaces", get(namespaces::list))
        .nest("/namespaces/{namespace}", namespace)
        .merge(first);
    Router::new()
        .route("/health", get(namespaces::health))
        .nest("/$emulator/v1", v1)
        .fallback(error::no_such_route)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY))
        .with_state(control)
}
