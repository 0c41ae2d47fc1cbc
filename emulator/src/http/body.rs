//! Request bodies that are JSON.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A body with the fields of `T`; one that is none is refused as everything is here.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        // Whatever the content type says: `curl -d` calls everything a form.
        let bytes = Bytes::from_request(request, state).await?;
        let Json(fields) = Json::from_bytes(&bytes)?;
        Ok(Self(fields))
    }
}
