//! Counts request and response bodies in the memory account of their connection.
//!
//! A body is read only after its request was authorized, so that each has the limit of a connection with an accepted token.
//! A response counts until it is written; no limit applies to it, because a message that was received and deleted must reach
//! its client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::memory::{Account, Exceeded, Memory};

/// How long the rest of an unwanted body is read, and how long a pause of its sender may be.
const DISCARDING: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);

/// The memory of one request and its response; released with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct BodyAccount(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    account: Account,
    /// The largest message of the request's namespace, in bytes.
    largest: u64,
    exceeded: Option<Exceeded>,
    /// What the handler has not read of the request body.
    unread: Option<Body>,
}

/// A body whose bytes count for as long as `account` has clones.
struct CountedRequest {
    body: Body,
    account: BodyAccount,
    /// Bytes read so far.
    read: usize,
}

/// A body of the same size as another one, whose frames a closure polls.
pub(crate) struct PolledBody<B, P> {
    body: B,
    poll: P,
}

pub(crate) type PolledFrame = Poll<Option<Result<Frame<Bytes>, axum::Error>>>;

/// A part of a response, which the HTTP library drops once it is written.
struct CountedBytes {
    bytes: Bytes,
    _account: BodyAccount,
}

impl BodyAccount {
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        Self(Arc::new(Mutex::new(State {
            account: memory.open(),
            largest: 0,
            exceeded: None,
            unread: None,
        })))
    }

    /// Sets the largest message of the request's namespace, in bytes.
    pub(crate) fn set_largest_message(&self, largest: u64) {
        self.0.lock().largest = largest;
    }

    /// Wraps the request body so that its bytes count as they arrive. It ends with an error where they exceed the limit.
    pub(crate) fn count<B>(&self, body: B) -> Body
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        Body::new(CountedRequest {
            body: Body::new(body),
            account: self.clone(),
            read: 0,
        })
    }

    /// Takes what the handler has left of the request body.
    pub(crate) fn take_unread(&self) -> Option<Body> {
        self.0.lock().unread.take()
    }

    /// Returns the limit that ended the request body early, if one did.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.0.lock().exceeded
    }

    /// Wraps the response, which counts instead of the request until it is written or dropped.
    pub(crate) fn answer(self, response: Response) -> Response {
        let size = response.body().size_hint().lower();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.0.lock().account.set(size);
        response.map(|body| match size {
            0 => body,
            _ => PolledBody::wrap(body, move |body, cx| {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                let counted = |bytes| {
                    let _account = self.clone();
                    Bytes::from_owner(CountedBytes { bytes, _account })
                };
                Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(counted))))
            }),
        })
    }

    fn hold(&self, bytes: usize) -> Result<(), Exceeded> {
        let state = &mut *self.0.lock();
        if state.exceeded.is_none() {
            let held = state.account.hold(bytes, Some(state.largest));
            state.exceeded = held.err();
        }
        state.exceeded.map_or(Ok(()), Err)
    }
}

/// Reads the rest of a request body, and keeps nothing: many clients read no response before they have sent all, and fail if the
/// connection closes. A client that continues to send for too long is disconnected.
pub(crate) async fn discard(mut body: Body) {
    let discard = async { while let Ok(Some(Ok(_))) = timeout(PAUSE, body.frame()).await {} };
    let _ = timeout(DISCARDING, discard).await;
}

impl HttpBody for CountedRequest {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.read += frame.data_ref().map_or(0, Bytes::len);
            self.account.hold(self.read).map_err(axum::Error::new)?;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        if !self.body.is_end_stream() {
            let body = std::mem::take(&mut self.body);
            self.account.0.lock().unread = Some(body);
        }
    }
}

impl<B, P> PolledBody<B, P>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    P: FnMut(&mut B, &mut Context<'_>) -> PolledFrame + Send + Unpin + 'static,
{
    pub(crate) fn wrap(body: B, poll: P) -> Body {
        Body::new(Self { body, poll })
    }
}

impl<B, P> HttpBody for PolledBody<B, P>
where
    B: HttpBody + Unpin,
    P: FnMut(&mut B, &mut Context<'_>) -> PolledFrame + Unpin,
{
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let Self { body, poll } = &mut *self;
        poll(body, cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
