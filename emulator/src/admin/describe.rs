//! Entities as XML: what a client says of one, and what it is shown (admin-http.md §5, §6).
//!
//! What is not legal in the words of the service, where those are known (admin-http.md §8.2, §11).

mod authorization;
mod read;
mod rule;
mod value;
mod view;

use std::time::Duration;

use axum::http::StatusCode;
use servicebus_broker::{
    Audience, EntityDescription, EntityKind, EntityPath, Problem, Property, Tier,
};

use super::call::Call;
use super::refusal::{MORE, ServiceError};
use super::time::time_span;
use crate::namespace::{AdministerError, Namespace};

pub(crate) use authorization::KeyGenerator;
pub(crate) use read::{Wanted, read_entity};
pub use rule::write_new_rule;
pub(crate) use rule::{DEFAULT_RULE, name_of_rule, read_rule, write_rule};
pub(crate) use view::View;

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
const AUTHORIZATION_RULES: &str = "AuthorizationRules";
const CLIENT_AFFINE_PROPERTIES: &str = "ClientAffineProperties";
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

/// Shortest history of duplicate detection that this API takes (decision D15).
const MIN_DUPLICATE_WINDOW: Duration = Duration::from_secs(20);
/// Longest lock.
const MAX_LOCK: Duration = Duration::from_secs(300);

/// Refuses what this API does not take, although a configuration may say it.
pub(crate) fn check_duplicate_window(
    kind: EntityKind,
    wanted: &EntityDescription,
) -> Result<(), ServiceError> {
    let window = wanted.duplicate_detection_history_time_window;
    match kind != EntityKind::Subscription && window < MIN_DUPLICATE_WINDOW {
        true => Err(duplicate_window(window)),
        false => Ok(()),
    }
}

impl Call<'_> {
    /// Why an entity is not created or changed to be as it is `wanted`.
    pub(crate) fn refused(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        wanted: &EntityDescription,
        error: &AdministerError,
    ) -> ServiceError {
        match error {
            AdministerError::Exists => self.exists(kind, path),
            // It was idle, and has just gone.
            AdministerError::NotFound => ServiceError::no_operation(),
            AdministerError::TooManyEntities(limit) => {
                let text = format!(
                    "The maximum number of resources of type '{kind}' has been reached or exceeded. The namespace '{}' \
                     has {limit} queues and topics.",
                    self.namespace.name()
                );
                ServiceError::limit(40300, text)
            }
            AdministerError::TooManySubscriptions { topic, limit } => {
                let text = format!(
                    "The topic '{topic}' has {limit} subscriptions, which is the most that it may have."
                );
                ServiceError::limit(40503, text)
            }
            AdministerError::Properties(problems) => match problems.first() {
                Some(problem) => not_legal(self.namespace, kind, path, problem, wanted),
                None => ServiceError::no_operation(),
            },
            AdministerError::Targets(targets) => match targets.first() {
                Some((property, target)) => missing_target(path, property, target),
                None => ServiceError::no_operation(),
            },
            AdministerError::Fixed(problems) => fixed(
                kind,
                problems.first().map_or("", |problem| problem.property),
            ),
        }
    }
}

/// What is fixed at creation would change.
fn fixed(kind: EntityKind, property: &str) -> ServiceError {
    ServiceError::bad_request(match property {
        // Observed 33.
        "EnablePartitioning" => format!("Partitioning cannot be changed for {kind}."),
        _ => format!(
            "The value for the {property} property of an existing {kind} cannot be changed."
        ),
    })
}

fn missing_target(path: &EntityPath, property: &str, target: &EntityPath) -> ServiceError {
    let text = format!(
        "SubCode=40400. The auto-forwarding destination entity '{target}' of '{path}' doesn't exist. {MORE} .\r\n\
         Parameter name: {property}\r\nActual value was {target}."
    );
    ServiceError::new(StatusCode::BAD_REQUEST, text)
}

fn not_legal(
    namespace: &Namespace,
    kind: EntityKind,
    path: &EntityPath,
    problem: &Problem,
    entity: &EntityDescription,
) -> ServiceError {
    let (name, property, tier) = (
        namespace.name(),
        problem.property,
        namespace.config.settings.tier,
    );
    let known = Property::named(kind, property);
    match property {
        "LockDuration" => lock_duration(kind, entity.lock_duration),
        "DuplicateDetectionHistoryTimeWindow" => {
            duplicate_window(entity.duplicate_detection_history_time_window)
        }
        "MaxMessageSizeInKilobytes" => message_size(namespace),
        // Observed 65.
        "AutoDeleteOnIdle" if tier == Tier::Basic => ServiceError::bad_request(format!(
            "The property 'AutoDeleteOnIdle' cannot be set when creating a {kind} because the namespace '{name}' is \
             using 'Basic' tier."
        )),
        // A property that the basic tier does not have at all, or the kind of entity.
        _ if known.is_none_or(|known| known.is_absent_in(tier)) => {
            ServiceError::bad_request(format!(
                "The property '{property}' can't be set when creating a {kind} because the namespace '{name}' is \
                 using the 'Basic' Tier. This operation is only supported in 'Standard' or 'Premium' tier."
            ))
        }
        _ => {
            let allowed = &problem.allowed;
            let text = format!(
                "The value of '{property}' of '{path}' is not allowed; allowed: {allowed}. {MORE} ."
            );
            ServiceError::parameter(text, property, &problem.value)
        }
    }
}

fn lock_duration(kind: EntityKind, duration: Duration) -> ServiceError {
    let text = match duration > MAX_LOCK {
        true => "The supplied lock time exceeds the allowed maximum of '5' minutes.",
        false => "The supplied lock time is less than the allowed minimum of '5' seconds.",
    };
    let text = format!("{text} {MORE} .");
    let refusal = ServiceError::parameter(text, "LockDuration", &time_span(duration));
    match kind {
        EntityKind::Subscription => refusal.without_sub_code().by_back_end(),
        EntityKind::Queue | EntityKind::Topic => refusal,
    }
}

fn duplicate_window(window: Duration) -> ServiceError {
    ServiceError::parameter(
        "The value supplied must be between 00:00:20 and 7.00:00:00.",
        "DuplicateDetectionHistoryTimeWindow",
        &time_span(window),
    )
}

fn message_size(namespace: &Namespace) -> ServiceError {
    let name = namespace.name();
    let (range, tier) = match namespace.config.settings.tier {
        Tier::Premium => ("between 1024 and 102400", "Premium"),
        Tier::Standard => ("256", "Standard"),
        Tier::Basic => ("256", "Basic"),
    };
    ServiceError::bad_request(format!(
        "The property value for 'MaxMessageSizeInKilobytes' must be {range} when the namespace '{name}' is using \
         '{tier}' tier."
    ))
}
