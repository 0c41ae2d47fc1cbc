//! What an action changes on its copy of a message; applying it is the caller's task.

use super::convert;
use super::properties::{Properties, fold, same_name};
use super::system::SystemProperty;
use super::value::{Encoded, Value};

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A system property, which is writable.
    System(SystemProperty),
    /// A user property, spelled as in the message if it has one of that name (decision D13).
    User(Box<str>),
}

/// One change: a new value, or none when the property is removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    target: Target,
    encoded: Option<Encoded>,
    value: Option<Value<'static>>,
}

/// The changes of one action: at most one of each property, in the order of its statements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    entries: Vec<Edit>,
}

impl Edit {
    /// What is changed.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The new value as AMQP encodes it; none when the property is removed.
    pub fn encoded(&self) -> Option<&Encoded> {
        self.encoded.as_ref()
    }

    /// The new value; none when the property is removed.
    pub fn value(&self) -> Option<&Value<'static>> {
        self.value.as_ref()
    }
}

impl Edits {
    /// The changes, each property once.
    pub fn iter(&self) -> impl Iterator<Item = &Edit> {
        self.entries.iter()
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What a user property was changed to: none when it was not changed, null when it was removed.
    pub(crate) fn user(&self, name: &str) -> Option<Option<&Value<'static>>> {
        let matches =
            |edit: &&Edit| matches!(&edit.target, Target::User(user) if same_name(user, name));
        self.entries.iter().find(matches).map(Edit::value)
    }

    /// The same of a system property.
    pub(crate) fn system(&self, property: SystemProperty) -> Option<Option<&Value<'static>>> {
        let matches = |edit: &&Edit| edit.target == Target::System(property);
        self.entries.iter().find(matches).map(Edit::value)
    }

    /// Changes a user property; null removes it. A number keeps the width of the number that it replaces, if it
    /// fits (service-bus-messaging-sql-rule-action: "implicit conversion if possible").
    pub(crate) fn set_user(&mut self, properties: &Properties<'_>, name: &str, value: Value<'_>) {
        let existing = properties.find(fold(name), name);
        let same =
            |edit: &&Edit| matches!(&edit.target, Target::User(user) if same_name(user, name));
        let previous = self.entries.iter().find(same);
        let spelling = match (previous, existing) {
            (
                Some(Edit {
                    target: Target::User(spelling),
                    ..
                }),
                _,
            ) => spelling.clone(),
            (_, Some(user)) => user.name.into(),
            _ => name.into(),
        };
        let code = match previous {
            Some(previous) => previous
                .encoded
                .as_ref()
                .and_then(|value| value.as_amqp().first().copied()),
            None => existing.map(|user| user.code),
        };
        let encoded = (!value.is_null()).then(|| {
            let converted = code.and_then(|code| convert::encode_as(code, &value));
            converted.unwrap_or_else(|| Encoded::from(&value))
        });
        self.put(Target::User(spelling), encoded);
    }

    /// Changes a system property to a value of its type; none removes it.
    pub(crate) fn set_system(&mut self, property: SystemProperty, value: Option<&Value<'_>>) {
        self.put(Target::System(property), value.map(Encoded::from));
    }

    fn put(&mut self, target: Target, encoded: Option<Encoded>) {
        self.entries.retain(|edit| edit.target != target);
        let value = encoded.as_ref().map(|encoded| encoded.value().into_owned());
        self.entries.push(Edit {
            target,
            encoded,
            value,
        });
    }
}
