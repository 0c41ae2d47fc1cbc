//! Where queues and subscriptions forward to: names that somebody must have declared.
//!
//! Chains and cycles are legal, the hop limit ends them (decision D3). That a queue forwards to itself is for
//! the broker to find; a subscription cannot be a target.

use std::collections::BTreeSet;

use servicebus_broker::{EntityPath, Problem, QueueDescription};

use crate::config::nearest;

/// The targets of a queue or subscription that are not among the `declared` queues and topics of its namespace. A
/// subscription, and a queue without a legal name, has no `path`.
pub(crate) fn missing_targets(
    path: Option<&EntityPath>,
    description: &QueueDescription,
    declared: &BTreeSet<&EntityPath>,
) -> Vec<Problem> {
    missing(path, description, declared, true)
}

/// The same, with the nearest names only where it `compares`: that takes time for every name there is.
pub(super) fn missing(
    path: Option<&EntityPath>,
    description: &QueueDescription,
    declared: &BTreeSet<&EntityPath>,
    compares: bool,
) -> Vec<Problem> {
    let targets = [
        (
            "ForwardDeadLetteredMessagesTo",
            &description.forward_dead_lettered_messages_to,
        ),
        ("ForwardTo", &description.forward_to),
    ];
    let missing = targets.into_iter().filter_map(|(property, target)| {
        let target = target.as_ref()?;
        (path != Some(target) && !declared.contains(target)).then_some((property, target))
    });
    missing
        .map(|(property, target)| Problem {
            property,
            value: target.to_string(),
            allowed: allowed(path, target, declared, compares),
        })
        .collect()
}

fn allowed(
    path: Option<&EntityPath>,
    target: &EntityPath,
    declared: &BTreeSet<&EntityPath>,
    compares: bool,
) -> String {
    let others = declared.iter().filter(|name| Some(**name) != path);
    let names = others.map(|name| name.as_str());
    let nearest = match declared.len() {
        0..=nearest::MAX_COMPARED if compares => nearest::nearest(target.as_str(), names),
        _ => None,
    };
    match nearest {
        Some(name) => {
            format!("another queue or topic of the namespace; the nearest name is {name:?}")
        }
        None => "another queue or topic of the namespace".to_owned(),
    }
}
