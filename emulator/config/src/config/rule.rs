//! The `Properties` of a rule in the official format, extended by what only AMQP can express.

use serde_json::{Value as Json, json};
use servicebus_arm_template::collected;
use servicebus_broker::filter::{Correlation, Encoded, Filter, Parameters, Rule, Value};

use super::document::{AMQP, FilterType, SELECTOR};
use crate::descriptions::correlation_properties;

/// The AMQP format codes of the types that a file's values have: boolean, long, double and string.
const PLAIN: [u8; 8] = [0x41, 0x42, 0x56, 0x55, 0x81, 0x82, 0xa1, 0xb1];

/// Returns the `Properties` of a rule. Values of other types are `{"Amqp": "…"}`, in hexadecimal digits.
pub fn rule_json(rule: &Rule) -> Json {
    let mut properties = match &rule.filter {
        Filter::True => json!({"FilterType": FilterType::True.name()}),
        Filter::False => json!({"FilterType": FilterType::False.name()}),
        Filter::Correlation(filter) => json!({
            "FilterType": FilterType::Correlation.name(),
            "CorrelationFilter": correlation(filter.description()),
        }),
        Filter::Sql(filter) => json!({
            "FilterType": FilterType::Sql.name(),
            "SqlFilter": match filter.selector_text() {
                Some(selector) => json!({SELECTOR: selector}),
                None => expression(filter.text(), filter.parameters()),
            },
        }),
    };
    if let Some(action) = &rule.action {
        properties["Action"] = expression(action.text(), action.parameters());
    }
    properties
}

fn correlation(filter: &Correlation) -> Json {
    let properties = correlation_properties(filter);
    let mut properties = collected(properties.map(|(name, text)| (name.to_owned(), text.into())));
    if !filter.properties.is_empty() {
        let user = filter.properties.iter();
        let user = named(user.map(|(name, encoded)| (&**name, encoded)));
        properties.insert("Properties".to_owned(), user);
    }
    properties.into()
}

fn expression(text: &str, parameters: &Parameters) -> Json {
    let mut expression = json!({"SqlExpression": text});
    if !parameters.is_empty() {
        expression["Parameters"] = named(parameters.iter());
    }
    expression
}

fn named<'a>(values: impl Iterator<Item = (&'a str, &'a Encoded)>) -> Json {
    collected(values.map(|(name, encoded)| (name.to_owned(), value(encoded)))).into()
}

fn value(encoded: &Encoded) -> Json {
    let code = encoded.as_amqp().first();
    let is_plain = code.is_some_and(|code| PLAIN.contains(code));
    match encoded.value() {
        Value::Bool(flag) if is_plain => flag.into(),
        Value::Signed(number) if is_plain => number.into(),
        Value::Float(number) if is_plain && number.is_finite() => number.into(),
        Value::Text(text) if is_plain => text.into_owned().into(),
        Value::Bool(_)
        | Value::Signed(_)
        | Value::Unsigned(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Null
        | Value::Instant(_)
        | Value::Span(_)
        | Value::Guid(_)
        | Value::Binary(_)
        | Value::Other(_) => {
            let bytes = encoded.as_amqp().iter();
            let digits: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            json!({AMQP: digits})
        }
    }
}
