//! Parses template expressions such as `[concat(parameters('a'), '/b')]`.

/// The maximum nesting depth of calls, brackets and members.
const MAX_DEPTH: usize = 64;

/// A node of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    Text(String),
    Number(i64),
    Call(String, Vec<Self>),
    /// A member of an object.
    Member(Box<Self>, String),
    /// An element of an array, or a member of an object with a computed name.
    Index(Box<Self>, Box<Self>),
}

impl Expression {
    /// Returns the names of a lambda's variables, and its body.
    pub(crate) fn lambda(&self) -> Option<&[Self]> {
        let Self::Call(name, parts) = self else {
            return None;
        };
        let is_lambda = name.eq_ignore_ascii_case("lambda");
        is_lambda.then_some(parts)
    }
}

/// Returns the expression in a text; else, as `Err`, the text, in which a doubled bracket at the start becomes one.
pub(crate) fn body(text: &str) -> Result<&str, &str> {
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) if !inner.starts_with('[') => Ok(inner),
        Some(_) => Err(&text[1..]),
        None => Err(text),
    }
}

/// Parses an expression without its outer brackets, or describes the error.
pub(crate) fn parse(body: &str) -> Result<Expression, String> {
    let mut parser = Parser { body, at: 0 };
    let expression = parser.expression(0)?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(parser.unexpected("the end")),
    }
}

struct Parser<'a> {
    body: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn expression(&mut self, depth: usize) -> Result<Expression, String> {
        check_depth(depth)?;
        let mut expression = match self.peek() {
            Some('\'') => self.text()?,
            Some(c) if c.is_ascii_digit() || c == '-' => self.number()?,
            Some(c) if is_name(c) => {
                let name = self.word();
                if self.takes('.') {
                    return Err("a user-defined function is not supported here".to_owned());
                }
                if !self.takes('(') {
                    return Err(self.unexpected("("));
                }
                Expression::Call(name, self.arguments(depth)?)
            }
            _ => return Err(self.unexpected("a function, a text or a number")),
        };
        let mut links = depth;
        loop {
            if self.takes('.') {
                self.peek();
                expression = Expression::Member(Box::new(expression), self.word());
            } else if self.takes('[') {
                let index = self.expression(depth + 1)?;
                if !self.takes(']') {
                    return Err(self.unexpected("]"));
                }
                expression = Expression::Index(Box::new(expression), Box::new(index));
            } else {
                return Ok(expression);
            }
            // To drop a long chain would take too much of the stack.
            links += 1;
            check_depth(links)?;
        }
    }

    fn arguments(&mut self, depth: usize) -> Result<Vec<Expression>, String> {
        let mut arguments = Vec::new();
        if self.takes(')') {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(depth + 1)?);
            if self.takes(')') {
                return Ok(arguments);
            }
            if !self.takes(',') {
                return Err(self.unexpected(", or )"));
            }
        }
    }

    /// A quote within a text is doubled.
    fn text(&mut self) -> Result<Expression, String> {
        let mut text = String::new();
        let mut rest = self.body[self.at + 1..].char_indices().peekable();
        while let Some((offset, c)) = rest.next() {
            if c != '\'' {
                text.push(c);
            } else if rest.next_if(|(_, next)| *next == '\'').is_some() {
                text.push('\'');
            } else {
                self.at += 1 + offset + 1;
                return Ok(Expression::Text(text));
            }
        }
        Err("a text has no end".to_owned())
    }

    fn number(&mut self) -> Result<Expression, String> {
        let rest = &self.body[self.at..];
        let end = rest[1..].find(|c: char| !c.is_ascii_digit());
        let digits = &rest[..end.map_or(rest.len(), |end| end + 1)];
        self.at += digits.len();
        let number = digits.parse().map(Expression::Number);
        number.map_err(|_| format!("{digits} is not a number of 64 bits"))
    }

    fn word(&mut self) -> String {
        let rest = &self.body[self.at..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    /// Returns the next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.body[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self, wanted: &str) -> String {
        let rest: String = self.body[self.at..].chars().take(20).collect();
        match rest.is_empty() {
            true => format!("it ends where {wanted} should be"),
            false => format!("{rest:?} stands where {wanted} should be"),
        }
    }
}

fn check_depth(depth: usize) -> Result<(), String> {
    match depth > MAX_DEPTH {
        true => Err(format!("it nests deeper than {MAX_DEPTH}")),
        false => Ok(()),
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '$'
}
