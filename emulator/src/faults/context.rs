//! What is seen of an operation, as far as a fault can ask for it.

use std::sync::Arc;

use serde_json::Value;
use servicebus_broker::Message;
use servicebus_codec::{Reader, Value as Plain};

use super::Operation;

/// An operation that somebody is about to do.
#[derive(Debug, Default)]
pub(crate) struct MatchContext<'a> {
    /// What it is, from the particular to the general: a completion is a settlement.
    pub(crate) operations: Vec<Operation>,
    /// The operation of a management request, the method of an HTTP request.
    pub(crate) name: Option<&'a str>,
    /// The addresses of what it concerns.
    pub(crate) entities: Vec<String>,
    pub(crate) messages: Vec<Traits>,
    /// What the client calls itself.
    pub(crate) client: Option<Arc<str>>,
    /// Whether there is a lock that can be lost.
    pub(crate) is_locked: bool,
    /// Whether it is a settlement that can be confirmed in vain, or a delivery that can be settled.
    pub(crate) can_come_twice: bool,
}

/// What is known of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Traits {
    pub(crate) id: Option<String>,
    pub(crate) session: Option<String>,
    /// Application properties that JSON can express.
    pub(crate) properties: Vec<(String, Value)>,
}

impl Traits {
    pub(crate) fn of(message: &Message) -> Self {
        Self {
            id: Some(message.id().into_owned()),
            session: message.session_id().map(std::borrow::Cow::into_owned),
            properties: properties(message.application_properties()),
        }
    }

    pub(crate) fn of_session(session: &str) -> Self {
        Self {
            session: Some(session.to_owned()),
            ..Self::default()
        }
    }
}

/// The entries of an application-properties section.
fn properties(section: &[u8]) -> Vec<(String, Value)> {
    let mut reader = Reader::new(section);
    let Some(map) = reader.descriptor().ok().and_then(|_| reader.map().ok()) else {
        return Vec::new();
    };
    let entries = map.entries().filter_map(Result::ok);
    let known = entries.filter_map(|(key, value)| Some((key.as_text()?.to_owned(), json(value)?)));
    known.collect()
}

fn json(value: Plain<'_>) -> Option<Value> {
    match value {
        Plain::Bool(value) => Some(value.into()),
        Plain::Unsigned(value) => Some(value.into()),
        Plain::Signed(value) => Some(value.into()),
        Plain::Float(value) => Some(value.into()),
        Plain::String(value) | Plain::Symbol(value) => Some(value.into()),
        Plain::Null | Plain::Timestamp(_) | Plain::Uuid(_) | Plain::Binary(_) | Plain::Other(_) => {
            None
        }
    }
}
