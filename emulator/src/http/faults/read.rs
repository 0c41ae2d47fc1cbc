//! Parses a fault, and refuses meaningless combinations with the allowed ones.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Map, Value};
use servicebus_control_api::{
    Effect, EffectKind, ErrorText, Fault, FaultRequest, Filter, Operation, Pick, Property, Random,
    Wait, When,
};

use crate::http::error::ApiError;

/// Longest wait by the namespace's clock, in seconds: a hundred years, the maximum advance.
const LONGEST_VIRTUAL: f64 = 100.0 * 366.0 * 24.0 * 3600.0;
/// Longest wait by the real clock.
const LONGEST_REAL: f64 = 3600.0;
const LONGEST_TRIP: f64 = 60.0;
/// Longest condition and description, in bytes.
const CONDITION: usize = 128;
const DESCRIPTION: usize = 1024;
/// Longest text of a fault's source and location, in bytes.
const WRITTEN: usize = 4096;
/// Maximum number of outcomes behind which one may be held back.
const BEHIND: u32 = 1000;

pub(crate) fn fault(request: FaultRequest) -> Result<Fault, ApiError> {
    let name = request.operation.as_str();
    let operation = Operation::named(name).ok_or_else(|| {
        let known = Operation::all().map(Operation::name);
        not_allowed("operation", name.into(), joined(known))
    })?;
    let filter = filter(operation, &request)?;
    let pick = match &request.random {
        Some(random) => by_chance(operation, &request, random)?,
        None => by_number(operation, &request)?,
    };
    Ok(Fault {
        operation,
        filter,
        pick,
    })
}

/// Returns the source text of a fault, or its location.
pub(crate) fn written(path: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
    match text {
        Some(text) if text.len() > WRITTEN => {
            let allowed = format!("at most {WRITTEN} bytes");
            Err(not_allowed(path, Value::Null, allowed))
        }
        text => Ok(text),
    }
}

/// Renders a fault whose source code is unknown in the form of the API.
pub(crate) fn rendered(fault: &Fault) -> String {
    let mut members = serde_json::to_value(fault).unwrap_or_default();
    if let Some(members) = members.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    members.to_string()
}

/// Parses the filter on operations; refuses properties that operations of this kind do not have.
fn filter(operation: Operation, request: &FaultRequest) -> Result<Filter, ApiError> {
    let filter = Filter {
        entity: request.entity.clone(),
        name: request.name.clone(),
        client: request.client.clone(),
        party: request.party.clone(),
        sequence_number: number("sequence_number", request.sequence_number.as_ref())?,
        delivery: number("delivery", request.delivery.as_ref())?,
        message_id: request.message_id.clone(),
        session_id: request.session_id.clone(),
        property: request.property.as_ref().map(property).transpose()?,
    };
    let of_messages = Operation::is_about_messages;
    let has_entity: fn(Operation) -> bool = |operation| operation != Operation::Connect;
    let has_client: fn(Operation) -> bool = |operation| operation != Operation::Http;
    // A message that is sent has no sequence number and no deliveries yet.
    let of_numbered: fn(Operation) -> bool =
        |operation| operation.is_about_messages() && operation != Operation::Send;
    let text = |text: &Option<String>| text.clone().map(Value::from);
    if filter.entity.as_deref() == Some("") {
        let allowed = "an address, such as orders or orders/$DeadLetterQueue; all entities where it is left out";
        return Err(not_allowed("entity", "".into(), allowed));
    }
    let property = filter.property.as_ref();
    for (path, value, has) in [
        ("entity", text(&filter.entity), has_entity),
        ("name", text(&filter.name), Operation::has_names),
        ("client", text(&filter.client), has_client),
        ("message_id", text(&filter.message_id), of_messages),
        ("session_id", text(&filter.session_id), of_messages),
        (
            "sequence_number",
            filter.sequence_number.map(Value::from),
            of_numbered,
        ),
        ("delivery", filter.delivery.map(Value::from), of_numbered),
        (
            "property",
            property.map(|property| property.name.clone().into()),
            of_messages,
        ),
    ] {
        if let Some(value) = value
            && !has(operation)
        {
            let having = Operation::all().filter(|operation| has(*operation));
            let having = joined(having.map(Operation::name));
            let allowed = format!("only with the operations {having}");
            return Err(not_allowed(path, value, allowed));
        }
    }
    Ok(filter)
}

/// Parses a whole number from 1 that fits its type.
fn number<T: TryFrom<u64>>(path: &str, value: Option<&Value>) -> Result<Option<T>, ApiError> {
    let Some(number) = whole(path, value)? else {
        return Ok(None);
    };
    let refused = |_| {
        not_allowed(
            path,
            number.into(),
            "a whole number that a message can have",
        )
    };
    T::try_from(number).map(Some).map_err(refused)
}

fn property(value: &Value) -> Result<Property, ApiError> {
    let read = Property::deserialize(value).ok();
    let is_simple = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    let read = read.filter(|property| is_simple(&property.value));
    read.ok_or_else(|| {
        let allowed = "an object with 'name' and 'value', a string, number or boolean";
        not_allowed("property", value.clone(), allowed)
    })
}

/// Parses a selection by the number of the operation, with one effect.
fn by_number(operation: Operation, request: &FaultRequest) -> Result<Pick, ApiError> {
    let every = whole("every", request.every.as_ref())?;
    let nth = whole("nth", request.nth.as_ref())?;
    let times = whole("times", request.times.as_ref())?;
    if let Some(effects) = &request.effects {
        let allowed = "several only with 'random'; otherwise one in 'effect'";
        return Err(not_allowed("effects", effects.clone().into(), allowed));
    }
    let Some(wanted) = &request.effect else {
        let names = joined(operation.effects().map(EffectKind::name));
        return Err(not_allowed("effect", Value::Null, names));
    };
    let effect = effect(operation, "effect", wanted)?;
    Ok(Pick::counted(nth, every, times, effect))
}

/// Parses a random selection, with one effect or several.
fn by_chance(
    operation: Operation,
    request: &FaultRequest,
    random: &Value,
) -> Result<Pick, ApiError> {
    for (path, value) in [
        ("nth", &request.nth),
        ("every", &request.every),
        ("times", &request.times),
    ] {
        if let Some(value) = value {
            let allowed = "nothing beside 'random'";
            return Err(not_allowed(path, value.clone(), allowed));
        }
    }
    let read = Random::deserialize(random).ok();
    let read = read.filter(|random| random.probability > 0.0 && random.probability <= 1.0);
    let drawn = read.ok_or_else(|| {
        let allowed = "an object with 'seed', a whole number from 0, and 'probability', above 0 and at most 1";
        not_allowed("random", random.clone(), allowed)
    })?;
    let effects = match (&request.effect, &request.effects) {
        (Some(wanted), None) => vec![effect(operation, "effect", wanted)?],
        (None, Some(effects)) if !effects.is_empty() => {
            let effects = effects.iter();
            let read = effects.map(|value| effect(operation, "effects", value));
            read.collect::<Result<_, _>>()?
        }
        _ => {
            let allowed = "'effect' alone, or 'effects' alone with at least one";
            return Err(not_allowed(
                "effects",
                request.effects.clone().into(),
                allowed,
            ));
        }
    };
    Ok(Pick::Random {
        random: drawn,
        effects,
    })
}

fn whole(path: &str, value: Option<&Value>) -> Result<Option<u64>, ApiError> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let number = value.as_u64().filter(|number| *number > 0);
    let number = number.ok_or_else(|| not_allowed(path, value.clone(), "a whole number from 1"))?;
    Ok(Some(number))
}

/// Parses an effect of this operation: a name, or an object with the name as its only key and details under it. `path` is
/// its location in the body.
fn effect(operation: Operation, path: &str, value: &Value) -> Result<Effect, ApiError> {
    let no_details = Map::new();
    let single = value.as_object().filter(|object| object.len() == 1);
    let entry = single.and_then(|object| object.iter().next());
    let detailed = entry.and_then(|(name, details)| Some((name.as_str(), details.as_object()?)));
    let named = value.as_str().map(|name| (name, &no_details)).or(detailed);
    let read = named.and_then(|(name, given)| Some((EffectKind::named(name)?, given)));
    let allowed = read.filter(|(kind, _)| operation.allows(*kind));
    let (kind, given) = allowed.ok_or_else(|| {
        let names = joined(operation.effects().map(EffectKind::name));
        let allowed = format!("for the operation {}: {names}", operation.name());
        not_allowed(path, value.clone(), allowed)
    })?;
    let path = format!("{path}.{}", kind.name());
    Details { path, given, kind }.read(operation)
}

/// The details of an effect.
struct Details<'a> {
    path: String,
    given: &'a Map<String, Value>,
    kind: EffectKind,
}

impl Details<'_> {
    fn read(&self, operation: Operation) -> Result<Effect, ApiError> {
        self.check_keys(match self.kind {
            EffectKind::LoseReply
            | EffectKind::LoseLock
            | EffectKind::LoseSessionLock
            | EffectKind::DeliverTwice
            | EffectKind::Postpone
            | EffectKind::Elsewhere
            | EffectKind::ExpireToken => &[],
            EffectKind::Reject => &["condition", "description"],
            EffectKind::Answer => &["status", "condition", "description"],
            EffectKind::Detach | EffectKind::Close => &["condition", "description", "when"],
            EffectKind::Drop | EffectKind::Crash | EffectKind::Failover => &["when"],
            EffectKind::Delay | EffectKind::Stall => &["seconds", "clock"],
            EffectKind::HoldBack => &["behind"],
            EffectKind::RoundTrip => &["seconds"],
        })?;
        Ok(match self.kind {
            EffectKind::LoseReply => Effect::LoseReply,
            EffectKind::LoseLock => Effect::LoseLock,
            EffectKind::LoseSessionLock => Effect::LoseSessionLock,
            EffectKind::DeliverTwice => Effect::DeliverTwice,
            EffectKind::Postpone => Effect::Postpone,
            EffectKind::Elsewhere => Effect::Elsewhere,
            EffectKind::ExpireToken => Effect::ExpireToken,
            EffectKind::Reject => Effect::Reject(self.error()?),
            EffectKind::Answer => Effect::Answer {
                status: self.status(operation)?,
                error: self.error()?,
            },
            EffectKind::Detach => Effect::Detach {
                when: self.when()?,
                error: self.error()?,
            },
            EffectKind::Close => Effect::Close {
                when: self.when()?,
                error: self.error()?,
            },
            EffectKind::Drop => Effect::Drop { when: self.when()? },
            EffectKind::Crash => Effect::Crash { when: self.when()? },
            EffectKind::Failover => Effect::Failover { when: self.when()? },
            EffectKind::Delay => Effect::Delay(self.wait()?),
            EffectKind::Stall => Effect::Stall(self.wait()?),
            EffectKind::HoldBack => Effect::HoldBack {
                behind: self.behind()?,
            },
            EffectKind::RoundTrip => Effect::RoundTrip {
                length: self.seconds(LONGEST_TRIP)?,
            },
        })
    }

    fn check_keys(&self, known: &[&str]) -> Result<(), ApiError> {
        let mut given = self.given.iter();
        let Some((key, value)) = given.find(|(key, _)| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let allowed = if known.is_empty() {
            "nothing".to_owned()
        } else {
            known.join(", ")
        };
        Err(not_allowed(
            &format!("{}.{key}", self.path),
            value.clone(),
            allowed,
        ))
    }

    /// Parses the value of a key: the default if it is missing, and an error with the allowed values if it is invalid.
    fn get<T>(
        &self,
        key: &str,
        default: Option<T>,
        read: impl FnOnce(&Value) -> Option<T>,
        allowed: impl FnOnce() -> String,
    ) -> Result<T, ApiError> {
        let value = self.given.get(key);
        value.map_or(default, read).ok_or_else(|| {
            let value = value.cloned().unwrap_or_default();
            not_allowed(&format!("{}.{key}", self.path), value, allowed())
        })
    }

    fn error(&self) -> Result<ErrorText, ApiError> {
        let text = |value: &Value, longest: usize| {
            let text = value.as_str().map(str::to_owned);
            text.filter(|text| !text.is_empty() && text.len() <= longest)
        };
        let condition = self.get(
            "condition",
            Effect::default_condition(self.kind).map(str::to_owned),
            |value| text(value, CONDITION).filter(|condition| condition.is_ascii()),
            || format!("a string of ASCII with 1 to {CONDITION} bytes"),
        )?;
        let usual = ErrorText::new(condition);
        let description = self.get(
            "description",
            Some(usual.description),
            |value| text(value, DESCRIPTION),
            || format!("a string with 1 to {DESCRIPTION} bytes"),
        )?;
        Ok(ErrorText {
            condition: usual.condition,
            description,
        })
    }

    fn status(&self, operation: Operation) -> Result<u16, ApiError> {
        let read = |value: &Value| {
            let status = u16::deserialize(value).ok();
            status.filter(|status| (200..600).contains(status))
        };
        self.get("status", None, read, || {
            let what = match operation == Operation::Http {
                true => "a status of HTTP",
                false => "a status of a reply",
            };
            format!("{what} from 200 to 599")
        })
    }

    fn when(&self) -> Result<When, ApiError> {
        let read = |value: &Value| When::deserialize(value).ok();
        let allowed = || joined(When::ALL.map(When::name).into_iter());
        self.get("when", Some(When::Before), read, allowed)
    }

    fn wait(&self) -> Result<Wait, ApiError> {
        let is_real = self.get(
            "clock",
            Some(false),
            |clock| match clock.as_str()? {
                "virtual" => Some(false),
                "real" => Some(true),
                _ => None,
            },
            || "virtual, real".to_owned(),
        )?;
        Ok(match is_real {
            true => Wait::Real(self.seconds(LONGEST_REAL)?),
            false => Wait::Virtual(self.seconds(LONGEST_VIRTUAL)?),
        })
    }

    fn seconds(&self, longest: f64) -> Result<Duration, ApiError> {
        let read = |value: &Value| {
            let seconds = value.as_f64().filter(|seconds| *seconds <= longest);
            let length = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            length.filter(|length| !length.is_zero())
        };
        let allowed = || format!("a number of seconds above 0, at most {longest}");
        self.get("seconds", None, read, allowed)
    }

    fn behind(&self) -> Result<u32, ApiError> {
        let read = |value: &Value| {
            let behind = u32::deserialize(value).ok();
            behind.filter(|behind| (1..=BEHIND).contains(behind))
        };
        let allowed = || format!("a whole number from 1 to {BEHIND}");
        self.get("behind", Some(1), read, allowed)
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    Vec::from_iter(names).join(", ")
}

fn not_allowed(path: &str, value: Value, allowed: impl Into<String>) -> ApiError {
    ApiError::not_allowed(path, value, allowed)
}
