//! The certificate that clients of TLS must trust.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tokio::task::spawn_blocking;

use super::error::ApiError;
use crate::shared::Shared;

/// The media type of certificates in PEM (RFC 8555 §9.1).
const PEM: &str = "application/pem-certificate-chain";

/// Answers with the authorities' certificates, which are made now if they were not needed before.
pub(super) async fn show(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    // It may read and write files.
    let making =
        spawn_blocking(move || shared.tls.authority_pem().map(|pem| pem.map(str::to_owned)));
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let made = making.await;
    let made = made.map_err(|error| ApiError::new(status, "no-tls", error.to_string()))?;
    match made {
        Ok(Some(pem)) => Ok(([(CONTENT_TYPE, PEM)], pem).into_response()),
        Ok(None) => {
            let text = "the emulator was given its certificate (--tls-certificate): trust whoever issued it";
            Err(ApiError::new(StatusCode::NOT_FOUND, "not-found", text))
        }
        Err(error) => Err(ApiError::new(status, "no-tls", error.to_string())),
    }
}
