//! Health, and namespaces: listed, made, removed, emptied.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::Control;
use super::error::{ApiError, Problem};
use crate::config::{self, NamespaceConfig};
use crate::namespace::Namespace;
use crate::namespaces::{CreateError, NamespaceInfo, Permit, RemoveError};
use crate::shared::Shared;

/// The namespace that a route names; the first one where it names none.
pub(super) struct Chosen(pub(super) Arc<Namespace>);

impl FromRequestParts<Control> for Chosen {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, control).await;
        let named = path
            .ok()
            .and_then(|Path(mut names)| names.remove("namespace"));
        let namespaces = &control.shared.namespaces;
        let found = match &named {
            Some(name) => namespaces.named(name),
            None => namespaces.first(),
        };
        let found = found.map(Self);
        found.ok_or_else(|| unknown(&control.shared, named.as_deref().unwrap_or_default()))
    }
}

/// The name of a namespace that need not be there.
pub(super) struct Name(String);

impl FromRequestParts<Control> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, control).await;
        let name = path.ok();
        let name = name.and_then(|Path(mut names)| names.remove("namespace"));
        name.map(Self).ok_or_else(|| wrong_name(String::new()))
    }
}

/// 200 while nothing has gone wrong inside; 503 with what has.
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> (StatusCode, Json<Value>) {
    let failures = shared.namespaces.failures().all();
    if failures.is_empty() {
        let healthy = json!({
            "status": "healthy",
            "message": "Service is healthy.",
            "memory": shared.memory.usage(),
        });
        return (StatusCode::OK, Json(healthy));
    }
    let message = format!("{} internal errors; see failures.", failures.len());
    let unhealthy = json!({
        "status": "unhealthy",
        "message": message,
        "failures": failures,
    });
    (StatusCode::SERVICE_UNAVAILABLE, Json(unhealthy))
}

/// All namespaces, in the order in which they were made.
pub(super) async fn list(State(shared): State<Arc<Shared>>) -> Json<Vec<NamespaceInfo>> {
    Json(shared.namespaces.list())
}

/// 201 with a new namespace, which holds what the one namespace of the body declares, or nothing.
pub(super) async fn create(
    State(control): State<Control>,
    Name(name): Name,
    body: Result<String, StringRejection>,
) -> Result<(StatusCode, Json<NamespaceInfo>), ApiError> {
    let body = body?;
    if !config::is_namespace_name(&name) {
        return Err(wrong_name(name));
    }
    let permit = control.shared.namespaces.permit().await;
    // Reading takes a while for a large body: other connections are served by this thread meanwhile.
    let made = spawn_blocking(move || declare(&control, permit, &name, &body)).await;
    let created = made.map_err(|error| {
        let message = format!("the namespace was not made: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal-error", message)
    })??;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Makes the one namespace that `body` declares.
fn declare(
    control: &Control,
    permit: Permit,
    name: &str,
    body: &str,
) -> Result<NamespaceInfo, ApiError> {
    let creation = control.shared.namespaces.begin(permit);
    creation.check_name(name)?;
    let tier = control.shared.options.tier;
    let declared = NamespaceConfig::parse_as(name, body, tier, &|key| creation.has_key(key))
        .map_err(ApiError::of_topology)?;
    Ok(creation.finish(declared, |address| control.listen(address))?)
}

/// 204; what chose the namespace is free from then on.
pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    match shared.namespaces.remove(&name) {
        Ok(listening) => {
            if let Some(listening) = listening {
                // Who makes one at the same address next finds it free.
                listening.close().await;
            }
            Ok(StatusCode::NO_CONTENT)
        }
        Err(RemoveError::Unknown) => Err(unknown(&shared, &name)),
        Err(last @ RemoveError::Last(_)) => {
            let message = last.to_string();
            Err(ApiError::new(
                StatusCode::CONFLICT,
                "last-namespace",
                message,
            ))
        }
    }
}

pub(super) async fn reset(Chosen(namespace): Chosen) -> StatusCode {
    namespace.reset();
    StatusCode::NO_CONTENT
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        let message = error.to_string();
        let taken = |path: &str, value: String| Problem {
            path: path.into(),
            value: value.into(),
            allowed: "one that no other namespace has".into(),
        };
        let problem = match error {
            CreateError::TooMany => {
                return Self::new(StatusCode::FORBIDDEN, "limit-reached", message);
            }
            CreateError::Listen(_) => {
                return Self::new(StatusCode::CONFLICT, "cannot-listen", message);
            }
            CreateError::Name(name) => taken("namespace", name),
            CreateError::Key { name, index, .. } => taken(&keys_path(index), name),
            CreateError::Address { address, .. } => taken(ADDRESS_PATH, address.to_string()),
        };
        Self::new(StatusCode::CONFLICT, "conflict", message).with_problems(vec![problem])
    }
}

/// Where the address of the namespace stands in a body.
const ADDRESS_PATH: &str = "UserConfig.Namespaces[0].Emulator.Address";

/// Where a key of the namespace stands in a body.
fn keys_path(index: usize) -> String {
    format!("UserConfig.Namespaces[0].Emulator.Keys[{index}].Name")
}

fn wrong_name(name: String) -> ApiError {
    ApiError::invalid(Problem {
        path: "namespace".into(),
        value: name.into(),
        allowed: config::NAMESPACE_NAMES.into(),
    })
}

fn unknown(shared: &Shared, name: &str) -> ApiError {
    let known = shared.namespaces.names();
    ApiError::unknown("namespace", name, known.iter().map(String::as_str))
}
