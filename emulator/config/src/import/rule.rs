//! A rule in Azure Resource Manager, whose filter type may be missing.

use serde_json::{Map, Value};
use servicebus_arm_template::{member, object};
use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Encoded, Filter, Parameters, Rule, SqlFilter,
    SyntaxError,
};
use servicebus_broker::{Timestamp, check_name};

use super::properties::camel_case;
use crate::descriptions::{correlation_properties, read_correlation, typed_text};

/// The compatibility level that the service returns for every expression.
const COMPATIBILITY_LEVEL: u64 = 20;

/// Returns the properties of a rule.
pub fn write(rule: &Rule) -> Value {
    let expression = |text: &str| {
        object([
            ("sqlExpression", text.into()),
            ("compatibilityLevel", COMPATIBILITY_LEVEL.into()),
        ])
    };
    let (kind, key, filter) = match &rule.filter {
        Filter::True => ("SqlFilter", "sqlFilter", expression("1=1")),
        Filter::False => ("SqlFilter", "sqlFilter", expression("1=0")),
        Filter::Sql(filter) => ("SqlFilter", "sqlFilter", expression(filter.text())),
        Filter::Correlation(filter) => {
            let filter = written(filter.description());
            ("CorrelationFilter", "correlationFilter", filter)
        }
    };
    let action = rule.action.as_ref().map(|action| expression(action.text()));
    let mut properties = object([
        ("filterType", kind.into()),
        ("action", action.unwrap_or_else(|| object([]))),
    ]);
    properties[key] = filter;
    properties
}

fn written(filter: &Correlation) -> Value {
    let mut members: Map<String, Value> = Map::new();
    for (name, text) in correlation_properties(filter) {
        members.insert(camel_case(name), text.into());
    }
    let mut named = Map::new();
    for (name, encoded) in filter.properties.iter() {
        // A string, the only type of this API.
        let text = typed_text(encoded).map(|(_, text)| text);
        named.insert(name.to_string(), text.into());
    }
    members.insert("properties".to_owned(), named.into());
    members.into()
}

/// Reads the properties of a rule; `parse` parses its SQL filter. The error is the key and the problem.
pub fn read(
    name: &str,
    written: &Value,
    parse: impl FnOnce(&str) -> Result<SqlFilter, SyntaxError>,
    created_at: Timestamp,
) -> Result<Rule, (String, String)> {
    check_name(name).map_err(|error| ("name".to_owned(), format!("{name:?} {error}")))?;
    let member = |name: &str| member(written, name).filter(|value| !value.is_null());
    let action = match member("action").and_then(expression) {
        Some(text) => Some(Action::parse(text, Parameters::new()).map_err(|error| {
            let message = format!("{text:?} is not a valid action: {error}");
            ("action.sqlExpression".to_owned(), message)
        })?),
        None => None,
    };
    let is_correlation = match member("filterType").and_then(Value::as_str) {
        Some(kind) => match kind.to_ascii_lowercase().as_str() {
            "sqlfilter" => false,
            "correlationfilter" => true,
            _ => {
                let message =
                    format!("{kind:?} is not allowed; allowed: SqlFilter, CorrelationFilter");
                return Err(("filterType".to_owned(), message));
            }
        },
        None => member("sqlFilter").is_none() && member("correlationFilter").is_some(),
    };
    let filter = match is_correlation {
        true => correlation(member("correlationFilter"))?,
        false => match member("sqlFilter").and_then(expression) {
            Some(text) => sql(text, parse)?,
            None => Filter::True,
        },
    };
    Ok(Rule {
        name: name.into(),
        filter,
        action,
        created_at,
    })
}

fn sql(
    text: &str,
    parse: impl FnOnce(&str) -> Result<SqlFilter, SyntaxError>,
) -> Result<Filter, (String, String)> {
    parse(text).map(Filter::Sql).map_err(|error| {
        let message = format!("{text:?} is not a valid SQL filter: {error}");
        ("sqlFilter.sqlExpression".to_owned(), message)
    })
}

fn correlation(written: Option<&Value>) -> Result<Filter, (String, String)> {
    let properties = written.and_then(|written| member(written, "properties"));
    let mut named = Vec::new();
    let properties = properties.and_then(Value::as_object).into_iter().flatten();
    for (name, value) in properties.filter(|(_, value)| !value.is_null()) {
        // The service accepts only strings here, and templates contain numbers.
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        named.push((Box::from(name.as_str()), Encoded::from(value.as_str())));
    }
    let correlation = read_correlation(named, |name| {
        let value = member(written?, &camel_case(name))?.as_str()?;
        Some(Box::from(value))
    });
    if correlation == Correlation::default() {
        let message = "it names no property, so that it would select every message".to_owned();
        return Err(("correlationFilter".to_owned(), message));
    }
    Ok(Filter::Correlation(CorrelationFilter::new(correlation)))
}

/// Returns the expression of a filter or action; `None` if it is empty.
fn expression(written: &Value) -> Option<&str> {
    let text = member(written, "sqlExpression")?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}
