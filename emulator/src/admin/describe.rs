//! Entities as XML: what a client says of one, and what it is shown (admin-http.md §5, §6).

mod authorization;
mod judge;
mod read;
mod rule;
mod value;
mod view;

pub(crate) use authorization::KeyGenerator;
pub(crate) use judge::check_duplicate_window;
pub(crate) use read::{Wanted, read_entity};
pub use rule::write_new_rule;
pub(crate) use rule::{DEFAULT_RULE, name_of_rule, read_rule, write_rule};
pub(crate) use view::View;

use servicebus_broker::{Audience, EntityKind, Property};

/// The element that describes an entity of this kind.
pub fn description_root(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "QueueDescription",
        EntityKind::Topic => "TopicDescription",
        EntityKind::Subscription => "SubscriptionDescription",
    }
}

/// The element that describes a rule.
pub(crate) const RULE: &str = "RuleDescription";

/// The elements of descriptions that are no properties, with their positions as in the table of those: the service has an
/// order of its own, and its reader knows no other.
const OTHERS: [(&str, [u16; 3]); 12] = [
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
    // Of a new one alone, and never shown.
    (DEFAULT_RULE_DESCRIPTION, [0, 0, 60]),
];
const AUTHORIZATION_RULES: &str = "AuthorizationRules";
const COUNT_DETAILS: &str = "CountDetails";
pub(crate) const DEFAULT_RULE_DESCRIPTION: &str = "DefaultRuleDescription";

/// An element of a description.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Property(&'static Property),
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
fn parts(kind: EntityKind) -> Vec<Part> {
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
