//! A rule in Azure Resource Manager, whose filter type may be missing.

use serde_json::{Map, Value};
use servicebus_arm_template::{member, object};
use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Encoded, Filter, Parameters, Rule, SqlFilter,
    SyntaxError,
};
use servicebus_broker::{Timestamp, check_name};

use super::properties::camel_case;
use crate::descriptions::{
    CORRELATION_NAMES, correlation_properties, read_correlation, typed_text,
};

/// The compatibility level that the service returns for every expression.
const COMPATIBILITY_LEVEL: u64 = 20;

const KIND: &str = "filterType";
const ACTION: &str = "action";
const SQL: &str = "sqlFilter";
const CORRELATION: &str = "correlationFilter";
const EXPRESSION: &str = "sqlExpression";
const PROPERTIES: &str = "properties";
/// Members that clients write and that have no effect, in lower case.
const NEUTRAL: [&str; 2] = ["compatibilitylevel", "requirespreprocessing"];

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

/// Reads the properties of a rule; `parse` parses its SQL filter. The error is the key and the problem: what cannot be read
/// never counts as absent, because a rule without a filter selects every message.
pub fn read(
    name: &str,
    written: &Value,
    parse: impl FnOnce(&str) -> Result<SqlFilter, SyntaxError>,
    created_at: Timestamp,
) -> Result<Rule, (String, String)> {
    check_name(name).map_err(|error| ("name".to_owned(), format!("{name:?} {error}")))?;
    let action = part(written, ACTION)?;
    let action = action.map_or(Ok(None), |action| expression(ACTION, action))?;
    let action = action.map(|text| {
        Action::parse(text, Parameters::new()).map_err(|error| {
            let message = format!("{text:?} is not a valid action: {error}");
            (format!("{ACTION}.{EXPRESSION}"), message)
        })
    });
    let (sql, correlation) = (part(written, SQL)?, part(written, CORRELATION)?);
    let filter = match is_correlation(written, sql, correlation)? {
        true => read_properties(correlation)?,
        false => match sql.map_or(Ok(None), |sql| expression(SQL, sql))? {
            Some(text) => read_sql(text, parse)?,
            None => Filter::True,
        },
    };
    Ok(Rule {
        name: name.into(),
        filter,
        action: action.transpose()?,
        created_at,
    })
}

/// Returns the paths of members of a rule that have no meaning here.
pub(crate) fn unknown(written: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut add = |above: &str, written: Option<&Value>, is_known: &dyn Fn(&str) -> bool| {
        let members = written.and_then(Value::as_object).into_iter().flatten();
        let foreign = members.filter(|(name, _)| !is_known(&name.to_ascii_lowercase()));
        unknown.extend(foreign.map(|(name, _)| format!("{above}{name}")));
    };
    let parts = [KIND, ACTION, SQL, CORRELATION].map(str::to_ascii_lowercase);
    add("", Some(written), &|name| {
        parts.iter().any(|own| own == name)
    });
    for key in [ACTION, SQL] {
        add(&format!("{key}."), member(written, key), &|name| {
            name == "sqlexpression" || NEUTRAL.contains(&name)
        });
    }
    let system = CORRELATION_NAMES.map(str::to_ascii_lowercase);
    let above = format!("{CORRELATION}.");
    add(&above, member(written, CORRELATION), &|name| {
        name == PROPERTIES || NEUTRAL.contains(&name) || system.iter().any(|own| own == name)
    });
    unknown
}

type Refused = (String, String);

/// Returns a member of a rule that must be an object; `None` if it is absent or null.
fn part<'a>(written: &'a Value, key: &str) -> Result<Option<&'a Value>, Refused> {
    let part = member(written, key).filter(|part| !part.is_null());
    match part.filter(|part| !part.is_object()) {
        None => Ok(part),
        Some(other) => Err(refused(key, other, "a JSON object")),
    }
}

fn refused(key: &str, value: &Value, allowed: &str) -> Refused {
    let message = format!("{value} is not allowed; allowed: {allowed}");
    (key.to_owned(), message)
}

fn is_correlation(
    written: &Value,
    sql: Option<&Value>,
    correlation: Option<&Value>,
) -> Result<bool, Refused> {
    let allowed = "SqlFilter, CorrelationFilter";
    let Some(kind) = member(written, KIND).filter(|kind| !kind.is_null()) else {
        return Ok(sql.is_none() && correlation.is_some());
    };
    let name = kind.as_str().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "correlationfilter" => Ok(true),
        "sqlfilter" if sql.is_none() && correlation.is_some_and(has_members) => {
            let message = format!("it is SqlFilter, but the filter is in {CORRELATION}");
            Err((KIND.to_owned(), message))
        }
        "sqlfilter" => Ok(false),
        _ => Err(refused(KIND, kind, allowed)),
    }
}

fn has_members(object: &Value) -> bool {
    let mut members = object.as_object().into_iter().flatten();
    members.any(|(_, value)| !value.is_null())
}

/// Returns the expression of a filter or action; `None` if the object is empty.
fn expression<'a>(key: &str, written: &'a Value) -> Result<Option<&'a str>, Refused> {
    let at = || format!("{key}.{EXPRESSION}");
    let text = match member(written, EXPRESSION) {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => "",
        Some(other) => return Err(refused(&at(), other, "a text")),
    };
    if !text.trim().is_empty() {
        return Ok(Some(text));
    }
    // Python's client writes `requiresPreprocessing` of an action that has no expression.
    let is_neutral = |name: &str| {
        let is_expression = name.eq_ignore_ascii_case(EXPRESSION);
        key == ACTION && (is_expression || NEUTRAL.contains(&&*name.to_ascii_lowercase()))
    };
    let mut members = written.as_object().into_iter().flatten();
    match members.all(|(name, value)| value.is_null() || is_neutral(name)) {
        true => Ok(None),
        false => Err((at(), "it is missing or empty".to_owned())),
    }
}

fn read_sql(
    text: &str,
    parse: impl FnOnce(&str) -> Result<SqlFilter, SyntaxError>,
) -> Result<Filter, Refused> {
    parse(text).map(Filter::Sql).map_err(|error| {
        let message = format!("{text:?} is not a valid SQL filter: {error}");
        (format!("{SQL}.{EXPRESSION}"), message)
    })
}

fn read_properties(written: Option<&Value>) -> Result<Filter, Refused> {
    let at = |key: &str| format!("{CORRELATION}.{key}");
    let properties = written.and_then(|written| member(written, PROPERTIES));
    if let Some(other) = properties.filter(|own| !own.is_object() && !own.is_null()) {
        return Err(refused(&at(PROPERTIES), other, "a JSON object"));
    }
    let mut named = Vec::new();
    let properties = properties.and_then(Value::as_object).into_iter().flatten();
    for (name, value) in properties.filter(|(_, value)| !value.is_null()) {
        let value = scalar(&at(&format!("{PROPERTIES}.{name}")), value)?;
        named.push((Box::from(name.as_str()), Encoded::from(value.as_str())));
    }
    let mut wrong = None;
    let correlation = read_correlation(named, |name| {
        let key = camel_case(name);
        let value = member(written?, &key).filter(|value| !value.is_null())?;
        match scalar(&at(&key), value) {
            Ok(text) => Some(text.into()),
            Err(refused) => {
                wrong.get_or_insert(refused);
                None
            }
        }
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    if correlation == Correlation::default() {
        let message = "it names no property, so that it would select every message".to_owned();
        return Err((CORRELATION.to_owned(), message));
    }
    Ok(Filter::Correlation(CorrelationFilter::new(correlation)))
}

/// Returns a property as text: the service accepts only strings here, and templates contain numbers.
fn scalar(key: &str, value: &Value) -> Result<String, Refused> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(refused(key, value, "a text, a number, true or false"))
        }
    }
}
