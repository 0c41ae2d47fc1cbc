//! Correlation filters: properties that must equal given values.
//!
//! Comparison is typed, but not by width: a string never equals a number, an `int` 2 equals a `double` 2.0 (decision D11),
//! and whole numbers are compared exactly.

use super::ast::Property;
use super::operators::Number;
use super::properties::{Fnv, Name, Properties};
use super::system::SystemProperty;
use super::value::{Encoded, Value};

/// A correlation filter as its client described it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Correlation {
    /// `sys.CorrelationId`.
    pub correlation_id: Option<Box<str>>,
    /// `sys.MessageId`.
    pub message_id: Option<Box<str>>,
    /// `sys.To`.
    pub to: Option<Box<str>>,
    /// `sys.ReplyTo`.
    pub reply_to: Option<Box<str>>,
    /// `sys.Label`.
    pub label: Option<Box<str>>,
    /// `sys.SessionId`.
    pub session_id: Option<Box<str>>,
    /// `sys.ReplyToSessionId`.
    pub reply_to_session_id: Option<Box<str>>,
    /// `sys.ContentType`.
    pub content_type: Option<Box<str>>,
    /// User properties, in the order given.
    pub properties: Vec<(Box<str>, Encoded)>,
}

/// A correlation filter prepared for evaluation: its conditions in the order of their properties.
#[derive(Debug, Clone)]
pub struct CorrelationFilter {
    description: Correlation,
    conditions: Vec<(Property, Value<'static>)>,
}

impl Correlation {
    /// Returns the system properties with their required values.
    fn system(&self) -> impl Iterator<Item = (SystemProperty, &str)> {
        let all = [
            (SystemProperty::ContentType, &self.content_type),
            (SystemProperty::CorrelationId, &self.correlation_id),
            (SystemProperty::Label, &self.label),
            (SystemProperty::MessageId, &self.message_id),
            (SystemProperty::ReplyTo, &self.reply_to),
            (SystemProperty::ReplyToSessionId, &self.reply_to_session_id),
            (SystemProperty::SessionId, &self.session_id),
            (SystemProperty::To, &self.to),
        ];
        all.into_iter()
            .filter_map(|(property, value)| Some((property, value.as_deref()?)))
    }
}

impl CorrelationFilter {
    /// Prepares a filter.
    pub fn new(description: Correlation) -> Self {
        let system = description
            .system()
            .map(|(property, text)| (Property::System(property), Value::text(text).into_owned()));
        let user = description
            .properties
            .iter()
            .map(|(name, value)| (Property::User(Name::new(name)), value.value().into_owned()));
        let mut conditions: Vec<_> = system.chain(user).collect();
        conditions.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self {
            description,
            conditions,
        }
    }

    /// Returns the filter as it was described.
    pub fn description(&self) -> &Correlation {
        &self.description
    }

    /// Returns whether all its properties have their values. A filter without any matches every message.
    pub fn matches(&self, properties: &Properties<'_>) -> bool {
        self.first_mismatch(properties).is_none()
    }

    pub(crate) fn conditions(&self) -> &[(Property, Value<'static>)] {
        &self.conditions
    }

    /// Returns the first condition that does not hold.
    pub(crate) fn first_mismatch(
        &self,
        properties: &Properties<'_>,
    ) -> Option<&(Property, Value<'static>)> {
        self.conditions
            .iter()
            .find(|(property, value)| !same(value, field(properties, property)))
    }
}

impl PartialEq for CorrelationFilter {
    fn eq(&self, other: &Self) -> bool {
        self.description == other.description
    }
}

pub(crate) fn field<'p, 'm>(properties: &'p Properties<'m>, property: &Property) -> &'p Value<'m> {
    const NULL: &Value<'static> = &Value::Null;
    match property {
        Property::System(property) => properties.system(*property),
        Property::User(name) => properties.user(name).unwrap_or(NULL),
        // A correlation filter has no such property.
        Property::Jms(_) => NULL,
    }
}

/// A number by its value: whole ones of any type, others by their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exact {
    Whole(i128),
    Float(u64),
}

fn exact(value: &Value<'_>) -> Option<Exact> {
    let number = Number::of(value)?;
    let float = number.as_float();
    let bits = || (!float.is_nan()).then(|| Exact::Float(float.to_bits()));
    number.whole().map(Exact::Whole).or_else(bits)
}

/// Returns whether a property has the value of a filter. Null equals nothing.
pub(crate) fn same(expected: &Value<'_>, found: &Value<'_>) -> bool {
    match (expected, found) {
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Instant(a), Value::Instant(b)) | (Value::Span(a), Value::Span(b)) => a == b,
        (Value::Guid(a), Value::Guid(b)) => a == b,
        (Value::Binary(a), Value::Binary(b)) | (Value::Other(a), Value::Other(b)) => a == b,
        _ => exact(expected).is_some_and(|number| exact(found) == Some(number)),
    }
}

/// Adds a value to a hash; equal values add the same. Returns false for a value that equals nothing.
pub(crate) fn add_to_hash(value: &Value<'_>, hash: &mut Fnv) -> bool {
    let (kind, bytes): (u8, &[u8]) = match value {
        Value::Null => return false,
        Value::Text(text) => (1, text.as_bytes()),
        Value::Bool(flag) => (2, &[u8::from(*flag)]),
        Value::Instant(ticks) => (3, &ticks.to_be_bytes()),
        Value::Span(ticks) => (4, &ticks.to_be_bytes()),
        Value::Guid(uuid) => (5, uuid.as_bytes()),
        Value::Binary(bytes) => (6, bytes),
        Value::Other(bytes) => (7, bytes),
        Value::Signed(_) | Value::Unsigned(_) | Value::Float(_) => match exact(value) {
            Some(Exact::Whole(number)) => (8, &number.to_be_bytes()),
            Some(Exact::Float(bits)) => (9, &bits.to_be_bytes()),
            None => return false,
        },
    };
    hash.add(kind);
    hash.add_all(&bytes.len().to_be_bytes());
    hash.add_all(bytes);
    true
}
