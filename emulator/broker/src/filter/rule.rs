//! A rule: a filter that selects, an action that changes the copy, a name that the copy carries.

use servicebus_codec::DecodeError;

use super::correlation::CorrelationFilter;
use super::edits::Edits;
use super::error::{EvaluationError, Fault, RuleError, RulePart};
use super::operators::Truth;
use super::properties::Properties;
use super::sql::{Action, SqlFilter};
use super::value::Value;
use crate::ids::IdSource;
use crate::time::Timestamp;

/// The property that a copy made by an action carries (semantics §13.1).
const RULE_NAME: &str = "RuleName";

/// What selects messages.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Every message.
    True,
    /// None.
    False,
    /// Those with certain values.
    Correlation(CorrelationFilter),
    /// Those of which a condition holds.
    Sql(SqlFilter),
}

/// A rule of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name, unique in its subscription.
    pub name: Box<str>,
    /// What selects messages.
    pub filter: Filter,
    /// What changes the rule's own copy; without one, rules share a copy.
    pub action: Option<Action>,
    /// When it was added or last replaced.
    pub created_at: Timestamp,
}

impl Filter {
    /// What the filter says of a message; only true selects it.
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

    /// Its expression, for messages.
    fn text(&self) -> &str {
        match self {
            Self::Sql(filter) => filter.text(),
            Self::True | Self::False | Self::Correlation(_) => "",
        }
    }
}

impl Rule {
    /// The rule that every new subscription has: all messages, unchanged.
    pub fn default_rule(created_at: Timestamp) -> Self {
        Self {
            name: "$Default".into(),
            filter: Filter::True,
            action: None,
            created_at,
        }
    }

    /// Whether the rule selects a message.
    pub fn matches(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Result<bool, Box<RuleError>> {
        let truth = self.filter.evaluate(properties, ids);
        let matches = truth.map(|truth| truth == Truth::True);
        matches.map_err(|error| self.error(RulePart::Filter, self.filter.text(), *error))
    }

    /// What the rule's own copy of a message it selects gets; none when it has no action, and so no own copy.
    pub fn edits(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Option<Result<Edits, Box<RuleError>>> {
        let action = self.action.as_ref()?;
        let edits = action.edits(properties, ids).map(|mut edits| {
            edits.set_user(properties, RULE_NAME, Value::text(&self.name));
            edits
        });
        Some(edits.map_err(|error| self.error(RulePart::Action, action.text(), *error)))
    }

    /// That the action has values to set, but the message no sections to set them in.
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
