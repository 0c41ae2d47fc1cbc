//! An operation on a namespace, which runs when it is awaited.
//!
//! Awaiting an [`Action`] panics when the operation fails; [`result`](Action::result) returns the error instead.

use std::{
    fmt,
    panic::Location,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::error::Error;

type Operation<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// An operation on a namespace, which runs when it is awaited.
///
/// # Panics
///
/// Awaiting it panics at the line of the test if the operation fails: the entity does not exist, the lock of the message or of
/// the session was lost, what it waits for does not come in time, or the emulator refuses the operation or does not answer.
/// The panic quotes the emulator's reason. A method states only its other reasons.
#[must_use = "an operation does nothing before it is awaited"]
pub struct Action<'a, T> {
    operation: Operation<'a, T>,
    at: &'static Location<'static>,
}

impl<'a, T> Action<'a, T> {
    #[track_caller]
    pub(crate) fn new(operation: impl Future<Output = Result<T, Error>> + Send + 'a) -> Self {
        Self {
            operation: Box::pin(operation),
            at: Location::caller(),
        }
    }

    /// Returns the error of a failed operation instead of panicking.
    pub fn result(self) -> impl Future<Output = Result<T, Error>> + Send + Unpin + 'a
    where
        T: 'a,
    {
        let Self { operation, at } = self;
        Box::pin(async move { operation.await.map_err(|error| error.at(at)) })
    }
}

impl<T> Future for Action<'_, T> {
    type Output = T;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match ready!(self.operation.as_mut().poll(context)) {
            Ok(value) => Poll::Ready(value),
            Err(error) => panic!("{:?}", error.at(self.at)),
        }
    }
}

impl<T> fmt::Debug for Action<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
