//! The shape of a rule: its name, what selects messages, what changes them.
//!
//! `Parameters` of an expression are ours: without them a rule that came over the wire could not be written.

use servicebus_broker::filter::{Correlation, Parameters};

use super::value;
use crate::config::reader::{Located, Object, Place};

/// One element of `Rules`.
#[derive(Debug)]
pub(crate) struct RuleBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) properties: Option<RuleProperties>,
}

/// The `Properties` of a rule.
#[derive(Debug)]
pub(crate) struct RuleProperties {
    pub(crate) filter_type: Option<Located<FilterType>>,
    pub(crate) correlation: Option<CorrelationBlock>,
    pub(crate) sql: Option<ExpressionBlock>,
    pub(crate) action: Option<ExpressionBlock>,
}

/// What kind of filter a rule has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterType {
    Correlation,
    Sql,
    True,
    False,
}

/// The `CorrelationFilter` of a rule.
#[derive(Debug)]
pub(crate) struct CorrelationBlock {
    pub(crate) place: Place,
    pub(crate) correlation: Correlation,
    /// Whether nothing is written in it, not even something wrong.
    pub(crate) is_empty: bool,
}

/// The `SqlFilter` or `Action` of a rule.
#[derive(Debug)]
pub(crate) struct ExpressionBlock {
    pub(crate) place: Place,
    pub(crate) expression: Option<Located<String>>,
    pub(crate) parameters: Parameters,
}

impl RuleBlock {
    pub(crate) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = object.required_object("Properties");
        let properties = properties.map(RuleProperties::read);
        object.finish();
        Self { name, properties }
    }
}

impl RuleProperties {
    fn read(mut object: Object<'_, '_>) -> Self {
        let types = FilterType::ALL.map(|filter_type| (filter_type.name(), filter_type));
        let filter_type = object.required_choice("FilterType", &types);
        let is = |wanted| {
            filter_type
                .as_ref()
                .is_some_and(|found| found.value == wanted)
        };
        let correlation = match is(FilterType::Correlation) {
            true => object.required_object("CorrelationFilter"),
            false => object.object("CorrelationFilter"),
        };
        let sql = match is(FilterType::Sql) {
            true => object.required_object("SqlFilter"),
            false => object.object("SqlFilter"),
        };
        let properties = Self {
            correlation: correlation.map(CorrelationBlock::read),
            sql: sql.map(ExpressionBlock::read),
            action: object.object("Action").map(ExpressionBlock::read),
            filter_type,
        };
        object.finish();
        properties
    }
}

impl FilterType {
    /// All of them.
    const ALL: [Self; 4] = [Self::Correlation, Self::Sql, Self::True, Self::False];

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Correlation => "Correlation",
            Self::Sql => "Sql",
            Self::True => "True",
            Self::False => "False",
        }
    }
}

impl CorrelationBlock {
    fn read(mut object: Object<'_, '_>) -> Self {
        let written = object.len();
        let properties = object.object("Properties");
        let no_property = properties.as_ref().is_some_and(|found| found.len() == 0);
        let mut text = |key| Some(object.string(key)?.value.into());
        let correlation = Correlation {
            content_type: text("ContentType"),
            correlation_id: text("CorrelationId"),
            label: text("Label"),
            message_id: text("MessageId"),
            reply_to: text("ReplyTo"),
            reply_to_session_id: text("ReplyToSessionId"),
            session_id: text("SessionId"),
            to: text("To"),
            properties: properties.map(value::named).unwrap_or_default(),
        };
        Self {
            place: object.finish(),
            correlation,
            is_empty: written == usize::from(no_property),
        }
    }
}

impl ExpressionBlock {
    fn read(mut object: Object<'_, '_>) -> Self {
        let expression = object.required_string("SqlExpression");
        let mut parameters = Parameters::new();
        let written = object.object("Parameters").map(value::named);
        for (name, value) in written.unwrap_or_default() {
            parameters.add(&name, value);
        }
        Self {
            place: object.finish(),
            expression,
            parameters,
        }
    }
}
