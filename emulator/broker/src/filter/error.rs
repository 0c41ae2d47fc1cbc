//! Errors of an expression when its rule is created, and when it is evaluated on a message.

use std::fmt;

use servicebus_codec::DecodeError;
use thiserror::Error;

/// Why a text is not a filter or an action, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct SyntaxError {
    text: Box<str>,
    offset: usize,
    problem: Problem,
}

/// The error at the position of a [`SyntaxError`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// Another token was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The expected tokens.
        expected: &'static str,
        /// The token found.
        found: String,
    },
    /// No token begins with this character.
    #[error("unexpected {found}{hint}")]
    Unexpected {
        /// The character.
        found: char,
        /// What may have been meant.
        hint: &'static str,
    },
    /// A string or name is not terminated.
    #[error("expected a closing {0} for what begins here, found the end")]
    Unterminated(char),
    /// `[]` or `""`.
    #[error("expected a name between the delimiters, found nothing")]
    EmptyName,
    /// The digits are not a number.
    #[error("expected a number such as 12, 1.5 or 2.5E3, found {0:?}")]
    Number(String),
    /// The number does not fit its type.
    #[error("expected a number that fits {what}, found {found}")]
    NumberTooLarge {
        /// The type.
        what: &'static str,
        /// The number as written.
        found: String,
    },
    /// The scope is neither `sys` nor `user`.
    #[error(
        "expected the scope sys or user before the dot, found '{0}'; a name with dots is written [in brackets]"
    )]
    Scope(String),
    /// The scope `sys.` has no such property.
    #[error("expected a system property, found '{name}'{hint}")]
    SystemProperty {
        /// The name as written.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// Actions cannot change this system property.
    #[error("expected a property that can be changed, found sys.{0}, which is read-only")]
    ReadOnly(&'static str),
    /// There is no such function.
    #[error("expected one of the functions newid(), property(name) and p(name), found '{0}'")]
    Function(String),
    /// The rule has no value for this parameter.
    #[error("expected a parameter that has a value, found @{0}")]
    Parameter(String),
    /// The escape is not one character.
    #[error("expected one character to escape with, found {0} characters")]
    EscapeLength(usize),
    /// The escape at the end of the pattern escapes nothing.
    #[error("expected a pattern with a character behind each escape, found one that ends with it")]
    EscapeAtEnd,
    /// The pattern has too many characters.
    #[error("expected a pattern of at most {max} characters, found {0}", max = super::MAX_LENGTH)]
    PatternLength(usize),
    /// The operator never accepts a constant of this type.
    #[error("expected a string {place}, found {found}")]
    NotText {
        /// The place where a text is required.
        place: &'static str,
        /// The type found.
        found: &'static str,
    },
    /// The text exceeds [`MAX_LENGTH`](super::MAX_LENGTH).
    #[error("expected at most {max} characters, found {length}", max = super::MAX_LENGTH)]
    TooLong {
        /// Characters of the text.
        length: usize,
    },
    /// The nesting exceeds [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("expected at most {max} levels of nesting, found more", max = super::MAX_DEPTH)]
    TooDeep,
    /// The action has more than [`MAX_STATEMENTS`](super::MAX_STATEMENTS) statements.
    #[error("expected at most {max} statements, found more", max = super::MAX_STATEMENTS)]
    TooManyStatements,
}

impl SyntaxError {
    pub(crate) fn new(text: &str, offset: usize, problem: Problem) -> Self {
        // A text that is too long may have any length, so it is not kept.
        let kept = if matches!(problem, Problem::TooLong { .. }) {
            ""
        } else {
            text
        };
        Self {
            text: kept.into(),
            offset: offset.min(kept.len()),
            problem,
        }
    }

    /// Returns the position, in bytes from the beginning of the text.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the error at the position.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns line and column, both from 1; columns count characters.
    pub fn position(&self) -> (usize, usize) {
        let before = &self.text[..self.offset];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// Returns the line of the text, and below it a caret at the position.
    pub fn excerpt(&self) -> String {
        let (line, column) = self.position();
        let text = self.text.lines().nth(line - 1).unwrap_or_default();
        format!("{text}\n{:>column$}", "^")
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.position();
        if line > 1 {
            write!(formatter, "line {line}, ")?;
        }
        write!(formatter, "column {column}: {}", self.problem)
    }
}

/// Why an expression has no value for a message; the rule's owner adds the rest of the rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{expression}: {fault}")]
pub struct EvaluationError {
    /// The part of the expression that failed, in the language's syntax.
    pub expression: String,
    /// The error, with the operands.
    pub fault: Fault,
}

/// Errors of values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The operator does not exist for these types.
    #[error("operator '{operator}' cannot be applied to {left} and {right}")]
    Operator {
        /// The operator.
        operator: &'static str,
        /// The left operand and its type.
        left: String,
        /// The right operand and its type.
        right: String,
    },
    /// A sign precedes a value that is not a number.
    #[error("operator '{operator}' cannot be applied to {operand}")]
    Sign {
        /// The operator.
        operator: &'static str,
        /// The operand and its type.
        operand: String,
    },
    /// A whole number was divided by zero.
    #[error("{left} is divided by zero")]
    DivisionByZero {
        /// The left operand.
        left: String,
    },
    /// The whole number exceeds 64 bits.
    #[error("the result of {left} {operator} {right} does not fit a 64-bit number")]
    Overflow {
        /// The operator.
        operator: &'static str,
        /// The left operand.
        left: String,
        /// The right operand.
        right: String,
    },
    /// The concatenation is longer than any property may be.
    #[error("the concatenation has {length} bytes; at most 64 KiB are allowed")]
    TextTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The property name is not a string.
    #[error("the name of a property must be a string, not {0}")]
    PropertyName(String),
    /// The scope `sys.` has no such property.
    #[error("the system property '{0}' does not exist")]
    SystemProperty(String),
    /// The escape is not one character.
    #[error("ESCAPE must be one character, not {0}")]
    Escape(String),
    /// The escape at the end of the pattern escapes nothing.
    #[error("the pattern {0} ends with its escape character")]
    EscapeAtEnd(String),
    /// The pattern has too many characters.
    #[error("the pattern has {0} characters; at most {max} are allowed", max = super::MAX_LENGTH)]
    PatternLength(usize),
    /// The value cannot be converted to the type of the system property.
    #[error("{value} cannot become the value of sys.{property}, which is {expected}")]
    Conversion {
        /// The value and its type.
        value: String,
        /// The property.
        property: &'static str,
        /// The type of the property.
        expected: &'static str,
    },
    /// The action cannot be applied to the sections of the message.
    #[error("the message cannot be decoded: {0}")]
    Message(DecodeError),
}

/// Why a rule could not be evaluated on a message: the error in the dead letter (decision D6).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("Rule '{rule}' failed in its {part} '{text}': {error}.")]
pub struct RuleError {
    /// The name of the rule.
    pub rule: String,
    /// The part of the rule that failed.
    pub part: RulePart,
    /// The whole expression of that part, as written.
    pub text: String,
    /// The error in it.
    pub error: EvaluationError,
}

/// The two parts of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulePart {
    /// The filter.
    Filter,
    /// The action.
    Action,
}

impl RuleError {
    /// Returns the dead-letter reason: the name of the .NET exception (decision D6).
    pub fn reason(&self) -> &'static str {
        match self.part {
            RulePart::Filter => "FilterException",
            RulePart::Action => "RuleActionException",
        }
    }
}

impl fmt::Display for RulePart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Filter => "filter",
            Self::Action => "action",
        })
    }
}
