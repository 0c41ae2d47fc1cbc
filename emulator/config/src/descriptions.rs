//! Entities and rules in the XML of the administration API: what their descriptions consist of, and rules as they are written
//! (admin-http.md §5, §6). What a client says of them is read by `admin/describe`.

mod instant;
mod rule;

use servicebus_broker::filter::{Correlation, Encoded};
use servicebus_broker::{Audience, EntityKind, Property};

pub use instant::Instant;
pub use rule::{ENTRY, write_new_rule, write_rule, write_values};

/// The element that describes an entity of this kind.
pub fn description_root(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "QueueDescription",
        EntityKind::Topic => "TopicDescription",
        EntityKind::Subscription => "SubscriptionDescription",
    }
}

/// The element that describes a rule.
pub const RULE: &str = "RuleDescription";

/// The elements of descriptions that are no properties, with their positions as in the table of those: the service has an
/// order of its own, and its reader knows no other.
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
    // Of a new one alone, and never shown.
    (DEFAULT_RULE_DESCRIPTION, [0, 0, 60]),
];
/// The rules of authorization of a queue or topic.
pub const AUTHORIZATION_RULES: &str = "AuthorizationRules";
/// Whether a client of JMS 2.0 has a subscription.
pub const IS_CLIENT_AFFINE: &str = "IsClientAffine";
/// Whose a subscription is that a client of JMS 2.0 has.
pub const CLIENT_AFFINE_PROPERTIES: &str = "ClientAffineProperties";
/// How many messages there are of each kind.
pub const COUNT_DETAILS: &str = "CountDetails";
/// The rule that a new subscription begins with.
pub const DEFAULT_RULE_DESCRIPTION: &str = "DefaultRuleDescription";

/// An element of a description.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// A property of the entity.
    Property(&'static Property),
    /// An element that is no property, by its name.
    Other(&'static str),
}

/// The elements that clients set in the description of an entity of this kind, in the order of the service.
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

/// What the description of such an entity consists of, in the order of the service.
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

/// The system properties of a correlation filter by name, in the order of the service.
pub(crate) fn correlation_properties(
    filter: &Correlation,
) -> impl Iterator<Item = (&'static str, &str)> {
    let properties = [
        ("CorrelationId", &filter.correlation_id),
        ("MessageId", &filter.message_id),
        ("To", &filter.to),
        ("ReplyTo", &filter.reply_to),
        ("Label", &filter.label),
        ("SessionId", &filter.session_id),
        ("ReplyToSessionId", &filter.reply_to_session_id),
        ("ContentType", &filter.content_type),
    ];
    let properties = properties.into_iter();
    properties.filter_map(|(name, text)| Some((name, text.as_deref()?)))
}

/// The correlation filter of these application properties, and of the system properties that `text` has by name.
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
