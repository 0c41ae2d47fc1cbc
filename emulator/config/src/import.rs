//! Imports configurations from Azure Resource Manager templates: as the portal exports them, as Bicep compiles them, and
//! nested ones.
//!
//! What a configuration cannot express is left out, with a note that has its path in the template; what cannot be evaluated
//! is an error. The crate `servicebus-arm-template` evaluates the template, and `namespaces` converts the result to a
//! configuration.

mod namespaces;
pub mod properties;
pub mod rule;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
pub use servicebus_arm_template::Note;
use servicebus_arm_template::{Report, evaluate, object};
use thiserror::Error;

use crate::config::MAX_CONFIG_SIZE;

/// The result of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// A configuration file.
    pub document: Value,
    /// What was left out or substituted.
    pub notes: Vec<Note>,
}

/// Why a template cannot be imported: every problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ImportError {
    /// The problems, in the order of detection; at least one.
    pub problems: Vec<Note>,
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.problems.iter().map(ToString::to_string);
        formatter.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

/// Converts the text of a template, with these parameter values, to a configuration.
pub fn import(text: &str, parameters: &BTreeMap<String, String>) -> Result<Imported, ImportError> {
    let mut report = Report::default();
    let resources = evaluate(text, MAX_CONFIG_SIZE, parameters, &mut report);
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

#[cfg(test)]
mod tests;
