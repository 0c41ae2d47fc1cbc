//! Converts a message of the broker into headers and body of an HTTP response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use http_body_util::Full;
use hyper::body::{Frame, SizeHint};
use serde_json::{Map, Value as Json};
use servicebus_broker::Delivery;
use servicebus_codec::{DecodeError, Descriptor, Reader, Value};

use super::body::Body;
use super::broker_properties::put_broker_properties;
use super::headers::{BROKER_PROPERTIES, http_date, put_property};
use super::value::{text_entries, to_ascii};
use crate::service_http::XML;

/// The names of the properties' fields in `BrokerProperties`, in order; unnamed fields are left out, and the content type is
/// a header.
const FIELDS: [&str; 13] = [
    "MessageId",
    "",
    "To",
    "Label",
    "ReplyTo",
    "CorrelationId",
    CONTENT_TYPE_FIELD,
    "",
    "",
    "",
    "SessionId",
    "",
    "ReplyToSessionId",
];
const CONTENT_TYPE_FIELD: &str = "ContentType";

#[derive(Debug, Default)]
pub(crate) struct DecodedMessage {
    headers: HeaderMap,
    /// The names of the headers with application properties.
    names: Vec<String>,
    properties: Map<String, Json>,
    body: Body,
}

impl DecodedMessage {
    /// Decodes a message. `ahead` as for [`put_broker_properties`].
    pub(crate) fn read(delivery: &Delivery, ahead: i64) -> Result<Self, DecodeError> {
        let mut encoded = Vec::with_capacity(1024);
        let tail = delivery
            .message
            .encode(&delivery.broker_properties, ahead, &mut encoded)?;
        encoded.extend_from_slice(&tail);
        let mut opened = Self::default();
        let mut reader = Reader::new(&encoded);
        while !reader.is_empty() {
            let section = reader.descriptor()?;
            let mut content = reader;
            reader.skip()?;
            opened.put(section, &mut content)?;
        }
        put_broker_properties(&mut opened.properties, &delivery.broker_properties, ahead);
        Ok(opened)
    }

    /// Takes the names of the headers in their own case.
    pub(crate) fn names(&mut self) -> Vec<String> {
        let fixed = ["BrokerProperties", "Content-Type", "Location"].map(str::to_owned);
        let mut names = std::mem::take(&mut self.names);
        names.extend(fixed);
        names
    }

    /// Converts the message into a response; its properties have the lock token and sequence number. The body comes in chunks
    /// as in the service, because clients show a `Content-Length` as an application property.
    pub(crate) fn respond(self, status: StatusCode, location: Option<HeaderValue>) -> Response {
        let Self {
            mut headers,
            properties,
            body,
            ..
        } = self;
        let properties = to_ascii(&Json::Object(properties).to_string());
        if let Ok(properties) = HeaderValue::try_from(properties) {
            headers.insert(BROKER_PROPERTIES, properties);
        }
        if let Some(location) = location {
            headers.insert(axum::http::header::LOCATION, location);
        }
        let default = HeaderValue::from_static(XML);
        headers.entry(CONTENT_TYPE).or_insert(default);
        let body = ChunkedBody(Full::from(body.into_bytes()));
        (status, headers, axum::body::Body::new(body)).into_response()
    }

    fn put(
        &mut self,
        section: Descriptor<'_>,
        content: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        match section.section() {
            0x70 => self.put_header(content),
            0x72 => self.put_annotations(content),
            0x73 => self.put_properties(content),
            0x74 => {
                for (name, value) in text_entries(content.map()?) {
                    if put_property(&mut self.headers, name, value) {
                        self.names.push(name.to_owned());
                    }
                }
                Ok(())
            }
            0x75 => self.body.put_data(content),
            0x76 => self.body.put_sequence(content),
            0x77 => self.body.put_value(content),
            // Delivery annotations and footers have no place in HTTP.
            _ => Ok(()),
        }
    }

    /// A message is durable unless its sender set that to false, which is returned.
    fn put_header(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        if content.fields()?.bool()? == Some(false) {
            self.show("ForcePersistence", false.into());
        }
        Ok(())
    }

    fn put_annotations(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        for (name, encoded) in text_entries(content.map()?) {
            let name = match name {
                "x-opt-partition-key" => "PartitionKey",
                "x-opt-via-partition-key" => "ViaPartitionKey",
                "x-opt-deadletter-source" => "DeadLetterSource",
                "x-opt-scheduled-enqueue-time" => "ScheduledEnqueueTimeUtc",
                _ => continue,
            };
            let value = Reader::new(encoded).value()?;
            let value = if let Value::Timestamp(instant) = value {
                http_date(instant)
            } else {
                value.as_text().map(str::to_owned)
            };
            if let Some(value) = value {
                self.show(name, value.into());
            }
        }
        Ok(())
    }

    fn put_properties(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut fields = content.fields()?;
        for name in FIELDS {
            let value = fields.value()?;
            let Some(text) = id_text(value).filter(|_| !name.is_empty()) else {
                continue;
            };
            if name != CONTENT_TYPE_FIELD {
                self.show(name, text.into());
            } else if let Ok(content_type) = HeaderValue::try_from(text) {
                self.headers.insert(CONTENT_TYPE, content_type);
            }
        }
        Ok(())
    }

    fn show(&mut self, name: &str, value: Json) {
        self.properties.insert(name.to_owned(), value);
    }
}

/// Returns an id of any type as text, binary as hexadecimal digits.
fn id_text(value: Value<'_>) -> Option<String> {
    match value {
        Value::String(text) | Value::Symbol(text) => Some(text.to_owned()),
        Value::Unsigned(number) => Some(number.to_string()),
        Value::Uuid(uuid) => Some(uuid.to_string()),
        Value::Binary(bytes) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        Value::Null
        | Value::Bool(_)
        | Value::Signed(_)
        | Value::Float(_)
        | Value::Timestamp(_)
        | Value::Other(_) => None,
    }
}

/// A body that does not announce its exact size, so that hyper sends it in chunks; its least size counts towards the memory
/// of the connection.
struct ChunkedBody(Full<Bytes>);

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.0.size_hint().lower());
        hint
    }
}
