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
pub(crate) struct Features {
    /// The message id.
    pub message_id: bool,
    /// The session.
    pub session_id: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            message_id: true,
            session_id: true,
        }
    }
}

/// An operation that can get a fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
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

impl Site {
    /// Returns whether its party does nothing of this kind at its entity in `among`.
    pub(crate) fn is_of_new_kind(&self, among: &[Self]) -> bool {
        let kind = |site: &Self| {
            let operation = &site.operation;
            (
                site.party.clone(),
                operation.operation,
                operation.entity.clone(),
            )
        };
        !among.iter().any(|site| kind(site) == kind(self))
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
pub(crate) fn sites(
    log: &[LoggedOperation],
    parties: &BTreeMap<String, String>,
    features: Features,
) -> Vec<Site> {
    let mut counts = BTreeMap::<String, u64>::new();
    let mut previous = BTreeMap::<&str, Operation>::new();
    let mut sites = Vec::new();
    for operation in log {
        let Some((key_name, party)) = operation
            .party
            .as_ref()
            .and_then(|key| parties.get_key_value(key))
        else {
            continue;
        };
        let subject = subject(operation, features);
        let stem = stem(
            party,
            operation,
            subject.as_ref().map(|(text, _)| text.as_str()),
        );
        let count = counts.entry(stem.clone()).or_default();
        *count += 1;
        let mut filter = Filter {
            entity: operation
                .entity
                .clone()
                .filter(|_| operation.operation != Operation::Connect),
            name: operation.name.clone(),
            party: Some(key_name.clone()),
            ..Filter::default()
        };
        match subject {
            Some((id, Kind::Message)) => filter.message_id = Some(id),
            Some((id, Kind::Session)) => filter.session_id = Some(id),
            None => {}
        }
        sites.push(Site {
            key: format!("{stem}#{count}"),
            party: party.clone(),
            operation: operation.clone(),
            filter,
            nth: *count,
            previous: previous.insert(party, operation.operation),
        });
    }
    sites
}

/// Returns the features that are equal in two runs; the others are left out of keys.
pub(crate) fn unstable_features(
    first: &[LoggedOperation],
    second: &[LoggedOperation],
    parties: &BTreeMap<String, String>,
) -> Features {
    let keys = |log: &[LoggedOperation], features| {
        let mut keys: Vec<String> = sites(log, parties, features)
            .into_iter()
            .map(|site| site.key)
            .collect();
        keys.sort();
        keys
    };
    let all = Features::default();
    let without_message = Features {
        message_id: false,
        ..all
    };
    let none = Features {
        session_id: false,
        ..without_message
    };
    [
        all,
        Features {
            session_id: false,
            ..all
        },
        without_message,
    ]
    .into_iter()
    .find(|&features| keys(first, features) == keys(second, features))
    .unwrap_or(none)
}

/// Describes the first operation in which two runs differ.
pub(crate) fn diverging(first: &Outcome, second: &Outcome) -> String {
    let keys = |outcome: &Outcome| {
        let all = sites(&outcome.operations, &outcome.parties, Features::default());
        Vec::from_iter(all.into_iter().map(|site| site.key))
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
pub(crate) fn are_alike(first: &[Site], second: &[Site]) -> bool {
    let [first, second] = [first, second].map(|sites| {
        let mut keys = Vec::from_iter(sites.iter().map(|site| &site.key));
        keys.sort();
        keys
    });
    first == second
}

enum Kind {
    Message,
    Session,
}

fn subject(operation: &LoggedOperation, features: Features) -> Option<(String, Kind)> {
    if !operation.operation.is_about_messages() {
        return None;
    }
    if features.message_id
        && let Some(id) = &operation.message_id
    {
        return Some((id.clone(), Kind::Message));
    }
    if features.session_id
        && let Some(id) = &operation.session_id
    {
        return Some((id.clone(), Kind::Session));
    }
    None
}

fn stem(party: &str, operation: &LoggedOperation, subject: Option<&str>) -> String {
    let mut stem = format!("{}.{}", escaped(party), operation.operation.name());
    if let Some(name) = &operation.name {
        stem += &format!("({})", escaped(short(name)));
    }
    if let Some(entity) = &operation.entity {
        stem += &format!("@{}", escaped(entity));
    }
    if let Some(subject) = subject {
        stem += &format!("/{}", escaped(subject).replace('/', "%2F"));
    }
    stem
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
