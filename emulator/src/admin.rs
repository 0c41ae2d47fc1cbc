//! The HTTP administration API, as the SDKs' administration clients and Service Bus Explorer use it: creates, reads,
//! changes, lists and deletes entities in Atom (`spec/admin-http.md`).
//!
//! It serves every path that the control API does not have. A request is parsed and authorized before its body is read, so
//! that clients without rights cost little. The control API changes entities by the same code. This file is also the one
//! place that checks the claims of a request's token (admin-http.md §3).

mod call;
mod describe;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod get;
mod put;
mod refusal;
mod route;
mod selection;
mod time;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH, SERVER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use call::{Answer, Call, ResponseBody};
use parking_lot::{Mutex, MutexGuard};
use refusal::{ServiceError, Tail, quote};
use route::{Query, Route, decoded};
use servicebus_broker::ClientId;
use time::tag;
use tokio::time::timeout;
use uuid::Uuid;

use crate::auth::{Claim, Claims};
use crate::namespace::{Ids, Namespace};
use crate::service_http::{TokenRefusal, XML, error_body, read_at_most};
use crate::shared::Shared;
use crate::{rest, service_http};

pub(crate) use time::{Frame, NEVER};

/// Maximum size of a body in bytes: far more than a description with every list full needs.
const MAX_BODY: usize = 1024 * 1024;
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);
/// Separates the ids of this API from those of connections, which are numbered from 1.
const SALT: u32 = u32::MAX;

const ENTRY: &str = "application/atom+xml;type=entry;charset=utf-8";
const FEED: &str = "application/atom+xml;type=feed;charset=utf-8";
const SERVED_BY: &str = "Microsoft-HTTPAPI/2.0";

/// Returns whether a request with a message path is about an entity after all: a subscription or rule, whose paths have
/// keywords, or, if the request has an `api-version` of this API, a queue or topic whose name is such a path, unless messages
/// have the operation. A DELETE of the head of messages deletes an entity where there is one, but no queue with messages.
pub(crate) fn is_for(
    request: &Parts,
    route: &rest::Route,
    namespace: Option<&Arc<Namespace>>,
) -> bool {
    let is_versioned = request
        .uri
        .query()
        .is_some_and(|query| query.contains("api-version"));
    let path = decoded(request.uri.path()).unwrap_or_default();
    let path = path.trim_matches('/');
    let is_there = |path: &str| {
        let entity = namespace.zip(path.parse().ok());
        entity.is_some_and(|(namespace, path)| namespace.entity(&path).is_some())
    };
    let is_deletion = || {
        let is_delete = request.method == Method::DELETE;
        is_delete && is_there(path) && !is_there(&route.address.entity)
    };
    is_versioned && (!route.has(&request.method) || is_deletion()) || Route::of(path).has_keyword()
}

/// The state that requests work on.
#[derive(Debug)]
pub(crate) struct Admin {
    shared: Arc<Shared>,
    ids: Mutex<Ids>,
}

impl Admin {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let ids = Ids::new(shared.options.seed, SALT);
        Self {
            shared,
            ids: Mutex::new(ids),
        }
    }

    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock()
    }

    fn tracking_id(&self) -> Uuid {
        self.shared.tracking_id(&mut self.ids())
    }
}

/// Answers any request.
pub(crate) async fn serve(admin: &Admin, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let host = service_http::authority(&head).to_owned();
    let namespace = admin.namespace_of(&head);
    let answered = match &namespace {
        Some(namespace) => admin.answer(namespace, &host, &head, body).await,
        None => Err(ServiceError::unauthorized(
            "SubCode=40402. The namespace cannot be determined: neither the host name nor the key of the token belongs to one.",
        )),
    };
    match answered {
        Ok(answer) => respond(answer),
        Err(refusal) => admin.refuse(namespace.as_deref(), &head, &refusal),
    }
}

impl Admin {
    /// Returns the namespace of a request, if it can be determined.
    pub(crate) fn namespace_of(&self, head: &Parts) -> Option<Arc<Namespace>> {
        service_http::namespace(&self.shared, head)
    }

    async fn answer(
        &self,
        namespace: &Namespace,
        host: &str,
        head: &Parts,
        body: Body,
    ) -> Result<Answer, ServiceError> {
        let written = decoded(head.uri.path())?;
        let path = written.trim_matches('/');
        let route = Route::of(path);
        let now = self.shared.real.unix_seconds();
        let claims = claims(namespace, head, path, route.owner(), now)?;
        let query = Query::parse(head.uri.query().unwrap_or_default())?;
        let call = Call {
            admin: self,
            namespace,
            query: &query,
            host,
            request_path: path,
            request_url: request_url(host, head, &route, &written),
            if_match: if_match(&head.headers)?,
            frame: Frame::of(namespace),
        };
        let method = head.method.as_str();
        if !claims.contains(Claim::Manage) {
            return call.without_manage(method, &route, claims);
        }
        let answer = match method {
            "GET" => return call.get(&route),
            "PUT" => call.put(&route, &read(body, BODY_TIMEOUT).await?)?,
            "DELETE" => call.delete(&route)?,
            other => return Err(ServiceError::verb(other)),
        };
        namespace.changes_written().await;
        Ok(answer)
    }

    /// Refuses a request, and puts the error into log and timeline (decision D29).
    fn refuse(
        &self,
        namespace: Option<&Namespace>,
        head: &Parts,
        refusal: &ServiceError,
    ) -> Response {
        let path = head.uri.path();
        let text = refusal.tracked(&Tail {
            tracking: self.tracking_id(),
            host: service_http::host(head),
            path: path.trim_matches('/'),
            now: self.shared.real.now(),
        });
        let status = refusal.status;
        tracing::info!(method = %head.method, path, status = status.as_u16(), text, "refused");
        if let Some(namespace) = namespace {
            let condition = format!("http:{}", status.as_u16());
            namespace.record_refusal(ClientId::BROKER, None, &condition, &text);
        }
        let mut response = (status, error_body(status.as_str(), &text)).into_response();
        set_type(&mut response, XML);
        let is_authorized = ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        if let Some(namespace) = namespace.filter(|_| is_authorized)
            && let Some(Ok(tag)) = tag_of_owner(namespace, path).map(HeaderValue::try_from)
        {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

/// Returns the `ETag` of the queue or topic of a request, which errors have too.
fn tag_of_owner(namespace: &Namespace, path: &str) -> Option<String> {
    let path = decoded(path).ok()?;
    let route = Route::of(path.trim_matches('/'));
    let owner = namespace.entity(&route.owner()?.parse().ok()?)?;
    Some(tag(owner.metadata(|metadata| metadata.updated_at())))
}

/// Returns the URL of a request with the decoded path, as responses have it: that of a subscription or rule which is read has
/// another scheme.
fn request_url(host: &str, head: &Parts, route: &Route, path: &str) -> String {
    let is_one = matches!(route, Route::Subscription { .. } | Route::Rule { .. });
    let scheme = match is_one && head.method == Method::GET {
        true => "sb",
        false => "https",
    };
    let (mark, query) = match head.uri.query() {
        Some(query) => ("?", query),
        None => ("", ""),
    };
    format!("{scheme}://{host}{path}{mark}{query}")
}

/// Returns the header that makes a creation a change; a header that is not text matches nothing.
fn if_match(headers: &HeaderMap) -> Result<Option<&str>, ServiceError> {
    let unreadable = |_| {
        let text = "The header 'If-Match' is not text; allowed: *, or the entity's 'ETag'. ";
        ServiceError::new(StatusCode::PRECONDITION_FAILED, text)
    };
    let written = headers.get(IF_MATCH).map(HeaderValue::to_str);
    written.transpose().map_err(unreadable)
}

/// Reads a body within the limits of size and time.
async fn read(body: Body, step_timeout: Duration) -> Result<Bytes, ServiceError> {
    match timeout(step_timeout, read_at_most(MAX_BODY, body)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err((status, text))) => Err(ServiceError::new(status, format!("{text} "))),
        Err(_) => {
            let text = format!(
                "The body did not come within {} s. ",
                step_timeout.as_secs_f64()
            );
            Err(ServiceError::new(StatusCode::REQUEST_TIMEOUT, text))
        }
    }
}

fn respond(answer: Answer) -> Response {
    let (media_type, body) = match answer.body_kind {
        ResponseBody::Entry(body) => (Some(ENTRY), body),
        ResponseBody::Feed(body) => (Some(FEED), body),
        ResponseBody::Nothing => (None, String::new()),
    };
    let mut response = (answer.status, body).into_response();
    match media_type {
        Some(media_type) => set_type(&mut response, media_type),
        None => {
            response.headers_mut().remove(CONTENT_TYPE);
            set_server(&mut response);
        }
    }
    if let Some(Ok(tag)) = answer.tag.map(HeaderValue::try_from) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn set_type(response: &mut Response, media_type: &'static str) {
    let value = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    set_server(response);
}

fn set_server(response: &mut Response) {
    let value = HeaderValue::from_static(SERVED_BY);
    response.headers_mut().insert(SERVER, value);
}

/// Returns the claims of a request's token at `resource`, its path, where it is about the entity `owner`.
pub(crate) fn claims(
    namespace: &Namespace,
    head: &Parts,
    resource: &str,
    owner: Option<&str>,
    now: i64,
) -> Result<Claims, ServiceError> {
    let claims = service_http::claims(namespace, head, owner, &[resource], now);
    claims.map_err(|refusal| {
        if let Some(text) = refusal.expiry() {
            return ServiceError::unauthorized(text);
        }
        let TokenRefusal { sub_code, name, error } = refusal;
        ServiceError::unauthorized(match error {
            Some(error) => {
                let resource = quote(resource);
                format!("SubCode={sub_code}. {name}: unauthorized access to '{resource}': {error}.")
            }
            None => format!(
                "claim is empty. SubCode={sub_code}. {name}: the header 'Authorization' must have a shared access signature or \
                 a bearer token."
            ),
        })
    })
}

impl Call<'_> {
    /// Returns the error for a request whose claims do not include Manage: that a queue or topic to read does not exist
    /// (observed 32), else the required claims, in the words that the SDKs' suites expect (observed 33; for rules by
    /// analogy).
    pub(crate) fn without_manage(
        &self,
        method: &str,
        route: &Route,
        claims: Claims,
    ) -> Result<Answer, ServiceError> {
        if method == "GET"
            && let Route::Entity(path) = route
            && self.namespace.entity(&self.path(path)?).is_none()
        {
            return Ok(self.no_such_endpoint());
        }
        let required = match back_end_operation(method, route) {
            Some(operation) => format!(
                "SubCode=40100: Unauthorized : Unauthorized access for '{operation}' operation on endpoint 'sb://{}'.",
                quote(self.host)
            ),
            None => match method {
                "GET" => "Manage,EntityRead claims required for this operation.".to_owned(),
                "DELETE" => action("EntityDelete"),
                _ => action("EntityWrite"),
            },
        };
        Err(ServiceError::unauthorized(format!(
            "{required} The token has: {claims}."
        )))
    }
}

fn action(name: &str) -> String {
    format!("Authorization failed for specified action: Manage,{name}.")
}

/// Returns the name that the service's back end for subscriptions and rules gives a request.
fn back_end_operation(method: &str, route: &Route) -> Option<String> {
    let (one, all) = match route {
        Route::Subscription { .. } => ("Subscription", false),
        Route::Subscriptions { .. } => ("Subscriptions", true),
        Route::Rule { .. } => ("Rule", false),
        Route::Rules { .. } => ("Rules", true),
        Route::Root
        | Route::NamespaceInfo
        | Route::Queues
        | Route::Topics
        | Route::Entity(_)
        | Route::SubQueue { .. }
        | Route::UnknownResource(_) => return None,
    };
    let verb = match (method, all) {
        ("GET", true) => "Enumerate",
        ("GET", false) => "Get",
        ("DELETE", _) => "Delete",
        _ => "CreateOrUpdate",
    };
    Some(format!("{verb}{one}"))
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[test]
    fn a_missing_request_body_times_out() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().expect("a runtime");
        let body = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let refused = runtime.block_on(read(body, Duration::from_millis(1)));
        let refused = refused.expect_err("nothing came");
        assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
        let read = runtime.block_on(read(Body::from("whole"), BODY_TIMEOUT));
        assert_eq!(read, Ok(Bytes::from("whole")));
    }
}
