//! Parses tokens into conditions and expressions.
//!
//! winnow finds the tokens. The parser is written by hand, because each error must name what was expected at its position,
//! conditions and expressions share their brackets, and the depth is limited on entry. Precedence, loosest first: `OR`,
//! `AND`, `NOT`, comparisons, `+ -`, `* / %`, signs.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the grammar asks for some tokens and problems, and any other is what is meant"
)]

mod condition;
mod expression;

use super::ast::{Condition, Expression, Property, Statement};
use super::error::{Problem, SyntaxError};
use super::jms::{self, JmsProperty};
use super::properties::{Name, same_name};
use super::system::SystemProperty;
use super::token::{self, Dialect, Keyword, Spanned, Token};
use super::value::Encoded;
use super::{MAX_DEPTH, MAX_LENGTH, MAX_STATEMENTS};

/// Parameters of a filter or action in the given order, as their client wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    entries: Vec<(Box<str>, Encoded)>,
}

impl Parameters {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter; its name may begin with `@`.
    pub fn add(&mut self, name: &str, value: Encoded) {
        self.entries.push((name.into(), value));
    }

    /// Returns the parameters with their names as given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Encoded)> {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value of a parameter by its name without the `@`. The last one of a name counts.
    pub(crate) fn get(&self, name: &str) -> Option<&Encoded> {
        let matches = |given: &str| same_name(given.strip_prefix('@').unwrap_or(given), name);
        let (_, value) = self
            .entries
            .iter()
            .rev()
            .find(|(given, _)| matches(given))?;
        Some(value)
    }
}

/// Parses a whole filter.
pub(crate) fn condition(text: &str, parameters: &Parameters) -> Result<Condition, SyntaxError> {
    condition_in(Dialect::Sql, text, parameters)
}

/// Parses a whole JMS selector (JMS 2.0, 3.8.1): the same conditions, with the names and numbers of JMS, `BETWEEN`, and
/// properties as conditions.
pub(crate) fn selector(text: &str) -> Result<Condition, SyntaxError> {
    condition_in(Dialect::Selector, text, &Parameters::new())
}

fn condition_in(
    dialect: Dialect,
    text: &str,
    parameters: &Parameters,
) -> Result<Condition, SyntaxError> {
    parse(dialect, text, parameters, |parser| {
        let condition = parser.whole_condition()?;
        parser.expect_end("AND, OR or the end")?;
        Ok(condition)
    })
}

/// Parses a whole action. Semicolons are optional (service-bus-messaging-sql-rule-action).
pub(crate) fn statements(
    text: &str,
    parameters: &Parameters,
) -> Result<Vec<Statement>, SyntaxError> {
    parse(Dialect::Sql, text, parameters, |parser| {
        let mut statements = Vec::new();
        while statements.is_empty() || parser.peek() != &Token::End {
            if statements.len() == MAX_STATEMENTS {
                return parser.fail(Problem::TooManyStatements);
            }
            statements.push(parser.statement(statements.is_empty())?);
            parser.take_symbol(";");
        }
        Ok(statements)
    })
}

fn parse<T>(
    dialect: Dialect,
    text: &str,
    parameters: &Parameters,
    read: impl FnOnce(&mut Parser<'_>) -> Parsed<T>,
) -> Result<T, SyntaxError> {
    let error = |(offset, problem)| SyntaxError::new(text, offset, problem);
    let length = text.encode_utf16().count();
    if length > MAX_LENGTH {
        return Err(error((0, Problem::TooLong { length })));
    }
    let tokens = token::tokens(text, dialect).map_err(error)?;
    let mut parser = Parser {
        tokens,
        next: 0,
        depth: 0,
        parameters,
        dialect,
    };
    read(&mut parser).map_err(error)
}

/// A parsed value, or the offset and kind of an error.
type Parsed<T> = Result<T, (usize, Problem)>;

struct Parser<'s> {
    tokens: Vec<Spanned<'s>>,
    next: usize,
    depth: usize,
    parameters: &'s Parameters,
    dialect: Dialect,
}

/// The contents of a bracket.
enum Node {
    Condition(Condition),
    Expression(Expression),
}

impl<'s> Parser<'s> {
    fn statement(&mut self, first: bool) -> Parsed<Statement> {
        const SET: &str = "SET or REMOVE";
        const NEXT: &str = "';', SET, REMOVE, an operator or the end";
        let keyword = match self.peek() {
            Token::Name(name) => *name,
            _ => "",
        };
        let is_set = keyword.eq_ignore_ascii_case("SET");
        if !is_set && !keyword.eq_ignore_ascii_case("REMOVE") {
            let separated = first || matches!(self.tokens[self.next - 1].token, Token::Symbol(";"));
            return self.expected(if separated { SET } else { NEXT });
        }
        self.advance();
        let offset = self.offset();
        let property = self.property()?;
        let read_only = match &property {
            Property::System(system) => Some(system.name()).filter(|_| !system.is_writable()),
            Property::Jms(jms) => Some(jms.name()),
            Property::User(_) => None,
        };
        if let Some(name) = read_only {
            return Err((offset, Problem::ReadOnly(name)));
        }
        if !is_set {
            return Ok(Statement::Remove(property));
        }
        self.expect_symbol("=", "'=' and the new value")?;
        let value = self.expression()?;
        Ok(Statement::Set { property, value })
    }

    /// Parses a property, with or without scope.
    fn property(&mut self) -> Parsed<Property> {
        let offset = self.offset();
        let name = match self.peek() {
            Token::Name(name) => (*name).to_owned(),
            Token::Delimited(name) => {
                let property = Property::User(Name::new(name));
                self.advance();
                return Ok(property);
            }
            Token::Keyword(keyword) => {
                let found = format!(
                    "the reserved word {0}, which is written [{0}] as a name",
                    keyword.as_str()
                );
                return self.fail(Problem::Expected {
                    expected: "the name of a property",
                    found,
                });
            }
            _ => return self.expected("the name of a property"),
        };
        self.advance();
        if !self.take_symbol(".") {
            let of_jms = jms::property(&name).filter(|_| self.dialect == Dialect::Selector);
            return Ok(of_jms.unwrap_or_else(|| Property::User(Name::new(&name))));
        }
        if name.eq_ignore_ascii_case("user") {
            return self
                .scoped_name()
                .map(|(_, name)| Property::User(Name::new(&name)));
        }
        if !name.eq_ignore_ascii_case("sys") {
            return Err((offset, Problem::Scope(name)));
        }
        let (offset, name) = self.scoped_name()?;
        match SystemProperty::from_name(&name) {
            Some(property) => Ok(Property::System(property)),
            None if let Some(property) = JmsProperty::from_name(&name) => {
                Ok(Property::Jms(property))
            }
            None => Err((offset, unknown_system_property(&name))),
        }
    }

    /// Parses the name behind a scope; returns its offset too.
    fn scoped_name(&mut self) -> Parsed<(usize, String)> {
        let offset = self.offset();
        let name = match self.peek() {
            Token::Name(name) => (*name).to_owned(),
            Token::Delimited(name) => name.to_string(),
            _ => return self.expected("the name of a property behind its scope"),
        };
        self.advance();
        Ok((offset, name))
    }

    /// Parses one level of nesting.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return self.fail(Problem::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn peek(&self) -> &Token<'s> {
        &self.tokens[self.next].token
    }

    fn peek_second(&self) -> Option<&Token<'s>> {
        self.tokens.get(self.next + 1).map(|spanned| &spanned.token)
    }

    /// Returns the offset of the next token.
    fn offset(&self) -> usize {
        self.tokens[self.next].span.start
    }

    /// Skips a token, but not the end.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(next) if *next == symbol);
        if found {
            self.advance();
        }
        found
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.peek() == &Token::Keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    fn expect_symbol(&mut self, symbol: &str, expected: &'static str) -> Parsed<()> {
        if self.take_symbol(symbol) {
            Ok(())
        } else {
            self.expected(expected)
        }
    }

    fn expect_end(&mut self, expected: &'static str) -> Parsed<()> {
        match self.peek() {
            Token::End => Ok(()),
            _ => self.expected(expected),
        }
    }

    /// Fails at the next token, because another one was expected.
    fn expected<T>(&self, expected: &'static str) -> Parsed<T> {
        let mut found = self.peek().to_string();
        if found.len() > 64 {
            found = found.chars().take(60).chain("…".chars()).collect();
        }
        self.fail(Problem::Expected { expected, found })
    }

    fn fail<T>(&self, problem: Problem) -> Parsed<T> {
        Err((self.offset(), problem))
    }
}

fn unknown_system_property(name: &str) -> Problem {
    let hint = SystemProperty::similar_to(name).map_or(String::new(), |meant| {
        format!("; the language calls it sys.{}", meant.name())
    });
    Problem::SystemProperty {
        name: name.to_owned(),
        hint,
    }
}
