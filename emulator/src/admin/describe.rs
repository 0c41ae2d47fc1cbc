//! Entities as XML: the descriptions that clients send and get (admin-http.md §5, §6).
//!
//! Errors are in the words of the service, where they are known (admin-http.md §8.2, §11).

mod authorization;
mod read;
mod rule;
mod value;
mod view;

use std::time::Duration;

use axum::http::StatusCode;
use servicebus_broker::filter::time_span;
use servicebus_broker::{
    EntityDescription, EntityKind, EntityPath, Problem, Property, PropertyType, Tier,
};

use super::call::Call;
use super::refusal::{MORE, ServiceError};
use crate::namespace::{AdministerError, Namespace};
use crate::xml::Element;

pub(crate) use authorization::KeyGenerator;
pub(crate) use read::{Wanted, read_entity};
pub(crate) use rule::{DEFAULT_RULE, name_of_rule, read_rule};
pub(crate) use view::View;

/// Shortest history of duplicate detection in this API (decision D15).
const MIN_DUPLICATE_WINDOW: Duration = Duration::from_secs(20);
/// Longest lock.
const MAX_LOCK: Duration = Duration::from_secs(300);

/// Refuses a window that this API does not accept, although a configuration may have it. The entity's own value is accepted,
/// because clients send back what they read.
pub(crate) fn check_duplicate_window(
    kind: EntityKind,
    wanted: &EntityDescription,
    before: Option<&EntityDescription>,
) -> Result<(), ServiceError> {
    let window = wanted.duplicate_detection_history_time_window;
    let is_kept =
        before.is_some_and(|before| before.duplicate_detection_history_time_window == window);
    match kind != EntityKind::Subscription && window < MIN_DUPLICATE_WINDOW && !is_kept {
        true => Err(duplicate_window(window)),
        false => Ok(()),
    }
}

impl Call<'_> {
    /// Returns the error for an entity that is not created or changed as `wanted`.
    pub(crate) fn refused(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        element: &Element,
        wanted: &EntityDescription,
        error: &AdministerError,
    ) -> ServiceError {
        match error {
            AdministerError::Exists => self.exists(kind, path),
            // It was idle, and has just been deleted.
            AdministerError::NotFound => ServiceError::no_operation(),
            AdministerError::TooManyEntities(limit) => {
                let text = format!(
                    "The maximum number of resources of type '{kind}' has been reached or exceeded. The namespace '{}' \
                     has {limit} queues and topics.",
                    self.namespace.name()
                );
                ServiceError::limit(40300, text)
            }
            AdministerError::TopicIsFull {
                topic,
                limit,
                what,
                sub_code,
            } => {
                let text = format!(
                    "The topic '{topic}' has {limit} {what}, which is the most that it may have."
                );
                ServiceError::limit(*sub_code, text)
            }
            AdministerError::Properties(problems) => match problems.first() {
                Some(problem) => {
                    let problem = as_written(kind, problem, element);
                    not_legal(self.namespace, kind, path, &problem, wanted)
                }
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

/// Returns the problem with a number as the client wrote it: one that does not fit its field is stored as another one.
fn as_written(kind: EntityKind, problem: &Problem, element: &Element) -> Problem {
    let mut problem = problem.clone();
    let property = Property::named(kind, problem.property);
    let is_number = property.is_some_and(|own| own.value_type == PropertyType::Number);
    if let Some(written) = element.part(problem.property).filter(|_| is_number) {
        written.text.trim().clone_into(&mut problem.value);
    }
    problem
}

/// Returns the error for a change of a property that is fixed at creation.
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
        "Topic" => ServiceError::bad_request(format!(
            "Cannot operate on type Topic because the namespace '{name}' is using 'Basic' tier."
        )),
        // The basic tier, or the kind of entity, does not have the property at all.
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
    let tier = namespace.config.settings.tier;
    let range = match tier {
        Tier::Premium => "between 1024 and 102400",
        Tier::Basic | Tier::Standard => "256",
    };
    let tier = tier.name();
    ServiceError::bad_request(format!(
        "The property value for 'MaxMessageSizeInKilobytes' must be {range} when the namespace '{name}' is using \
         '{tier}' tier."
    ))
}
