//! The HTTP side: health, and the control API by which tests control time and read state. Every other path belongs to the
//! administration API.

mod assertions;
mod changes;
mod clock;
mod connections;
mod counts;
mod deadline;
mod description;
mod entities;
mod entity_list;
mod error;
mod explain;
mod explorations;
mod faults;
mod guard;
mod injected;
mod messages;
mod metrics;
mod namespaces;
mod operations;
mod page;
mod problem;
mod process;
mod routes;
mod sessions;
mod timeline;
mod topology;

use std::net::IpAddr;
use std::sync::{Arc, LazyLock, OnceLock};

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures_util::future::Either;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use servicebus_control_api::NamespaceInfo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::admin::{self, Admin};
use crate::config::NamespaceConfig;
use crate::listeners::{Listening, Until};
use crate::namespaces::Creation;
use crate::options::StartError;
use crate::rest::{MessagesApi, Route};
use crate::shared::Shared;
use crate::{arm, listen};
pub(crate) use error::{internal_error, malformed, too_much};
use explorations::Explorations;
pub(crate) use guard::refused_websocket;
pub(crate) use injected::Abort;
use injected::Api;
#[cfg(feature = "cli")]
pub(crate) use messages::at_rest;
pub(crate) use process::StopSignal;

/// Default limit of a request body, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// The state that the routes work on.
#[derive(Clone)]
pub(crate) struct Control {
    shared: Arc<Shared>,
    admin: Arc<Admin>,
    messages: Arc<MessagesApi>,
    /// Limits the timelines that are rendered at the same time, since each is a copy of the record. None of them waits for a
    /// reader.
    timelines: Arc<Semaphore>,
    /// Limits those that are rendered while they are read.
    streamed_timelines: Arc<Semaphore>,
    /// Limits the clients that follow changes at the same time.
    followers: Arc<Semaphore>,
    explorations: Arc<Explorations>,
    /// Limits the assertions that wait at the same time.
    assertions: Arc<Semaphore>,
    serve: Serve,
}

/// The routes of every emulator in this process, without their state.
static ROUTES: LazyLock<Router<Control>> = LazyLock::new(|| {
    let table = routes::table().into_iter();
    let router = table.fold(Router::new(), |router, route| {
        router.route(route.path, route.method_router())
    });
    router
        .route("/$emulator", any(page::redirect))
        .route("/$emulator/", any(page::show))
        .route("/$emulator/{*rest}", any(page::show))
        .fallback(serve_other_apis)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
});

/// Serves listeners until the emulator stops or they must close.
type Serve = fn(Vec<TcpListener>, &Arc<Shared>, &Router, Option<&Until>);

impl FromRef<Control> for Arc<Shared> {
    fn from_ref(control: &Control) -> Self {
        Self::clone(&control.shared)
    }
}

impl Control {
    /// Creates the control API; `serve` serves the listeners at a namespace's own address.
    pub(crate) fn new(shared: Arc<Shared>, serve: Serve) -> Self {
        Self {
            messages: Arc::new(MessagesApi::new(Arc::clone(&shared))),
            admin: Arc::new(Admin::new(Arc::clone(&shared))),
            timelines: Arc::new(Semaphore::new(timeline::AT_ONCE)),
            streamed_timelines: Arc::new(Semaphore::new(timeline::AT_ONCE)),
            followers: Arc::new(Semaphore::new(changes::STREAMS)),
            explorations: Arc::default(),
            assertions: Arc::new(Semaphore::new(assertions::AT_ONCE)),
            shared,
            serve,
        }
    }

    /// Returns all routes (interfaces.md, "Control API"). The first request creates them, so that starting does not wait for
    /// them.
    pub(crate) fn router(&self) -> Router {
        let control = self.clone();
        let routes = Arc::new(OnceLock::new());
        let answer = move |request: Request| {
            if is_of_entity(&request) {
                return Either::Left(serve_other_apis(State(control.clone()), request));
            }
            let set_up = || TowerToHyperService::new(ROUTES.clone().with_state(control.clone()));
            let answering = routes.get_or_init(set_up).call(request);
            Either::Right(async { answering.await.into_response() })
        };
        Router::new()
            .fallback(answer)
            .layer(from_fn_with_state(self.clone(), guard::guard))
            .layer(from_fn_with_state(self.clone(), once_committed))
    }

    /// Creates a namespace from a checked configuration.
    pub(crate) fn create(&self, config: NamespaceConfig) -> Result<(), StartError> {
        self.finish(config, |creation| creation)
    }

    /// Creates a namespace that only the data directory has, with its checked declaration.
    pub(crate) fn open_stored(&self, config: NamespaceConfig) -> Result<(), StartError> {
        self.finish(config, |creation| creation.stored())
    }

    fn finish(
        &self,
        config: NamespaceConfig,
        prepare: impl FnOnce(Creation<'_>) -> Creation<'_>,
    ) -> Result<(), StartError> {
        let name = config.name.clone();
        let namespaces = &self.shared.namespaces;
        let permit = namespaces.free_permit();
        let permit = permit.ok_or_else(|| StartError::Namespace {
            namespace: name.clone(),
            reason: "another one is being made".into(),
        })?;
        let creation = prepare(namespaces.begin(permit));
        let created = creation.finish(config, |address| self.listen(address));
        created.map(drop).map_err(|error| error.at_start(name))
    }

    /// Creates a namespace, as a request with this name and body does. The error is the text of the refusal.
    pub(crate) async fn create_declared(
        self,
        name: &str,
        body: String,
    ) -> Result<NamespaceInfo, String> {
        let created = namespaces::create_named(self, name.to_owned(), body).await;
        created.map_err(|error| error.to_text())
    }

    /// Removes a namespace, as a request with this name does. The error is the text of the refusal.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), String> {
        let removed = namespaces::remove_named(&self.shared, name).await;
        removed.map_err(|error| error.to_text())
    }

    /// Opens listeners at a namespace's own address; `None` where other listeners cover it.
    fn listen(&self, address: IpAddr) -> Result<Option<Listening>, StartError> {
        let Shared {
            listeners,
            namespaces,
            ..
        } = &*self.shared;
        if listeners.cover(address) {
            return Ok(None);
        }
        let sockets = listen::at(address, namespaces.place.endpoints)?;
        let (listening, until) = Listening::new();
        (self.serve)(sockets, &self.shared, &self.router(), Some(&until));
        Ok(Some(listening))
    }
}

/// Answers when the request's changes are committed, if there is a data directory.
async fn once_committed(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    // A probe must not wait for a long commit, and changes nothing.
    let is_probe = request.uri().path() == "/health" && !is_of_entity(&request);
    let response = next.run(request).await;
    let Some(store) = shared.namespaces.store.as_ref().filter(|_| !is_probe) else {
        return response;
    };
    match store.flush().await {
        Ok(()) => response,
        Err(failed) => error::not_written(&failed).into_response(),
    }
}

/// Returns whether a request to the probe's path is for an entity of that name: administration clients send an
/// `api-version`.
fn is_of_entity(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.uri().path() == "/health" && query.contains("api-version")
}

/// Serves what is not of the control API: resources of Azure Resource Manager, messages, else entities.
async fn serve_other_apis(State(control): State<Control>, request: Request) -> Response {
    let Control {
        shared,
        admin,
        messages,
        ..
    } = control;
    if page::is_wanted(&request) {
        return page::redirect().await;
    }
    let (head, body) = request.into_parts();
    if metrics::are_meant(&head) {
        return metrics::show(State(shared)).await.into_response();
    }
    let (api, namespace) = match arm::is_for(&head.uri) {
        true => (Api::Resources, arm::namespace(&shared, head.uri.path())),
        false => (Api::Service, admin.namespace_of(&head)),
    };
    let route = Route::of(head.uri.path());
    let route = route.filter(|route| !admin::is_for(&head, route, namespace.as_ref()));
    let request = Request::from_parts(head.clone(), body);
    let serve = async {
        match route {
            _ if api == Api::Resources => arm::serve(&shared, request).await,
            Some(route) => messages.serve(route, request).await,
            None => admin::serve(&admin, request).await,
        }
    };
    injected::serve(namespace, api, &head, serve).await
}
