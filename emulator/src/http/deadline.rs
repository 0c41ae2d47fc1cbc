//! Limits how long a client of the control API may take for its request body: one that stops half-way would hold a
//! connection for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tokio::time::sleep;

use super::error::ApiError;
use crate::body_account::PolledBody;

/// Answers 408 to a request whose body has not arrived in time.
pub(crate) async fn deadline<F: Future<Output = Response>>(
    step_timeout: Duration,
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    if request.body().is_end_stream() {
        return answer(request).await;
    }
    let is_late = Arc::<AtomicBool>::default();
    let request = request.map(|body| {
        let mut end = Box::pin(sleep(step_timeout));
        let is_late = Arc::clone(&is_late);
        PolledBody::wrap(body, move |body, cx| {
            let polled = Pin::new(body).poll_frame(cx);
            if polled.is_pending() && end.as_mut().poll(cx).is_ready() {
                is_late.store(true, Ordering::Relaxed);
                return Poll::Ready(Some(Err(axum::Error::new("the time for it is over"))));
            }
            polled
        })
    });
    let response = answer(request).await;
    match is_late.load(Ordering::Relaxed) {
        false => response,
        true => {
            let message = format!(
                "the body did not come within {} s",
                step_timeout.as_secs_f64()
            );
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "request-timeout", message).into_response()
        }
    }
}
