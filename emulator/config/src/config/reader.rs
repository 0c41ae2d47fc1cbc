//! Typed access to the tree of a configuration that remembers paths and collects problems.
//!
//! An [`Object`] knows the keys it was asked for, so unknown keys need no list of their own: what was not
//! asked for is unknown, and the nearest key that was asked for is what was probably meant.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;

use jsonc_parser::ast::Value;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
pub(crate) use object::{Object, json, wrong_type};
use servicebus_broker::Problem;

use super::problem::{ConfigError, ConfigProblem, Position};

mod object;

/// Most problems that are reported of a text.
const MAX_PROBLEMS: usize = 100;
/// Longest excerpt of a value in a problem, in characters.
const MAX_EXCERPT: usize = 60;

/// The text being read and what was found wrong with it so far.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    problems: RefCell<Problems>,
}

/// The first problems in the order of the text, by where they begin and when they were found; and how many more there
/// are.
#[derive(Debug, Default)]
struct Problems {
    first: BTreeMap<(usize, usize), ConfigProblem>,
    more: usize,
}

/// Where a value stands: its JSON path and its range in the text.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: String,
    range: Range,
    /// Whether what stands there is no part of a problem: a key may be.
    is_secret: bool,
}

/// Where the values of one object stand, by their keys.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    object: Place,
    members: BTreeMap<String, Place>,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) place: Place,
    pub(crate) value: T,
}

impl<'a> Report<'a> {
    /// A report without problems; a byte-order mark is no part of the text.
    pub(crate) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let breaks = text.match_indices('\n').map(|(offset, _)| offset + 1);
        Self {
            text,
            line_starts: std::iter::once(0).chain(breaks).collect(),
            problems: RefCell::default(),
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Notes that what stands at `place` is wrong.
    pub(crate) fn problem(
        &self,
        place: &Place,
        message: impl Into<String>,
        allowed: Option<String>,
    ) {
        self.add(place.range.start, || ConfigProblem {
            path: place.path.clone(),
            position: None,
            value: self.value(place),
            message: message.into(),
            allowed,
        });
    }

    /// Notes that the value at `place` is wrong; `what` follows the excerpt of the value.
    pub(crate) fn wrong_value(&self, place: &Place, what: impl Display, allowed: Option<String>) {
        self.problem(place, format!("{} {what}", self.excerpt(place)), allowed);
    }

    /// Whether as many problems were found as are reported.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.borrow().first.len() >= MAX_PROBLEMS
    }

    /// Whether a problem that begins at `start` would be among those that are reported, as far as is known.
    fn reports(&self, start: usize) -> bool {
        let first = &self.problems.borrow().first;
        let last = first.last_key_value().map(|((last, _), _)| *last);
        first.len() < MAX_PROBLEMS || last.is_some_and(|last| start < last)
    }

    /// Counts a problem that is not reported.
    fn count(&self) {
        self.problems.borrow_mut().more += 1;
    }

    /// Keeps a problem that begins at `start`, if it is among the first; its position is found in the end.
    fn add(&self, start: usize, problem: impl FnOnce() -> ConfigProblem) {
        let Problems { first, more } = &mut *self.problems.borrow_mut();
        let found = first.len() + *more;
        if first.len() >= MAX_PROBLEMS {
            *more += 1;
            if first
                .last_key_value()
                .is_some_and(|(last, _)| *last < (start, found))
            {
                return;
            }
            first.pop_last();
        }
        first.insert((start, found), problem());
    }

    /// Notes that something within the string at `place` is wrong, `offset` bytes into its value. The position is
    /// the beginning of the string when escapes stand before.
    pub(crate) fn problem_within(
        &self,
        place: &Place,
        value: &str,
        offset: usize,
        message: String,
    ) {
        let quote = place.range.start;
        let before = value.get(..offset).unwrap_or_default();
        let written = self.text.get(quote + 1..quote + 1 + before.len());
        let start = if written == Some(before) {
            quote + 1 + before.len()
        } else {
            quote
        };
        self.add(start, || ConfigProblem {
            path: place.path.clone(),
            position: None,
            value: self.value(place),
            message,
            allowed: None,
        });
    }

    /// Notes that a setting of an object is wrong, be it written there or not.
    pub(crate) fn setting(&self, places: &Places, problem: Problem) {
        if let Some(place) = places.members.get(problem.property) {
            self.wrong_value(place, "is not allowed", Some(problem.allowed));
            return;
        }
        let start = places.object.range.start;
        self.add(start, || ConfigProblem {
            path: places.object.key(problem.property),
            ..ConfigProblem::from(problem)
        });
    }

    /// What stands at `place`, shortened to one readable piece; "the value" where that is a secret.
    pub(crate) fn excerpt(&self, place: &Place) -> String {
        self.value(place).unwrap_or_else(|| "the value".to_owned())
    }

    fn value(&self, place: &Place) -> Option<String> {
        if place.is_secret {
            return None;
        }
        let written = self.text.get(place.range.start..place.range.end);
        Some(shorten(written.unwrap_or_default()))
    }

    /// Nothing, or the first problems in the order of the text, and how many more there are.
    pub(crate) fn finish(self) -> Result<(), ConfigError> {
        let Problems { first, more } = self.problems.take();
        if first.is_empty() {
            return Ok(());
        }
        let located = first
            .into_iter()
            .map(|((start, _), problem)| ConfigProblem {
                position: Some(self.position(start)),
                ..problem
            });
        Err(ConfigError {
            file: None,
            problems: located.collect(),
            more,
        })
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        Position {
            line,
            column: before.chars().count() + 1,
        }
    }
}

impl Place {
    /// A range of the text that is no value.
    pub(crate) fn at(start: usize, end: usize) -> Self {
        Self {
            path: String::new(),
            range: Range { start, end },
            is_secret: false,
        }
    }

    pub(crate) fn of(value: &Value<'_>, path: String) -> Self {
        Self {
            path,
            range: value.range(),
            is_secret: false,
        }
    }

    /// The same place, of which no problem repeats what stands there.
    pub(crate) fn secret(self) -> Self {
        Self {
            is_secret: true,
            ..self
        }
    }

    fn key(&self, key: &str) -> String {
        match (is_plain(key), self.path.is_empty()) {
            (true, true) => key.to_owned(),
            (true, false) => format!("{}.{key}", self.path),
            (false, _) => format!("{}[{:?}]", self.path, shorten(key)),
        }
    }

    fn index(&self, index: usize) -> String {
        format!("{}[{index}]", self.path)
    }
}

impl Default for Places {
    /// Those of an object that was not written.
    fn default() -> Self {
        Self {
            object: Place::at(0, 0),
            members: BTreeMap::new(),
        }
    }
}

/// Whether a key can stand in a path without quotes.
fn is_plain(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    !key.is_empty() && key.len() <= MAX_EXCERPT && key.chars().all(plain)
}

fn shorten(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters
        .by_ref()
        .take(MAX_EXCERPT)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The tree of the report's text; none, and a problem reported, when the text is not JSON.
pub(crate) fn parse<'a>(report: &Report<'a>) -> Option<Value<'a>> {
    let text = report.text();
    match parse_to_ast(text, &CollectOptions::default(), &OPTIONS) {
        Ok(result) if result.value.is_some() => result.value,
        Ok(_) => {
            report.problem(
                &Place::at(text.len(), text.len()),
                "the text is empty",
                None,
            );
            None
        }
        Err(error) => {
            let range = error.range();
            // What is no JSON may be half a key.
            let place = Place::at(range.start, range.end).secret();
            report.problem(&place, sentence(error.kind()), None);
            None
        }
    }
}

/// The parser's words, as a fragment like all other problems.
fn sentence(kind: &ParseErrorKind) -> String {
    let text = kind.to_string();
    let mut recorded_messages = text.chars();
    let first = recorded_messages
        .next()
        .map(|message| message.to_ascii_lowercase());
    let fragment: String = first.into_iter().chain(recorded_messages).collect();
    format!("not JSON: {fragment}")
}
