//! Writes rules: their filters and actions in all forms, and values with their given types (admin-http.md §6.1, §6.2).

use std::time::Duration;

use servicebus_broker::filter::{Action, Correlation, Encoded, Filter, Parameters, Rule, Value};

use super::{Instant, RULE, correlation_properties};
use crate::config::duration;
use crate::xml::{CONNECT, INSTANCE, SCHEMA, SERIALIZATION, Writer};

/// The compatibility level that the service returns for every expression.
const COMPATIBILITY_LEVEL: &str = "20";
/// The AMQP format codes of a `long`.
const LONGS: [u8; 2] = [0x55, 0x81];
/// An entry of a list of values.
pub const ENTRY: &str = "KeyValueOfstringanyType";

/// Writes a rule; the prefix of types reflects its depth, and JavaScript expects it to have four characters.
pub fn write_rule(rule: &Rule, created_at: &str, in_feed: bool, out: &mut Writer) {
    let prefix = if in_feed { "d5p1" } else { "d6p1" };
    out.open(RULE, &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)]);
    write_parts(rule, Some(created_at), prefix, out);
    out.close(RULE);
}

/// Writes the description of a rule that a client creates.
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

/// Some clients fail without an action, so an empty one is written.
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
    for (name, text) in correlation_properties(filter) {
        out.element(name, text);
    }
    // Left out where there are none: azure-service-bus-go fails on an empty element, and its live tests pass.
    if !filter.properties.is_empty() {
        let properties = filter.properties.iter();
        let properties = properties.map(|(name, value)| (&**name, value));
        write_values("Properties", properties, prefix, out);
    }
    out.close("Filter");
}

/// Writes values by name with their given types; the prefix of types reflects the depth.
pub fn write_values<'a>(
    name: &str,
    values: impl Iterator<Item = (&'a str, &'a Encoded)>,
    prefix: &str,
    out: &mut Writer,
) {
    let mut values = values.peekable();
    if values.peek().is_none() {
        out.empty(name, &[]);
        return;
    }
    out.open(name, &[]);
    for (key, value) in values {
        out.open(ENTRY, &[]);
        out.element("Key", key);
        write_value(value, prefix, out);
        out.close(ENTRY);
    }
    out.close(name);
}

fn write_value(encoded: &Encoded, prefix: &str, out: &mut Writer) {
    let Some((name, text)) = typed_text(encoded) else {
        out.empty("Value", &[("i:nil", "true")]);
        return;
    };
    let space = match name {
        "duration" => SERIALIZATION,
        _ => SCHEMA,
    };
    let attributes = [
        ("i:type", format!("{prefix}:{name}")),
        (&format!("xmlns:{prefix}"), space.to_owned()),
    ];
    let attributes = attributes
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    out.typed("Value", &attributes, &text);
}

/// Returns the XML type of a value, and its text; `None` for null.
pub(crate) fn typed_text(encoded: &Encoded) -> Option<(&'static str, String)> {
    let is_long = encoded
        .as_amqp()
        .first()
        .is_some_and(|code| LONGS.contains(code));
    Some(match encoded.value() {
        Value::Null => return None,
        Value::Bool(flag) => ("boolean", flag.to_string()),
        Value::Signed(number) if is_long => ("long", number.to_string()),
        Value::Signed(number) => ("int", number.to_string()),
        Value::Unsigned(number) => match (i32::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => ("int", number.to_string()),
            (_, Ok(number)) => ("long", number.to_string()),
            _ => ("double", (number as f64).to_string()),
        },
        Value::Float(number) => ("double", double_text(number)),
        Value::Text(text) => ("string", text.into_owned()),
        Value::Instant(ticks) => {
            let is_zoneless = encoded.is_zoneless();
            ("dateTime", Instant { ticks, is_zoneless }.to_string())
        }
        Value::Span(ticks) => ("duration", span_text(ticks)),
        Value::Guid(guid) => ("string", guid.to_string()),
        // Only AMQP has these types; their digits are shown as a string.
        Value::Binary(bytes) | Value::Other(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            ("string", digits.collect())
        }
    })
}

fn double_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "INF" } else { "-INF" }.to_owned()
    } else {
        number.to_string()
    }
}

fn span_text(ticks: i64) -> String {
    let magnitude = ticks.unsigned_abs();
    let nanoseconds = (magnitude % 10_000_000) as u32 * 100;
    let text = duration::format(Duration::new(magnitude / 10_000_000, nanoseconds));
    match ticks < 0 {
        true => format!("-{text}"),
        false => text,
    }
}
