//! Whether a description is legal. The bounds are the broker's; its problems get the words of the service where those
//! are known (admin-http.md §8.2, §11).

use std::time::Duration;

use servicebus_broker::{
    EntityKind, EntityPath, Problem, QueueDescription, SubscriptionDescription, Tier,
    TopicDescription,
};

use super::super::refusal::{MORE, ServiceError};
use super::super::time::time_span;
use super::read::Wanted;
use crate::namespace::Namespace;

/// Shortest history of duplicate detection that this API takes (decision D15).
const MIN_DUPLICATE_WINDOW: Duration = Duration::from_secs(20);
/// Longest lock.
const MAX_LOCK: Duration = Duration::from_secs(300);

/// Refuses what is not legal for an entity of this kind and path.
pub(in crate::admin) fn check_legal(
    namespace: &Namespace,
    kind: EntityKind,
    path: &EntityPath,
    wanted: &Wanted,
) -> Result<(), ServiceError> {
    let tier = namespace.config.settings.tier;
    let window = wanted.entity.duplicate_detection_history_time_window;
    if kind != EntityKind::Subscription && window < MIN_DUPLICATE_WINDOW {
        return Err(duplicate_window(window));
    }
    let problems = match kind {
        EntityKind::Queue => wanted.entity.problems(tier),
        EntityKind::Topic => TopicDescription::of_mailbox(&wanted.entity).problems(path, tier),
        EntityKind::Subscription => subscription(wanted).problems(tier),
    };
    match problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(refusal(namespace, kind, path, &problem, &wanted.entity)),
    }
}

/// Refuses to change what is fixed at creation.
pub(in crate::admin) fn check_fixed(
    kind: EntityKind,
    before: &QueueDescription,
    after: &QueueDescription,
) -> Result<(), ServiceError> {
    match before.fixed_problems(after).first() {
        None => Ok(()),
        // Observed 33.
        Some(problem) if problem.property == "EnablePartitioning" => Err(
            ServiceError::bad_request(format!("Partitioning cannot be changed for {kind}.")),
        ),
        Some(problem) => Err(ServiceError::bad_request(format!(
            "The value for the {} property of an existing {kind} cannot be changed.",
            problem.property
        ))),
    }
}

/// Destinations must be there when they are named (semantics §11).
pub(in crate::admin) fn check_targets(
    namespace: &Namespace,
    path: &EntityPath,
    wanted: &QueueDescription,
) -> Result<(), ServiceError> {
    for (property, target) in [
        ("ForwardTo", &wanted.forward_to),
        (
            "ForwardDeadLetteredMessagesTo",
            &wanted.forward_dead_lettered_messages_to,
        ),
    ] {
        if let Some(target) = target
            && target != path
            && namespace.entity(target).is_none()
        {
            return Err(ServiceError::new(
                axum::http::StatusCode::BAD_REQUEST,
                format!(
                    "SubCode=40400. The auto-forwarding destination entity '{target}' of '{path}' doesn't exist. \
                     {MORE} .\r\nParameter name: {property}\r\nActual value was {target}."
                ),
            ));
        }
    }
    Ok(())
}

/// A subscription's description from what was read.
pub(in crate::admin) fn subscription(wanted: &Wanted) -> SubscriptionDescription {
    SubscriptionDescription::of_mailbox(&wanted.entity, wanted.dead_letters_filter_errors)
}

fn refusal(
    namespace: &Namespace,
    kind: EntityKind,
    path: &EntityPath,
    problem: &Problem,
    entity: &QueueDescription,
) -> ServiceError {
    let (property, tier) = (problem.property, namespace.config.settings.tier);
    match property {
        "LockDuration" => lock_duration(kind, entity.lock_duration),
        "DuplicateDetectionHistoryTimeWindow" => {
            duplicate_window(entity.duplicate_detection_history_time_window)
        }
        "MaxMessageSizeInKilobytes" => message_size(namespace),
        // Observed 65.
        "AutoDeleteOnIdle" if tier == Tier::Basic => {
            let name = namespace.name();
            ServiceError::bad_request(format!(
                "The property 'AutoDeleteOnIdle' cannot be set when creating a {kind} because the namespace '{name}' \
                 is using 'Basic' tier."
            ))
        }
        _ if tier == Tier::Basic && is_above_basic(property, entity) => {
            let name = namespace.name();
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

/// Properties that the basic tier does not have at all.
fn is_above_basic(property: &str, entity: &QueueDescription) -> bool {
    match property {
        "RequiresDuplicateDetection" | "RequiresSession" | "Topic" => true,
        "ForwardTo" => entity.forward_to.is_some(),
        "ForwardDeadLetteredMessagesTo" => entity.forward_dead_lettered_messages_to.is_some(),
        _ => false,
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
