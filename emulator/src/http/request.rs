//! What a handler is given of a request: its namespace, the names in its path, its query and its body.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::Control;
use super::error::ApiError;
use crate::namespace::Namespace;

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
