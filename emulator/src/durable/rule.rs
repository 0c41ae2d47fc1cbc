//! Rules as part of a row, as exactly as clients wrote them: each value in its AMQP encoding, in the given order.

use serde::{Deserialize, Serialize};
use servicebus_broker::Timestamp;
use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Encoded, Filter, Parameters, Rule, SqlFilter, Value,
};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RuleRow {
    name: Box<str>,
    created: i64,
    filter: FilterRow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<Expression>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum FilterRow {
    True,
    False,
    Sql(Expression),
    Selector(String),
    Correlation(#[serde(with = "CorrelationFields")] Correlation),
}

#[derive(Debug, Serialize, Deserialize)]
struct Expression {
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<NamedValue>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Correlation", rename_all = "camelCase")]
struct CorrelationFields {
    correlation_id: Option<Box<str>>,
    message_id: Option<Box<str>>,
    to: Option<Box<str>>,
    reply_to: Option<Box<str>>,
    label: Option<Box<str>>,
    session_id: Option<Box<str>>,
    reply_to_session_id: Option<Box<str>>,
    content_type: Option<Box<str>>,
    #[serde(with = "values")]
    properties: Vec<(Box<str>, Encoded)>,
}

/// A name, the value's AMQP encoding, and whether it is an instant without a zone.
#[derive(Debug, Serialize, Deserialize)]
struct NamedValue(Box<str>, Box<[u8]>, bool);

impl RuleRow {
    pub(crate) fn of(rule: &Rule) -> Self {
        let expression = |text: &str, parameters: &Parameters| Expression {
            text: text.to_owned(),
            parameters: parameters.iter().map(NamedValue::of).collect(),
        };
        Self {
            name: rule.name.clone(),
            created: rule.created_at.as_millis(),
            filter: match &rule.filter {
                Filter::True => FilterRow::True,
                Filter::False => FilterRow::False,
                Filter::Correlation(filter) => FilterRow::Correlation(filter.description().clone()),
                Filter::Sql(filter) => match filter.selector_text() {
                    Some(selector) => FilterRow::Selector(selector.to_owned()),
                    None => FilterRow::Sql(expression(filter.text(), filter.parameters())),
                },
            },
            action: (rule.action.as_ref())
                .map(|action| expression(action.text(), action.parameters())),
        }
    }

    pub(crate) fn read(self) -> Result<Rule, String> {
        let about = |what: String| format!("the rule {:?}: {what}", self.name);
        let sql = |expression: Expression| {
            let Expression { text, parameters } = expression;
            let parameters = read_parameters(parameters).map_err(about)?;
            SqlFilter::parse(&text, parameters).map_err(|error| about(error.to_string()))
        };
        let selector =
            |text: &str| SqlFilter::selector(text).map_err(|error| about(error.to_string()));
        let action = |Expression { text, parameters }| {
            let parameters = read_parameters(parameters).map_err(about)?;
            Action::parse(&text, parameters).map_err(|error| about(error.to_string()))
        };
        Ok(Rule {
            filter: match self.filter {
                FilterRow::True => Filter::True,
                FilterRow::False => Filter::False,
                FilterRow::Sql(expression) => Filter::Sql(sql(expression)?),
                FilterRow::Selector(text) => Filter::Sql(selector(&text)?),
                FilterRow::Correlation(described) => {
                    Filter::Correlation(CorrelationFilter::new(described))
                }
            },
            action: self.action.map(action).transpose()?,
            created_at: Timestamp::from_millis(self.created),
            name: self.name,
        })
    }
}

fn read_parameters(rows: Vec<NamedValue>) -> Result<Parameters, String> {
    let mut parameters = Parameters::new();
    for row in rows {
        let (name, value) = row.read()?;
        parameters.add(&name, value);
    }
    Ok(parameters)
}

impl NamedValue {
    fn of((name, value): (&str, &Encoded)) -> Self {
        Self(name.into(), value.as_amqp().into(), value.is_zoneless())
    }

    fn read(self) -> Result<(Box<str>, Encoded), String> {
        let Self(name, encoded, is_zoneless) = self;
        let value = Encoded::from_amqp(&encoded).map_err(|error| format!("{name}: {error}"))?;
        if let Value::Instant(ticks) = value.value()
            && is_zoneless
        {
            return Ok((name, Encoded::instant(ticks, true)));
        }
        Ok((name, value))
    }
}

mod values {
    use serde::{Deserialize as _, Deserializer, Serializer, de};
    use servicebus_broker::filter::Encoded;

    use super::NamedValue;

    pub(super) fn serialize<S: Serializer>(
        values: &[(Box<str>, Encoded)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let rows = values.iter().map(|(name, value)| (&**name, value));
        serializer.collect_seq(rows.map(NamedValue::of))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(Box<str>, Encoded)>, D::Error> {
        let rows = Vec::<NamedValue>::deserialize(deserializer)?;
        let values = rows.into_iter().map(NamedValue::read);
        values.collect::<Result<_, _>>().map_err(de::Error::custom)
    }
}
