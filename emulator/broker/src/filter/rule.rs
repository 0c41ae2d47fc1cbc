//! A rule: a filter that selects messages, an optional action that changes the copy, and a name that the copy carries.
//!
//! [`Edits`] are the changes of an action on its copy; the caller applies them.

use servicebus_codec::DecodeError;

use super::convert;
use super::correlation::CorrelationFilter;
use super::error::{EvaluationError, Fault, RuleError, RulePart};
use super::operators::Truth;
use super::properties::{Properties, fold, same_name};
use super::sql::{Action, SqlFilter};
use super::system::SystemProperty;
use super::value::{Encoded, Value};
use crate::ids::IdSource;
use crate::time::Timestamp;

/// The property of a copy that an action created (semantics §13.1).
const RULE_NAME: &str = "RuleName";

/// The filter of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Selects every message.
    True,
    /// Selects no message.
    False,
    /// Selects messages with given values.
    Correlation(CorrelationFilter),
    /// Selects messages for which a condition is true.
    Sql(SqlFilter),
}

/// A rule of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name, unique in its subscription.
    pub name: Box<str>,
    /// The filter.
    pub filter: Filter,
    /// The changes on the rule's own copy; rules without an action share a copy.
    pub action: Option<Action>,
    /// When it was added or last replaced.
    pub created_at: Timestamp,
}

impl Filter {
    /// Evaluates the filter on a message; only true selects it.
    pub fn evaluate(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Result<Truth, Box<EvaluationError>> {
        match self {
            Self::True => Ok(Truth::True),
            Self::False => Ok(Truth::False),
            Self::Correlation(filter) => Ok(filter.matches(properties).into()),
            Self::Sql(filter) => filter.evaluate(properties, ids),
        }
    }

    /// Returns its expression, for errors.
    fn text(&self) -> &str {
        match self {
            Self::Sql(filter) => filter.text(),
            Self::True | Self::False | Self::Correlation(_) => "",
        }
    }
}

impl Rule {
    /// Returns the rule of a new subscription: all messages, unchanged.
    pub fn default_rule(created_at: Timestamp) -> Self {
        Self {
            name: "$Default".into(),
            filter: Filter::True,
            action: None,
            created_at,
        }
    }

    /// Returns whether the rule selects a message.
    pub fn matches(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Result<bool, Box<RuleError>> {
        let truth = self.filter.evaluate(properties, ids);
        let matches = truth.map(|truth| truth == Truth::True);
        matches.map_err(|error| self.error(RulePart::Filter, self.filter.text(), *error))
    }

    /// Returns the changes on the rule's own copy of a selected message; `None` without an action, and so without an own
    /// copy.
    pub fn edits(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Option<Result<Edits, Box<RuleError>>> {
        let action = self.action.as_ref()?;
        let edits = action.edits(properties, ids).map(|mut edits| {
            edits.set_user(properties, RULE_NAME, Value::text(&self.name), None);
            edits
        });
        Some(edits.map_err(|error| self.error(RulePart::Action, action.text(), *error)))
    }

    /// Returns the error for an action whose values cannot be set because the message lacks the sections.
    pub(crate) fn cannot_be_applied(&self, error: DecodeError) -> Box<RuleError> {
        let text = self.action.as_ref().map_or("", |action| action.text());
        let error = EvaluationError {
            expression: text.to_owned(),
            fault: Fault::Message(error),
        };
        self.error(RulePart::Action, text, error)
    }

    fn error(&self, part: RulePart, text: &str, error: EvaluationError) -> Box<RuleError> {
        Box::new(RuleError {
            rule: self.name.to_string(),
            part,
            text: text.to_owned(),
            error,
        })
    }
}

/// The changed property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A system property, which is writable.
    System(SystemProperty),
    /// A user property, spelled as in the message if it has one of that name (decision D13).
    User(Box<str>),
}

/// One change: a new value, or `None` to remove the property.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    target: Target,
    encoded: Option<Encoded>,
    value: Option<Value<'static>>,
}

/// The changes of one action: at most one per property, in the order of its statements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    entries: Vec<Edit>,
}

impl Edit {
    /// Returns the changed property.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the new AMQP-encoded value; `None` if the property is removed.
    pub fn encoded(&self) -> Option<&Encoded> {
        self.encoded.as_ref()
    }

    /// Returns the new value; `None` if the property is removed.
    pub fn value(&self) -> Option<&Value<'static>> {
        self.value.as_ref()
    }
}

impl Edits {
    /// Returns the changes, one per property.
    pub fn iter(&self) -> impl Iterator<Item = &Edit> {
        self.entries.iter()
    }

    /// Returns whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the new value of a user property: `None` if unchanged, null if removed.
    pub(crate) fn user(&self, name: &str) -> Option<Option<&Value<'static>>> {
        self.of_user(name).map(Edit::value)
    }

    /// Returns the change of a user property.
    pub(crate) fn of_user(&self, name: &str) -> Option<&Edit> {
        let matches =
            |edit: &&Edit| matches!(&edit.target, Target::User(user) if same_name(user, name));
        self.entries.iter().find(matches)
    }

    /// Returns the new value of a system property: `None` if unchanged, null if removed.
    pub(crate) fn system(&self, property: SystemProperty) -> Option<Option<&Value<'static>>> {
        let matches = |edit: &&Edit| edit.target == Target::System(property);
        self.entries.iter().find(matches).map(Edit::value)
    }

    /// Changes a user property; null removes it. A number keeps the width of the replaced number, if it fits
    /// (service-bus-messaging-sql-rule-action: "implicit conversion if possible"); else the value has the encoding of the
    /// property or parameter that it was `copied` from, if any.
    pub(crate) fn set_user(
        &mut self,
        properties: &Properties<'_>,
        name: &str,
        value: Value<'_>,
        copied: Option<Encoded>,
    ) {
        let existing = properties.find(fold(name), name);
        let previous = self.of_user(name);
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
            None => existing.and_then(|user| user.encoded.first().copied()),
        };
        let encoded = (!value.is_null()).then(|| {
            let converted = code.and_then(|code| convert::encode_as(code, &value));
            let encoded = converted.or(copied);
            encoded.unwrap_or_else(|| Encoded::from(&value))
        });
        self.put(Target::User(spelling), encoded);
    }

    /// Changes a system property to a value of its type; `None` removes it.
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
