//! What a filter is made of once it has been read: compiled, because names are folded, system properties
//! resolved, parameters filled in and constant patterns taken apart.
//!
//! The grammar's two sorts are two types: a condition has a truth, an expression a value.

use super::like;
use super::properties::Name;
use super::system::SystemProperty;
use super::value::Value;

/// What is true, false or unknown of a message.
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
    /// The pattern taken apart, when it and its escape are constants.
    pub(crate) compiled: Option<like::Pattern>,
}

/// What has a value for a message.
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

/// A step of an action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    Set {
        property: Property,
        value: Expression,
    },
    Remove(Property),
}

impl Expression {
    /// Its value, when that is known without a message.
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

    /// How tightly it binds; higher is tighter.
    pub(crate) fn power(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide | Self::Remainder => 2,
        }
    }
}
