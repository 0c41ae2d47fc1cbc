//! A rule as XML: its filter and action in all their forms (admin-http.md §6.1).

use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Filter, Parameters, Rule, SqlFilter, SyntaxError,
};
use servicebus_broker::{Timestamp, check_name};

use super::super::refusal::ServiceError;
use super::super::time::Frame;
use super::RULE;
use super::value::{read_values, write_values};
use crate::xml::{CONNECT, Element, INSTANCE, Writer};

/// What the service says of every expression.
const COMPATIBILITY_LEVEL: &str = "20";
const FILTERS: &str = "SqlFilter, TrueFilter, FalseFilter, CorrelationFilter";
const ACTIONS: &str = "SqlRuleAction, EmptyRuleAction";

/// What a rule is called when nothing is said.
pub(crate) const DEFAULT_RULE: &str = "$Default";

/// The name that a description of a rule has in it.
pub(crate) fn name_of_rule(element: &Element) -> Option<&str> {
    let name = element.part("Name").map(|name| name.text.trim());
    name.filter(|name| !name.is_empty())
}

/// Reads a rule; its name is that of the path, not that of the description.
pub(crate) fn read_rule(
    element: &Element,
    name: &str,
    created_at: Timestamp,
) -> Result<Rule, ServiceError> {
    check_name(name).map_err(|error| {
        ServiceError::bad_request(format!("The name '{name}' of a rule {error}."))
    })?;
    Ok(Rule {
        name: name.into(),
        filter: read_filter(name, element.part("Filter"))?,
        action: read_action(name, element.part("Action"))?,
        created_at,
    })
}

/// Writes a rule; the prefix of types tells how deep it stands, and JavaScript wants four messages.
pub(crate) fn write_rule(rule: &Rule, frame: Frame, in_feed: bool, out: &mut Writer) {
    let prefix = if in_feed { "d5p1" } else { "d6p1" };
    out.open(RULE, &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)]);
    write_parts(rule, Some(&frame.ticks(rule.created_at)), prefix, out);
    out.close(RULE);
}

/// Writes what stands in the description of a rule that a client makes.
pub fn write_new_rule(rule: &Rule, out: &mut Writer) {
    write_parts(rule, None, "d6p1", out);
}

fn write_parts(rule: &Rule, created_at: Option<&str>, prefix: &str, out: &mut Writer) {
    write_filter(&rule.filter, prefix, out);
    write_action(rule.action.as_ref(), prefix, out);
    if let Some(at) = created_at {
        out.element("CreatedAt", at);
    }
    out.element("Name", &rule.name);
}

/// Reads the filter of a rule. One that cannot be understood is refused: never one that selects everything.
fn read_filter(rule: &str, element: Option<&Element>) -> Result<Filter, ServiceError> {
    let found = element.and_then(|element| Some((element, element.xsi_type.as_ref()?)));
    let unknown = |name| {
        let text =
            format!("The filter of the rule '{rule}' has no known type; allowed: {FILTERS}.");
        ServiceError::parameter(text, "Filter", name)
    };
    let (element, found) = found.ok_or_else(|| unknown(""))?;
    match found.name.as_str() {
        "TrueFilter" => Ok(Filter::True),
        "FalseFilter" => Ok(Filter::False),
        "SqlFilter" => {
            let filter = expression(rule, "filter", element, SqlFilter::parse)?;
            let missing = || {
                ServiceError::bad_request(format!(
                    "The filter of the rule '{rule}' has no 'SqlExpression'."
                ))
            };
            filter.map(Filter::Sql).ok_or_else(missing)
        }
        "CorrelationFilter" => correlation(rule, element),
        other => Err(unknown(other)),
    }
}

/// Reads the action of a rule; none where there is nothing to do.
fn read_action(rule: &str, element: Option<&Element>) -> Result<Option<Action>, ServiceError> {
    let Some(element) = element else {
        return Ok(None);
    };
    let name = element.xsi_type.as_ref().map(|found| found.name.as_str());
    match name {
        Some("EmptyRuleAction") => Ok(None),
        Some("SqlRuleAction") => expression(rule, "action", element, Action::parse),
        None if element.children.is_empty() => Ok(None),
        other => {
            let text =
                format!("The action of the rule '{rule}' has no known type; allowed: {ACTIONS}.");
            Err(ServiceError::parameter(
                text,
                "Action",
                other.unwrap_or_default(),
            ))
        }
    }
}

fn expression<T>(
    rule: &str,
    part: &str,
    element: &Element,
    parse: impl FnOnce(&str, Parameters) -> Result<T, SyntaxError>,
) -> Result<Option<T>, ServiceError> {
    let Some(text) = element.part("SqlExpression").map(|part| part.text.as_str()) else {
        return Ok(None);
    };
    let mut parameters = Parameters::new();
    for (name, value) in read_values(element.part("Parameters"))? {
        parameters.add(&name, value);
    }
    parse(text, parameters).map(Some).map_err(|error| {
        let message = format!("The {part} of the rule '{rule}' cannot be understood: {error}.");
        ServiceError::parameter(message, "SqlExpression", text)
    })
}

fn correlation(rule: &str, element: &Element) -> Result<Filter, ServiceError> {
    let text = |name| element.part(name).map(|part| part.text.as_str().into());
    let properties = read_values(element.part("Properties"))?.into_iter();
    let description = Correlation {
        correlation_id: text("CorrelationId"),
        message_id: text("MessageId"),
        to: text("To"),
        reply_to: text("ReplyTo"),
        label: text("Label"),
        session_id: text("SessionId"),
        reply_to_session_id: text("ReplyToSessionId"),
        content_type: text("ContentType"),
        properties: properties
            .map(|(name, value)| (name.into(), value))
            .collect(),
    };
    if description == Correlation::default() {
        let text = format!(
            "The correlation filter of the rule '{rule}' has no condition; allowed: at least one property."
        );
        return Err(ServiceError::bad_request(text));
    }
    Ok(Filter::Correlation(CorrelationFilter::new(description)))
}

fn write_filter(filter: &Filter, prefix: &str, out: &mut Writer) {
    match filter {
        Filter::True => write_constant("TrueFilter", "1=1", out),
        Filter::False => write_constant("FalseFilter", "1=0", out),
        Filter::Sql(filter) => {
            out.open("Filter", &[("i:type", "SqlFilter")]);
            write_expression(filter.text(), filter.parameters(), prefix, out);
            out.close("Filter");
        }
        Filter::Correlation(filter) => write_correlation(filter.description(), prefix, out),
    }
}

/// Some clients fail without an action, so that none is written too.
fn write_action(action: Option<&Action>, prefix: &str, out: &mut Writer) {
    let Some(action) = action else {
        out.empty("Action", &[("i:type", "EmptyRuleAction")]);
        return;
    };
    out.open("Action", &[("i:type", "SqlRuleAction")]);
    write_expression(action.text(), action.parameters(), prefix, out);
    out.close("Action");
}

fn write_constant(name: &str, expression: &str, out: &mut Writer) {
    out.open("Filter", &[("i:type", name)]);
    out.element("SqlExpression", expression);
    out.element("CompatibilityLevel", COMPATIBILITY_LEVEL);
    out.close("Filter");
}

fn write_expression(text: &str, parameters: &Parameters, prefix: &str, out: &mut Writer) {
    out.element("SqlExpression", text);
    out.element("CompatibilityLevel", COMPATIBILITY_LEVEL);
    write_values("Parameters", parameters.iter(), prefix, out);
}

fn write_correlation(filter: &Correlation, prefix: &str, out: &mut Writer) {
    out.open("Filter", &[("i:type", "CorrelationFilter")]);
    for (name, text) in [
        ("CorrelationId", &filter.correlation_id),
        ("MessageId", &filter.message_id),
        ("To", &filter.to),
        ("ReplyTo", &filter.reply_to),
        ("Label", &filter.label),
        ("SessionId", &filter.session_id),
        ("ReplyToSessionId", &filter.reply_to_session_id),
        ("ContentType", &filter.content_type),
    ] {
        if let Some(text) = text {
            out.element(name, text);
        }
    }
    let properties = filter.properties.iter();
    let properties = properties.map(|(name, value)| (&**name, value));
    write_values("Properties", properties, prefix, out);
    out.close("Filter");
}
