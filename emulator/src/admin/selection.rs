//! The `$filter` of old clients: `startswith(path, 'a') eq true And messageCount Gt 10`.
//!
//! Service Bus Explorer and the client library of its time write comparisons of a property with a value, joined by `and` and
//! `or`. Keywords and names of properties are case-insensitive.

use std::cmp::Ordering;
use std::fmt;

use servicebus_broker::Timestamp;
use servicebus_config::descriptions::Instant;

use super::describe::View;
use super::refusal::ServiceError;
use super::time::Frame;

/// Longest filter, in characters.
const MAX_LENGTH: usize = 2048;
/// Maximum nesting of brackets.
const MAX_DEPTH: usize = 16;

/// A parsed filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selection {
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    StartsWith(Property, String),
    /// A comparison; its value is of the property's type.
    Is(Property, Operator, Literal),
}

/// A property that filters can compare.
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
        if text.encode_utf16().count() > MAX_LENGTH {
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

    /// Returns whether the filter selects an entity.
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

    /// Parses a value of this property's type.
    fn literal(self, token: &Token) -> Option<Literal> {
        let (text, is_number) = match token {
            Token::Text(text) => (text.as_str(), false),
            Token::Number(text) => (text.as_str(), true),
            Token::Name(_) | Token::Open | Token::Close | Token::Comma => ("", false),
        };
        match self {
            Self::Path | Self::Status | Self::Availability => {
                (!is_number && !text.is_empty()).then(|| Literal::Text(text.to_owned()))
            }
            Self::MessageCount => text.parse().ok().map(Literal::Number),
            Self::CreatedAt | Self::UpdatedAt | Self::AccessedAt => {
                Instant::read(text).map(|at| Literal::Instant(at.ticks / 10_000))
            }
        }
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
                let wrong = malformed(&format!("{value} is not a value of {name}"));
                let value = property.literal(&value).ok_or(wrong)?;
                Ok(Selection::Is(property, operator, value))
            }
            Some(token) => Err(malformed(&format!("{token} comes unexpected"))),
            None => Err(malformed("it ends too early")),
        }
    }

    /// Parses `startswith(path, 'a')`, optionally followed by `eq true`.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Name(String),
    /// In quotes, of which two stand for one; `datetime` may precede them.
    Text(String),
    Number(String),
    Open,
    Close,
    Comma,
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(text) | Self::Number(text) => write!(formatter, "'{text}'"),
            Self::Text(text) => write!(formatter, "the text '{text}'"),
            Self::Open => formatter.write_str("'('"),
            Self::Close => formatter.write_str("')'"),
            Self::Comma => formatter.write_str("','"),
        }
    }
}

/// Splits a filter into tokens; an error has the text that is none.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, behind) = match first {
            '(' => (Token::Open, &rest[1..]),
            ')' => (Token::Close, &rest[1..]),
            ',' => (Token::Comma, &rest[1..]),
            '\'' => quoted(rest)?,
            _ => word(rest)?,
        };
        // datetime'2012-04-23' is a text like any other.
        if matches!(token, Token::Text(_))
            && matches!(tokens.last(), Some(Token::Name(name)) if name.eq_ignore_ascii_case("datetime"))
        {
            tokens.pop();
        }
        tokens.push(token);
        rest = behind.trim_start();
    }
    Ok(tokens)
}

fn quoted(rest: &str) -> Result<(Token, &str), String> {
    let mut text = String::new();
    let mut inner = &rest[1..];
    loop {
        let end = inner.find('\'').ok_or("a quote is not closed")?;
        text.push_str(&inner[..end]);
        inner = &inner[end + 1..];
        match inner.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                inner = more;
            }
            None => return Ok((Token::Text(text), inner)),
        }
    }
}

fn word(rest: &str) -> Result<(Token, &str), String> {
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '+');
    let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    match word.chars().next() {
        None => Err(format!(
            "{:?} is not allowed",
            rest.chars().next().unwrap_or_default()
        )),
        Some(first) if first.is_ascii_digit() || first == '-' => {
            Ok((Token::Number(word.to_owned()), behind))
        }
        Some(_) => Ok((Token::Name(word.to_owned()), behind)),
    }
}

#[cfg(test)]
mod tests {
    use Property::*;

    use super::*;

    #[test]
    fn list_filters_of_old_clients_are_parsed() {
        let starts = |text: &str| Selection::StartsWith(Path, text.into());
        let many = Selection::Is(MessageCount, Operator::Gt, Literal::Number(10.0));
        for (text, selection) in [
            ("startswith(path, 'a') eq true", starts("a")),
            ("startsWith( Path ,'it''s')", starts("it's")),
            (
                "startswith(path,'a') eq false",
                Selection::Not(starts("a").into()),
            ),
            ("messageCount Gt 10", many.clone()),
            ("(messagecount gt '10')", many.clone()),
            (
                "accessedAt Lt datetime'1970-01-01T00:00:01Z'",
                Selection::Is(AccessedAt, Operator::Lt, Literal::Instant(1000)),
            ),
            (
                "createdAt ge '1970-01-01T00:00:01'",
                Selection::Is(CreatedAt, Operator::Ge, Literal::Instant(1000)),
            ),
            (
                "path eq 'a' Or messageCount gt 10 And startswith(path,'b') eq true",
                Selection::Or(
                    Selection::Is(Path, Operator::Eq, Literal::Text("a".into())).into(),
                    Selection::And(many.into(), starts("b").into()).into(),
                ),
            ),
        ] {
            assert_eq!(Selection::parse(text), Ok(selection), "{text}");
        }
    }

    #[test]
    fn unsupported_list_filters_are_refused() {
        let refused = Selection::parse("size gt 1").unwrap_err();
        assert_eq!(refused.status, 400);
        let text = format!("{refused:?}");
        assert!(
            text.contains(
                "Invalid Filter. The specified property 'size' does not exist or is not allowed."
            ),
            "{text}"
        );
        let refused = Selection::parse("availabilityStatus eq 1").unwrap_err();
        let text = format!("{refused:?}");
        assert!(
            text.contains("is not a value of availabilityStatus"),
            "{text}"
        );
        for text in [
            "path",
            "path eq",
            "path eq 1",
            "path like 'a'",
            "messageCount gt 'many'",
            "createdAt lt 'soon'",
            "startswith(path)",
            "startswith(path,'a'",
            "startswith(path,'a') eq 1",
            "path eq 'a",
            "path eq 'a' path eq 'b'",
            "path eq 'a' and",
            "path = 'a'",
            ")",
            &"(".repeat(100),
            &"a".repeat(3000),
        ] {
            let refused = Selection::parse(text);
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
    }

    proptest::proptest! {
    #[test]
    fn random_list_filters_do_not_panic(text in "[a-z('), 0-9=é-]{0,60}") {
        let _ = Selection::parse(&text);
    }
    }
}
