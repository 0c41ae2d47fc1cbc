//! SQL filters and actions: their texts, the values that these name with `@`, and what was read from them.
//!
//! An action is `SET` and `REMOVE` on the copy of a message that a rule has selected. Its statements run in turn, and each
//! sees what those before it changed.

use super::ast::{Condition, Property, Statement};
use super::convert;
use super::error::{EvaluationError, SyntaxError};
use super::eval::{self, Evaluator};
use super::operators::Truth;
use super::parser::{self, Parameters};
use super::properties::Properties;
use super::rule::Edits;
use super::value::Value;
use crate::ids::IdSource;

/// A SQL filter that has been read, and its text, which clients read back.
#[derive(Debug, Clone)]
pub struct SqlFilter {
    text: Box<str>,
    parameters: Parameters,
    condition: Condition,
}

impl SqlFilter {
    /// Reads a filter.
    pub fn parse(text: &str, parameters: Parameters) -> Result<Self, SyntaxError> {
        Ok(Self {
            condition: parser::condition(text, &parameters)?,
            text: text.into(),
            parameters,
        })
    }

    /// The filter as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values of its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The filter in the form that the language prints.
    pub fn canonical(&self) -> String {
        self.condition.to_string()
    }

    /// What it says of a message.
    pub fn evaluate(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Result<Truth, Box<EvaluationError>> {
        let mut evaluator = Evaluator {
            properties,
            edits: None,
            ids,
        };
        evaluator.truth(&self.condition)
    }

    pub(crate) fn condition(&self) -> &Condition {
        &self.condition
    }
}

/// Two filters are equal when their clients wrote the same.
impl PartialEq for SqlFilter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.parameters == other.parameters
    }
}

/// An action that has been read, and its text, which clients read back.
#[derive(Debug, Clone)]
pub struct Action {
    text: Box<str>,
    parameters: Parameters,
    statements: Vec<Statement>,
}

impl Action {
    /// Reads an action.
    pub fn parse(text: &str, parameters: Parameters) -> Result<Self, SyntaxError> {
        Ok(Self {
            statements: parser::statements(text, &parameters)?,
            text: text.into(),
            parameters,
        })
    }

    /// The action as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values of its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The action in the form that the language prints.
    pub fn canonical(&self) -> String {
        let statements: Vec<_> = self.statements.iter().map(Statement::to_string).collect();
        statements.join("; ")
    }

    /// What it changes on a message.
    pub fn edits(
        &self,
        properties: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> Result<Edits, Box<EvaluationError>> {
        let mut edits = Edits::default();
        for statement in &self.statements {
            let (property, value) = match statement {
                Statement::Remove(property) => (property, Value::Null),
                Statement::Set { property, value } => {
                    let mut evaluator = Evaluator {
                        properties,
                        edits: Some(&edits),
                        ids,
                    };
                    let expression = value;
                    let value = evaluator.value(expression)?.into_owned();
                    let value = match property {
                        Property::User(_) => value,
                        Property::System(system) => convert::to_system(*system, value)
                            .map_err(|error| eval::fault(expression, error))?,
                    };
                    (property, value)
                }
            };
            match property {
                Property::User(name) => edits.set_user(properties, name.as_str(), value),
                Property::System(system) => {
                    edits.set_system(*system, Some(&value).filter(|value| !value.is_null()));
                }
            }
        }
        Ok(edits)
    }
}

/// Two actions are equal when their clients wrote the same.
impl PartialEq for Action {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.parameters == other.parameters
    }
}
