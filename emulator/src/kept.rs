//! Bodies of requests and answers in the account of memory of the connection on which they go.
//!
//! A body is read only when its request may be served, so that every one of them has the limit of a connection whose
//! token was accepted. An answer counts until it is with the connection; it is not judged, because a message that was
//! received and deleted must reach its client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

use crate::memory::{Account, Exceeded, Memory};

/// What one request makes the emulator keep, its answer included; given back with the last of its clones.
#[derive(Debug, Clone)]
pub(crate) struct Kept(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    account: Account,
    /// The largest message where the request works, in bytes.
    largest: u64,
    exceeded: Option<Exceeded>,
}

/// A body whose bytes are in the account for as long as `kept` has clones.
struct Counted<B> {
    body: B,
    kept: Kept,
    /// Bytes that have come.
    read: usize,
}

/// An answer whose bytes are in the account until they are written or dropped.
struct Answer {
    body: Body,
    kept: Kept,
}

/// A part of an answer, of which the HTTP library lets go when it is written.
struct Piece {
    bytes: Bytes,
    _kept: Kept,
}

impl Kept {
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        Self(Arc::new(Mutex::new(State {
            account: memory.open(),
            largest: 0,
            exceeded: None,
        })))
    }

    /// The request is for a namespace whose largest message has so many bytes.
    pub(crate) fn allow(&self, largest: u64) {
        self.0.lock().largest = largest;
    }

    /// The body of the request, whose bytes count as they come. It ends with an error where they are too many.
    pub(crate) fn count<B>(&self, body: B) -> Body
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let kept = self.clone();
        let read = 0;
        Body::new(Counted { body, kept, read })
    }

    /// Why the body of the request was not read to its end.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.0.lock().exceeded
    }

    /// The answer, which counts instead of the request from now on.
    pub(crate) fn answer(self, response: Response) -> Response {
        let size = response.body().size_hint().lower();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.0.lock().account.set(size);
        response.map(|body| match size {
            0 => body,
            _ => Body::new(Answer { body, kept: self }),
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

impl<B> HttpBody for Counted<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let frame = frame.map(|frame| frame.map_err(axum::Error::new));
        if let Some(Ok(frame)) = &frame {
            self.read += frame.data_ref().map_or(0, Bytes::len);
            self.kept.hold(self.read).map_err(axum::Error::new)?;
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

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let piece = |bytes| {
            let _kept = self.kept.clone();
            Bytes::from_owner(Piece { bytes, _kept })
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
