//! The mapping between HTTP and messages, for `tests/fuzz`.

use std::collections::HashMap;

use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use servicebus_broker::Delivery;
use servicebus_codec::DecodeError;

use super::batch;
use super::broker_properties::BrokerPropertiesHeader;
use super::decoded::DecodedMessage;
use super::headers::{BROKER_PROPERTIES, application_properties};
use super::outgoing::OutgoingMessage;

/// A message as in a response.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Bytes of all names and values of headers.
    pub headers: usize,
    /// The body.
    pub body: Bytes,
}

/// Converts a delivery for a client over HTTP.
///
/// # Panics
///
/// If the broker's properties are not shown.
pub fn shown(delivery: &Delivery) -> Result<Mapped, DecodeError> {
    let response = DecodedMessage::read(delivery, 0)?.respond(StatusCode::OK, None);
    let (parts, body) = response.into_parts();
    assert!(parts.headers.contains_key(BROKER_PROPERTIES));
    let headers = parts.headers.iter();
    let headers = headers
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    let body = body.collect().now_or_never().and_then(Result::ok);
    Ok(Mapped {
        headers,
        body: body.map_or_else(Bytes::new, |body| body.to_bytes()),
    })
}

/// Returns the message of a request with these headers, encoded at `now` in milliseconds since the Unix epoch; `None` if it
/// is refused.
pub fn message_of_request(
    broker_properties: &str,
    headers: &[(String, Vec<u8>)],
    body: &[u8],
    now: i64,
) -> Option<Bytes> {
    let mut read = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        read.append(name, HeaderValue::from_bytes(value).ok()?);
    }
    let message = OutgoingMessage {
        properties: BrokerPropertiesHeader::parse(broker_properties).ok()?,
        application: application_properties(&read, &HashMap::new()).ok()?,
        body: Bytes::copy_from_slice(body),
    };
    Some(message.encode(now))
}

/// Returns the messages of a batch, encoded at `now`, or the text of the error.
pub fn body_of_batch(body: &[u8], now: i64) -> Result<Vec<Bytes>, String> {
    let mut messages = Vec::new();
    let parsed = batch::parse(body, |message| {
        messages.push(message.encode(now));
        Ok(())
    });
    parsed.map_err(|rejection| rejection.refusal.text)?;
    Ok(messages)
}
