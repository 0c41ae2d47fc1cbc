//! What can be wrong with an expression when a rule is created, and with a message when it is evaluated.

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

/// What is wrong at the position of a [`SyntaxError`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// Something else was due.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What could have stood there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// No token of the language begins so.
    #[error("unexpected {found}{hint}")]
    Unexpected {
        /// The character.
        found: char,
        /// What may have been meant.
        hint: &'static str,
    },
    /// A string or name without its end.
    #[error("expected a closing {0} for what begins here, found the end")]
    Unterminated(char),
    /// `[]` or `""`.
    #[error("expected a name between the delimiters, found nothing")]
    EmptyName,
    /// Digits that are no number.
    #[error("expected a number such as 12, 1.5 or 2.5E3, found {0:?}")]
    Number(String),
    /// A number that its type cannot hold.
    #[error("expected a number that fits {what}, found {found}")]
    NumberTooLarge {
        /// The type.
        what: &'static str,
        /// The number as written.
        found: String,
    },
    /// Neither `sys` nor `user`.
    #[error(
        "expected the scope sys or user before the dot, found '{0}'; a name with dots is written [in brackets]"
    )]
    Scope(String),
    /// No such property in the scope `sys.`.
    #[error("expected a system property, found '{name}'{hint}")]
    SystemProperty {
        /// The name as written.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A system property that actions cannot change.
    #[error("expected a property that can be changed, found sys.{0}, which is read-only")]
    ReadOnly(&'static str),
    /// No such function.
    #[error("expected one of the functions newid(), property(name) and p(name), found '{0}'")]
    Function(String),
    /// A parameter that the rule gives no value.
    #[error("expected a parameter that has a value, found @{0}")]
    Parameter(String),
    /// An escape that is not one character.
    #[error("expected one character to escape with, found {0} characters")]
    EscapeLength(usize),
    /// A pattern whose last character escapes nothing.
    #[error("expected a pattern with a character behind each escape, found one that ends with it")]
    EscapeAtEnd,
    /// A pattern with so many characters.
    #[error("expected a pattern of at most {max} characters, found {0}", max = super::MAX_LENGTH)]
    PatternLength(usize),
    /// A constant of a type with which the operator never works.
    #[error("expected a string {place}, found {found}")]
    NotText {
        /// Where it is due.
        place: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// Longer than [`MAX_LENGTH`](super::MAX_LENGTH).
    #[error("expected at most {max} characters, found {length}", max = super::MAX_LENGTH)]
    TooLong {
        /// Characters of the text.
        length: usize,
    },
    /// Nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("expected at most {max} levels of nesting, found more", max = super::MAX_DEPTH)]
    TooDeep,
    /// More statements than [`MAX_STATEMENTS`](super::MAX_STATEMENTS).
    #[error("expected at most {max} statements, found more", max = super::MAX_STATEMENTS)]
    TooManyStatements,
}

impl SyntaxError {
    pub(crate) fn new(text: &str, offset: usize, problem: Problem) -> Self {
        // A text that is too long is not kept: it may be any length.
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

    /// Where, in bytes from the beginning of the text.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong there.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Line and column, both from 1; columns count characters.
    pub fn position(&self) -> (usize, usize) {
        let before = &self.text[..self.offset];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// The line of the text, and below it a caret under the place.
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

/// Why an expression has no value for a message; what remains of the rule is told by its owner.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{expression}: {fault}")]
pub struct EvaluationError {
    /// The part of the expression that failed, as the language writes it.
    pub expression: String,
    /// What went wrong, with the operands.
    pub fault: Fault,
}

/// What can go wrong with values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// An operator between types that have no such operator.
    #[error("operator '{operator}' cannot be applied to {left} and {right}")]
    Operator {
        /// The operator.
        operator: &'static str,
        /// The left operand and its type.
        left: String,
        /// The right operand and its type.
        right: String,
    },
    /// A sign before something that is no number.
    #[error("operator '{operator}' cannot be applied to {operand}")]
    Sign {
        /// The operator.
        operator: &'static str,
        /// The operand and its type.
        operand: String,
    },
    /// A whole number divided by zero.
    #[error("{left} is divided by zero")]
    DivisionByZero {
        /// The left operand.
        left: String,
    },
    /// A whole number beyond 64 bits.
    #[error("the result of {left} {operator} {right} does not fit a 64-bit number")]
    Overflow {
        /// The operator.
        operator: &'static str,
        /// The left operand.
        left: String,
        /// The right operand.
        right: String,
    },
    /// A concatenation longer than any property may be.
    #[error("the concatenation has {length} bytes; at most 64 KiB are allowed")]
    TextTooLong {
        /// Bytes it would have.
        length: usize,
    },
    /// A name that is no string.
    #[error("the name of a property must be a string, not {0}")]
    PropertyName(String),
    /// No such property in the scope `sys.`.
    #[error("the system property '{0}' does not exist")]
    SystemProperty(String),
    /// An escape that is not one character.
    #[error("ESCAPE must be one character, not {0}")]
    Escape(String),
    /// A pattern whose last character escapes nothing.
    #[error("the pattern {0} ends with its escape character")]
    EscapeAtEnd(String),
    /// A pattern with so many characters.
    #[error("the pattern has {0} characters; at most {max} are allowed", max = super::MAX_LENGTH)]
    PatternLength(usize),
    /// A value that cannot become what the system property is.
    #[error("{value} cannot become the value of sys.{property}, which is {expected}")]
    Conversion {
        /// The value and its type.
        value: String,
        /// The property.
        property: &'static str,
        /// What it holds.
        expected: &'static str,
    },
    /// Sections of the message that an action cannot be applied to.
    #[error("the message cannot be decoded: {0}")]
    Message(DecodeError),
}

/// Why a rule could not be evaluated on a message: what stands in the dead letter (decision D6).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("Rule '{rule}' failed in its {part} '{text}': {error}.")]
pub struct RuleError {
    /// The name of the rule.
    pub rule: String,
    /// Which part of the rule.
    pub part: RulePart,
    /// The whole expression of that part, as written.
    pub text: String,
    /// What failed in it.
    pub error: EvaluationError,
}

/// The two halves of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulePart {
    /// What selects.
    Filter,
    /// What changes.
    Action,
}

impl RuleError {
    /// The dead-letter reason: the name of the exception of .NET (decision D6).
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
