//! Identifies the operations of a run by keys that are equal in every run.
//!
//! A key is `party.operation@entity/subject#n`. The subject distinguishes operations of a kind, if it is equal in both runs
//! without faults: the message id, the session, the hash of the body, or nothing. `n` counts the operations with the same
//! key.

use std::collections::BTreeMap;

use servicebus_control_api::{Filter, LoggedOperation, Operation};

use crate::Outcome;

/// The parts of keys beside party, operation and entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyParts {
    /// The message id.
    pub message_id: bool,
    /// The session.
    pub session_id: bool,
}

impl Default for KeyParts {
    fn default() -> Self {
        Self {
            message_id: true,
            session_id: true,
        }
    }
}

/// An operation that can get a fault.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultPoint {
    /// Its key.
    pub key: String,
    /// The name of its party.
    pub party: String,
    /// Its log entry.
    pub operation: LoggedOperation,
    /// The filter of a fault at it; `nth` counts the operations that this selects.
    pub filter: Filter,
    /// Its number, from 1.
    pub nth: u64,
    /// The previous operation of the party.
    pub previous: Option<Operation>,
}

impl FaultPoint {
    /// Returns whether its party does nothing of this kind at its entity in `among`.
    pub(crate) fn is_of_new_kind(&self, among: &[Self]) -> bool {
        let kind = |point: &Self| {
            let operation = &point.operation;
            (
                point.party.clone(),
                operation.operation,
                operation.entity.clone(),
            )
        };
        !among.iter().any(|point| kind(point) == kind(self))
    }

    /// Returns its description for people: `worker's completion of o-2, delivery 1`.
    pub fn title(&self) -> String {
        let operation = &self.operation;
        let (noun, _) = operation.operation.nouns();
        let mut title = format!("{}'s {noun}", self.party);
        if let Some(name) = &operation.name {
            title += &format!(" ({})", short(name));
        }
        match (
            &operation.message_id,
            &operation.session_id,
            &operation.entity,
        ) {
            (Some(id), ..) => title += &format!(" of {id}"),
            (None, Some(session), _) => title += &format!(" in session {session}"),
            (None, None, Some(entity)) => title += &format!(" at {entity}"),
            (None, None, None) => {}
        }
        match operation.delivery {
            Some(delivery) => title + &format!(", delivery {delivery}"),
            None if self.nth > 1 => title + &format!(", number {}", self.nth),
            None => title,
        }
    }
}

/// Returns the operations of parties, in order. `parties` has the names of parties by key name; other operations are the
/// test's own.
pub(crate) fn fault_points(
    log: &[LoggedOperation],
    parties: &BTreeMap<String, String>,
    key_parts: KeyParts,
) -> Vec<FaultPoint> {
    let mut counts = BTreeMap::<String, u64>::new();
    let mut earlier = BTreeMap::<(&str, &str), Vec<&LoggedOperation>>::new();
    let mut previous = BTreeMap::<&str, Operation>::new();
    let mut fault_points = Vec::new();
    for operation in log {
        let Some((key_name, party)) = operation
            .party
            .as_ref()
            .and_then(|key| parties.get_key_value(key))
        else {
            continue;
        };
        let subject = subject(operation, key_parts);
        let key_prefix = key_prefix(
            party,
            operation,
            subject.as_ref().map(|(text, _)| text.as_str()),
        );
        let count = counts.entry(key_prefix.clone()).or_default();
        *count += 1;
        let filter = filter(key_name, operation, subject);
        let alike = earlier.entry((party, operation.operation.name()));
        let alike = alike.or_default();
        alike.push(operation);
        // Not the number in the key: a filter without a subject also selects the operations that have one.
        let nth = alike.iter().filter(|other| selects(&filter, other)).count() as u64;
        fault_points.push(FaultPoint {
            key: format!("{key_prefix}#{count}"),
            party: party.clone(),
            operation: operation.clone(),
            filter,
            nth,
            previous: previous.insert(party, operation.operation),
        });
    }
    fault_points
}

/// Returns the features that are equal in two runs; the others are left out of keys.
pub(crate) fn stable_key_parts(
    first: &[LoggedOperation],
    second: &[LoggedOperation],
    parties: &BTreeMap<String, String>,
) -> KeyParts {
    let points = |log, key_parts| fault_points(log, parties, key_parts);
    let of = |(message_id, session_id)| KeyParts {
        message_id,
        session_id,
    };
    let none = of((false, false));
    let mut all = [(true, true), (true, false), (false, true)]
        .into_iter()
        .map(of);
    let stable = all.find(|&parts| have_equal_keys(&points(first, parts), &points(second, parts)));
    stable.unwrap_or(none)
}

/// Describes the first operation in which two runs differ.
pub(crate) fn describe_divergence(first: &Outcome, second: &Outcome) -> String {
    let keys = |outcome: &Outcome| {
        let all = fault_points(&outcome.operations, &outcome.parties, KeyParts::default());
        Vec::from_iter(all.into_iter().map(|point| point.key))
    };
    let (first, second) = (keys(first), keys(second));
    let none = "nothing more".to_owned();
    let length = first.len().max(second.len());
    let differing = (0..length).find(|&index| first.get(index) != second.get(index));
    differing.map_or_else(String::new, |index| {
        let [one, other] = [&first, &second].map(|keys| keys.get(index).unwrap_or(&none));
        format!(" (one does `{one}` where the other does `{other}`)")
    })
}

/// Returns whether two runs did the same, in any order.
pub(crate) fn have_equal_keys(first: &[FaultPoint], second: &[FaultPoint]) -> bool {
    let [first, second] = [first, second].map(|fault_points| {
        let mut keys = Vec::from_iter(fault_points.iter().map(|point| &point.key));
        keys.sort();
        keys
    });
    first == second
}

enum SubjectKind {
    Message,
    Session,
}

fn subject(operation: &LoggedOperation, key_parts: KeyParts) -> Option<(String, SubjectKind)> {
    if !operation.operation.is_about_messages() {
        return None;
    }
    if key_parts.message_id
        && let Some(id) = &operation.message_id
    {
        return Some((id.clone(), SubjectKind::Message));
    }
    if key_parts.session_id
        && let Some(id) = &operation.session_id
    {
        return Some((id.clone(), SubjectKind::Session));
    }
    None
}

/// Returns the filter of a fault at an operation.
fn filter(
    key_name: &str,
    operation: &LoggedOperation,
    subject: Option<(String, SubjectKind)>,
) -> Filter {
    let is_at_entity = operation.operation != Operation::Connect;
    let (message_id, session_id) = match subject {
        Some((id, SubjectKind::Message)) => (Some(id), None),
        Some((id, SubjectKind::Session)) => (None, Some(id)),
        None => (None, None),
    };
    Filter {
        entity: operation.entity.clone().filter(|_| is_at_entity),
        name: operation.name.clone(),
        party: Some(key_name.to_owned()),
        message_id,
        session_id,
        ..Filter::default()
    }
}

/// Returns whether the emulator counts an operation of the same kind and party as selected by this filter.
fn selects(filter: &Filter, operation: &LoggedOperation) -> bool {
    let is = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
    let is_in_any_case = |wanted: &Option<String>, found: &Option<String>| {
        let found = found.as_deref().unwrap_or_default();
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
    };
    is_in_any_case(&filter.entity, &operation.entity)
        && is_in_any_case(&filter.name, &operation.name)
        && is(&filter.message_id, &operation.message_id)
        && is(&filter.session_id, &operation.session_id)
}

fn key_prefix(party: &str, operation: &LoggedOperation, subject: Option<&str>) -> String {
    let mut key_prefix = format!("{}.{}", escaped(party), operation.operation.name());
    if let Some(name) = &operation.name {
        key_prefix += &format!("({})", escaped(short(name)));
    }
    if let Some(entity) = &operation.entity {
        key_prefix += &format!("@{}", escaped(entity));
    }
    if let Some(subject) = subject {
        key_prefix += &format!("/{}", escaped(subject).replace('/', "%2F"));
    }
    key_prefix
}

fn short(name: &str) -> &str {
    name.strip_prefix("com.microsoft:").unwrap_or(name)
}

/// Percent-encodes characters with a meaning in tokens and shells.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '%' | '#' | '+' | ';' | '=' | '@' | '\'' | '"' | ' ' => {
                escaped += &format!("%{:02X}", u32::from(character));
            }
            control if control.is_control() => escaped += &format!("%{:02X}", u32::from(control)),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operation(about: serde_json::Value) -> LoggedOperation {
        let mut operation = json!({
            "number": 1, "at": "2026-01-01T00:00:00Z", "offset": 1.0, "operation": "complete", "party": "key-1",
            "entity": "orders", "messages": 1, "locked": true, "repeatable": true, "faults": [],
        });
        let members = about.as_object().unwrap().clone();
        operation.as_object_mut().unwrap().extend(members);
        serde_json::from_value(operation).unwrap()
    }

    #[test]
    fn a_fault_counts_every_operation_that_its_filter_selects() {
        let log = [
            json!({ "message_id": "o-1" }),
            // Its lock is lost, so that its message is unknown.
            json!({}),
            json!({ "message_id": "o-2", "session_id": "s" }),
            json!({ "session_id": "s" }),
            json!({ "operation": "receive" }),
            json!({ "name": "com.microsoft:update-disposition", "message_id": "o-3" }),
            json!({ "party": "key-2" }),
            json!({ "entity": "ORDERS" }),
            json!({ "message_id": "o-1" }),
        ];
        let parties = ["key-1", "key-2"].map(|key| (key.to_owned(), key.replace("key", "worker")));
        let points = fault_points(&log.map(operation), &parties.into(), KeyParts::default());
        let numbered = points.iter().map(|point| (point.key.as_str(), point.nth));
        assert_eq!(
            Vec::from_iter(numbered),
            [
                ("worker-1.complete@orders/o-1#1", 1),
                ("worker-1.complete@orders#1", 2),
                ("worker-1.complete@orders/o-2#1", 1),
                ("worker-1.complete@orders/s#1", 2),
                ("worker-1.receive@orders#1", 1),
                ("worker-1.complete(update-disposition)@orders/o-3#1", 1),
                ("worker-2.complete@orders#1", 1),
                ("worker-1.complete@ORDERS#1", 6),
                ("worker-1.complete@orders/o-1#2", 2),
            ]
        );
    }
}
