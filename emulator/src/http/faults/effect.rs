//! Effects as a test writes them: a name, or an object with the name as its only key and particulars under it.

use std::time::Duration;

use serde_json::{Map, Value};

use super::invalid;
use crate::faults::{Effect, Kind, Operation, Wait, When, Words};
use crate::http::error::ApiError;

/// Longest wait by the namespace's clock, in seconds: a hundred years, as far as time can be advanced.
const LONGEST_VIRTUAL: f64 = 100.0 * 366.0 * 24.0 * 3600.0;
/// Longest wait by the real clock.
const LONGEST_REAL: f64 = 3600.0;
/// Longest round trip.
const LONGEST_TRIP: f64 = 60.0;
/// Longest condition and description, in bytes.
const CONDITION: usize = 128;
const DESCRIPTION: usize = 1024;
/// Most outcomes that one may be held back behind.
const BEHIND: u64 = 1000;
/// What a throttled client reads, with how long the service asks it to wait (semantics §20.2).
const BUSY: &str = "The request was terminated because the entity is being throttled. Error code: 50009. Please wait 2 \
                    seconds and try again.";

/// Reads an effect that makes sense for this operation. `path` is where it stands in the body.
pub(super) fn read(operation: Operation, path: &str, value: &Value) -> Result<Effect, ApiError> {
    let nothing = Map::new();
    let is_named =
        |object: &Map<String, Value>| object.len() == 1 && object.values().all(Value::is_object);
    let named = match value.as_object() {
        Some(object) if is_named(object) => object.iter().next(),
        _ => None,
    };
    let under = named.map(|(name, _)| name.as_str());
    let name = value.as_str().or(under);
    let given = named.and_then(|(_, given)| given.as_object());
    let given = given.unwrap_or(&nothing);
    let mut kinds = Kind::ALL.into_iter();
    let kind = kinds.find(|kind| Some(kind.name()) == name);
    let kind = kind.filter(|kind| operation.allows(*kind));
    let kind = kind.ok_or_else(|| unknown(operation, path, value))?;
    EntityMetadata {
        path: format!("{path}.{}", kind.name()),
        given,
    }
    .read(operation, kind)
}

/// A refusal that lists the effects which make sense.
fn unknown(operation: Operation, path: &str, value: &Value) -> ApiError {
    let names: Vec<&str> = operation.effects().map(Kind::name).collect();
    let allowed = format!(
        "for the operation {}: {}",
        operation.name(),
        names.join(", ")
    );
    invalid(path, value, &[&allowed])
}

/// What stands under the name of an effect.
struct EntityMetadata<'a> {
    path: String,
    given: &'a Map<String, Value>,
}

impl EntityMetadata<'_> {
    fn read(&self, operation: Operation, kind: Kind) -> Result<Effect, ApiError> {
        self.only(match kind {
            Kind::LoseReply
            | Kind::LoseLock
            | Kind::LoseSessionLock
            | Kind::DeliverTwice
            | Kind::ExpireToken => &[],
            Kind::Reject => &["condition", "description"],
            Kind::Answer => &["status", "condition", "description"],
            Kind::Detach | Kind::Close => &["condition", "description", "when"],
            Kind::Drop => &["when"],
            Kind::Delay | Kind::Stall => &["seconds", "clock"],
            Kind::HoldBack => &["behind"],
            Kind::RoundTrip => &["seconds"],
        })?;
        Ok(match kind {
            Kind::LoseReply => Effect::LoseReply,
            Kind::LoseLock => Effect::LoseLock,
            Kind::LoseSessionLock => Effect::LoseSessionLock,
            Kind::DeliverTwice => Effect::DeliverTwice,
            Kind::ExpireToken => Effect::ExpireToken,
            Kind::Reject => Effect::Reject(self.words(None)?),
            Kind::Answer => Effect::Answer {
                status: self.status(operation)?,
                words: self.words(Some("amqp:internal-error"))?,
            },
            Kind::Detach => Effect::Detach {
                when: self.when()?,
                words: self.words(Some("amqp:link:detach-forced"))?,
            },
            Kind::Close => Effect::Close {
                when: self.when()?,
                words: self.words(Some("amqp:connection:forced"))?,
            },
            Kind::Drop => Effect::Drop { when: self.when()? },
            Kind::Delay => Effect::Delay(self.wait()?),
            Kind::Stall => Effect::Stall(self.wait()?),
            Kind::HoldBack => Effect::HoldBack {
                behind: self.behind()?,
            },
            Kind::RoundTrip => Effect::RoundTrip(self.seconds(LONGEST_TRIP)?),
        })
    }

    fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        let mut given = self.given.iter();
        match given.find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, value)) if known.is_empty() => {
                Err(invalid(&self.of(key), value, &["nothing"]))
            }
            Some((key, value)) => Err(invalid(&self.of(key), value, known)),
        }
    }

    fn words(&self, condition: Option<&str>) -> Result<Words, ApiError> {
        let condition = self.text("condition", condition, CONDITION)?;
        let default = match condition.as_str() {
            "com.microsoft:server-busy" => BUSY.to_owned(),
            other => format!("This was scripted: {other}."),
        };
        let description = self.text("description", Some(&default), DESCRIPTION)?;
        Ok(Words {
            condition,
            description,
        })
    }

    fn text(&self, key: &str, default: Option<&str>, longest: usize) -> Result<String, ApiError> {
        let value = self.given.get(key);
        let text = match value {
            None => default,
            Some(value) => value.as_str(),
        };
        let is_symbol = |text: &str| key != "condition" || text.is_ascii();
        let fits = |text: &&str| !text.is_empty() && text.len() <= longest && is_symbol(text);
        text.filter(fits).map(str::to_owned).ok_or_else(|| {
            let kind = if key == "condition" { " of ASCII" } else { "" };
            let allowed = format!("a string{kind} with 1 to {longest} bytes");
            invalid(
                &self.of(key),
                &value.cloned().unwrap_or_default(),
                &[&allowed],
            )
        })
    }

    fn status(&self, operation: Operation) -> Result<u16, ApiError> {
        let value = self.given.get("status").cloned().unwrap_or_default();
        let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|status| (200..600).contains(status));
        status.ok_or_else(|| {
            let what = match operation == Operation::Http {
                true => "a status of HTTP",
                false => "a status of a reply",
            };
            invalid(
                &self.of("status"),
                &value,
                &[&format!("{what} from 200 to 599")],
            )
        })
    }

    fn when(&self) -> Result<When, ApiError> {
        let Some(value) = self.given.get("when") else {
            return Ok(When::Before);
        };
        let known = When::ALL;
        let found = known.into_iter().find(|known| *value == known.name());
        found.ok_or_else(|| invalid(&self.of("when"), value, &known.map(When::name)))
    }

    fn wait(&self) -> Result<Wait, ApiError> {
        match self.given.get("clock") {
            None => Ok(Wait::Virtual(self.seconds(LONGEST_VIRTUAL)?)),
            Some(clock) if clock == "virtual" => Ok(Wait::Virtual(self.seconds(LONGEST_VIRTUAL)?)),
            Some(clock) if clock == "real" => Ok(Wait::Real(self.seconds(LONGEST_REAL)?)),
            Some(other) => Err(invalid(&self.of("clock"), other, &["virtual", "real"])),
        }
    }

    fn seconds(&self, longest: f64) -> Result<Duration, ApiError> {
        let value = self.given.get("seconds").cloned().unwrap_or_default();
        let seconds = value.as_f64().filter(|seconds| *seconds <= longest);
        let length = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let length = length.filter(|length| !length.is_zero());
        length.ok_or_else(|| {
            let allowed = format!("a number of seconds above 0, at most {longest}");
            invalid(&self.of("seconds"), &value, &[&allowed])
        })
    }

    fn behind(&self) -> Result<u32, ApiError> {
        let Some(value) = self.given.get("behind") else {
            return Ok(1);
        };
        let behind = value
            .as_u64()
            .filter(|behind| (1..=BEHIND).contains(behind));
        let behind = behind.and_then(|behind| u32::try_from(behind).ok());
        behind.ok_or_else(|| {
            let allowed = format!("a whole number from 1 to {BEHIND}");
            invalid(&self.of("behind"), value, &[&allowed])
        })
    }

    fn of(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }
}
