//! The structure of a namespace's entities: queues, and topics with their subscriptions.

use jsonc_parser::ast::Value as Json;
use servicebus_broker::filter::{Correlation, Encoded, Parameters, Value};
use servicebus_broker::{ClientAffinity, EntityKind};

use crate::config::properties::Properties;
use crate::config::reader::{Located, Location, Object, Report, wrong_type};
use crate::descriptions::{CLIENT_AFFINE_PROPERTIES, IS_CLIENT_AFFINE, read_correlation};

/// An element of `Queues`.
#[derive(Debug)]
pub(crate) struct QueueBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) properties: Properties,
}

/// An element of `Topics`.
#[derive(Debug)]
pub(crate) struct TopicBlock {
    pub(crate) location: Location,
    pub(crate) name: Option<Located<String>>,
    pub(crate) properties: Properties,
    pub(crate) subscriptions: Vec<SubscriptionBlock>,
}

/// An element of a topic's `Subscriptions`.
#[derive(Debug)]
pub(crate) struct SubscriptionBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) properties: Properties,
    /// The JMS 2.0 client that it belongs to, if there is one.
    pub(crate) client: Option<Located<ClientAffinity>>,
    pub(crate) rules: Vec<RuleBlock>,
}

impl QueueBlock {
    pub(crate) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = properties(&mut object, EntityKind::Queue);
        object.finish();
        Self { name, properties }
    }
}

impl TopicBlock {
    pub(crate) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = properties(&mut object, EntityKind::Topic);
        let subscriptions = object.list("Subscriptions", SubscriptionBlock::read);
        Self {
            location: object.finish(),
            name,
            properties,
            subscriptions,
        }
    }
}

impl SubscriptionBlock {
    fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let mut written = object.object("Properties");
        let client = written.as_mut().and_then(client);
        let properties = properties_of(written, EntityKind::Subscription);
        let rules = object.list("Rules", RuleBlock::read);
        object.finish();
        Self {
            name,
            properties,
            client,
            rules,
        }
    }
}

fn properties(object: &mut Object<'_, '_>, kind: EntityKind) -> Properties {
    properties_of(object.object("Properties"), kind)
}

fn properties_of(written: Option<Object<'_, '_>>, kind: EntityKind) -> Properties {
    written.map_or_else(Properties::default, |own| Properties::read(own, kind))
}

/// Reads the client of a subscription from its properties. Its selector is in its rule instead.
fn client(properties: &mut Object<'_, '_>) -> Option<Located<ClientAffinity>> {
    let is_affine = properties.boolean(IS_CLIENT_AFFINE);
    let is_affine = is_affine.is_some_and(|flag| flag.value);
    let mut own = properties.object_if(is_affine, CLIENT_AFFINE_PROPERTIES)?;
    let client_id = own.string("ClientId");
    let mut flag = |key| own.boolean(key).map(|flag| flag.value);
    let value = ClientAffinity {
        is_durable: flag("IsDurable").unwrap_or(true),
        is_shared: flag("IsShared").unwrap_or_default(),
        client_id: client_id.map_or_else(Box::default, |id| id.value.into()),
        selector: None,
    };
    let location = own.finish();
    is_affine.then_some(Located { location, value })
}

/// The key of a value without a JSON type: its AMQP encoding in hexadecimal digits.
pub(crate) const AMQP: &str = "Amqp";

/// Reads the values of an object by name; invalid ones are reported and left out.
pub(crate) fn named(object: Object<'_, '_>) -> Vec<(Box<str>, Encoded)> {
    let report = object.report();
    let entries = object.entries().into_iter();
    entries
        .filter_map(|(name, found)| Some((name.into(), value(report, found)?)))
        .collect()
}

fn value(report: &Report<'_>, found: Located<&Json<'_>>) -> Option<Encoded> {
    let Located { location, value } = found;
    match value {
        Json::StringLit(text) => Some(Encoded::from(&*text.value)),
        Json::BooleanLit(flag) => Some(Encoded::from(&Value::Bool(flag.value))),
        Json::NumberLit(digits) => number(report, &location, digits.value),
        Json::Object(_) => {
            let mut object = Object::of(report, value, location.path)?;
            let digits = object.required_string(AMQP);
            object.finish();
            encoded(report, digits?)
        }
        Json::Array(_) | Json::NullKeyword(_) => {
            wrong_type(
                report,
                &location,
                value,
                "a string, a number, true or false",
            );
            None
        }
    }
}

fn number(report: &Report<'_>, location: &Location, digits: &str) -> Option<Encoded> {
    let is_whole = !digits.contains(['.', 'e', 'E']);
    let whole = || {
        let signed = digits.parse().map(Value::Signed);
        signed.or_else(|_| digits.parse().map(Value::Unsigned)).ok()
    };
    let float = || {
        let float = digits.parse().ok();
        float
            .filter(|float: &f64| float.is_finite())
            .map(Value::Float)
    };
    let value = if is_whole { whole() } else { float() };
    if value.is_none() {
        let allowed = "64 bits, or a floating-point number".to_owned();
        report.wrong_value(location, "fits no number of AMQP", Some(allowed));
    }
    value.as_ref().map(Encoded::from)
}

fn encoded(report: &Report<'_>, digits: Located<String>) -> Option<Encoded> {
    let Located { location, value } = digits;
    let bytes = bytes(&value);
    let encoded = bytes.and_then(|bytes| Encoded::from_amqp(&bytes).ok());
    if encoded.is_none() {
        let allowed = "hexadecimal digits of one primitive AMQP value".to_owned();
        report.wrong_value(&location, "is not an encoded value", Some(allowed));
    }
    encoded
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}

/// An element of `Rules`.
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

/// The key of a JMS selector in a filter.
pub(crate) const SELECTOR: &str = "Selector";

/// The type of a rule's filter.
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
    pub(crate) location: Location,
    pub(crate) correlation: Correlation,
    /// Whether it is empty, without even an invalid member.
    pub(crate) is_empty: bool,
}

/// The `SqlFilter` or `Action` of a rule.
#[derive(Debug)]
pub(crate) struct ExpressionBlock {
    pub(crate) location: Location,
    pub(crate) expression: Option<Located<String>>,
    /// Whether the expression is a JMS selector.
    pub(crate) is_selector: bool,
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
        let correlation = object.object_if(is(FilterType::Correlation), "CorrelationFilter");
        let sql = object.object_if(is(FilterType::Sql), "SqlFilter");
        let properties = Self {
            correlation: correlation.map(CorrelationBlock::read),
            sql: sql.map(ExpressionBlock::read_filter),
            action: object.object("Action").map(ExpressionBlock::read),
            filter_type,
        };
        object.finish();
        properties
    }
}

impl FilterType {
    /// All filter types.
    const ALL: [Self; 4] = [Self::Correlation, Self::Sql, Self::True, Self::False];

    /// Returns the name in a configuration.
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
        let no_property = properties.as_ref().is_some_and(Object::is_empty);
        let properties = properties.map(named).unwrap_or_default();
        let correlation =
            read_correlation(properties, |key| Some(object.string(key)?.value.into()));
        Self {
            location: object.finish(),
            correlation,
            is_empty: written == usize::from(no_property),
        }
    }
}

impl ExpressionBlock {
    /// Reads a filter, which has a selector instead of an expression if a JMS client has created it.
    fn read_filter(mut object: Object<'_, '_>) -> Self {
        if object.any(SELECTOR).is_none() {
            return Self::read(object);
        }
        let expression = object.string(SELECTOR);
        Self {
            location: object.finish(),
            expression,
            is_selector: true,
            parameters: Parameters::new(),
        }
    }

    fn read(mut object: Object<'_, '_>) -> Self {
        let expression = object.required_string("SqlExpression");
        let mut parameters = Parameters::new();
        let written = object.object("Parameters").map(named);
        for (name, value) in written.unwrap_or_default() {
            parameters.add(&name, value);
        }
        Self {
            location: object.finish(),
            expression,
            is_selector: false,
            parameters,
        }
    }
}
