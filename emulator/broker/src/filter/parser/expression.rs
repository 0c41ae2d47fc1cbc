//! Parses expressions: from sums down to constants, properties and functions.

use super::super::ast::{Arithmetic, Expression, Sign};
use super::super::error::Problem;
use super::super::token::{Dialect, Keyword, Token};
use super::super::value::Value;
use super::{Node, Parsed, Parser};

const VALUE: &str = "a value: a constant, a property, a parameter, a function or '('";

impl Parser<'_> {
    /// Parses an expression where a condition is not allowed.
    pub(crate) fn expression(&mut self) -> Parsed<Expression> {
        let offset = self.offset();
        let node = self.sum()?;
        need_expression(node, offset)
    }

    /// Parses operands joined by arithmetic; returns a bracketed condition that stands alone as it is.
    pub(crate) fn sum(&mut self) -> Parsed<Node> {
        self.arithmetic(1)
    }

    /// Parses operators that bind at least as tightly as `power`: precedence climbing.
    fn arithmetic(&mut self, power: u8) -> Parsed<Node> {
        let offset = self.offset();
        let mut left = self.signed()?;
        while let Some(operator) = self
            .peek_arithmetic()
            .filter(|operator| operator.power() >= power)
        {
            let first = need_expression(left, offset)?;
            self.advance();
            let offset = self.offset();
            let node = self.arithmetic(operator.power() + 1)?;
            let right = need_expression(node, offset)?;
            left = Node::Expression(Expression::Arithmetic {
                operator,
                left: Box::new(first),
                right: Box::new(right),
            });
        }
        Ok(left)
    }

    fn peek_arithmetic(&self) -> Option<Arithmetic> {
        match self.peek() {
            Token::Symbol(symbol) => Arithmetic::from_symbol(symbol),
            _ => None,
        }
    }

    fn signed(&mut self) -> Parsed<Node> {
        let sign = if self.take_symbol("-") {
            Sign::Minus
        } else if self.take_symbol("+") {
            Sign::Plus
        } else {
            return self.operand();
        };
        // The sign belongs to the smallest number, which has no positive counterpart.
        if sign == Sign::Minus
            && let Some(constant) = self.number(true)?
        {
            return Ok(Node::Expression(constant));
        }
        let offset = self.offset();
        let node = self.nested(Self::signed)?;
        let operand = Box::new(need_expression(node, offset)?);
        Ok(Node::Expression(Expression::Sign { sign, operand }))
    }

    fn operand(&mut self) -> Parsed<Node> {
        if let Some(constant) = self.number(false)? {
            return Ok(Node::Expression(constant));
        }
        let expression = match self.peek() {
            Token::Symbol("(") => return self.nested(Self::bracket),
            Token::Text(text) => {
                Expression::Constant(Value::Text(text.clone().into_owned().into()))
            }
            Token::Keyword(Keyword::True) => Expression::Constant(Value::Bool(true)),
            Token::Keyword(Keyword::False) => Expression::Constant(Value::Bool(false)),
            Token::Keyword(Keyword::Null) => Expression::Constant(Value::Null),
            Token::Parameter(name) => {
                let Some(value) = self.parameters.get(name) else {
                    return self.fail(Problem::Parameter((*name).to_owned()));
                };
                Expression::Parameter {
                    name: (*name).into(),
                    value: value.value().into_owned(),
                }
            }
            Token::Name(name) if self.peek_second() == Some(&Token::Symbol("(")) => {
                let name = (*name).to_owned();
                return self.function(&name).map(Node::Expression);
            }
            Token::Name(_) | Token::Delimited(_) => {
                return self
                    .property()
                    .map(Expression::Property)
                    .map(Node::Expression);
            }
            _ => return self.expected(VALUE),
        };
        self.advance();
        Ok(Node::Expression(expression))
    }

    /// Parses brackets around a condition or an expression.
    fn bracket(&mut self) -> Parsed<Node> {
        self.advance();
        let node = self.alternatives()?;
        let expected = match &node {
            Node::Condition(_) => "AND, OR or ')'",
            Node::Expression(_) => "an operator or ')'",
        };
        self.expect_symbol(")", expected)?;
        Ok(node)
    }

    fn function(&mut self, name: &str) -> Parsed<Expression> {
        let is = |function: &str| name.eq_ignore_ascii_case(function);
        let (new_id, named) = (is("newid"), is("property") || is("p"));
        if !new_id && !named {
            return self.fail(Problem::Function(name.to_owned()));
        }
        self.advance();
        self.advance();
        if new_id {
            self.expect_symbol(")", "')': newid() takes no arguments")?;
            return Ok(Expression::NewId);
        }
        let offset = self.offset();
        let argument = self.nested(Self::expression)?;
        if let Some(constant) = argument.constant()
            && !matches!(constant, Value::Text(_))
        {
            let found = constant.kind();
            return Err((
                offset,
                Problem::NotText {
                    place: "as name of a property",
                    found,
                },
            ));
        }
        self.expect_symbol(")", "an operator or ')' behind the name of the property")?;
        Ok(Expression::Named(Box::new(argument)))
    }

    /// Parses a number if one is next.
    fn number(&mut self, negative: bool) -> Parsed<Option<Expression>> {
        let sign = if negative { "-" } else { "" };
        let too_large = |what, digits: &str| Problem::NumberTooLarge {
            what,
            found: sign.chars().chain(digits.chars().take(40)).collect(),
        };
        let value = match *self.peek() {
            Token::Integer(digits) => match whole(sign, digits, self.dialect) {
                Some(number) => Value::Signed(number),
                None => return self.fail(too_large("64 bits", digits)),
            },
            Token::Decimal(digits) => match format!("{sign}{digits}").parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Float(number),
                _ => return self.fail(too_large("a double", digits)),
            },
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(Expression::Constant(value)))
    }
}

/// Parses a whole number; in a selector in the bases of Java literals.
fn whole(sign: &str, digits: &str, dialect: Dialect) -> Option<i64> {
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', _, ..] if dialect == Dialect::Selector => (&digits[1..], 8),
        _ => (digits, 10),
    };
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok()
}

fn need_expression(node: Node, offset: usize) -> Parsed<Expression> {
    match node {
        Node::Expression(expression) => Ok(expression),
        Node::Condition(_) => {
            let found = "a condition, which has no value".to_owned();
            let expected = "an expression";
            Err((offset, Problem::Expected { expected, found }))
        }
    }
}
