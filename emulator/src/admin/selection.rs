//! The `$filter` of old clients: `startswith(path, 'a') eq true And messageCount Gt 10`.
//!
//! What Service Bus Explorer and the client library of its time write: comparisons of a property with a value, joined
//! by `and` and `or`. Keywords and names of properties have any case.

mod token;

use std::cmp::Ordering;

use servicebus_broker::Timestamp;

use super::describe::View;
use super::refusal::ServiceError;
use super::time::{Frame, Instant};
use token::{Token, tokens};

/// Longest filter, in characters.
const MAX_LENGTH: usize = 2048;
/// How deep brackets may nest.
const MAX_DEPTH: usize = 16;

/// A filter that was understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selection {
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    StartsWith(Property, String),
    /// A comparison; its value is of the property's type.
    Is(Property, Operator, Literal),
}

/// What a filter may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Property {
    Path,
    Status,
    Availability,
    MessageCount,
    CreatedAt,
    UpdatedAt,
    AccessedAt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Text(String),
    Number(f64),
    /// Milliseconds since the Unix epoch, by the client's clock.
    Instant(i64),
}

impl Selection {
    pub(crate) fn parse(text: &str) -> Result<Self, ServiceError> {
        if text.chars().count() > MAX_LENGTH {
            return Err(malformed(&format!(
                "it has more than {MAX_LENGTH} characters"
            )));
        }
        let mut parser = Parser {
            tokens: tokens(text).map_err(|reason| malformed(&reason))?,
            at: 0,
            depth: 0,
        };
        let selection = parser.either()?;
        match parser.next() {
            None => Ok(selection),
            Some(token) => Err(malformed(&format!("{token} comes unexpected"))),
        }
    }

    /// Whether an entity is selected.
    pub(crate) fn holds(&self, view: &View, frame: Frame) -> bool {
        match self {
            Self::And(left, right) => left.holds(view, frame) && right.holds(view, frame),
            Self::Or(left, right) => left.holds(view, frame) || right.holds(view, frame),
            Self::Not(inner) => !inner.holds(view, frame),
            Self::StartsWith(property, start) => match property.of(view, frame) {
                Literal::Text(text) => text.to_lowercase().starts_with(&start.to_lowercase()),
                Literal::Number(_) | Literal::Instant(_) => false,
            },
            Self::Is(property, operator, value) => {
                let found = property.of(view, frame);
                compare(&found, value).is_some_and(|ordering| operator.takes(ordering))
            }
        }
    }
}

impl Property {
    fn named(name: &str) -> Result<Self, ServiceError> {
        match name.to_ascii_lowercase().as_str() {
            "path" | "name" => Ok(Self::Path),
            "status" => Ok(Self::Status),
            "availabilitystatus" | "entityavailabilitystatus" => Ok(Self::Availability),
            "messagecount" => Ok(Self::MessageCount),
            "createdat" => Ok(Self::CreatedAt),
            "updatedat" | "modifiedat" => Ok(Self::UpdatedAt),
            "accessedat" => Ok(Self::AccessedAt),
            _ => Err(ServiceError::parameter(
                format!(
                    "Invalid Filter. The specified property '{name}' does not exist or is not allowed."
                ),
                "propertyName",
                name,
            )
            .without_sub_code()),
        }
    }

    fn of(self, view: &View, frame: Frame) -> Literal {
        let instant = |at: Timestamp| Literal::Instant(at.as_millis().saturating_sub(frame.ahead));
        match self {
            Self::Path => {
                let name = view.path.topic().map(|(_, name)| name);
                Literal::Text(name.unwrap_or(view.path.as_str()).to_owned())
            }
            Self::Status => Literal::Text(view.wanted.entity.status.name().to_owned()),
            Self::Availability => Literal::Text("Available".to_owned()),
            Self::MessageCount => Literal::Number(view.message_count() as f64),
            Self::CreatedAt => instant(view.created_at),
            Self::UpdatedAt => instant(view.updated_at),
            Self::AccessedAt => view.accessed_at.map_or(Literal::Instant(i64::MIN), instant),
        }
    }

    /// A value as this property has them.
    fn literal(self, token: Token) -> Result<Literal, ServiceError> {
        let (text, is_number) = match &token {
            Token::Text(text) => (text.as_str(), false),
            Token::Number(text) => (text.as_str(), true),
            Token::Name(_) | Token::Open | Token::Close | Token::Comma => ("", false),
        };
        let literal = match self {
            Self::Path | Self::Status | Self::Availability => {
                (!is_number && !text.is_empty()).then(|| Literal::Text(text.to_owned()))
            }
            Self::MessageCount => text.parse().ok().map(Literal::Number),
            Self::CreatedAt | Self::UpdatedAt | Self::AccessedAt => {
                Instant::read(text).map(|at| Literal::Instant(at.ticks / 10_000))
            }
        };
        literal.ok_or_else(|| malformed(&format!("{token} is no value of {self:?}")))
    }
}

impl Operator {
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "eq" => Some(Self::Eq),
            "ne" => Some(Self::Ne),
            "lt" => Some(Self::Lt),
            "le" => Some(Self::Le),
            "gt" => Some(Self::Gt),
            "ge" => Some(Self::Ge),
            _ => None,
        }
    }

    fn takes(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::Le => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Ge => ordering.is_ge(),
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn either(&mut self) -> Result<Selection, ServiceError> {
        let mut left = self.both()?;
        while self.eat("or") {
            left = Selection::Or(left.into(), self.both()?.into());
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Selection, ServiceError> {
        let mut left = self.one()?;
        while self.eat("and") {
            left = Selection::And(left.into(), self.one()?.into());
        }
        Ok(left)
    }

    fn one(&mut self) -> Result<Selection, ServiceError> {
        match self.next() {
            Some(Token::Open) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(malformed(&format!(
                        "it nests deeper than {MAX_DEPTH} brackets"
                    )));
                }
                let inner = self.either()?;
                self.expect(&Token::Close)?;
                self.depth -= 1;
                Ok(inner)
            }
            Some(Token::Name(name)) if name.eq_ignore_ascii_case("startswith") => {
                self.starts_with()
            }
            Some(Token::Name(name)) => {
                let property = Property::named(&name)?;
                let operator = self.operator()?;
                let value = self.next().ok_or_else(|| malformed("it ends too early"))?;
                Ok(Selection::Is(property, operator, property.literal(value)?))
            }
            Some(token) => Err(malformed(&format!("{token} comes unexpected"))),
            None => Err(malformed("it ends too early")),
        }
    }

    /// `startswith(path, 'a')`, and perhaps `eq true` behind it.
    fn starts_with(&mut self) -> Result<Selection, ServiceError> {
        self.expect(&Token::Open)?;
        let property = match self.next() {
            Some(Token::Name(name)) => Property::named(&name)?,
            _ => return Err(malformed("startswith needs a property first")),
        };
        self.expect(&Token::Comma)?;
        let Some(Token::Text(start)) = self.next() else {
            return Err(malformed("startswith needs a text in quotes"));
        };
        self.expect(&Token::Close)?;
        let selection = Selection::StartsWith(property, start);
        if !self.eat("eq") {
            return Ok(selection);
        }
        if self.eat("true") {
            Ok(selection)
        } else if self.eat("false") {
            Ok(Selection::Not(selection.into()))
        } else {
            Err(malformed("startswith(…) eq needs true or false"))
        }
    }

    fn operator(&mut self) -> Result<Operator, ServiceError> {
        let operator = match self.next() {
            Some(Token::Name(name)) => Operator::named(&name),
            _ => None,
        };
        operator.ok_or_else(|| malformed("a property needs eq, ne, lt, le, gt or ge behind it"))
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn eat(&mut self, keyword: &str) -> bool {
        let is_next = matches!(self.tokens.get(self.at), Some(Token::Name(name)) if name.eq_ignore_ascii_case(keyword));
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, wanted: &Token) -> Result<(), ServiceError> {
        match self.next() {
            Some(token) if token == *wanted => Ok(()),
            _ => Err(malformed(&format!("{wanted} is missing"))),
        }
    }
}

fn compare(found: &Literal, wanted: &Literal) -> Option<Ordering> {
    match (found, wanted) {
        (Literal::Text(a), Literal::Text(b)) => Some(a.to_lowercase().cmp(&b.to_lowercase())),
        (Literal::Number(a), Literal::Number(b)) => a.partial_cmp(b),
        (Literal::Instant(a), Literal::Instant(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn malformed(reason: &str) -> ServiceError {
    ServiceError::bad_request(format!(
        "Invalid Filter. The filter cannot be understood: {reason}."
    ))
    .without_sub_code()
}

#[cfg(test)]
mod tests;
