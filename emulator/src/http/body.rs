//! Request bodies that are JSON.

use axum::Json;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A body with the fields of `T`; one that is none is refused as everything is here.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Json(fields) = Json::from_request(request, state).await?;
        Ok(Self(fields))
    }
}
