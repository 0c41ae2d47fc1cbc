//! The body of a request: read as far as it may be long, for as long as it may take.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::timeout;

use super::rejection::Rejection;
use crate::nodes::Condition;

/// How long a body may take to come.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What is read of a body that nobody wants, so that its sender comes to read the answer.
const DISCARDED: usize = 2 * 1024 * 1024;
const DISCARDING: Duration = Duration::from_secs(1);

/// A body that is still to be read, or what is left of it.
#[derive(Debug)]
pub(crate) struct Content(Body);

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is longer than allowed; so many bytes of it were seen or announced.
    TooLong(u64),
    Refused(Rejection),
}

impl Content {
    pub(crate) fn new(body: Body) -> Self {
        Self(body)
    }

    /// The whole body, if it has no more than `limit` bytes.
    pub(crate) async fn read(&mut self, limit: u64) -> Result<Bytes, ReadError> {
        let announced = self.0.size_hint().lower();
        if announced > limit {
            return Err(ReadError::TooLong(announced));
        }
        let read = self.gather(limit, announced as usize);
        timeout(TIMEOUT, read).await.unwrap_or_else(|_| {
            let text = format!(
                "The body did not come within {} seconds.",
                TIMEOUT.as_secs()
            );
            let status = StatusCode::REQUEST_TIMEOUT;
            let rejection = Rejection::new(status, Condition::ArgumentError, text);
            Err(ReadError::Refused(rejection))
        })
    }

    async fn gather(&mut self, limit: u64, announced: usize) -> Result<Bytes, ReadError> {
        let mut gathered = BytesMut::with_capacity(announced);
        while let Some(frame) = self.0.frame().await {
            let frame = frame.map_err(|error| {
                let text = format!("The body cannot be read: {error}.");
                ReadError::Refused(Rejection::bad_request(text))
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            gathered.extend_from_slice(&data);
            if gathered.len() as u64 > limit {
                return Err(ReadError::TooLong(gathered.len() as u64));
            }
        }
        Ok(gathered.freeze())
    }

    /// Reads the rest, within reason.
    pub(crate) async fn discard(&mut self) {
        let discard = async {
            let mut seen = 0;
            while let Some(Ok(frame)) = self.0.frame().await
                && seen < DISCARDED
            {
                seen += frame.into_data().map_or(0, |data| data.len());
            }
        };
        // Whoever goes on sending is cut off with the connection.
        let _ = timeout(DISCARDING, discard).await;
    }
}
