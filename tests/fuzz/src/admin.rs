//! The XML of the administration API: descriptions that are accepted are written so that they are read as the same.

use std::sync::LazyLock;

use servicebus_broker::{EntityKind, Tier};
use servicebus_emulator::fuzz::{read_entity_again, read_rule_again};

use crate::{Input, altered, input};

struct Seeds {
    entities: Vec<Vec<u8>>,
    rules: Vec<Vec<u8>>,
}

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let texts = input::files("admin", ".txt");
    let texts: Vec<_> = texts
        .iter()
        .map(|bytes| String::from_utf8_lossy(bytes))
        .collect();
    let found = |name: &str| {
        texts
            .iter()
            .flat_map(|text| elements(text, name))
            .collect::<Vec<_>>()
    };
    let entities = [
        "QueueDescription",
        "TopicDescription",
        "SubscriptionDescription",
    ]
    .map(found);
    Seeds {
        entities: entities.concat(),
        rules: found("RuleDescription"),
    }
});

/// The elements of this name in what SDKs and the emulator have said, without repetition.
fn elements(text: &str, name: &str) -> Vec<Vec<u8>> {
    let (begin, end) = (format!("<{name}"), format!("</{name}>"));
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&begin) {
        let Some(length) = text[at..].find(&end) else {
            continue;
        };
        let element = text.as_bytes()[at..at + length + end.len()].to_vec();
        if !found.contains(&element) {
            found.push(element);
        }
    }
    found
}

/// The description of an entity or rule.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let kind = input.pick(&[
        EntityKind::Queue,
        EntityKind::Topic,
        EntityKind::Subscription,
    ]);
    let tier = input.pick(&[Tier::Standard, Tier::Basic, Tier::Premium]);
    if input.one_in(2) {
        read_rule_again(&altered(&mut input, &SEEDS.rules));
    } else {
        read_entity_again(&altered(&mut input, &SEEDS.entities), kind, tier);
    }
}

/// How many seeds are accepted as they are: entities and rules.
pub fn accepted_seeds() -> [usize; 2] {
    let is_rule = |seed: &&Vec<u8>| read_rule_again(seed);
    let kinds = [
        EntityKind::Queue,
        EntityKind::Topic,
        EntityKind::Subscription,
    ];
    let is_entity = |seed: &&Vec<u8>| {
        let mut kinds = kinds.iter();
        kinds.any(|kind| read_entity_again(seed, *kind, Tier::Standard))
    };
    let entities = SEEDS.entities.iter().filter(is_entity).count();
    [entities, SEEDS.rules.iter().filter(is_rule).count()]
}
