//! A rule as Azure Resource Manager has it. That it is a SQL filter or a correlation filter need not be said.

use serde_json::Value;
use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Encoded, Filter, Parameters, Rule, SqlFilter,
};
use servicebus_broker::{Timestamp, check_name};

/// Reads the properties of a rule; else what is wrong, with its key.
pub(crate) fn read(
    name: &str,
    written: &Value,
    created_at: Timestamp,
) -> Result<Rule, (String, String)> {
    check_name(name).map_err(|error| ("name".to_owned(), format!("{name:?} {error}")))?;
    let member = |name: &str| member(written, name).filter(|value| !value.is_null());
    let action = match member("action").and_then(expression) {
        Some(text) => Some(Action::parse(text, Parameters::new()).map_err(|error| {
            let message = format!("{text:?} is no action: {error}");
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
            Some(text) => sql(text)?,
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

fn sql(text: &str) -> Result<Filter, (String, String)> {
    let filter = SqlFilter::parse(text, Parameters::new());
    filter.map(Filter::Sql).map_err(|error| {
        let message = format!("{text:?} is no SQL filter: {error}");
        ("sqlFilter.sqlExpression".to_owned(), message)
    })
}

fn correlation(written: Option<&Value>) -> Result<Filter, (String, String)> {
    let text = |name: &str| {
        let value = member(written?, name)?.as_str()?;
        Some(Box::from(value))
    };
    let properties = written.and_then(|written| member(written, "properties"));
    let mut named = Vec::new();
    for (name, value) in properties.and_then(Value::as_object).into_iter().flatten() {
        // The service takes texts alone here, and templates have numbers in them.
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        named.push((Box::from(name.as_str()), Encoded::from(value.as_str())));
    }
    let correlation = Correlation {
        content_type: text("contentType"),
        correlation_id: text("correlationId"),
        label: text("label"),
        message_id: text("messageId"),
        reply_to: text("replyTo"),
        reply_to_session_id: text("replyToSessionId"),
        session_id: text("sessionId"),
        to: text("to"),
        properties: named,
    };
    if correlation == Correlation::default() {
        let message = "it names no property, so that it would select every message".to_owned();
        return Err(("correlationFilter".to_owned(), message));
    }
    Ok(Filter::Correlation(CorrelationFilter::new(correlation)))
}

/// The expression of a filter or action; none where it is empty.
fn expression(written: &Value) -> Option<&str> {
    let text = member(written, "sqlExpression")?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

/// A member of an object, whatever the case of its name.
pub(crate) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let members = object.as_object()?;
    members.get(name).or_else(|| {
        let mut members = members.iter();
        Some(members.find(|(own, _)| own.eq_ignore_ascii_case(name))?.1)
    })
}
