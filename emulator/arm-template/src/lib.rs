//! Evaluates Azure Resource Manager templates: as the portal exports them, as Bicep compiles them, and nested ones.
//!
//! Only resources of Service Bus are evaluated, so functions that other resources use cause no errors. A value that only a
//! deployment knows results in a note with its path in the template; what cannot be evaluated is a problem. The text is
//! parsed as JSON with comments, `expression` parses what stands in brackets, `scope` evaluates it, and `resources` collects
//! the deployed resources.
//!
//! A separate crate, so that it is optimized for size: no message passes through it.

mod arguments;
mod expression;
mod format;
mod functions;
mod lambda;
mod resources;
mod scope;

use std::collections::BTreeMap;
use std::fmt;

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

pub use functions::text;
pub use resources::Resource;

/// The maximum number of notes, and of problems, that are reported for a template.
const MAX_TOLD: usize = 100;

/// A note or problem at a place in a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The path in the template.
    pub path: String,
    /// The note or problem.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => formatter.write_str(&self.message),
            path => write!(formatter, "{path}: {}", self.message),
        }
    }
}

/// The notes and problems of a template: at most a hundred of each, without duplicates.
#[derive(Debug, Default)]
pub struct Report {
    /// What was left out or substituted.
    pub notes: Vec<Note>,
    /// Why the template cannot be used.
    pub problems: Vec<Note>,
}

impl Report {
    /// Adds a note about a path.
    pub fn note(&mut self, path: impl Into<String>, message: impl Into<String>) {
        add(&mut self.notes, path.into(), message.into());
    }

    /// Adds a problem at a path.
    pub fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        add(&mut self.problems, path.into(), message.into());
    }
}

fn add(list: &mut Vec<Note>, path: String, message: String) {
    let note = Note { path, message };
    if list.len() < MAX_TOLD && !list.contains(&note) {
        list.push(note);
    }
}

/// Returns the Service Bus resources that a template deploys with these parameter values. A text of more than `max_bytes`,
/// or one that is not a JSON object, is a problem.
pub fn evaluate(
    text: &str,
    max_bytes: u64,
    parameters: &BTreeMap<String, String>,
    report: &mut Report,
) -> Vec<Resource> {
    match read(text, max_bytes) {
        Ok(template) => resources::of_template(&template, parameters, report),
        Err(message) => {
            report.problem("", message);
            Vec::new()
        }
    }
}

/// Returns a member of an object by its name in any case, as Resource Manager does.
pub fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let members = object.as_object()?;
    members.get(name).or_else(|| {
        let mut members = members.iter();
        Some(members.find(|(own, _)| own.eq_ignore_ascii_case(name))?.1)
    })
}

/// Creates an object with these members. `json!` would insert each member separately, which is more code where there are
/// many.
pub fn object<const N: usize>(mut members: [(&str, Value); N]) -> Value {
    of_members(&mut members)
}

#[inline(never)]
fn of_members(members: &mut [(&str, Value)]) -> Value {
    let mut object = Map::new();
    for (name, value) in members {
        object.insert((*name).to_owned(), value.take());
    }
    Value::Object(object)
}

/// Collects members into a map. `collect` would sort them first, with 5 KB of code for each type of iterator.
pub fn collected(members: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut object = Map::new();
    object.extend(members);
    object
}

/// Parses JSON with comments.
fn read(text: &str, max_bytes: u64) -> Result<Value, String> {
    if text.len() as u64 > max_bytes {
        let limit = max_bytes / 1024 / 1024;
        return Err(format!("the template is larger than {limit} MiB"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let parsed = parsed.map_err(|error| format!("the template is not JSON: {error}"))?;
    let value = parsed.value.map(|value| value_of(&value));
    let value = value.filter(Value::is_object);
    value.ok_or_else(|| "the template is not a JSON object".to_owned())
}

fn value_of(value: &ast::Value<'_>) -> Value {
    match value {
        ast::Value::StringLit(text) => Value::String(text.value.to_string()),
        ast::Value::NumberLit(digits) => digits.value.parse().map_or(Value::Null, Value::Number),
        ast::Value::BooleanLit(flag) => flag.value.into(),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => array.elements.iter().map(value_of).collect(),
        ast::Value::Object(object) => {
            let mut members = Map::new();
            for own in &object.properties {
                members.insert(own.name.as_str().to_owned(), value_of(&own.value));
            }
            members.into()
        }
    }
}
