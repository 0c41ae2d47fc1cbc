//! What a session receiver asks for, and how it is told what it got (wire.md §5).
//!
//! A receiver is one of sessions when its filter has the key, whatever the value. The granted id goes back in the
//! client's own shape: go-amqp decodes only described values there, .NET, JavaScript and Java only plain ones.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

use std::time::Duration;

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_amqp::AttachRequest;
use servicebus_broker::{EntityPath, SessionName};

use super::{Condition, Refusal};

/// Link property: how many milliseconds to wait for the next available session.
const TIMEOUT: &str = "com.microsoft:timeout";
/// How long to wait when the client does not say (semantics §6).
const PATIENCE: Duration = Duration::from_secs(65);

/// The session that a link is attached for.
#[derive(Debug)]
pub(crate) struct SessionRequest {
    /// The next available one if none.
    pub(crate) session: Option<SessionName>,
    /// How long the client waits for the next available one, in real time (decision D19).
    pub(crate) patience: Duration,
    /// Around the filter value, if it was described.
    descriptor: Option<Descriptor>,
}

impl SessionRequest {
    /// The key of the filter that makes a receiver one of sessions.
    pub(crate) const FILTER: &str = "com.microsoft:session-filter";

    /// Reads the value of the filter, and what the link's properties say about waiting.
    pub(crate) fn read(
        attach: &AttachRequest,
        filter: &Value,
        path: &EntityPath,
    ) -> Result<Self, Refusal> {
        let (descriptor, wanted) = match filter {
            Value::Described(described) => (Some(described.descriptor.clone()), &described.value),
            plain => (None, plain),
        };
        let session = match wanted {
            Value::Null => None,
            Value::String(id) => Some(session_name(id, path)?),
            other => {
                let text = format!(
                    "The session filter of a receiver of '{path}' is {other:?}; it must be a string, or null for \
                     the next available session."
                );
                return Err(Refusal::new(Condition::ArgumentError, text));
            }
        };
        let patience = match session {
            Some(_) => Duration::ZERO,
            None => patience(attach.property(TIMEOUT), path)?,
        };
        Ok(Self {
            session,
            patience,
            descriptor,
        })
    }

    /// The entry of the filter that says which session was granted.
    pub(crate) fn granted(&self, session: &SessionName) -> (String, Value) {
        let id = Value::String(session.as_str().to_owned());
        let value = match &self.descriptor {
            Some(descriptor) => Value::Described(Box::new(Described {
                descriptor: descriptor.clone(),
                value: id,
            })),
            None => id,
        };
        (Self::FILTER.to_owned(), value)
    }
}

/// The id of a session, as a client wrote it.
pub(super) fn session_name(id: &str, path: &EntityPath) -> Result<SessionName, Refusal> {
    SessionName::new(id).ok_or_else(|| {
        let text = format!(
            "The session id for '{path}' has {} characters; it must have 1 to {}.",
            id.chars().count(),
            SessionName::MAX_LENGTH
        );
        Refusal::new(Condition::ArgumentError, text)
    })
}

/// Clients differ in the width of the number (wire.md §5).
fn patience(property: Option<&Value>, path: &EntityPath) -> Result<Duration, Refusal> {
    let value = match property {
        None | Some(Value::Null) => return Ok(PATIENCE),
        Some(value) => value,
    };
    let milliseconds = whole(value).and_then(|number| u32::try_from(number).ok());
    let milliseconds = milliseconds.ok_or_else(|| {
        let text = format!(
            "The link property {TIMEOUT} of a receiver of '{path}' is {value:?}; it must be a whole number of \
             milliseconds from 0 to {}.",
            u32::MAX
        );
        Refusal::new(Condition::ArgumentError, text)
    })?;
    Ok(Duration::from_millis(milliseconds.into()))
}

fn whole(value: &Value) -> Option<i128> {
    Some(match *value {
        Value::Ubyte(number) => number.into(),
        Value::Ushort(number) => number.into(),
        Value::Uint(number) => number.into(),
        Value::Ulong(number) => number.into(),
        Value::Byte(number) => number.into(),
        Value::Short(number) => number.into(),
        Value::Int(number) => number.into(),
        Value::Long(number) => number.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_nothing_waits_for_65_seconds() {
        let path: EntityPath = "q".parse().unwrap();
        let seconds = |property| patience(property, &path).map(|patience| patience.as_secs());
        assert_eq!(seconds(None), Ok(65));
        assert_eq!(seconds(Some(&Value::Null)), Ok(65));
        assert_eq!(seconds(Some(&Value::Uint(10_000))), Ok(10));
        let longest = Value::Ulong(u32::MAX.into());
        assert_eq!(seconds(Some(&longest)), Ok(4_294_967));
    }
}
