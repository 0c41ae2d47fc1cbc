//! The emulator as a whole: its health, the authorities to trust, the API description, and the hold request.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{StreamExt as _, stream};
use servicebus_control_api::{DiskState, Health};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::error::ApiError;
use crate::durable::Store;
use crate::shared::Shared;

/// The media type of certificates in PEM (RFC 8555 §9.1).
const PEM: &str = "application/pem-certificate-chain";

/// Signals the stop of the emulator to requests.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    /// Resolves when the emulator stops.
    pub(crate) async fn stopped(self) {
        let Self(mut stop) = self;
        // A dropped emulator has stopped.
        let _ = stop.wait_for(|&stopping| stopping).await;
    }
}

impl From<watch::Receiver<bool>> for StopSignal {
    fn from(stop: watch::Receiver<bool>) -> Self {
        Self(stop)
    }
}

/// 200 without internal failures; 503 with them.
pub(crate) async fn health(State(shared): State<Arc<Shared>>) -> (StatusCode, Json<Health>) {
    let failures = shared.namespaces.failures.all();
    if failures.is_empty() {
        let healthy = Health::Healthy {
            message: "Service is healthy.".into(),
            memory: shared.memory.usage(),
            disk: shared.namespaces.store.as_ref().map(disk_state),
        };
        return (StatusCode::OK, Json(healthy));
    }
    let unhealthy = Health::Unhealthy {
        message: format!("{} internal errors; see failures.", failures.len()),
        failures,
    };
    (StatusCode::SERVICE_UNAVAILABLE, Json(unhealthy))
}

fn disk_state(store: &Arc<Store>) -> DiskState {
    match store.has_space() {
        true => DiskState::Available,
        false => DiskState::Full,
    }
}

/// Answers with the authorities' certificates; creates them if needed.
pub(crate) async fn certificate(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    // It may read and write files.
    let making =
        spawn_blocking(move || shared.tls.authority_pem().map(|pem| pem.map(str::to_owned)));
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let made = making.await;
    let made = made.map_err(|error| ApiError::new(status, "no-tls", error.to_string()))?;
    match made {
        Ok(Some(pem)) => Ok(([(CONTENT_TYPE, PEM)], pem).into_response()),
        Ok(None) => {
            let text = "the emulator was given its certificate (--tls-certificate): trust the authority that issued it";
            Err(ApiError::new(StatusCode::NOT_FOUND, "not-found", text))
        }
        Err(error) => Err(ApiError::new(status, "no-tls", error.to_string())),
    }
}

/// Answers with an empty body that ends when the emulator stops.
///
/// `--exit-when-idle` counts connections. A process that shares an emulator with others holds one for as long as it needs
/// the emulator; unlike a connection between two requests, one with an unfinished response does not time out.
pub(crate) async fn hold(Extension(stopping): Extension<StopSignal>) -> Response {
    let end = stream::once(async move {
        stopping.stopped().await;
        Ok::<_, std::convert::Infallible>(Bytes::new())
    });
    Response::new(Body::from_stream(end.boxed()))
}
