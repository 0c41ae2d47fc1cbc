//! A message to send.
//!
//! A string, bytes, JSON, or a message built field by field can be sent. Fields that are not set are not on the wire; the
//! emulator fills in what the service fills in.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;

pub use servicebus_assertions::PropertyValue;
use servicebus_assertions::ScheduledEnqueueTime;

/// A message to send, with all properties that a sender may set.
///
/// ```
/// use std::time::Duration;
/// use servicebus_harness::prelude::*;
///
/// let order = Message::json(serde_json::json!({ "total": 12 }))
///     .message_id("o-17")
///     .subject("order")
///     .application_property("priority", 3)
///     .time_to_live(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    pub(crate) body: Bytes,
    pub(crate) id: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) reply_to: Option<String>,
    pub(crate) reply_to_session_id: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) partition_key: Option<String>,
    pub(crate) time_to_live: Option<Duration>,
    pub(crate) scheduled_for: Option<SystemTime>,
    pub(crate) properties: Vec<(String, PropertyValue)>,
}

impl Message {
    /// Builds a message from bytes.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self {
            body: body.into(),
            ..Self::default()
        }
    }

    /// Builds a message with a JSON body and the content type `application/json`.
    ///
    /// # Panics
    ///
    /// Panics if the value cannot be serialized as JSON: a map with keys that are not strings, or an error of its
    /// `Serialize`.
    #[track_caller]
    pub fn json(value: impl Serialize) -> Self {
        match serde_json::to_vec(&value) {
            Ok(body) => Self::new(body).content_type("application/json"),
            Err(error) => panic!("the value cannot be written as JSON: {error}"),
        }
    }

    /// Sets the time to live, to the millisecond and up to 49 days.
    pub fn time_to_live(mut self, time_to_live: Duration) -> Self {
        self.time_to_live = Some(time_to_live);
        self
    }

    /// Sets how long from now the message becomes active.
    pub fn scheduled_in(self, delay: Duration) -> Self {
        self.scheduled_at(ScheduledEnqueueTime::In(delay).instant())
    }

    /// Sets when the message becomes active, by the test's own clock.
    pub fn scheduled_at(mut self, instant: SystemTime) -> Self {
        self.scheduled_for = Some(instant);
        self
    }

    /// Adds an application property.
    pub fn application_property(
        mut self,
        name: impl Into<String>,
        value: impl Into<PropertyValue>,
    ) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }
}

/// Defines the setters of properties that are texts.
macro_rules! texts {
    ($($(#[$doc:meta])* $setter:ident($text:ident) => $property:ident;)+) => {
        impl Message {$(
            $(#[$doc])*
            pub fn $setter(mut self, $text: impl Into<String>) -> Self {
                self.$property = Some($text.into());
                self
            }
        )+}
    };
}

texts! {
    /// Sets the message id; without one the emulator generates one.
    message_id(id) => id;
    /// Sets the subject, also known as the label.
    subject(subject) => subject;
    /// Sets the content type.
    content_type(content_type) => content_type;
    /// Sets the correlation id.
    correlation_id(id) => correlation_id;
    /// Sets the session the message belongs to.
    session_id(id) => session_id;
    /// Sets the address to reply to.
    reply_to(address) => reply_to;
    /// Sets the session to reply to.
    reply_to_session_id(id) => reply_to_session_id;
    /// Sets the `to` property, which does not affect routing.
    to(address) => to;
    /// Sets the partition key.
    partition_key(key) => partition_key;
}

/// Implements `From` for types of bodies.
macro_rules! from {
    ($($body:ident: $type:ty => $message:expr;)+) => {$(
        impl From<$type> for Message {
            fn from($body: $type) -> Self {
                $message
            }
        }
    )+};
}

from! {
    body: &str => Self::new(body.to_owned());
    body: String => Self::new(body);
    body: &[u8] => Self::new(body.to_vec());
    body: Vec<u8> => Self::new(body);
    body: Bytes => Self::new(body);
    body: serde_json::Value => Self::json(body);
}

impl<const N: usize> From<&[u8; N]> for Message {
    fn from(body: &[u8; N]) -> Self {
        Self::new(body.to_vec())
    }
}
