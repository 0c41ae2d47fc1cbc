//! SQL filters and actions: their texts, parameters and syntax trees.
//!
//! An action applies `SET` and `REMOVE` to the copy of a message that a rule has selected. Its statements run in order, and
//! each sees the changes of the previous ones. A value that is only copied keeps its AMQP type.

use super::MAX_LENGTH;
use super::ast::{Condition, Expression, Property, Statement};
use super::convert;
use super::error::{EvaluationError, SyntaxError};
use super::eval::{self, Evaluator};
use super::operators::Truth;
use super::parser::{self, Parameters};
use super::properties::Properties;
use super::rule::{Edits, Filter};
use super::value::{Encoded, Value};
use crate::ids::IdSource;

/// A parsed SQL filter and its text, which clients read back.
#[derive(Debug, Clone)]
pub struct SqlFilter {
    text: Box<str>,
    parameters: Parameters,
    condition: Condition,
    /// The text as a JMS client wrote it, for a selector.
    selector: Option<Box<str>>,
}

impl SqlFilter {
    /// Parses a filter.
    pub fn parse(text: &str, parameters: Parameters) -> Result<Self, SyntaxError> {
        Ok(Self {
            condition: parser::condition(text, &parameters)?,
            text: text.into(),
            parameters,
            selector: None,
        })
    }

    /// Parses a JMS selector. Its text is the equivalent in the language of the service, or the selector itself where that
    /// would be longer than clients of the service accept. It is evaluated by the rules of JMS: values of types that cannot
    /// be compared are different, and what cannot be calculated is unknown (JMS 2.0, 3.8.1.2).
    pub fn selector(text: &str) -> Result<Self, SyntaxError> {
        let condition = parser::selector(text)?;
        let translated = condition.to_string();
        let is_short = translated.encode_utf16().count() <= MAX_LENGTH;
        Ok(Self {
            text: if is_short {
                translated.into()
            } else {
                text.into()
            },
            parameters: Parameters::new(),
            condition,
            selector: Some(text.into()),
        })
    }

    /// Parses a filter that replaces another one. If a client writes back the text of a selector that it has read, the
    /// result is that selector: as a filter of the service it would select other messages.
    pub fn parse_replacing(
        replaced: Option<&Filter>,
        text: &str,
        parameters: Parameters,
    ) -> Result<Self, SyntaxError> {
        match replaced {
            Some(Filter::Sql(own))
                if own.is_selector() && own.text() == text && parameters.is_empty() =>
            {
                Ok(own.clone())
            }
            _ => Self::parse(text, parameters),
        }
    }

    /// Returns the selector as a JMS client wrote it; `None` for other filters.
    pub fn selector_text(&self) -> Option<&str> {
        self.selector.as_deref()
    }

    /// Returns the text for clients of the service: as written, unless it is a selector.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the values of its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the filter as the language prints it.
    pub fn canonical(&self) -> String {
        self.condition.to_string()
    }

    /// Evaluates the filter on a message.
    pub fn evaluate(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Result<Truth, Box<EvaluationError>> {
        let mut evaluator = Evaluator {
            properties,
            edits: None,
            ids,
            is_selector: self.is_selector(),
        };
        let truth = evaluator.truth(&self.condition);
        match self.is_selector() {
            true => Ok(truth.unwrap_or(Truth::Unknown)),
            false => truth,
        }
    }

    pub(crate) fn is_selector(&self) -> bool {
        self.selector.is_some()
    }

    pub(crate) fn condition(&self) -> &Condition {
        &self.condition
    }
}

/// Filters are equal if their clients wrote the same.
impl PartialEq for SqlFilter {
    fn eq(&self, other: &Self) -> bool {
        let is_same = self.text == other.text && self.parameters == other.parameters;
        is_same && self.selector == other.selector
    }
}

/// A parsed action and its text, which clients read back.
#[derive(Debug, Clone)]
pub struct Action {
    text: Box<str>,
    parameters: Parameters,
    statements: Vec<Statement>,
}

impl Action {
    /// Parses an action.
    pub fn parse(text: &str, parameters: Parameters) -> Result<Self, SyntaxError> {
        Ok(Self {
            statements: parser::statements(text, &parameters)?,
            text: text.into(),
            parameters,
        })
    }

    /// Returns the action as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the values of its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the action as the language prints it.
    pub fn canonical(&self) -> String {
        let statements: Vec<_> = self.statements.iter().map(Statement::to_string).collect();
        statements.join("; ")
    }

    /// Returns its changes on a message.
    pub fn edits(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Result<Edits, Box<EvaluationError>> {
        let mut edits = Edits::default();
        for statement in &self.statements {
            let (property, value, copied) = match statement {
                Statement::Remove(property) => (property, Value::Null, None),
                Statement::Set { property, value } => {
                    let mut evaluator = Evaluator {
                        properties,
                        edits: Some(&edits),
                        ids,
                        is_selector: false,
                    };
                    let expression = value;
                    let value = evaluator.value(expression)?.into_owned();
                    let value = match property {
                        Property::User(_) | Property::Jms(_) => value,
                        Property::System(system) => convert::to_system(*system, value)
                            .map_err(|error| eval::fault(expression, error))?,
                    };
                    (property, value, self.copied(expression, properties, &edits))
                }
            };
            match property {
                Property::User(name) => {
                    edits.set_user(properties, name.as_str(), value, copied);
                }
                Property::System(system) => {
                    edits.set_system(*system, Some(&value).filter(|value| !value.is_null()));
                }
                // These are read-only, so that actions cannot name one.
                Property::Jms(_) => {}
            }
        }
        Ok(edits)
    }

    /// Returns the encoding of a user property or parameter; `None` for what is calculated.
    fn copied(
        &self,
        expression: &Expression,
        properties: &Properties<'_>,
        edits: &Edits,
    ) -> Option<Encoded> {
        match expression {
            Expression::Parameter { name, .. } => self.parameters.get(name).cloned(),
            Expression::Property(Property::User(name)) => match edits.of_user(name.as_str()) {
                Some(edit) => edit.encoded().cloned(),
                None => {
                    let user = properties.find(name.hash(), name.as_str())?;
                    Some(Encoded::of(user.encoded.to_vec()))
                }
            },
            Expression::Property(Property::System(_) | Property::Jms(_))
            | Expression::Constant(_)
            | Expression::NewId
            | Expression::Named(_)
            | Expression::Sign { .. }
            | Expression::Arithmetic { .. } => None,
        }
    }
}

/// Actions are equal if their clients wrote the same.
impl PartialEq for Action {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.parameters == other.parameters
    }
}
