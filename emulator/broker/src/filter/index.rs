//! An index of many correlation filters, which finds matches by look-up.
//!
//! Filters on the same set of properties form a group, in which one look-up finds the values of a message. A message is
//! looked up only in groups whose first property it has, so that filters on properties that no message has cost nothing.

use std::collections::BTreeMap;

use super::ast::Property;
use super::correlation::{self, CorrelationFilter};
use super::properties::{Fnv, Name, Properties, same_name};
use super::system::SystemProperty;
use super::value::Value;

/// Correlation filters by their properties, each with a value of its owner.
#[derive(Debug, Clone)]
pub struct CorrelationIndex<T> {
    /// By the hash of the first property, then by all properties.
    groups: BTreeMap<u64, BTreeMap<Box<[Property]>, Group<T>>>,
    /// Owners of filters without conditions.
    unconditional: Vec<T>,
}

/// Filters on one set of properties, by the hash of their values.
type Group<T> = BTreeMap<u64, Vec<Entry<T>>>;

#[derive(Debug, Clone)]
struct Entry<T> {
    values: Box<[Value<'static>]>,
    owner: T,
}

impl<T> Default for CorrelationIndex<T> {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            unconditional: Vec::new(),
        }
    }
}

impl<T: PartialEq> CorrelationIndex<T> {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a filter with its owner's value.
    pub fn insert(&mut self, filter: &CorrelationFilter, owner: T) {
        let Some((first, _)) = filter.conditions().first() else {
            self.unconditional.push(owner);
            return;
        };
        // A filter on a value that equals nothing can never match.
        let Some(hash) = hash(filter.conditions().iter().map(|(_, value)| value)) else {
            return;
        };
        let group = self
            .groups
            .entry(pivot(first))
            .or_default()
            .entry(fields(filter))
            .or_default();
        let values = filter
            .conditions()
            .iter()
            .map(|(_, value)| value.clone())
            .collect();
        group.entry(hash).or_default().push(Entry { values, owner });
    }

    /// Removes a filter that was added with this value.
    pub fn remove(&mut self, filter: &CorrelationFilter, owner: &T) {
        let Some((first, _)) = filter.conditions().first() else {
            self.unconditional.retain(|other| other != owner);
            return;
        };
        let Some(hash) = hash(filter.conditions().iter().map(|(_, value)| value)) else {
            return;
        };
        let (pivot, fields) = (pivot(first), fields(filter));
        let Some(groups) = self.groups.get_mut(&pivot) else {
            return;
        };
        if let Some(group) = groups.get_mut(&fields) {
            if let Some(entries) = group.get_mut(&hash) {
                entries.retain(|entry| entry.owner != *owner);
                if entries.is_empty() {
                    group.remove(&hash);
                }
            }
            if group.is_empty() {
                groups.remove(&fields);
            }
        }
        if groups.is_empty() {
            self.groups.remove(&pivot);
        }
    }

    /// Calls `found` with the owner's value of every filter that matches a message.
    pub fn matching(&self, properties: &Properties<'_>, mut found: impl FnMut(&T)) {
        self.unconditional.iter().for_each(&mut found);
        for &property in SystemProperty::ALL {
            if properties.system(property).is_null() {
                continue;
            }
            let is_it = |first: &Property| *first == Property::System(property);
            self.visit(properties, property as u64, is_it, &mut found);
        }
        for user in properties.all_user() {
            let is_it = |first: &Property| matches!(first, Property::User(name) if same_name(name.as_str(), user.name));
            self.visit(properties, user.hash, is_it, &mut found);
        }
    }

    /// Visits the groups whose first property the message has.
    fn visit(
        &self,
        properties: &Properties<'_>,
        pivot: u64,
        is_first: impl Fn(&Property) -> bool,
        found: &mut impl FnMut(&T),
    ) {
        let Some(groups) = self.groups.get(&pivot) else {
            return;
        };
        for (fields, group) in groups {
            if !is_first(&fields[0]) {
                continue;
            }
            let value = |field| correlation::field(properties, field);
            let Some(entries) = hash(fields.iter().map(value)).and_then(|hash| group.get(&hash))
            else {
                continue;
            };
            for entry in entries {
                let mut pairs = entry.values.iter().zip(fields);
                if pairs.all(|(expected, field)| correlation::same(expected, value(field))) {
                    found(&entry.owner);
                }
            }
        }
    }
}

fn fields(filter: &CorrelationFilter) -> Box<[Property]> {
    filter
        .conditions()
        .iter()
        .map(|(property, _)| property.clone())
        .collect()
}

fn pivot(first: &Property) -> u64 {
    match first {
        Property::System(property) => *property as u64,
        Property::User(name) => Name::hash(name),
        // A correlation filter has no such property.
        Property::Jms(_) => 0,
    }
}

/// Returns the hash of all values; `None` if one of them equals nothing.
fn hash<'v, 'm: 'v>(values: impl Iterator<Item = &'v Value<'m>>) -> Option<u64> {
    let mut hash = Fnv::default();
    for value in values {
        if !correlation::add_to_hash(value, &mut hash) {
            return None;
        }
    }
    Some(hash.0)
}
