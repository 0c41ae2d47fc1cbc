//! The builder of a rule: a filter that selects messages, and an action that changes their copies.
//!
//! The emulator parses expressions, so an error in one is reported when the namespace starts.

use serde_json::{Map, Value, json};

use crate::message::PropertyValue;

/// A rule of a subscription.
#[derive(Debug, Clone)]
pub struct Rule {
    name: String,
    properties: Map<String, Value>,
}

impl Rule {
    /// Selects the messages that satisfy a SQL expression: `price < 10 AND sys.Label = 'changed'`.
    pub fn sql(name: impl Into<String>, expression: impl Into<String>) -> Self {
        let filter = json!({ "SqlExpression": expression.into() });
        Self::of_type(name, "Sql").with("SqlFilter", filter)
    }

    /// Selects the messages with exactly these values.
    pub fn correlation(name: impl Into<String>, values: Correlation) -> Self {
        Self::of_type(name, "Correlation").with("CorrelationFilter", values.document())
    }

    /// Selects every message.
    pub fn all(name: impl Into<String>) -> Self {
        Self::of_type(name, "True")
    }

    /// Selects no message.
    pub fn none(name: impl Into<String>) -> Self {
        Self::of_type(name, "False")
    }

    /// Gives the rule its own copy of every message it selects, changed by these statements: `SET region = 'eu'; REMOVE
    /// draft`.
    pub fn action(self, statements: impl Into<String>) -> Self {
        self.with("Action", json!({ "SqlExpression": statements.into() }))
    }

    pub(crate) fn document(&self) -> Value {
        json!({ "Name": self.name, "Properties": self.properties })
    }

    fn of_type(name: impl Into<String>, filter_type: &str) -> Self {
        let rule = Self {
            name: name.into(),
            properties: Map::new(),
        };
        rule.with("FilterType", json!(filter_type))
    }

    fn with(mut self, property: &str, value: Value) -> Self {
        self.properties.insert(property.to_owned(), value);
        self
    }
}

/// The values of a correlation filter, at least one. A message must have all of them, in the same case and of the same type.
/// Numbers are compared by value, and never equal a string.
#[derive(Debug, Clone, Default)]
pub struct Correlation {
    system: Map<String, Value>,
    properties: Map<String, Value>,
}

impl Correlation {
    /// Creates a filter without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the content type.
    pub fn content_type(self, text: impl Into<String>) -> Self {
        self.with("ContentType", text)
    }

    /// Sets the correlation id.
    pub fn correlation_id(self, text: impl Into<String>) -> Self {
        self.with("CorrelationId", text)
    }

    /// Sets the subject, which the configuration format calls `Label`.
    pub fn subject(self, text: impl Into<String>) -> Self {
        self.with("Label", text)
    }

    /// Sets the message id.
    pub fn message_id(self, text: impl Into<String>) -> Self {
        self.with("MessageId", text)
    }

    /// Sets the address to reply to.
    pub fn reply_to(self, text: impl Into<String>) -> Self {
        self.with("ReplyTo", text)
    }

    /// Sets the session to reply to.
    pub fn reply_to_session_id(self, text: impl Into<String>) -> Self {
        self.with("ReplyToSessionId", text)
    }

    /// Sets the session id.
    pub fn session_id(self, text: impl Into<String>) -> Self {
        self.with("SessionId", text)
    }

    /// Sets the `to` address.
    pub fn to(self, text: impl Into<String>) -> Self {
        self.with("To", text)
    }

    /// Sets an application property: a string, a number or a boolean; the format supports no others.
    pub fn application_property(
        mut self,
        name: impl Into<String>,
        value: impl Into<PropertyValue>,
    ) -> Self {
        let value = match value.into() {
            PropertyValue::Null => Value::Null,
            PropertyValue::Bool(flag) => json!(flag),
            PropertyValue::Integer(number) => json!(number),
            PropertyValue::Unsigned(number) => json!(number),
            PropertyValue::Float(number) => json!(number),
            PropertyValue::Text(text) | PropertyValue::Other(text) => json!(text),
            // The emulator rejects it, with the position.
            PropertyValue::Bytes(bytes) => json!(bytes),
        };
        self.properties.insert(name.into(), value);
        self
    }

    fn document(self) -> Value {
        let mut document = self.system;
        if !self.properties.is_empty() {
            document.insert("Properties".to_owned(), self.properties.into());
        }
        document.into()
    }

    fn with(mut self, property: &str, text: impl Into<String>) -> Self {
        self.system.insert(property.to_owned(), json!(text.into()));
        self
    }
}
