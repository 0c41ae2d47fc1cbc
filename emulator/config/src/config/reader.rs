//! Typed access to the tree of a configuration, which records paths and collects problems.
//!
//! An [`Object`] records the keys that were read, so unknown keys need no list: a key that was not read is unknown, and the
//! most similar key that was read is the suggestion.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use jsonc_parser::ast::Value;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
pub(crate) use object::{Object, json, wrong_type};
use servicebus_broker::Problem;

use super::problem::{ConfigError, ConfigProblem, Position};

mod object;

/// The maximum number of reported problems of a text.
const MAX_PROBLEMS: usize = 100;
/// The maximum length of a value's excerpt in a problem, in characters.
const MAX_EXCERPT: usize = 60;

/// The text, with the problems so far.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    problems: RefCell<Problems>,
}

/// The first problems in the order of the text, by their start and order of detection, and the number of further ones.
#[derive(Debug, Default)]
struct Problems {
    first: BTreeMap<(usize, usize), ConfigProblem>,
    more: usize,
}

/// The position of a value: its JSON path and its range in the text.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) path: String,
    range: Range,
    /// Whether problems must not quote the value, which may be a key.
    is_secret: bool,
}

/// The positions of an object's values, by key.
#[derive(Debug, Clone)]
pub(crate) struct Locations {
    object: Location,
    members: BTreeMap<String, Location>,
}

/// A value with its position.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) location: Location,
    pub(crate) value: T,
}

impl<'a> Report<'a> {
    /// Creates a report without problems; ignores a byte-order mark.
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

    /// Reports a problem at `location`.
    pub(crate) fn problem(
        &self,
        location: &Location,
        message: impl Into<String>,
        allowed: Option<String>,
    ) {
        self.add(location.range.start, || ConfigProblem {
            path: location.path.clone(),
            position: None,
            value: self.value(location),
            message: message.into(),
            allowed,
        });
    }

    /// Reports the value at `location`; `what` follows the excerpt of the value.
    pub(crate) fn wrong_value(
        &self,
        location: &Location,
        what: impl Display,
        allowed: Option<String>,
    ) {
        self.problem(
            location,
            format!("{} {what}", self.excerpt(location)),
            allowed,
        );
    }

    /// Returns whether the maximum number of problems was found.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.borrow().first.len() >= MAX_PROBLEMS
    }

    /// Returns whether a problem that starts at `start` would be reported, as far as is known.
    fn reports(&self, start: usize) -> bool {
        let first = &self.problems.borrow().first;
        let last = first.last_key_value().map(|((last, _), _)| *last);
        first.len() < MAX_PROBLEMS || last.is_some_and(|last| start < last)
    }

    /// Counts a problem without reporting it.
    fn count(&self) {
        self.problems.borrow_mut().more += 1;
    }

    /// Adds a problem that starts at `start`, if it is among the first; `finish` computes its position.
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

    /// Reports a problem within the string at `location`, `offset` bytes into its value. The position is the start of the
    /// string if escapes precede it.
    pub(crate) fn problem_within(
        &self,
        location: &Location,
        value: &str,
        offset: usize,
        message: String,
    ) {
        let quote = location.range.start;
        let before = value.get(..offset).unwrap_or_default();
        let written = self.text.get(quote + 1..quote + 1 + before.len());
        let start = if written == Some(before) {
            quote + 1 + before.len()
        } else {
            quote
        };
        self.add(start, || ConfigProblem {
            path: location.path.clone(),
            position: None,
            value: self.value(location),
            message,
            allowed: None,
        });
    }

    /// Reports a setting of an object, which may be missing in the text.
    pub(crate) fn setting(&self, locations: &Locations, problem: Problem) {
        if let Some(location) = locations.members.get(problem.property) {
            self.wrong_value(location, "is not allowed", Some(problem.allowed));
            return;
        }
        let start = locations.object.range.start;
        self.add(start, || ConfigProblem {
            path: locations.object.key(problem.property),
            ..ConfigProblem::from(problem)
        });
    }

    /// Returns a one-line excerpt of the value at `location`; "the value" for a secret.
    pub(crate) fn excerpt(&self, location: &Location) -> String {
        self.value(location)
            .unwrap_or_else(|| "the value".to_owned())
    }

    fn value(&self, location: &Location) -> Option<String> {
        if location.is_secret {
            return None;
        }
        let written = self.text.get(location.range.start..location.range.end);
        Some(shorten(written.unwrap_or_default()))
    }

    /// Returns the first problems in the order of the text, and the number of further ones.
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

impl Location {
    /// Returns a range of the text that is not a value.
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

    /// Marks the value as a secret, which no problem quotes.
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

impl Default for Locations {
    /// The positions of an object that is missing.
    fn default() -> Self {
        Self {
            object: Location::at(0, 0),
            members: BTreeMap::new(),
        }
    }
}

/// Returns whether a key needs no quotes in a path.
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

/// Returns a key that an object in a JSON text has twice.
pub fn repeated_key(text: &str) -> Option<String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).ok()?;
    repeated(&parsed.value?)
}

fn repeated(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Array(array) => array.elements.iter().find_map(repeated),
        Value::Object(object) => {
            let mut keys = BTreeSet::new();
            object.properties.iter().find_map(|member| {
                let key = member.name.as_str();
                match keys.insert(key) {
                    true => repeated(&member.value),
                    false => Some(key.to_owned()),
                }
            })
        }
        Value::StringLit(_)
        | Value::NumberLit(_)
        | Value::BooleanLit(_)
        | Value::NullKeyword(_) => None,
    }
}

/// Parses the text; `None`, with a reported problem, if it is not JSON.
pub(crate) fn parse<'a>(report: &Report<'a>) -> Option<Value<'a>> {
    let text = report.text();
    match parse_to_ast(text, &CollectOptions::default(), &OPTIONS) {
        Ok(result) if result.value.is_some() => result.value,
        Ok(_) => {
            report.problem(
                &Location::at(text.len(), text.len()),
                "the text is empty",
                None,
            );
            None
        }
        Err(error) => {
            let range = error.range();
            // Invalid JSON may be part of a key.
            let location = Location::at(range.start, range.end).secret();
            report.problem(&location, sentence(error.kind()), None);
            None
        }
    }
}

/// Returns the parser's message as a fragment, like all other problems.
fn sentence(kind: &ParseErrorKind) -> String {
    let text = kind.to_string();
    let mut recorded_messages = text.chars();
    let first = recorded_messages
        .next()
        .map(|message| message.to_ascii_lowercase());
    let fragment: String = first.into_iter().chain(recorded_messages).collect();
    format!("not JSON: {fragment}")
}
