//! Limits how long a client of the control API may take for its request body: one that stops half-way would hold a
//! connection for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::error::ApiError;

/// A body that ends with an error at its deadline.
struct DeadlineBody {
    body: Body,
    end: Pin<Box<Sleep>>,
    is_late: Arc<AtomicBool>,
}

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
        Body::new(DeadlineBody {
            body,
            end: Box::pin(sleep(step_timeout)),
            is_late: Arc::clone(&is_late),
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

impl HttpBody for DeadlineBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_pending() && self.end.as_mut().poll(cx).is_ready() {
            self.is_late.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(axum::Error::new("the time for it is over"))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
