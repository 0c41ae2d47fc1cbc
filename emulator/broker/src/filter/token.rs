//! Splits a text into tokens.
//!
//! winnow scans the tokens; an error names the first character that begins no token.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use winnow::ascii::digit1;
use winnow::combinator::{alt, delimited, not, opt, preceded, repeat};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location};
use winnow::token::{any, one_of, take_till, take_while};

use super::error::Problem;

type Input<'s> = LocatingSlice<&'s str>;

/// A token with its position in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spanned<'s> {
    pub(crate) token: Token<'s>,
    pub(crate) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'s> {
    /// A regular identifier that is not a keyword.
    Name(&'s str),
    /// A name in brackets or double quotes.
    Delimited(Cow<'s, str>),
    Keyword(Keyword),
    /// Digits.
    Integer(&'s str),
    /// Digits with a point or an exponent.
    Decimal(&'s str),
    Text(Cow<'s, str>),
    /// `@name`, without the sign.
    Parameter(&'s str),
    Symbol(&'static str),
    End,
}

/// The reserved words. `SET`, `REMOVE`, `sys`, `user` and the functions are recognized by their position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    And,
    Or,
    Not,
    Is,
    Null,
    In,
    Like,
    Escape,
    Exists,
    True,
    False,
}

/// Longest first: `<=` is not `<` and `=`.
const SYMBOLS: [&str; 17] = [
    "<>", "!=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", ".", ";",
];

impl Keyword {
    const ALL: [Self; 11] = [
        Self::And,
        Self::Or,
        Self::Not,
        Self::Is,
        Self::Null,
        Self::In,
        Self::Like,
        Self::Escape,
        Self::Exists,
        Self::True,
        Self::False,
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|keyword| keyword.as_str().eq_ignore_ascii_case(name))
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
            Self::Not => "NOT",
            Self::Is => "IS",
            Self::Null => "NULL",
            Self::In => "IN",
            Self::Like => "LIKE",
            Self::Escape => "ESCAPE",
            Self::Exists => "EXISTS",
            Self::True => "TRUE",
            Self::False => "FALSE",
        }
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(formatter, "'{name}'"),
            Self::Delimited(name) => write!(formatter, "the name [{}]", name.replace(']', "]]")),
            Self::Keyword(keyword) => formatter.write_str(keyword.as_str()),
            Self::Integer(digits) | Self::Decimal(digits) => write!(formatter, "{digits}"),
            Self::Text(text) => write!(formatter, "the string '{}'", text.replace('\'', "''")),
            Self::Parameter(name) => write!(formatter, "@{name}"),
            Self::Symbol(symbol) => write!(formatter, "'{symbol}'"),
            Self::End => formatter.write_str("the end"),
        }
    }
}

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// That of the service.
    Sql,
    /// JMS selectors, with the names and numbers of Java.
    Selector,
}

/// Returns all tokens of a text, the last one [`Token::End`]; an error has the offset and its kind.
pub(crate) fn tokens(text: &str, dialect: Dialect) -> Result<Vec<Spanned<'_>>, (usize, Problem)> {
    let mut input = LocatingSlice::new(text);
    let mut tokens = Vec::new();
    loop {
        // Infallible, since white space is optional.
        let _: winnow::Result<&str> = take_while(0.., char::is_whitespace).parse_next(&mut input);
        let start = input.current_token_start();
        if input.is_empty() {
            tokens.push(Spanned {
                token: Token::End,
                span: start..start,
            });
            return Ok(tokens);
        }
        let rest = *input;
        let java = java_token(rest).filter(|_| dialect == Dialect::Selector);
        let next = match java {
            Some((token, length)) => {
                input.next_slice(length);
                Ok(token)
            }
            None => token(&mut input),
        };
        match next {
            Ok(Token::Delimited(name)) if name.is_empty() => {
                return Err((start, Problem::EmptyName));
            }
            Ok(token) => {
                let span = start..input.current_token_start();
                tokens.push(Spanned { token, span });
            }
            Err(_) => return Err((start, problem(rest))),
        }
    }
}

/// Returns whether a text is a regular identifier: a letter, then letters, digits and underscores.
pub(crate) fn is_regular(text: &str) -> bool {
    name.parse(LocatingSlice::new(text)).is_ok()
}

fn token<'s>(input: &mut Input<'s>) -> winnow::Result<Token<'s>> {
    alt((
        name.map(|name| Keyword::from_name(name).map_or(Token::Name(name), Token::Keyword)),
        number,
        doubled('\'', '\'').map(Token::Text),
        doubled('[', ']').map(Token::Delimited),
        doubled('"', '"').map(Token::Delimited),
        preceded('@', name).map(Token::Parameter),
        symbol,
    ))
    .parse_next(input)
}

/// Scans a Java name or number at the beginning of a text; returns it with its length in bytes. Numbers come without the
/// suffix of their type.
fn java_token(rest: &str) -> Option<(Token<'_>, usize)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let first = rest.chars().next()?;
    if !first.is_ascii_digit() && is_part(first) {
        let name = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        // Only the service reserves this word; JMS reserves others (JMS 2.0, 3.8.1.1).
        let keyword = Keyword::from_name(name).filter(|keyword| *keyword != Keyword::Exists);
        let token = keyword.map_or(Token::Name(name), Token::Keyword);
        return Some((token, name.len()));
    }
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let ends = |at: usize| !rest[at..].starts_with(|c: char| is_part(c) || c == '.');
    let suffixed = |at: usize, letters: [char; 4]| match rest[at..].starts_with(letters) {
        true => at + 1,
        false => at,
    };
    if rest.starts_with("0x") || rest.starts_with("0X") {
        let end = rest[2..].find(|c: char| !c.is_ascii_hexdigit());
        let end = end.map_or(rest.len(), |end| end + 2);
        let whole = suffixed(end, ['l', 'L', 'l', 'L']);
        return (end > 2 && ends(whole)).then_some((Token::Integer(&rest[..end]), whole));
    }
    let whole_part = digits(rest);
    let mut end = whole_part;
    let mut is_whole = true;
    if rest[end..].starts_with('.') {
        is_whole = false;
        end += 1 + digits(&rest[end + 1..]);
    }
    if whole_part == 0 && end < 2 {
        return None;
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[end + 1 + sign..]);
        is_whole &= exponent == 0;
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let long = suffixed(end, ['l', 'L', 'l', 'L']);
    if is_whole && (long > end || ends(end)) {
        return ends(long).then_some((Token::Integer(&rest[..end]), long));
    }
    let after = suffixed(end, ['f', 'F', 'd', 'D']);
    ends(after).then_some((Token::Decimal(&rest[..end]), after))
}

/// Scans a name of letters and digits as in `System.Char`: by their Unicode category.
fn name<'s>(input: &mut Input<'s>) -> winnow::Result<&'s str> {
    (
        one_of(char::is_alphabetic),
        take_while(0.., |c: char| {
            c.is_alphabetic() || c.is_numeric() || c == '_'
        }),
    )
        .take()
        .parse_next(input)
}

fn number<'s>(input: &mut Input<'s>) -> winnow::Result<Token<'s>> {
    let fraction = opt(('.', digit1));
    let exponent = opt((one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1));
    let tail = not(one_of(|c: char| {
        c.is_alphanumeric() || c == '_' || c == '.'
    }));
    let mut whole = (digit1, fraction, exponent, tail).with_taken();
    let ((_, fraction, exponent, ()), digits) = whole.parse_next(input)?;
    Ok(match (fraction, exponent) {
        (None, None) => Token::Integer(digits),
        _ => Token::Decimal(digits),
    })
}

/// Scans a text between delimiters, in which a doubled closing delimiter stands for itself.
fn doubled<'s>(
    open: char,
    close: char,
) -> impl Parser<Input<'s>, Cow<'s, str>, winnow::error::ContextError> {
    let piece = alt((take_till(1.., close), (close, close).take()));
    delimited(open, repeat::<_, _, (), _, _>(0.., piece).take(), close).map(move |raw: &str| {
        if raw.contains(close) {
            raw.replace(&format!("{close}{close}"), &close.to_string())
                .into()
        } else {
            raw.into()
        }
    })
}

fn symbol<'s>(input: &mut Input<'s>) -> winnow::Result<Token<'s>> {
    let found = SYMBOLS.into_iter().find(|symbol| input.starts_with(symbol));
    let symbol = found.ok_or_else(winnow::error::ContextError::new)?;
    repeat::<_, _, (), _, _>(symbol.len(), any).parse_next(input)?;
    Ok(Token::Symbol(symbol))
}

/// Returns why no token begins here.
fn problem(rest: &str) -> Problem {
    let first = rest.chars().next().unwrap_or_default();
    match first {
        '\'' | '"' => Problem::Unterminated(first),
        '[' => Problem::Unterminated(']'),
        '@' => Problem::Unexpected {
            found: first,
            hint: ", expected a letter behind it: a parameter is written @name",
        },
        _ if first.is_numeric() => {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_'));
            let found = &rest[..end.unwrap_or(rest.len())];
            Problem::Number(found.chars().take(32).collect())
        }
        '_' => Problem::Unexpected {
            found: first,
            hint: ", expected a letter: other names are written [in brackets]",
        },
        '$' | '#' | '{' | '`' | '\\' | ':' | '?' => Problem::Unexpected {
            found: first,
            hint: ": names with other characters than letters, digits and _ are written [in brackets]",
        },
        '&' => Problem::Unexpected {
            found: first,
            hint: ", expected AND",
        },
        '|' => Problem::Unexpected {
            found: first,
            hint: ", expected OR",
        },
        '!' => Problem::Unexpected {
            found: first,
            hint: ", expected != or NOT",
        },
        _ => Problem::Unexpected {
            found: first,
            hint: "",
        },
    }
}
