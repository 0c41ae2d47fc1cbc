//! The certificate that clients of TLS must trust.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::error::ApiError;
use crate::server::Shared;

/// The media type of certificates in PEM (RFC 8555 §9.1).
const PEM: &str = "application/pem-certificate-chain";

/// Answers with the authority's certificate, which is made now if it was not needed before.
pub(super) async fn show(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    match shared.tls.authority_pem() {
        Ok(Some(pem)) => Ok(([(CONTENT_TYPE, PEM)], pem.to_owned()).into_response()),
        Ok(None) => {
            let text = "the emulator was given its certificate (--tls-certificate): trust whoever issued it";
            Err(ApiError::new(StatusCode::NOT_FOUND, "not-found", text))
        }
        Err(error) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Err(ApiError::new(status, "no-tls", error.to_string()))
        }
    }
}
