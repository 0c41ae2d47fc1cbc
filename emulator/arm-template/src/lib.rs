//! Templates of Azure Resource Manager: as the portal exports them, as Bicep compiles them, and nested.
//!
//! Only resources of Service Bus are evaluated, so that functions that other resources use do no harm. What has no value
//! before it is deployed has a note with its path in the template; what cannot be understood is a problem. The text is read as
//! JSON with comments, `expression` reads what stands in brackets, `scope` evaluates it, and `resources` finds what is
//! deployed.
//!
//! A crate of its own, so that it is built for size: nothing of it is on the way of messages.

mod arguments;
mod expression;
mod functions;
mod resources;
mod scope;

use std::collections::BTreeMap;
use std::fmt;

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

pub use functions::text;
pub use resources::Resource;

/// Most notes and most problems that are reported of a template.
const MAX_TOLD: usize = 100;

/// A note or problem at a place in a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The path in the template.
    pub path: String,
    /// What there is to say.
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

/// What is found on the way through a template: at most a hundred of each, none twice.
#[derive(Debug, Default)]
pub struct Report {
    /// What was left out, or stands in for what a template does not know.
    pub notes: Vec<Note>,
    /// Why the template cannot be used.
    pub problems: Vec<Note>,
}

impl Report {
    /// Takes down what there is to say of a place.
    pub fn note(&mut self, path: impl Into<String>, message: impl Into<String>) {
        add(&mut self.notes, path.into(), message.into());
    }

    /// Takes down what is wrong with a place.
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

/// The resources of Service Bus that the text of a template deploys, with these values for its parameters; a text of more than
/// `max_bytes` is a problem, like one that is no JSON object.
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

/// A member of an object, whose name is found whatever its case, as Resource Manager does.
pub fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let members = object.as_object()?;
    members.get(name).or_else(|| {
        let mut members = members.iter();
        Some(members.find(|(own, _)| own.eq_ignore_ascii_case(name))?.1)
    })
}

/// An object of these members. Beside `json!`, which inserts each where it stands, it is little code where many are made; and
/// where members are collected, they are sorted first, with 4 KB of code for each place that does so.
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

/// Reads JSON with comments.
fn read(text: &str, max_bytes: u64) -> Result<Value, String> {
    if text.len() as u64 > max_bytes {
        let limit = max_bytes / 1024 / 1024;
        return Err(format!("the template is larger than {limit} MiB"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let parsed = parsed.map_err(|error| format!("the template is no JSON: {error}"))?;
    let value = parsed.value.map(|value| value_of(&value));
    let value = value.filter(Value::is_object);
    value.ok_or_else(|| "the template is no JSON object".to_owned())
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
