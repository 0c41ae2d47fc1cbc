//! A SQL filter: its text, and the condition read from it.

use super::ast::Condition;
use super::error::{EvaluationError, SyntaxError};
use super::eval::Evaluator;
use super::operators::Truth;
use super::parameters::Parameters;
use super::parser;
use super::properties::Properties;
use crate::IdSource;

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
