//! Many correlation filters, looked up instead of tried.
//!
//! Filters on the same set of properties form a group, in which the values of a message are one look-up. A message
//! meets only groups whose first property it has, so filters on properties that no message has cost nothing.

use std::collections::BTreeMap;

use super::ast::Property;
use super::correlation::{self, CorrelationFilter};
use super::properties::{Fnv, Name, Properties, same_name};
use super::system::SystemProperty;
use super::value::Value;

/// Correlation filters by what they ask for, each with what its owner calls it.
#[derive(Debug, Clone)]
pub struct CorrelationIndex<T> {
    /// By the hash of the first property, then by all of them.
    groups: BTreeMap<u64, BTreeMap<Box<[Property]>, Group<T>>>,
    /// Filters that ask for nothing.
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
    /// No filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a filter under a name of the owner's.
    pub fn insert(&mut self, filter: &CorrelationFilter, owner: T) {
        let Some((first, _)) = filter.conditions().first() else {
            self.unconditional.push(owner);
            return;
        };
        // A filter that asks for what nothing equals can never match.
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

    /// Takes a filter out that was added under this name.
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

    /// Names every filter that matches a message.
    pub fn matching(&self, properties: &Properties<'_>, mut found: impl FnMut(&T)) {
        self.unconditional.iter().for_each(&mut found);
        for property in SystemProperty::ALL {
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

    /// The groups whose first property is one that the message has.
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
        // No correlation filter has one.
        Property::Jms(_) => 0,
    }
}

/// The hash of all values; none if one of them equals nothing.
fn hash<'v, 'm: 'v>(values: impl Iterator<Item = &'v Value<'m>>) -> Option<u64> {
    let mut hash = Fnv::default();
    for value in values {
        if !correlation::add_to_hash(value, &mut hash) {
            return None;
        }
    }
    Some(hash.0)
}
