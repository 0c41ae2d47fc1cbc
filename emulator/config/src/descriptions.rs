//! Entities and rules in the XML of the administration API: the elements of their descriptions, and how rules are written
//! (admin-http.md §5, §6). `admin/describe` parses the descriptions of clients.

mod instant;
mod rule;

use servicebus_broker::filter::{Correlation, Encoded};
use servicebus_broker::{Audience, EntityKind, Property};

pub use instant::Instant;
pub(crate) use rule::typed_text;
pub use rule::{ENTRY, write_new_rule, write_rule, write_values};

/// Returns the element that describes a kind of entity.
pub fn description_root(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "QueueDescription",
        EntityKind::Topic => "TopicDescription",
        EntityKind::Subscription => "SubscriptionDescription",
    }
}

/// The element that describes a rule.
pub const RULE: &str = "RuleDescription";

/// The elements of descriptions that are not properties, with positions as in the table of properties: the service requires
/// its own order.
const OTHERS: [(&str, [u16; 3]); 13] = [
    ("SizeInBytes", [100, 60, 0]),
    ("MessageCount", [110, 0, 70]),
    (AUTHORIZATION_RULES, [130, 90, 0]),
    ("CreatedAt", [160, 110, 120]),
    ("UpdatedAt", [170, 120, 130]),
    ("AccessedAt", [180, 130, 140]),
    (COUNT_DETAILS, [210, 160, 150]),
    ("SubscriptionCount", [0, 170, 0]),
    ("SqlFilterCount", [0, 180, 0]),
    ("CorrelationFilterCount", [0, 190, 0]),
    ("EntityAvailabilityStatus", [240, 220, 190]),
    (CLIENT_AFFINE_PROPERTIES, [0, 0, 210]),
    // Only of a new subscription, and never returned.
    (DEFAULT_RULE_DESCRIPTION, [0, 0, 60]),
];
/// The authorization rules of a queue or topic.
pub const AUTHORIZATION_RULES: &str = "AuthorizationRules";
/// Whether a subscription belongs to a JMS 2.0 client.
pub const IS_CLIENT_AFFINE: &str = "IsClientAffine";
/// The JMS 2.0 client of a subscription.
pub const CLIENT_AFFINE_PROPERTIES: &str = "ClientAffineProperties";
/// The message counts.
pub const COUNT_DETAILS: &str = "CountDetails";
/// The first rule of a new subscription.
pub const DEFAULT_RULE_DESCRIPTION: &str = "DefaultRuleDescription";

/// An element of a description.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// A property of the entity.
    Property(&'static Property),
    /// The name of an element that is not a property.
    Other(&'static str),
}

/// Returns the elements that clients set in the description of a kind of entity, in the service's order.
pub fn description_elements(kind: EntityKind) -> Vec<&'static str> {
    let set = parts(kind).into_iter().filter_map(|part| match part {
        Part::Property(property) => {
            (property.audience != Audience::Unsupported).then_some(property.name)
        }
        Part::Other(name) => [AUTHORIZATION_RULES, DEFAULT_RULE_DESCRIPTION]
            .contains(&name)
            .then_some(name),
    });
    set.collect()
}

/// Returns all parts of the description of a kind of entity, in the service's order.
pub fn parts(kind: EntityKind) -> Vec<Part> {
    let properties = Property::all_of(kind);
    let properties = properties.map(|property| (property.position(kind), Part::Property(property)));
    let others = OTHERS.iter();
    let others = others.map(|(name, at)| (at[kind as usize], Part::Other(name)));
    let mut parts: Vec<_> = properties
        .chain(others.filter(|(at, _)| *at != 0))
        .collect();
    parts.sort_unstable_by_key(|(at, _)| *at);
    parts.into_iter().map(|(_, part)| part).collect()
}

/// The system properties of a correlation filter, in the service's order.
pub(crate) const CORRELATION_NAMES: [&str; 8] = [
    "CorrelationId",
    "MessageId",
    "To",
    "ReplyTo",
    "Label",
    "SessionId",
    "ReplyToSessionId",
    "ContentType",
];

/// Returns the system properties of a correlation filter by name, in the service's order.
pub(crate) fn correlation_properties(
    filter: &Correlation,
) -> impl Iterator<Item = (&'static str, &str)> {
    let properties = [
        &filter.correlation_id,
        &filter.message_id,
        &filter.to,
        &filter.reply_to,
        &filter.label,
        &filter.session_id,
        &filter.reply_to_session_id,
        &filter.content_type,
    ];
    let properties = CORRELATION_NAMES.into_iter().zip(properties);
    properties.filter_map(|(name, text)| Some((name, text.as_deref()?)))
}

/// Returns the correlation filter with these application properties, and the system properties that `text` returns by name.
pub fn read_correlation(
    properties: Vec<(Box<str>, Encoded)>,
    mut text: impl FnMut(&'static str) -> Option<Box<str>>,
) -> Correlation {
    Correlation {
        content_type: text("ContentType"),
        correlation_id: text("CorrelationId"),
        label: text("Label"),
        message_id: text("MessageId"),
        reply_to: text("ReplyTo"),
        reply_to_session_id: text("ReplyToSessionId"),
        session_id: text("SessionId"),
        to: text("To"),
        properties,
    }
}
