//! Parses conditions: from `OR` down to comparisons.

use super::super::ast::{Comparison, Condition, Expression, Like};
use super::super::error::Problem;
use super::super::like::{self, PatternError};
use super::super::token::{Dialect, Keyword, Token};
use super::super::value::Value;
use super::{Node, Parsed, Parser};

/// What can follow an expression that has no operator yet.
const COMPARISON: &str = "a comparison (=, <>, <, <=, >, >=, IS, IN or LIKE)";

impl Parser<'_> {
    pub(crate) fn whole_condition(&mut self) -> Parsed<Condition> {
        let node = self.alternatives()?;
        self.need_condition(node)
    }

    /// Parses operands joined by `OR`.
    pub(crate) fn alternatives(&mut self) -> Parsed<Node> {
        self.joined(Keyword::Or, Self::conjunction, Condition::Or)
    }

    /// Parses operands joined by `AND`.
    fn conjunction(&mut self) -> Parsed<Node> {
        self.joined(Keyword::And, Self::negation, Condition::And)
    }

    fn joined(
        &mut self,
        keyword: Keyword,
        operand: fn(&mut Self) -> Parsed<Node>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Parsed<Node> {
        let first = operand(self)?;
        if self.peek() != &Token::Keyword(keyword) {
            return Ok(first);
        }
        let mut operands = vec![self.need_condition(first)?];
        while self.take_keyword(keyword) {
            let next = operand(self)?;
            operands.push(self.need_condition(next)?);
        }
        Ok(Node::Condition(join(operands)))
    }

    fn negation(&mut self) -> Parsed<Node> {
        if !self.take_keyword(Keyword::Not) {
            return self.comparison();
        }
        let node = self.nested(Self::negation)?;
        let operand = self.need_condition(node)?;
        Ok(Node::Condition(Condition::Not(Box::new(operand))))
    }

    /// Parses one comparison, or the contents of a bracket.
    fn comparison(&mut self) -> Parsed<Node> {
        if self.take_keyword(Keyword::Exists) {
            self.expect_symbol("(", "'(' behind EXISTS")?;
            let property = self.property()?;
            self.expect_symbol(")", "')' behind the property")?;
            return Ok(Node::Condition(Condition::Exists(property)));
        }
        let left = match self.sum()? {
            Node::Expression(left) => left,
            condition @ Node::Condition(_) => return Ok(condition),
        };
        if let Token::Symbol(symbol) = *self.peek()
            && let Some(operator) = Comparison::from_symbol(symbol)
        {
            self.advance();
            let right = self.expression()?;
            return Ok(Node::Condition(Condition::Compare {
                operator,
                left,
                right,
            }));
        }
        if let Some(negated) = self.take_between() {
            let condition = self.between(left)?;
            return Ok(Node::Condition(match negated {
                true => Condition::Not(Box::new(condition)),
                false => condition,
            }));
        }
        let condition = match self.peek() {
            Token::Keyword(Keyword::Is) => self.null_test(left)?,
            Token::Keyword(Keyword::In) => self.list(left, false)?,
            Token::Keyword(Keyword::Like) => self.like(left, false)?,
            Token::Keyword(Keyword::Not) => match self.peek_second() {
                Some(Token::Keyword(Keyword::In)) => {
                    self.advance();
                    self.list(left, true)?
                }
                Some(Token::Keyword(Keyword::Like)) => {
                    self.advance();
                    self.like(left, true)?
                }
                _ => {
                    self.advance();
                    return self.expected("IN or LIKE behind NOT");
                }
            },
            _ => return Ok(Node::Expression(left)),
        };
        Ok(Node::Condition(condition))
    }

    /// Skips `BETWEEN` or `NOT BETWEEN` in a selector; returns whether it is negated.
    fn take_between(&mut self) -> Option<bool> {
        let is_between = |token: Option<&Token<'_>>| matches!(token, Some(Token::Name(name)) if name.eq_ignore_ascii_case("BETWEEN"));
        if self.dialect != Dialect::Selector {
            return None;
        }
        if is_between(Some(self.peek())) {
            self.advance();
            return Some(false);
        }
        let is_negated = self.peek() == &Token::Keyword(Keyword::Not);
        if !is_negated || !is_between(self.peek_second()) {
            return None;
        }
        self.advance();
        self.advance();
        Some(true)
    }

    /// Parses `low AND high` into two comparisons of the service's language.
    fn between(&mut self, left: Expression) -> Parsed<Condition> {
        let low = self.expression()?;
        if !self.take_keyword(Keyword::And) {
            return self.expected("AND and the upper bound of BETWEEN");
        }
        let high = self.expression()?;
        let compare = |operator, right| Condition::Compare {
            operator,
            left: left.clone(),
            right,
        };
        Ok(Condition::And(vec![
            compare(Comparison::GreaterOrEqual, low),
            compare(Comparison::LessOrEqual, high),
        ]))
    }

    fn null_test(&mut self, left: Expression) -> Parsed<Condition> {
        let Expression::Property(property) = left else {
            return self.expected("an operator other than IS, which is for properties only");
        };
        self.advance();
        let negated = self.take_keyword(Keyword::Not);
        if !self.take_keyword(Keyword::Null) {
            return self.expected(if negated {
                "NULL behind IS NOT"
            } else {
                "NULL or NOT NULL behind IS"
            });
        }
        Ok(Condition::IsNull { property, negated })
    }

    fn list(&mut self, left: Expression, negated: bool) -> Parsed<Condition> {
        self.advance();
        self.expect_symbol("(", "'(' behind IN")?;
        let mut items = vec![self.expression()?];
        while self.take_symbol(",") {
            items.push(self.expression()?);
        }
        self.expect_symbol(")", "',' or ')'")?;
        Ok(Condition::In {
            left,
            items,
            negated,
        })
    }

    fn like(&mut self, left: Expression, negated: bool) -> Parsed<Condition> {
        self.advance();
        let place = self.offset();
        let pattern = self.expression()?;
        check_text(&pattern, place, "as pattern of LIKE")?;
        let escape_place = self.offset();
        let escape = match self.take_keyword(Keyword::Escape) {
            true => {
                let place = self.offset();
                let escape = self.expression()?;
                check_text(&escape, place, "behind ESCAPE")?;
                Some(escape)
            }
            false => None,
        };
        let compiled = compile(&pattern, escape.as_ref()).map_err(|problem| match problem {
            Problem::EscapeAtEnd => (place, problem),
            _ => (escape_place, problem),
        })?;
        Ok(Condition::Like(Box::new(Like {
            left,
            pattern,
            escape,
            negated,
            compiled,
        })))
    }

    fn need_condition(&self, node: Node) -> Parsed<Condition> {
        match node {
            Node::Condition(condition) => Ok(condition),
            // In a selector a property is a condition that holds if the property is true.
            Node::Expression(
                left @ (Expression::Property(_) | Expression::Constant(Value::Bool(_))),
            ) if self.dialect == Dialect::Selector => Ok(Condition::Compare {
                operator: Comparison::Equal,
                left,
                right: Expression::Constant(Value::Bool(true)),
            }),
            Node::Expression(_) => self.expected(COMPARISON),
        }
    }
}

/// Checks the type of a constant.
fn check_text(expression: &Expression, offset: usize, place: &'static str) -> Parsed<()> {
    match expression.constant() {
        None | Some(Value::Text(_) | Value::Null) => Ok(()),
        Some(other) => {
            let found = other.kind();
            Err((offset, Problem::NotText { place, found }))
        }
    }
}

/// Compiles the pattern if it is constant.
fn compile(
    pattern: &Expression,
    escape: Option<&Expression>,
) -> Result<Option<like::Pattern>, Problem> {
    let escape = match escape.map(Expression::constant) {
        None => None,
        Some(Some(Value::Text(text))) => {
            Some(like::escape_character(text).map_err(Problem::EscapeLength)?)
        }
        Some(_) => return Ok(None),
    };
    let Some(Value::Text(text)) = pattern.constant() else {
        return Ok(None);
    };
    match like::Pattern::new(text, escape) {
        Ok(pattern) => Ok(Some(pattern)),
        Err(PatternError::EscapeAtEnd) => Err(Problem::EscapeAtEnd),
        Err(PatternError::TooLong(length)) => Err(Problem::PatternLength(length)),
    }
}
