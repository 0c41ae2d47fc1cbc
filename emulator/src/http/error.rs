//! How the control API says no: `{"error":{"code","message","problems"}}` with a fitting status.
//!
//! What a handler is given of a request: its namespace, the names in its path, its query and its body.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection, StringRejection};
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Path, Query, Request};
use axum::http::header::CONNECTION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use servicebus_control_api::{ErrorAnswer, ErrorDetails, Problem};

use super::{Control, routes};
use crate::config::{ConfigError, problem};
use crate::durable::WriteFailed;
use crate::failures::{Broken, panic_text};
use crate::memory::Exceeded;
use crate::namespace::{Namespace, SharedEntity};

/// The code of what is our mistake.
const INTERNAL: &str = "internal-error";
/// Most names in a refusal.
const NAMED: usize = 20;

/// A refusal.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    details: ErrorDetails,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let details = ErrorDetails {
            code: code.to_owned(),
            message: message.into(),
            ..ErrorDetails::default()
        };
        Self { status, details }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// 400 for a value at a path that is not among what is allowed.
    pub(crate) fn not_allowed(
        path: &str,
        value: impl Into<Value>,
        allowed: impl Into<String>,
    ) -> Self {
        let message = format!("{path} is not allowed here");
        Self::new(StatusCode::BAD_REQUEST, "invalid-argument", message)
            .with_problems(vec![Problem::new(path, value, allowed)])
    }

    /// The refusal as a client of the control API says it.
    pub(crate) fn to_text(&self) -> String {
        let ErrorDetails {
            message, problems, ..
        } = &self.details;
        let problems = problems.iter().map(|problem| format!("\n  {problem}"));
        let problems = String::from_iter(problems);
        format!("{message} (status {}){problems}", self.status.as_u16())
    }

    pub(crate) fn with_problems(mut self, problems: Vec<Problem>) -> Self {
        self.details.problems = problems;
        self
    }

    /// An unknown name, with those that are known, the nearest of them where they are many.
    pub(crate) fn unknown<'a>(
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.collect();
        let mut named = problem::most_alike(name, known.iter().copied(), NAMED).join(", ");
        if let Some(more @ 1..) = known.len().checked_sub(NAMED) {
            named.push_str(&format!(", and {more} more"));
        }
        let mut message = format!("there is no {what} {name:?}");
        if !named.is_empty() {
            message.push_str(&format!("; there are: {named}"));
        }
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }
}

/// What a request is answered that ended in a panic.
pub(crate) fn internal_error(payload: &(dyn Any + Send)) -> Response {
    let message = match payload.downcast_ref::<Broken>() {
        Some(broken) => broken.to_string(),
        None => format!("the request {}", panic_text(payload)),
    };
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, message).into_response()
}

/// What was asked for may have happened, but is not written and will not be.
pub(crate) fn not_written(failed: &WriteFailed) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "data", failed.to_string())
}

/// Refused where an entity is broken.
pub(crate) fn check_whole(entity: &SharedEntity) -> Result<(), ApiError> {
    match entity.broken() {
        None => Ok(()),
        Some(broken) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Err(ApiError::new(status, INTERNAL, broken.to_string()))
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut error = self.details;
        let parts = error.problems.iter().map(Problem::in_line);
        let parts = Vec::from_iter(parts).join("; ");
        error.text = match parts.is_empty() {
            true => error.message.clone(),
            false => format!("{}: {parts}", error.message),
        };
        (self.status, Json(ErrorAnswer { error })).into_response()
    }
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        Self::of_config("the properties are not allowed", error)
    }
}

impl ApiError {
    /// What is wrong with what a namespace is made of.
    pub(crate) fn of_topology(error: ConfigError) -> Self {
        Self::of_config("the topology cannot be served", error)
    }

    fn of_config(message: &str, error: ConfigError) -> Self {
        let message = match error.more {
            0 => message.to_owned(),
            more => format!("{message}: the first problems are told, and there are {more} more"),
        };
        let problems = error.problems.into_iter().map(|problem| {
            let allowed = problem.allowed.unwrap_or(problem.message);
            Problem::new(problem.path, problem.value, allowed)
        });
        Self::new(StatusCode::BAD_REQUEST, "invalid-argument", message)
            .with_problems(problems.collect())
    }
}

/// How many things an answer is to have, where `most` is as many as it may and unless it says otherwise.
pub(crate) fn check_limit(limit: Option<usize>, most: usize) -> Result<usize, ApiError> {
    let limit = limit.unwrap_or(most);
    match (1..=most).contains(&limit) {
        true => Ok(limit),
        false => {
            let allowed = format!("from 1 to {most}");
            Err(ApiError::not_allowed("limit", limit, allowed))
        }
    }
}

/// Whether the newest come first: `newest`, or `oldest` as unless set.
pub(crate) fn is_newest_first(order: Option<&str>) -> Result<bool, ApiError> {
    match order {
        None | Some("oldest") => Ok(false),
        Some("newest") => Ok(true),
        Some(other) => Err(ApiError::not_allowed("order", other, "oldest or newest")),
    }
}

/// What axum refuses: a body or a query that it cannot read.
macro_rules! refused_by_axum {
    ($($rejection:ty => $code:literal),+) => {$(
        impl From<$rejection> for ApiError {
            fn from(rejection: $rejection) -> Self {
                Self::new(rejection.status(), $code, rejection.body_text())
            }
        }
    )+};
}

refused_by_axum!(
    JsonRejection => "invalid-body",
    StringRejection => "invalid-body",
    BytesRejection => "invalid-body",
    QueryRejection => "invalid-query"
);

pub(crate) async fn no_such_route(uri: Uri) -> ApiError {
    let message = format!(
        "{} is not a route; the control API is under /$emulator/v1",
        uri.path()
    );
    ApiError::new(StatusCode::NOT_FOUND, "not-found", message)
}

pub(crate) async fn no_such_method(method: Method, uri: Uri, matched: MatchedPath) -> ApiError {
    let allowed = routes::methods(matched.as_str());
    let allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    let message = format!(
        "{method} is not allowed at {}; allowed: {}",
        uri.path(),
        allowed.join(", ")
    );
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        message,
    )
}

/// The answer to a request whose body is more than its connection, or all of them, may hold.
pub(crate) fn too_much(exceeded: Exceeded) -> Response {
    let status = match exceeded {
        Exceeded::Unproved { .. } | Exceeded::Connection { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Exceeded::Process { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    last(ApiError::new(status, "memory-limit", exceeded.to_string()))
}

/// 400 for a request that is not HTTP as its standard has it, at any path; the connection ends with it.
pub(crate) fn malformed(message: &str) -> Response {
    last(ApiError::new(
        StatusCode::BAD_REQUEST,
        "malformed-request",
        message,
    ))
}

/// An answer that ends its connection, on which more may be under way that is not read.
fn last(error: ApiError) -> Response {
    let mut response = error.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// The namespace that a route names; the first one where it names none.
pub(crate) struct Chosen(pub(crate) Arc<Namespace>);

/// The name of a namespace that need not be there; empty where there is none.
pub(crate) struct Name(pub(crate) String);

/// The id in the path.
pub(crate) struct Id(pub(crate) String);

/// A query with the fields of `T`; one that is none is refused as everything is here.
pub(crate) struct Asked<T>(pub(crate) T);

/// A JSON body with the fields of `T`; one that is none is refused as everything is here.
pub(crate) struct Body<T>(pub(crate) T);

/// A name in the path of a request, by the name that the route gives to it.
pub(crate) async fn path_name(parts: &mut Parts, control: &Control, name: &str) -> Option<String> {
    let path = Path::<HashMap<String, String>>::from_request_parts(parts, control).await;
    path.ok().and_then(|Path(mut names)| names.remove(name))
}

impl FromRequestParts<Control> for Chosen {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let named = path_name(parts, control, "namespace").await;
        let namespaces = &control.shared.namespaces;
        let found = match &named {
            Some(name) => namespaces.named(name),
            None => namespaces.first(),
        };
        found.map(Self).ok_or_else(|| {
            let known = namespaces.names();
            let name = named.as_deref().unwrap_or_default();
            ApiError::unknown("namespace", name, known.iter().map(String::as_str))
        })
    }
}

impl FromRequestParts<Control> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let name = path_name(parts, control, "namespace").await;
        Ok(Self(name.unwrap_or_default()))
    }
}

impl FromRequestParts<Control> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let id = path_name(parts, control, "id").await;
        Ok(Self(id.unwrap_or_default()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query: Result<_, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(fields) = query?;
        Ok(Self(fields))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        // Of any content type: `curl -d` calls everything a form.
        let bytes = Bytes::from_request(request, state).await?;
        let Json(fields) = Json::from_bytes(&bytes)?;
        Ok(Self(fields))
    }
}
