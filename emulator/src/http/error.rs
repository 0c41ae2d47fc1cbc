//! Errors of the control API: `{"error":{"code","message","problems"}}` with a fitting status.
//!
//! Also the extractors of handlers: the namespace, the names in the path, the query and the body.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection, StringRejection};
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Path, Query, Request};
use axum::http::header::CONNECTION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use servicebus_control_api::{ErrorAnswer, ErrorDetails, Problem};

use super::{Control, routes};
use crate::config::{ConfigError, problem};
use crate::durable::WriteFailed;
use crate::failures::{Broken, panic_text};
use crate::memory::Exceeded;
use crate::namespace::{Namespace, SharedEntity};
use crate::namespaces::Namespaces;

/// The code of internal errors.
const INTERNAL: &str = "internal-error";
/// Maximum number of names in an error.
const NAMED: usize = 20;

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

    /// Returns a 400 for a value at a path that is not allowed.
    pub(crate) fn not_allowed(
        path: &str,
        value: impl Into<Value>,
        allowed: impl Into<String>,
    ) -> Self {
        let message = format!("this value of {path} is not allowed");
        Self::new(StatusCode::BAD_REQUEST, "invalid-argument", message)
            .with_problems(vec![Problem::new(path, value, allowed)])
    }

    /// Returns the error as a client of the control API prints it.
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

    /// Returns the error for an unknown name, with the known ones, or the nearest of them if they are many.
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

    pub(crate) fn unknown_namespace(namespaces: &Namespaces, name: &str) -> Self {
        let known = namespaces.names();
        Self::unknown("namespace", name, known.iter().map(String::as_str))
    }
}

/// Returns the response to a request that panicked.
pub(crate) fn internal_error(payload: &(dyn Any + Send)) -> Response {
    let message = match payload.downcast_ref::<Broken>() {
        Some(broken) => broken.to_string(),
        None => format!("the request {}", panic_text(payload)),
    };
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, message).into_response()
}

/// Returns the error for a change that may have happened, but is not written and will not be.
pub(crate) fn not_written(failed: &WriteFailed) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "data", failed.to_string())
}

/// Fails if an entity is broken.
pub(crate) fn check_not_broken(entity: &SharedEntity) -> Result<(), ApiError> {
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
    /// Returns the error for an invalid configuration of a namespace.
    pub(crate) fn of_topology(error: ConfigError) -> Self {
        Self::of_config("the topology cannot be served", error)
    }

    fn of_config(message: &str, error: ConfigError) -> Self {
        let message = match error.more {
            0 => message.to_owned(),
            more => format!("{message}: only the first problems are listed; there are {more} more"),
        };
        let problems = error.problems.into_iter().map(|problem| {
            let allowed = problem.allowed.unwrap_or(problem.message);
            Problem::new(problem.path, problem.value, allowed)
        });
        Self::new(StatusCode::BAD_REQUEST, "invalid-argument", message)
            .with_problems(problems.collect())
    }
}

/// Returns the number of items in a response; `most` is the default and the maximum.
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

/// Returns whether the order is `newest` first; `oldest` is the default.
pub(crate) fn is_newest_first(order: Option<&str>) -> Result<bool, ApiError> {
    match order {
        None | Some("oldest") => Ok(false),
        Some("newest") => Ok(true),
        Some(other) => Err(ApiError::not_allowed("order", other, "oldest or newest")),
    }
}

/// Maps axum's rejections of a body or a query.
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

/// Returns the error for a body of more than `most` bytes.
pub(crate) fn body_too_long(most: usize) -> ApiError {
    let message = format!("the body is longer than {most} bytes, the limit of this route");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid-body", message)
}

/// Returns the response to a body that exceeds the memory of its connection, or of all.
pub(crate) fn too_much(exceeded: Exceeded) -> Response {
    let status = match exceeded {
        Exceeded::Unproved { .. } | Exceeded::Connection { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Exceeded::Process { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    last(ApiError::new(status, "memory-limit", exceeded.to_string()))
}

/// Returns a 400 for a request that violates the HTTP standard, at any path; closes the connection.
pub(crate) fn malformed(message: &str) -> Response {
    last(ApiError::new(
        StatusCode::BAD_REQUEST,
        "malformed-request",
        message,
    ))
}

/// Returns a response that closes its connection, on which unread input may follow.
fn last(error: ApiError) -> Response {
    let mut response = error.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// The namespace in a route; the first one if it names none.
pub(crate) struct SelectedNamespace(pub(crate) Arc<Namespace>);

/// The name of a namespace that need not exist; empty if there is none.
pub(crate) struct NamespaceName(pub(crate) String);

/// The id in the path.
pub(crate) struct Id(pub(crate) String);

/// A query with the fields of `T`; an invalid one gets an error like all others.
pub(crate) struct QueryParams<T>(pub(crate) T);

/// A JSON object with the fields of `T` as the body; an invalid one gets an error like all others.
pub(crate) struct Body<T>(pub(crate) T);

/// A JSON object with the fields of `T`. Serde alone would also read an array of the values of the fields.
#[derive(Deserialize)]
#[serde(transparent, bound = "T: DeserializeOwned")]
pub(crate) struct Object<T>(#[serde(deserialize_with = "object")] pub(crate) T);

fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    struct Members<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(members))
        }
    }

    from.deserialize_map(Members(PhantomData))
}

/// Returns a name in the path of a request, by the name of the route's parameter.
pub(crate) async fn path_name(parts: &mut Parts, control: &Control, name: &str) -> Option<String> {
    let path = Path::<HashMap<String, String>>::from_request_parts(parts, control).await;
    path.ok().and_then(|Path(mut names)| names.remove(name))
}

impl FromRequestParts<Control> for SelectedNamespace {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let named = path_name(parts, control, "namespace").await;
        let namespaces = &control.shared.namespaces;
        let found = match &named {
            Some(name) => namespaces.named(name),
            None => namespaces.first(),
        };
        found.map(Self).ok_or_else(|| {
            ApiError::unknown_namespace(namespaces, named.as_deref().unwrap_or_default())
        })
    }
}

impl FromRequestParts<Control> for NamespaceName {
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

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
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
        let Object(fields) = json(request, state).await?;
        Ok(Self(fields))
    }
}

/// Reads the body, of any content type: `curl -d` sends everything as a form.
pub(crate) async fn json<S: Send + Sync, T: DeserializeOwned>(
    request: Request,
    state: &S,
) -> Result<T, ApiError> {
    let bytes = Bytes::from_request(request, state).await?;
    let Json(value) = Json::from_bytes(&bytes)?;
    Ok(value)
}
