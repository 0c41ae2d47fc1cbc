//! Explains why a rule selects a message or not: the first part of its filter that was not true, with the values in it.

use super::ast::{Condition, Expression, Like, Property};
use super::correlation::{self, CorrelationFilter};
use super::error::{EvaluationError, RuleError};
use super::eval::Evaluator;
use super::operators::{Truth, typed};
use super::properties::Properties;
use super::rule::{Filter, Rule};
use crate::ids::IdSource;

/// The result of one rule for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The name of the rule.
    pub rule: String,
    /// The result.
    pub outcome: Outcome,
}

/// Whether a rule selects a message, and why not.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The rule selects the message.
    Matched,
    /// The rule does not select the message.
    NotMatched(Reason),
    /// Its filter or action fails on this message.
    Failed(Box<RuleError>),
}

/// The first part of a filter that was not true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The part, in the language's syntax.
    pub expression: String,
    /// False or unknown.
    pub truth: Truth,
    /// The parts of it that are not constant, and their values with types.
    pub values: Vec<(String, String)>,
}

/// Explains for each rule whether it selects a message, and why not.
pub fn explain<'r>(
    rules: impl IntoIterator<Item = &'r Rule>,
    properties: &Properties<'_>,
    ids: &mut dyn IdSource,
) -> Vec<Explanation> {
    let explained = rules.into_iter().map(|rule| Explanation {
        rule: rule.name.to_string(),
        outcome: outcome(rule, properties, ids).unwrap_or_else(Outcome::Failed),
    });
    explained.collect()
}

fn outcome(
    rule: &Rule,
    properties: &Properties<'_>,
    ids: &mut dyn IdSource,
) -> Result<Outcome, Box<RuleError>> {
    if rule.matches(properties, ids)? {
        return match rule.edits(properties, ids) {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(Outcome::Matched),
        };
    }
    Ok(Outcome::NotMatched(match &rule.filter {
        Filter::Correlation(filter) => correlation_reason(filter, properties),
        Filter::Sql(filter) => {
            let mut evaluator = Evaluator {
                properties,
                edits: None,
                ids,
                is_selector: filter.is_selector(),
            };
            // The filter was just evaluated without an error, and this visits the same parts.
            evaluator
                .reason(filter.condition())
                .unwrap_or_else(|error| failed(&error))
        }
        Filter::True | Filter::False => Reason {
            expression: "1=0".to_owned(),
            truth: Truth::False,
            values: Vec::new(),
        },
    }))
}

fn failed(error: &EvaluationError) -> Reason {
    Reason {
        expression: error.to_string(),
        truth: Truth::Unknown,
        values: Vec::new(),
    }
}

fn correlation_reason(filter: &CorrelationFilter, properties: &Properties<'_>) -> Reason {
    let mismatch = filter.first_mismatch(properties);
    let (expression, values) = mismatch.map_or_else(Default::default, |(property, expected)| {
        let found = correlation::field(properties, property);
        let name = property.to_string();
        (
            format!("{name} = {}", typed(expected)),
            vec![(name, typed(found))],
        )
    });
    Reason {
        expression,
        truth: Truth::False,
        values,
    }
}

type Explained<T> = Result<T, Box<EvaluationError>>;

impl<'e> Evaluator<'e> {
    /// Returns the first part that keeps a condition from being true.
    fn reason(&mut self, condition: &'e Condition) -> Explained<Reason> {
        if let Condition::And(operands) | Condition::Or(operands) = condition {
            for operand in operands {
                if self.truth(operand)? != Truth::True {
                    return self.reason(operand);
                }
            }
        }
        let mut values = Vec::new();
        self.record_condition(condition, &mut values)?;
        Ok(Reason {
            expression: condition.to_string(),
            truth: self.truth(condition)?,
            values,
        })
    }

    fn record_condition(
        &mut self,
        condition: &'e Condition,
        values: &mut Vec<(String, String)>,
    ) -> Explained<()> {
        match condition {
            Condition::And(operands) | Condition::Or(operands) => operands
                .iter()
                .try_for_each(|operand| self.record_condition(operand, values)),
            Condition::Not(operand) => self.record_condition(operand, values),
            Condition::Compare { left, right, .. } => {
                self.record(left, values)?;
                self.record(right, values)
            }
            Condition::IsNull { property, .. } | Condition::Exists(property) => {
                self.record_property(property, values);
                Ok(())
            }
            Condition::In { left, items, .. } => {
                self.record(left, values)?;
                items.iter().try_for_each(|item| self.record(item, values))
            }
            Condition::Like(like) => {
                let Like {
                    left,
                    pattern,
                    escape,
                    ..
                } = &**like;
                self.record(left, values)?;
                self.record(pattern, values)?;
                escape
                    .iter()
                    .try_for_each(|escape| self.record(escape, values))
            }
        }
    }

    /// Records the value of an expression, and then of its parts.
    fn record(
        &mut self,
        expression: &'e Expression,
        values: &mut Vec<(String, String)>,
    ) -> Explained<()> {
        match expression {
            Expression::Constant(_) => return Ok(()),
            Expression::Property(property) => {
                self.record_property(property, values);
                return Ok(());
            }
            Expression::Parameter { .. }
            | Expression::NewId
            | Expression::Named(_)
            | Expression::Sign { .. }
            | Expression::Arithmetic { .. } => {
                let value = self.value(expression)?;
                add(values, expression.to_string(), typed(&value));
            }
        }
        match expression {
            Expression::Named(operand) | Expression::Sign { operand, .. } => {
                self.record(operand, values)
            }
            Expression::Arithmetic { left, right, .. } => {
                self.record(left, values)?;
                self.record(right, values)
            }
            Expression::Constant(_)
            | Expression::Parameter { .. }
            | Expression::Property(_)
            | Expression::NewId => Ok(()),
        }
    }

    fn record_property(&self, property: &Property, values: &mut Vec<(String, String)>) {
        let value = match (self.property(property), property) {
            (Some(value), _) => typed(value),
            (None, Property::Jms(property)) => typed(&property.of(self.properties)),
            (None, Property::System(_)) => "not set".to_owned(),
            (None, Property::User(_)) => "does not exist".to_owned(),
        };
        add(values, property.to_string(), value);
    }
}

/// Adds a value unless it is present.
fn add(values: &mut Vec<(String, String)>, name: String, value: String) {
    if values.iter().all(|(other, _)| *other != name) {
        values.push((name, value));
    }
}
