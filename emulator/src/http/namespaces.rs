//! Health, the list of namespaces, and reset.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::{Value, json};

use super::Control;
use super::error::ApiError;
use crate::emulator::NamespaceInfo;
use crate::namespace::Namespace;

/// The namespace that a route names; the first one where it names none.
pub(super) struct Chosen(pub(super) Arc<Namespace>);

impl FromRequestParts<Control> for Chosen {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, control).await;
        let named = path
            .ok()
            .and_then(|Path(mut names)| names.remove("namespace"));
        let shared = &control.shared;
        let found = match &named {
            Some(name) => shared.namespace(name),
            None => shared.namespaces.first(),
        };
        let known = || shared.namespaces.iter().map(|namespace| namespace.name());
        let found = found.cloned();
        found.map(Self).ok_or_else(|| {
            ApiError::unknown("namespace", named.as_deref().unwrap_or_default(), known())
        })
    }
}

pub(super) async fn health() -> Json<Value> {
    Json(json!({"status": "healthy", "message": "Service is healthy."}))
}

pub(super) async fn list(State(control): State<Control>) -> Json<Vec<NamespaceInfo>> {
    Json(control.namespaces.to_vec())
}

pub(super) async fn reset(Chosen(namespace): Chosen) -> StatusCode {
    namespace.reset();
    StatusCode::NO_CONTENT
}
