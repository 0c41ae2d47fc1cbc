//! Plans which faults to try, in which order: first one of each kind of situation, then the rest. Only the budget cuts
//! plans, and what it cuts is counted.

use std::{
    collections::{BTreeMap, HashSet},
    hash::Hash,
};

use servicebus_control_api::Operation;

use crate::{Effect, FaultPoint, Token};

/// How often a random order is drawn until one is new.
const DRAWS_PER_RUN: u64 = 16;

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
    pub faults: Vec<(FaultPoint, Effect)>,
}

impl Plan {
    /// Returns its token.
    pub fn token(&self) -> Token {
        let faults = self.faults.iter();
        Token(
            faults
                .map(|(point, effect)| (point.key.clone(), *effect))
                .collect(),
        )
    }
}

impl Options {
    fn allow(&self, point: &FaultPoint, effect: Effect) -> bool {
        let is_in = |parts: &[String]| parts.iter().any(|part| point.key.contains(part.as_str()));
        (self.effects.is_empty() || self.effects.contains(&effect))
            && (self.only.is_empty() || is_in(&self.only))
            && !is_in(&self.except)
    }
}

/// Returns the runs with one fault; the first of each kind of situation come first.
pub(crate) fn plan(fault_points: &[FaultPoint], options: &Options) -> Vec<Plan> {
    let mut seen = HashSet::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (index, point) in fault_points.iter().enumerate() {
        let position = Position::of(fault_points, index);
        for effect in Effect::applicable(&point.operation) {
            if !options.allow(point, effect) {
                continue;
            }
            let plan = Plan {
                faults: vec![(point.clone(), effect)],
            };
            match seen.insert((signature(point, position), effect)) {
                true => first.push(plan),
                false => rest.push(plan),
            }
        }
    }
    // Clients need longest to recover there; a time limit should not end before other operations had a fault.
    first.sort_by_key(|plan| plan.faults.iter().any(|(point, _)| is_of_connection(point)));
    first.extend(rest);
    first
}

fn is_of_connection(point: &FaultPoint) -> bool {
    matches!(
        point.operation.operation,
        Operation::Connect | Operation::Token | Operation::Attach
    )
}

/// Counts the effects on kinds of operations that are not possible at these sites.
pub(crate) fn not_applicable(fault_points: &[FaultPoint], options: &Options) -> usize {
    let each = fault_points.iter().map(|point| {
        let all = Effect::of(point.operation.operation).iter();
        let allowed = all.filter(|effect| options.allow(point, **effect)).count();
        let applicable = Effect::applicable(&point.operation).into_iter();
        allowed
            - applicable
                .filter(|effect| options.allow(point, *effect))
                .count()
    });
    each.sum()
}

/// Returns the runs with a second fault after a first one, from the operations of the run with the first alone. Operations
/// that exist only after that fault come first.
pub(crate) fn with_second_fault(
    first: &Plan,
    base: &[FaultPoint],
    then: &[FaultPoint],
    options: &Options,
) -> Vec<Plan> {
    let known: HashSet<&str> = base.iter().map(|point| point.key.as_str()).collect();
    let faulted = first.faults.iter().map(|(point, _)| point.key.as_str());
    let faulted: HashSet<&str> = faulted.collect();
    let behind = then
        .iter()
        .skip_while(|point| !faulted.contains(point.key.as_str()))
        .skip(1);
    let (old, new): (Vec<_>, Vec<_>) = behind.partition(|point| known.contains(point.key.as_str()));
    let second = new.into_iter().chain(old);
    let plans = second.flat_map(|point| {
        let effects = Effect::applicable(&point.operation).into_iter();
        effects
            .filter(|&effect| options.allow(point, effect))
            .map(|effect| {
                let mut faults = first.faults.clone();
                faults.push((point.clone(), effect));
                Plan { faults }
            })
    });
    plans.collect()
}

/// Returns reproducible runs in which two or three random operations are postponed or deliveries go to another receiver:
/// different ones, none of which was tried. There are fewer than `runs` if hardly any others exist.
pub(crate) fn shuffled(
    fault_points: &[FaultPoint],
    options: &Options,
    runs: u32,
    tried: &HashSet<Token>,
) -> Vec<Plan> {
    let orders = fault_points.iter().map(|point| {
        let mut effects = Effect::applicable(&point.operation);
        effects.retain(|effect| matches!(effect, Effect::Postpone | Effect::Elsewhere));
        effects.retain(|effect| options.allow(point, *effect));
        (point, effects)
    });
    let orders: Vec<_> = orders.filter(|(_, effects)| !effects.is_empty()).collect();
    if orders.len() < 2 {
        return Vec::new();
    }
    let mut known = tried.clone();
    let draws = (0..DRAWS_PER_RUN * u64::from(runs)).map(|draw| random_order(&orders, draw));
    let new = draws.filter(|plan| known.insert(plan.token()));
    new.take(runs as usize).collect()
}

/// Draws two or three of the operations, each at most once.
fn random_order(orders: &[(&FaultPoint, Vec<Effect>)], run: u64) -> Plan {
    let random = |draw, count: usize| (pseudo_random(run, draw) % count as u64) as usize;
    let size = orders.len().min(2 + random(0, 2));
    let mut left = Vec::from_iter(orders);
    let mut chosen = BTreeMap::new();
    for draw in 1..=size as u64 {
        let (point, effects) = left.swap_remove(random(2 * draw, left.len()));
        let effect = effects[random(2 * draw + 1, effects.len())];
        chosen.insert(point.operation.number, ((*point).clone(), effect));
    }
    Plan {
        faults: chosen.into_values().collect(),
    }
}

/// Returns a pseudo-random number for a draw of a run: SplitMix64's finalizer, which separates any two inputs well.
fn pseudo_random(run: u64, draw: u64) -> u64 {
    let mut mixed = (run << 8 | draw)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The position of an operation among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Position {
    First,
    Middle,
    Last,
}

impl Position {
    fn of(fault_points: &[FaultPoint], index: usize) -> Self {
        let is_alike = |other: &&FaultPoint| {
            let point = &fault_points[index];
            other.party == point.party && other.operation.operation == point.operation.operation
        };
        if !fault_points[..index].iter().any(|point| is_alike(&point)) {
            return Self::First;
        }
        match fault_points[index + 1..]
            .iter()
            .any(|point| is_alike(&point))
        {
            true => Self::Middle,
            false => Self::Last,
        }
    }
}

/// Returns what operations in the same kind of situation have in common.
fn signature(point: &FaultPoint, position: Position) -> impl Eq + Hash + use<> {
    let operation = &point.operation;
    let before = operation.before.unwrap_or_default();
    let about = [before.ready, before.locked, before.receivers as u64].map(|count| count.min(2));
    (
        point.party.clone(),
        operation.operation.name(),
        operation.name.clone(),
        operation.entity.clone(),
        operation.delivery.unwrap_or(0).min(3),
        position,
        about,
        point.previous.map(Operation::name),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fault_point::{KeyParts, fault_points};

    #[test]
    fn random_orders_are_reproducible() {
        let operations = (1..=4).map(|number| {
            let operation = json!({
                "number": number, "at": "2026-01-01T00:00:00Z", "operation": "send", "party": "p",
                "entity": "orders", "offset": 0.0, "message_id": format!("o-{number}"), "messages": 1,
                "locked": false, "repeatable": false,
            });
            serde_json::from_value(operation).unwrap()
        });
        let parties = BTreeMap::from([("p".to_owned(), "worker".to_owned())]);
        let fault_points = fault_points(&Vec::from_iter(operations), &parties, KeyParts::default());
        let all = Options::default();
        let tried = HashSet::new();
        let plans = shuffled(&fault_points, &all, 20, &tried);
        assert_eq!(plans, shuffled(&fault_points, &all, 20, &tried));
        let faults = || plans.iter().flat_map(|plan| &plan.faults);
        assert!(faults().all(|(_, effect)| *effect == Effect::Postpone));
        assert!(plans.iter().all(|plan| plan.faults.len() > 1), "{plans:?}");
        // Of four operations there are six pairs and four times three.
        let mut apart: HashSet<Token> = plans.iter().map(Plan::token).collect();
        assert_eq!((plans.len(), apart.len()), (10, 10), "{apart:?}");
        apart.remove(&plans[7].token());
        let new = shuffled(&fault_points, &all, 20, &apart);
        assert_eq!(new, [plans[7].clone()]);
        let one = Options {
            only: vec!["o-1#".to_owned()],
            ..all
        };
        assert_eq!(shuffled(&fault_points, &one, 20, &tried), []);
    }
}
