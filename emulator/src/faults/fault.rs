//! One fault: which operations it is meant for, which of them it strikes, and how often it was met.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::context::{MatchContext, Traits};
use super::random::SeededRng;
use super::{Effect, Operation};

/// What is to go wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) operation: Operation,
    pub(crate) narrowing: Narrowing,
    pub(crate) pick: Pick,
    /// One, or those among which chance chooses.
    pub(crate) effects: Vec<Effect>,
}

/// What an operation must have beside its kind. What is not said does not matter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Narrowing {
    /// The address of an entity that it concerns.
    pub(crate) entity: Option<String>,
    pub(crate) name: Option<String>,
    /// What the client calls itself.
    pub(crate) client: Option<String>,
    pub(crate) message_id: Option<String>,
    pub(crate) session_id: Option<String>,
    /// An application property and its value.
    pub(crate) property: Option<(String, Value)>,
}

/// Which of the operations that it is meant for are struck.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pick {
    /// The nth from 1, and from there on every so many, so many times; for ever if it is not said how many.
    Counted {
        nth: u64,
        every: u64,
        times: Option<u64>,
    },
    /// Each with this probability, by the seed and the number of the operation on its entity.
    Random { seed: u64, probability: f64 },
}

/// A fault, and how often it was met.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scripted {
    pub(crate) id: u64,
    pub(crate) fault: Fault,
    /// Operations that it is meant for, those that it struck included.
    pub(crate) matched: u64,
    /// Operations of the same kind that concern other entities.
    pub(crate) elsewhere: u64,
    /// Those that concern the entity, and lack something else that was asked for.
    pub(crate) different: u64,
    /// How often it struck.
    pub(crate) hits: u64,
    /// Operations that it is meant for, by entity: what chance goes by.
    counted: HashMap<String, u64>,
}

impl Fault {
    /// Whether it asks for more of a message than where it is.
    pub(crate) fn looks_inside(&self) -> bool {
        let Narrowing {
            message_id,
            session_id,
            property,
            ..
        } = &self.narrowing;
        message_id.is_some() || session_id.is_some() || property.is_some()
    }

    fn concerns(&self, entities: &[String]) -> bool {
        self.narrowing.entity.as_ref().is_none_or(|wanted| {
            let mut entities = entities.iter();
            entities.any(|entity| entity.eq_ignore_ascii_case(wanted))
        })
    }

    fn fits(&self, context: &MatchContext<'_>) -> bool {
        let Narrowing { name, client, .. } = &self.narrowing;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let feasible = |effect: &Effect| {
            let needs_lock = matches!(effect, Effect::LoseLock | Effect::LoseSessionLock);
            (!needs_lock || context.is_locked)
                && (*effect != Effect::DeliverTwice || context.can_come_twice)
        };
        let mut messages = context.messages.iter();
        is(name, context.name)
            && is(client, context.client.as_deref())
            && self.effects.iter().all(feasible)
            && (!self.looks_inside() || messages.any(|message| self.fits_message(message)))
    }

    fn fits_message(&self, message: &Traits) -> bool {
        let Narrowing {
            message_id,
            session_id,
            property,
            ..
        } = &self.narrowing;
        let has = |(name, value): &(String, Value)| {
            let mut properties = message.properties.iter();
            properties.any(|(key, found)| key == name && is_same(found, value))
        };
        (message_id.is_none() || *message_id == message.id)
            && (session_id.is_none() || *session_id == message.session)
            && property.as_ref().is_none_or(has)
    }
}

impl Scripted {
    pub(crate) fn new(id: u64, fault: Fault) -> Self {
        Self {
            id,
            fault,
            matched: 0,
            elsewhere: 0,
            different: 0,
            hits: 0,
            counted: HashMap::new(),
        }
    }

    /// Counts an operation, and returns what the fault does to it, if it is one of those that it strikes.
    pub(crate) fn meet(&mut self, context: &MatchContext<'_>) -> Option<Effect> {
        if !context.operations.contains(&self.fault.operation) {
            return None;
        }
        if !self.fault.concerns(&context.entities) {
            self.elsewhere += 1;
            return None;
        }
        if !self.fault.fits(context) {
            self.different += 1;
            return None;
        }
        self.matched += 1;
        match self.fault.pick {
            Pick::Counted { nth, every, times } => {
                let since = self.matched.checked_sub(nth)?;
                let is_picked =
                    since.is_multiple_of(every) && times.is_none_or(|times| since / every < times);
                let effect = self.fault.effects.first().filter(|_| is_picked);
                effect.cloned()
            }
            Pick::Random { seed, probability } => {
                let entity = context.entities.first().map_or("", String::as_str);
                let number = self.counted.entry(entity.to_owned()).or_default();
                *number += 1;
                let operation = self.fault.operation.name();
                let mut dice = SeededRng::of(seed, operation, entity, *number);
                let is_picked = dice.fraction() < probability;
                is_picked.then(|| dice.choose(&self.fault.effects).cloned())?
            }
        }
    }

    /// The seed, if it goes by chance.
    pub(crate) fn seed(&self) -> Option<u64> {
        match self.fault.pick {
            Pick::Counted { .. } => None,
            Pick::Random { seed, .. } => Some(seed),
        }
    }

    /// As the control API shows it.
    pub(crate) fn to_json(&self) -> Value {
        let Fault {
            operation,
            narrowing,
            pick,
            effects,
        } = &self.fault;
        let mut shown = Map::new();
        shown.insert("id".into(), self.id.into());
        shown.insert("operation".into(), operation.name().into());
        shown.insert("entity".into(), narrowing.entity.clone().into());
        let texts = [
            ("name", &narrowing.name),
            ("client", &narrowing.client),
            ("message_id", &narrowing.message_id),
            ("session_id", &narrowing.session_id),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                shown.insert(key.into(), text.clone().into());
            }
        }
        if let Some((name, value)) = &narrowing.property {
            let property = json!({ "name": name, "value": value });
            shown.insert("property".into(), property);
        }
        match pick {
            Pick::Counted { nth, every, times } => {
                shown.insert("nth".into(), (*nth).into());
                shown.insert("every".into(), (*every).into());
                shown.insert("times".into(), (*times).into());
                let effect = effects.first().map(Effect::to_json);
                shown.insert("effect".into(), effect.into());
            }
            Pick::Random { seed, probability } => {
                let random = json!({ "seed": seed, "probability": probability });
                shown.insert("random".into(), random);
                let effects = effects.iter().map(Effect::to_json).collect();
                shown.insert("effects".into(), effects);
            }
        }
        shown.insert("matched".into(), self.matched.into());
        shown.insert("elsewhere".into(), self.elsewhere.into());
        shown.insert("different".into(), self.different.into());
        shown.insert("hits".into(), self.hits.into());
        Value::Object(shown)
    }
}

/// Numbers of any kind are compared by their value.
fn is_same(found: &Value, wanted: &Value) -> bool {
    match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => found == wanted,
        _ => found == wanted,
    }
}
