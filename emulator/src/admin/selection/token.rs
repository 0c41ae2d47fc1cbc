//! The words of a `$filter`.

use std::fmt;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Name(String),
    /// In quotes, of which two stand for one; `datetime` may stand before them.
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

/// Splits a filter into words; what is none is told.
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
