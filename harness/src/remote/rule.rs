//! Rules in the XML of the administration API, from the official configuration format.

use serde_json::{Map, Value};

use super::{RemoteError, description::document, xml::escape};

/// The types of values.
const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The parts of a correlation filter, in the service's order.
const CORRELATION: [&str; 8] = [
    "CorrelationId",
    "MessageId",
    "To",
    "ReplyTo",
    "Label",
    "SessionId",
    "ReplyToSessionId",
    "ContentType",
];

/// A rule as the service takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleXml {
    pub(crate) name: String,
    /// What stands in its description.
    pub(crate) inner: String,
}

impl RuleXml {
    /// Takes a rule with its `Name` and `Properties`.
    pub(crate) fn of(rule: &Value) -> Result<Self, RemoteError> {
        let properties = &rule["Properties"];
        let name = rule["Name"].as_str().unwrap_or_default().to_owned();
        let filter = filter(properties)?;
        let action = match &properties["Action"] {
            Value::Null => r#"<Action i:type="EmptyRuleAction"/>"#.to_owned(),
            action => format!(
                r#"<Action i:type="SqlRuleAction">{}</Action>"#,
                expression(action)?
            ),
        };
        let inner = format!("{filter}{action}<Name>{}</Name>", escape(&name));
        Ok(Self { name, inner })
    }

    /// Writes it as the body of a request.
    pub(crate) fn document(&self) -> String {
        document("RuleDescription", &self.inner)
    }
}

fn filter(properties: &Value) -> Result<String, RemoteError> {
    let constant = |kind: &str, text: &str| {
        format!(
            r#"<Filter i:type="{kind}Filter"><SqlExpression>{text}</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter>"#
        )
    };
    Ok(
        match properties["FilterType"].as_str().unwrap_or_default() {
            "True" => constant("True", "1=1"),
            "False" => constant("False", "1=0"),
            "Correlation" => {
                let inner = correlation(&properties["CorrelationFilter"])?;
                format!(r#"<Filter i:type="CorrelationFilter">{inner}</Filter>"#)
            }
            _ => format!(
                r#"<Filter i:type="SqlFilter">{}</Filter>"#,
                expression(&properties["SqlFilter"])?
            ),
        },
    )
}

fn correlation(filter: &Value) -> Result<String, RemoteError> {
    let system = CORRELATION.iter().filter_map(|name| {
        let text = filter[*name].as_str()?;
        Some(format!("<{name}>{}</{name}>", escape(text)))
    });
    let system = String::from_iter(system);
    Ok(match filter["Properties"].as_object() {
        Some(properties) => format!("{system}<Properties>{}</Properties>", values(properties)?),
        None => system,
    })
}

fn expression(expression: &Value) -> Result<String, RemoteError> {
    let text = escape(expression["SqlExpression"].as_str().unwrap_or_default());
    let parameters = match expression["Parameters"].as_object() {
        Some(parameters) => values(parameters)?,
        None => String::new(),
    };
    Ok(format!(
        "<SqlExpression>{text}</SqlExpression><CompatibilityLevel>20</CompatibilityLevel><Parameters>{parameters}</Parameters>"
    ))
}

fn values(named: &Map<String, Value>) -> Result<String, RemoteError> {
    let values = named.iter().map(|(name, value)| {
        let (kind, text) = match value {
            Value::String(text) => ("string", escape(text)),
            Value::Bool(flag) => ("boolean", flag.to_string()),
            Value::Number(number) if number.is_f64() => ("double", number.to_string()),
            Value::Number(number) => ("long", number.to_string()),
            other => {
                return Err(RemoteError::Uncheckable(format!(
                    "the value {other} of {name} in a rule has no form in the administration API; allowed: texts, numbers and booleans"
                )));
            }
        };
        let name = escape(name);
        Ok(format!(
            r#"<KeyValueOfstringanyType><Key>{name}</Key><Value i:type="l28:{kind}" xmlns:l28="{SCHEMA}">{text}</Value></KeyValueOfstringanyType>"#
        ))
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_rule_has_its_form() {
        let rule = |properties| {
            let rule = json!({ "Name": "r", "Properties": properties });
            RuleXml::of(&rule).unwrap().inner
        };
        assert_eq!(
            rule(json!({ "FilterType": "True" })),
            r#"<Filter i:type="TrueFilter"><SqlExpression>1=1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter><Action i:type="EmptyRuleAction"/><Name>r</Name>"#
        );
        let sql = rule(json!({
            "FilterType": "Sql", "SqlFilter": { "SqlExpression": "a < 1" },
            "Action": { "SqlExpression": "SET b = 2" },
        }));
        assert!(
            sql.contains("<SqlExpression>a &lt; 1</SqlExpression>"),
            "{sql}"
        );
        assert!(sql.contains(r#"<Action i:type="SqlRuleAction">"#), "{sql}");
        let correlation = rule(json!({
            "FilterType": "Correlation",
            "CorrelationFilter": { "Label": "l", "MessageId": "m", "Properties": { "n": 1 } },
        }));
        let expected = r#"<MessageId>m</MessageId><Label>l</Label><Properties><KeyValueOfstringanyType><Key>n</Key><Value i:type="l28:long""#;
        assert!(correlation.contains(expected), "{correlation}");
    }
}
