//! Which faults are tried, and in which order: first one of each kind of situation, then the rest. Nothing is left out but by
//! the budget, and what that cuts is counted.

use std::collections::HashSet;

use servicebus_control_api::Operation;

use crate::{Effect, Site, Token};

/// What may be tried.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The effects; all where it is empty.
    pub effects: Vec<Effect>,
    /// Parts of keys: where there are any, faults are applied only to operations with one of them in theirs.
    pub only: Vec<String>,
    /// Parts of keys: no fault is applied to operations with one of them in theirs.
    pub except: Vec<String>,
}

/// A run that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its faults.
    pub faults: Vec<(Site, Effect)>,
}

impl Plan {
    /// Returns its token.
    pub fn token(&self) -> Token {
        let faults = self.faults.iter();
        Token(
            faults
                .map(|(site, effect)| (site.key.clone(), *effect))
                .collect(),
        )
    }
}

impl Options {
    fn allow(&self, site: &Site, effect: Effect) -> bool {
        let is_in = |parts: &[String]| parts.iter().any(|part| site.key.contains(part.as_str()));
        (self.effects.is_empty() || self.effects.contains(&effect))
            && (self.only.is_empty() || is_in(&self.only))
            && !is_in(&self.except)
    }
}

/// Returns the runs with one fault, those first that are of a kind of their own.
pub fn plan(sites: &[Site], options: &Options) -> Vec<Plan> {
    let mut seen = HashSet::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (index, site) in sites.iter().enumerate() {
        let place = Place::of(sites, index);
        for effect in Effect::applicable(&site.operation) {
            if !options.allow(site, effect) {
                continue;
            }
            let plan = Plan {
                faults: vec![(site.clone(), effect)],
            };
            match seen.insert((signature(site, place), effect)) {
                true => first.push(plan),
                false => rest.push(plan),
            }
        }
    }
    first.extend(rest);
    first
}

/// Returns the runs with a second fault behind a first one, given what happened in the run with the first alone: operations
/// that exist only after that fault come first.
pub fn pairs(first: &Plan, base: &[Site], then: &[Site], options: &Options) -> Vec<Plan> {
    let known: HashSet<&str> = base.iter().map(|site| site.key.as_str()).collect();
    let faulted = first.faults.iter().map(|(site, _)| site.key.as_str());
    let faulted: HashSet<&str> = faulted.collect();
    let behind = then
        .iter()
        .skip_while(|site| !faulted.contains(site.key.as_str()))
        .skip(1);
    let (old, new): (Vec<_>, Vec<_>) = behind.partition(|site| known.contains(site.key.as_str()));
    let second = new.into_iter().chain(old);
    let plans = second.flat_map(|site| {
        let effects = Effect::applicable(&site.operation).into_iter();
        effects
            .filter(|&effect| options.allow(site, effect))
            .map(|effect| {
                let mut faults = first.faults.clone();
                faults.push((site.clone(), effect));
                Plan { faults }
            })
    });
    plans.collect()
}

/// Where an operation stands among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    First,
    Middle,
    Last,
}

impl Place {
    fn of(sites: &[Site], index: usize) -> Self {
        let is_alike = |other: &&Site| {
            let site = &sites[index];
            other.party == site.party && other.operation.operation == site.operation.operation
        };
        if !sites[..index].iter().any(|site| is_alike(&site)) {
            return Self::First;
        }
        match sites[index + 1..].iter().any(|site| is_alike(&site)) {
            true => Self::Middle,
            false => Self::Last,
        }
    }
}

type Signature = (
    String,
    &'static str,
    Option<String>,
    Option<String>,
    u32,
    Place,
    [u64; 3],
    Option<&'static str>,
);

fn signature(site: &Site, place: Place) -> Signature {
    let operation = &site.operation;
    let before = operation.before.unwrap_or_default();
    let about = [before.ready, before.locked, before.receivers as u64].map(|count| count.min(2));
    (
        site.party.clone(),
        operation.operation.name(),
        operation.name.clone(),
        operation.entity.clone(),
        operation.delivery.unwrap_or(0).min(3),
        place,
        about,
        site.previous.map(Operation::name),
    )
}
