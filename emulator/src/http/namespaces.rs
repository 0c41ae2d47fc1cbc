//! Lists, creates, removes and resets namespaces.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use servicebus_control_api::{NamespaceInfo, Problem};
use tokio::task::spawn_blocking;

use super::Control;
use super::error::{ApiError, NamespaceName, SelectedNamespace};
use super::topology::expand;
use crate::blocking::run_blocking;
use crate::config::{self, NamespaceConfig};
use crate::namespaces::{CreateError, Permit, RemoveError};
use crate::shared::Shared;

const DEFAULT_TOPOLOGY: &str = r#"{"queues":["queue.1"]}"#;

/// Answers with all namespaces in the order of their creation.
pub(crate) async fn list(State(shared): State<Arc<Shared>>) -> Json<Vec<NamespaceInfo>> {
    Json(shared.namespaces.list())
}

/// 201 with a new namespace, which has the contents of the one namespace in the body, or none.
pub(crate) async fn create(
    State(control): State<Control>,
    NamespaceName(name): NamespaceName,
    body: Result<String, StringRejection>,
) -> Result<(StatusCode, Json<NamespaceInfo>), ApiError> {
    let created = create_named(control, name, body?).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Creates a namespace with the contents of the one namespace in the body.
pub(crate) async fn create_named(
    control: Control,
    name: String,
    body: String,
) -> Result<NamespaceInfo, ApiError> {
    match config::is_namespace_name(&name) {
        true => make(control, Some(name), body).await,
        false => Err(ApiError::not_allowed(
            "namespace",
            name,
            config::NAMESPACE_NAMES,
        )),
    }
}

/// The same under a name that was never used; without a body it has the queue of an emulator without a configuration.
pub(crate) async fn create_for_test(
    State(control): State<Control>,
    body: Result<String, StringRejection>,
) -> Result<(StatusCode, Json<NamespaceInfo>), ApiError> {
    let mut body = body?;
    if body.trim().is_empty() {
        body = DEFAULT_TOPOLOGY.to_owned();
    }
    let created = make(control, None, body).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

async fn make(
    control: Control,
    name: Option<String>,
    body: String,
) -> Result<NamespaceInfo, ApiError> {
    let permit = control.shared.namespaces.permit().await;
    // Parsing a large body takes a while, in which this thread serves other connections.
    let made = spawn_blocking(move || declare(&control, permit, name, body)).await;
    made.map_err(|error| {
        let message = format!("the namespace was not made: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal-error", message)
    })?
}

/// Creates the one namespace that `body` declares.
fn declare(
    control: &Control,
    permit: Permit,
    name: Option<String>,
    body: String,
) -> Result<NamespaceInfo, ApiError> {
    let body = expand(body)?;
    let creation = control.shared.namespaces.begin(permit);
    let name = name.unwrap_or_else(|| creation.test_name());
    creation.check_name(&name)?;
    let tier = control.shared.options.tier;
    let declared =
        NamespaceConfig::parse_as(&name, &body, tier, &|key| creation.has_key(key, &name))
            .map_err(ApiError::of_topology)?;
    Ok(creation.finish(declared, |address| control.listen(address))?)
}

/// 204; the namespace's name, keys and address are free from then on.
pub(crate) async fn remove(
    State(shared): State<Arc<Shared>>,
    NamespaceName(name): NamespaceName,
) -> Result<StatusCode, ApiError> {
    remove_named(&shared, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a namespace.
pub(crate) async fn remove_named(shared: &Shared, name: &str) -> Result<(), ApiError> {
    match shared.remove_namespace(name) {
        Ok(listening) => {
            if let Some(listening) = listening {
                // The next namespace at the same address finds it free.
                listening.close().await;
            }
            Ok(())
        }
        Err(RemoveError::Unknown) => Err(ApiError::unknown_namespace(&shared.namespaces, name)),
        Err(last @ RemoveError::Last(_)) => {
            let (status, message) = (StatusCode::CONFLICT, last.to_string());
            Err(ApiError::new(status, "last-namespace", message))
        }
    }
}

/// Answers with the current contents in the format of declarations.
pub(crate) async fn topology(SelectedNamespace(namespace): SelectedNamespace) -> Response {
    run_blocking(|| Json(namespace.topology()).into_response())
}

pub(crate) async fn reset(SelectedNamespace(namespace): SelectedNamespace) -> StatusCode {
    run_blocking(|| namespace.reset());
    StatusCode::NO_CONTENT
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        let message = error.to_string();
        let taken = |path: &str, value: String| {
            Problem::new(path, value, "one that no other namespace has")
        };
        let problem = match error {
            CreateError::TooMany => {
                return Self::new(StatusCode::FORBIDDEN, "limit-reached", message);
            }
            CreateError::Data(_) => {
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "data", message);
            }
            CreateError::Listen(_) => {
                return Self::new(StatusCode::CONFLICT, "cannot-listen", message);
            }
            CreateError::Name(name) => taken("namespace", name),
            CreateError::Key { name, index, .. } => {
                let path = format!("UserConfig.Namespaces[0].Emulator.Keys[{index}].Name");
                taken(&path, name)
            }
            CreateError::Address { address, .. } => taken(ADDRESS_PATH, address.to_string()),
        };
        Self::new(StatusCode::CONFLICT, "conflict", message).with_problems(vec![problem])
    }
}

/// The path of the namespace's address in a body.
const ADDRESS_PATH: &str = "UserConfig.Namespaces[0].Emulator.Address";
