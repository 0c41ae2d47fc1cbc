//! Plans which faults to try, in which order: first one of each kind of situation, then the rest. Only the budget cuts
//! plans, and what it cuts is counted.

use std::collections::{BTreeMap, HashSet};

use servicebus_control_api::Operation;

use crate::{Effect, Site, Token};

/// Restrictions on faults.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The allowed effects; all if empty.
    pub effects: Vec<Effect>,
    /// If not empty, faults apply only to operations whose keys contain one of these texts.
    pub only: Vec<String>,
    /// No fault applies to operations whose keys contain one of these texts.
    pub except: Vec<String>,
}

/// A planned run.
#[derive(Debug, Clone, Default, PartialEq)]
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

/// Returns the runs with one fault; the first of each kind of situation come first.
pub(crate) fn plan(sites: &[Site], options: &Options) -> Vec<Plan> {
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

/// Counts the effects on kinds of operations that are not possible at these sites.
pub(crate) fn not_applicable(sites: &[Site], options: &Options) -> usize {
    let each = sites.iter().map(|site| {
        let all = Effect::of(site.operation.operation).iter();
        let allowed = all.filter(|effect| options.allow(site, **effect)).count();
        let applicable = Effect::applicable(&site.operation).into_iter();
        allowed
            - applicable
                .filter(|effect| options.allow(site, *effect))
                .count()
    });
    each.sum()
}

/// Returns the runs with a second fault after a first one, from the operations of the run with the first alone. Operations
/// that exist only after that fault come first.
pub(crate) fn pairs(first: &Plan, base: &[Site], then: &[Site], options: &Options) -> Vec<Plan> {
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

/// Returns reproducible runs in which two or three random operations are postponed or deliveries go to another receiver.
pub(crate) fn shuffled(sites: &[Site], options: &Options, runs: u32) -> Vec<Plan> {
    let orders = sites.iter().flat_map(|site| {
        let effects = Effect::applicable(&site.operation).into_iter();
        let orders =
            effects.filter(|effect| matches!(effect, Effect::Postpone | Effect::Elsewhere));
        orders.map(move |effect| (site, effect))
    });
    let orders: Vec<_> = orders
        .filter(|(site, effect)| options.allow(site, *effect))
        .collect();
    if orders.len() < 2 {
        return Vec::new();
    }
    let plans = (0..u64::from(runs)).map(|run| {
        let size = 2 + chance(run, 0) % 2;
        let mut chosen = BTreeMap::new();
        for draw in 1..=size {
            let index = (chance(run, draw) % orders.len() as u64) as usize;
            let (site, effect) = orders[index];
            chosen.insert(site.operation.number, (site.clone(), effect));
        }
        Plan {
            faults: chosen.into_values().collect(),
        }
    });
    plans.collect()
}

/// Returns a pseudo-random number for a draw of a run: SplitMix64's finalizer, which separates any two inputs well.
fn chance(run: u64, draw: u64) -> u64 {
    let mut mixed = (run << 8 | draw)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The position of an operation among those of its kind.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::site::{Features, sites};

    #[test]
    fn orders_by_chance_are_the_same_each_time() {
        let operations = (1..=4).map(|number| {
            let operation = json!({
                "number": number, "at": "2026-01-01T00:00:00Z", "operation": "send", "party": "p",
                "entity": "orders", "offset": 0.0, "message_id": format!("o-{number}"), "messages": 1,
                "locked": false, "repeatable": false,
            });
            serde_json::from_value(operation).unwrap()
        });
        let parties = BTreeMap::from([("p".to_owned(), "worker".to_owned())]);
        let sites = sites(&Vec::from_iter(operations), &parties, Features::default());
        let all = Options::default();
        let plans = shuffled(&sites, &all, 20);
        assert_eq!(plans, shuffled(&sites, &all, 20));
        let faults = || plans.iter().flat_map(|plan| &plan.faults);
        assert!(faults().all(|(_, effect)| *effect == Effect::Postpone));
        let apart: HashSet<String> = plans.iter().map(|plan| plan.token().to_string()).collect();
        assert!(apart.len() > 5, "{apart:?}");
        let one = Options {
            only: vec!["o-1#".to_owned()],
            ..all
        };
        assert_eq!(shuffled(&sites, &one, 20), []);
    }
}
