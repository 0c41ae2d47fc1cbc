//! Configurations from templates of Azure Resource Manager: as the portal exports them, as Bicep compiles them, and nested.
//!
//! Only resources of Service Bus are evaluated, so that functions that other resources use do no harm. What a configuration
//! cannot say is left out, and told with its path in the template; what cannot be understood is an error. The text is read as
//! JSON with comments, `expression` reads what stands in brackets, `scope` evaluates it, `resources` finds what is deployed,
//! and `namespaces` makes a configuration of that.

mod expression;
mod functions;
mod namespaces;
mod resources;
mod scope;

use std::collections::BTreeMap;
use std::fmt;

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::arm::object;
use crate::config::MAX_CONFIG_SIZE;

/// Most notes and most problems that are told of a template.
const MAX_TOLD: usize = 100;

/// What a template declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// A configuration file.
    pub document: Value,
    /// What was left out of it, or stands in for what a template does not know.
    pub notes: Vec<Note>,
}

/// Something that is said of a place in a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The path in the template.
    pub path: String,
    /// What there is to say.
    pub message: String,
}

/// Why no configuration can be made of a template: every problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ImportError {
    /// The problems, in the order in which they were found; never empty.
    pub problems: Vec<Note>,
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => formatter.write_str(&self.message),
            path => write!(formatter, "{path}: {}", self.message),
        }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.problems.iter().map(ToString::to_string);
        formatter.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

/// What is found on the way through a template.
#[derive(Debug, Default)]
struct Report {
    notes: Vec<Note>,
    problems: Vec<Note>,
}

impl Report {
    fn note(&mut self, path: impl Into<String>, message: impl Into<String>) {
        add(&mut self.notes, path.into(), message.into());
    }

    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        add(&mut self.problems, path.into(), message.into());
    }
}

fn add(list: &mut Vec<Note>, path: String, message: String) {
    let note = Note { path, message };
    if list.len() < MAX_TOLD && !list.contains(&note) {
        list.push(note);
    }
}

/// Makes a configuration of the text of a template, with these values for its parameters.
pub fn import(text: &str, parameters: &BTreeMap<String, String>) -> Result<Imported, ImportError> {
    let template = read(text).map_err(|message| ImportError {
        problems: vec![Note {
            path: String::new(),
            message,
        }],
    })?;
    let mut report = Report::default();
    let resources = resources::of_template(&template, parameters, &mut report);
    let namespaces = namespaces::of_resources(&resources, &mut report);
    if namespaces.is_empty() && report.problems.is_empty() {
        report.problem("resources", "the template has no resource of Service Bus");
    }
    if !report.problems.is_empty() {
        return Err(ImportError {
            problems: report.problems,
        });
    }
    Ok(Imported {
        document: object([("UserConfig", object([("Namespaces", namespaces.into())]))]),
        notes: report.notes,
    })
}

/// Reads JSON with comments.
fn read(text: &str) -> Result<Value, String> {
    if text.len() as u64 > MAX_CONFIG_SIZE {
        let limit = MAX_CONFIG_SIZE / 1024 / 1024;
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
            let members = object.properties.iter();
            let members = members.map(|own| (own.name.as_str().to_owned(), value_of(&own.value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests;
