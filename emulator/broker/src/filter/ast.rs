//! The syntax tree of a filter, prepared for evaluation: names are folded, system properties resolved, parameters replaced
//! by their values and constant patterns compiled.
//!
//! The grammar's two sorts are two types: a condition has a truth, an expression a value. Both print as text of the language
//! that parses to the same tree.

use std::fmt;
use std::fmt::{Display, Formatter};

use super::jms::JmsProperty;
use super::properties::Name;
use super::system::SystemProperty;
use super::token::Keyword;
use super::value::Value;
use super::{like, token};

/// An expression that is true, false or unknown for a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Compare {
        operator: Comparison,
        left: Expression,
        right: Expression,
    },
    IsNull {
        property: Property,
        negated: bool,
    },
    In {
        left: Expression,
        items: Vec<Expression>,
        negated: bool,
    },
    Like(Box<Like>),
    Exists(Property),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Like {
    pub(crate) left: Expression,
    pub(crate) pattern: Expression,
    pub(crate) escape: Option<Expression>,
    pub(crate) negated: bool,
    /// The compiled pattern, if it and its escape are constants.
    pub(crate) compiled: Option<like::Pattern>,
}

/// An expression that has a value for a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value<'static>),
    Parameter {
        name: Box<str>,
        value: Value<'static>,
    },
    Property(Property),
    NewId,
    /// `property(…)`.
    Named(Box<Self>),
    Sign {
        sign: Sign,
        operand: Box<Self>,
    },
    Arithmetic {
        operator: Arithmetic,
        left: Box<Self>,
        right: Box<Self>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Property {
    System(SystemProperty),
    User(Name),
    Jms(JmsProperty),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A statement of an action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    Set {
        property: Property,
        value: Expression,
    },
    Remove(Property),
}

impl Expression {
    /// Returns its value if that does not depend on the message.
    pub(crate) fn constant(&self) -> Option<&Value<'static>> {
        match self {
            Self::Constant(value) | Self::Parameter { value, .. } => Some(value),
            Self::Property(_)
            | Self::NewId
            | Self::Named(_)
            | Self::Sign { .. }
            | Self::Arithmetic { .. } => None,
        }
    }
}

impl Comparison {
    pub(crate) fn from_symbol(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "=" => Self::Equal,
            "<>" | "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Sign {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
        }
    }
}

impl Arithmetic {
    pub(crate) fn from_symbol(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "%" => Self::Remainder,
            _ => return None,
        })
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// Returns its binding power; higher binds more tightly.
    pub(crate) fn power(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide | Self::Remainder => 2,
        }
    }
}

impl Display for Condition {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let not = |negated: bool| if negated { " NOT" } else { "" };
        match self {
            Self::And(operands) => write_joined(formatter, operands, " AND "),
            Self::Or(operands) => write_joined(formatter, operands, " OR "),
            Self::Not(operand) => {
                formatter.write_str("NOT ")?;
                write_operand(formatter, operand)
            }
            Self::Compare {
                operator,
                left,
                right,
            } => {
                write!(formatter, "{left} {} {right}", operator.symbol())
            }
            Self::IsNull { property, negated } => {
                write!(formatter, "{property} IS{} NULL", not(*negated))
            }
            Self::In {
                left,
                items,
                negated,
            } => {
                write!(formatter, "{left}{} IN (", not(*negated))?;
                for (place, item) in items.iter().enumerate() {
                    let comma = if place > 0 { ", " } else { "" };
                    write!(formatter, "{comma}{item}")?;
                }
                formatter.write_str(")")
            }
            Self::Like(like) => like.fmt(formatter),
            Self::Exists(property) => write!(formatter, "EXISTS ({property})"),
        }
    }
}

fn write_joined(formatter: &mut Formatter<'_>, operands: &[Condition], joint: &str) -> fmt::Result {
    for (place, operand) in operands.iter().enumerate() {
        if place > 0 {
            formatter.write_str(joint)?;
        }
        write_operand(formatter, operand)?;
    }
    Ok(())
}

/// Writes an operand, in brackets if it is a junction, whether they are needed or not.
fn write_operand(formatter: &mut Formatter<'_>, operand: &Condition) -> fmt::Result {
    match operand {
        Condition::And(_) | Condition::Or(_) => write!(formatter, "({operand})"),
        Condition::Not(_)
        | Condition::Compare { .. }
        | Condition::IsNull { .. }
        | Condition::In { .. }
        | Condition::Like(_)
        | Condition::Exists(_) => operand.fmt(formatter),
    }
}

impl Display for Like {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let not = if self.negated { " NOT" } else { "" };
        write!(formatter, "{}{not} LIKE {}", self.left, self.pattern)?;
        match &self.escape {
            Some(escape) => write!(formatter, " ESCAPE {escape}"),
            None => Ok(()),
        }
    }
}

impl Display for Expression {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write_literal(formatter, value),
            Self::Parameter { name, .. } => write!(formatter, "@{name}"),
            Self::Property(property) => property.fmt(formatter),
            Self::NewId => formatter.write_str("newid()"),
            Self::Named(name) => write!(formatter, "property({name})"),
            Self::Sign { sign, operand } => match **operand {
                Self::Constant(_) | Self::Sign { .. } | Self::Arithmetic { .. } => {
                    write!(formatter, "{}({operand})", sign.symbol())
                }
                Self::Parameter { .. } | Self::Property(_) | Self::NewId | Self::Named(_) => {
                    write!(formatter, "{}{operand}", sign.symbol())
                }
            },
            Self::Arithmetic {
                operator,
                left,
                right,
            } => {
                let power = operator.power();
                write_side(formatter, left, power)?;
                write!(formatter, " {} ", operator.symbol())?;
                write_side(formatter, right, power + 1)
            }
        }
    }
}

/// Writes an operand of arithmetic, in brackets if its own operator binds less tightly than `power`.
fn write_side(formatter: &mut Formatter<'_>, side: &Expression, power: u8) -> fmt::Result {
    match side {
        Expression::Arithmetic { operator, .. } if operator.power() < power => {
            write!(formatter, "({side})")
        }
        Expression::Arithmetic { .. }
        | Expression::Constant(_)
        | Expression::Parameter { .. }
        | Expression::Property(_)
        | Expression::NewId
        | Expression::Named(_)
        | Expression::Sign { .. } => side.fmt(formatter),
    }
}

/// Writes a constant; values without a literal do not occur here.
fn write_literal(formatter: &mut Formatter<'_>, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Null => formatter.write_str("NULL"),
        Value::Bool(true) => formatter.write_str("TRUE"),
        Value::Bool(false) => formatter.write_str("FALSE"),
        Value::Signed(number) => write!(formatter, "{number}"),
        Value::Unsigned(number) => write!(formatter, "{number}"),
        Value::Float(number) => write!(formatter, "{number:?}"),
        Value::Text(text) => write!(formatter, "'{}'", text.replace('\'', "''")),
        Value::Instant(_)
        | Value::Span(_)
        | Value::Guid(_)
        | Value::Binary(_)
        | Value::Other(_) => formatter.write_str(&value.described()),
    }
}

impl Display for Property {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(property) => write!(formatter, "sys.{}", property.name()),
            Self::Jms(property) => write!(formatter, "sys.{}", property.name()),
            Self::User(name) => {
                let name = name.as_str();
                if token::is_regular(name) && Keyword::from_name(name).is_none() {
                    formatter.write_str(name)
                } else {
                    write!(formatter, "[{}]", name.replace(']', "]]"))
                }
            }
        }
    }
}

impl Display for Statement {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { property, value } => write!(formatter, "SET {property} = {value}"),
            Self::Remove(property) => write!(formatter, "REMOVE {property}"),
        }
    }
}
