//! The session filter of a receiver, and the answer to it (wire.md §5).
//!
//! A receiver uses sessions if its filter has the key, with any value. The granted id is returned in the client's form:
//! go-amqp decodes only described values there, .NET, JavaScript and Java only plain ones. A non-exclusive session has a
//! filter of another type, with the id and a token (spec/newest.md 1).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

use std::time::Duration;

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_amqp::AttachRequest;
use servicebus_broker::{EntityPath, SessionAccess, SessionName, Tier};
use uuid::Uuid;

use super::condition::{Condition, ServiceError};

/// Link property: how many milliseconds to wait for the next available session.
const TIMEOUT_PROPERTY: &str = "com.microsoft:timeout";
/// The type of a filter for a non-exclusive session, by number and by name: `[id or null, token or null]`.
const NON_EXCLUSIVE: u64 = 0x0000_0013_7000_000e;
const NON_EXCLUSIVE_NAME: &str = "com.microsoft:non-exclusive-session-filter:list";
/// The default wait (semantics §6).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(65);

/// The session that a link asks for.
#[derive(Debug)]
pub(crate) struct SessionRequest {
    /// `None` for the next available one.
    pub(crate) session: Option<SessionName>,
    /// How long the client waits for the next available one, in real time (decision D19).
    pub(crate) wait_timeout: Duration,
    /// Exclusive, or so that another receiver may take it over.
    pub(crate) access: SessionAccess,
    /// The filter's key, and the descriptor of its value if it is described.
    key: String,
    descriptor: Option<Descriptor>,
}

impl SessionRequest {
    /// The key of the session filter.
    const FILTER: &str = "com.microsoft:session-filter";

    /// Returns whether a namespace of this tier evaluates a described filter.
    pub(crate) fn is_known(key: &str, filter: &Described<Value>, tier: Tier) -> bool {
        key == Self::FILTER || tier == Tier::Premium && is_non_exclusive(filter)
    }

    /// Reads the filter of a receiver and the link property for the wait; `None` if it asks for no session.
    pub(crate) fn read(
        attach: &AttachRequest,
        path: &EntityPath,
    ) -> Result<Option<Self>, ServiceError> {
        let mut described = attach.described_filters();
        let non_exclusive = described.find(|(_, filter)| is_non_exclusive(filter));
        let (key, descriptor, wanted, access) = match (attach.filter(Self::FILTER), non_exclusive) {
            (None, None) => return Ok(None),
            (Some(_), Some((key, _))) => {
                let text = format!(
                    "A receiver of '{path}' has the filters {} and {key}; it may have one of them.",
                    Self::FILTER
                );
                return Err(ServiceError::new(Condition::ArgumentError, text));
            }
            (Some(Value::Described(filter)), None) => {
                let descriptor = Some(filter.descriptor.clone());
                (
                    Self::FILTER,
                    descriptor,
                    &filter.value,
                    SessionAccess::Exclusive,
                )
            }
            (Some(plain), None) => (Self::FILTER, None, plain, SessionAccess::Exclusive),
            (None, Some((key, filter))) => {
                let (wanted, access) = non_exclusive_wish(&filter.value, path)?;
                (key, Some(filter.descriptor.clone()), wanted, access)
            }
        };
        let session = match wanted {
            Value::Null => None,
            Value::String(id) => Some(session_name(id, path)?),
            other => {
                let text = format!(
                    "The session filter of a receiver of '{path}' is {}; it must be a string, or null for the next \
                     available session.",
                    shown(other)
                );
                return Err(ServiceError::new(Condition::ArgumentError, text));
            }
        };
        let wait_timeout = match session {
            Some(_) => Duration::ZERO,
            None => wait_timeout(attach.property(TIMEOUT_PROPERTY), path)?,
        };
        Ok(Some(Self {
            session,
            wait_timeout,
            access,
            key: key.to_owned(),
            descriptor,
        }))
    }

    /// Returns the filter entry with the granted session and its token.
    pub(crate) fn granted(&self, session: &SessionName, token: Option<Uuid>) -> (String, Value) {
        let id = Value::String(session.as_str().to_owned());
        let value = match token {
            Some(token) => Value::List(vec![id, Value::Uuid(token.into_bytes().into())]),
            None => id,
        };
        let value = match &self.descriptor {
            Some(descriptor) => Value::Described(Box::new(Described {
                descriptor: descriptor.clone(),
                value,
            })),
            None => value,
        };
        (self.key.clone(), value)
    }
}

fn is_non_exclusive(filter: &Described<Value>) -> bool {
    match &filter.descriptor {
        Descriptor::Code(code) => *code == NON_EXCLUSIVE,
        Descriptor::Name(name) => name.as_str() == NON_EXCLUSIVE_NAME,
    }
}

/// Returns the id and the token of a filter for a non-exclusive session.
fn non_exclusive_wish<'a>(
    value: &'a Value,
    path: &EntityPath,
) -> Result<(&'a Value, SessionAccess), ServiceError> {
    let fields = match value {
        Value::List(fields) => fields.as_slice(),
        _ => &[],
    };
    match fields {
        [wanted, Value::Null] => Ok((wanted, SessionAccess::NonExclusive)),
        [wanted @ Value::String(_), Value::Uuid(token)] => {
            let token = Uuid::from_bytes(token.clone().into_inner());
            Ok((wanted, SessionAccess::Takeover(token)))
        }
        _ => {
            let text = format!(
                "The filter {NON_EXCLUSIVE_NAME} of a receiver of '{path}' must be a list of a session id and a lock \
                 token, of which the token or both may be null."
            );
            Err(ServiceError::new(Condition::ArgumentError, text))
        }
    }
}

/// Parses a client's session id.
pub(crate) fn session_name(id: &str, path: &EntityPath) -> Result<SessionName, ServiceError> {
    SessionName::new(id).ok_or_else(|| {
        let text = format!(
            "The session id for '{path}' has {} characters; it may have up to {}.",
            id.encode_utf16().count(),
            SessionName::MAX_LENGTH
        );
        ServiceError::new(Condition::ArgumentError, text)
    })
}

/// Clients differ in the width of the number (wire.md §5).
fn wait_timeout(property: Option<&Value>, path: &EntityPath) -> Result<Duration, ServiceError> {
    let value = match property {
        None | Some(Value::Null) => return Ok(DEFAULT_TIMEOUT),
        Some(value) => value,
    };
    let milliseconds = whole(value).and_then(|number| u32::try_from(number).ok());
    let milliseconds = milliseconds.ok_or_else(|| {
        let text = format!(
            "The link property {TIMEOUT_PROPERTY} of a receiver of '{path}' is {}; it must be a whole number of \
             milliseconds from 0 to {}.",
            shown(value),
            u32::MAX
        );
        ServiceError::new(Condition::ArgumentError, text)
    })?;
    Ok(Duration::from_millis(milliseconds.into()))
}

/// Describes a value of another type than is allowed: as a number, a string, or by its type.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Float(number) => number.0.to_string(),
        Value::Double(number) => number.0.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Symbol(text) => format!("'{}'", text.as_str()),
        Value::Null => "null".to_owned(),
        Value::Binary(_) => "binary".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        other => whole(other).map_or_else(|| "of another type".to_owned(), |own| own.to_string()),
    }
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
    fn the_default_wait_for_a_session_is_65_seconds() {
        let path: EntityPath = "q".parse().unwrap();
        let seconds =
            |property| wait_timeout(property, &path).map(|wait_timeout| wait_timeout.as_secs());
        assert_eq!(seconds(None), Ok(65));
        assert_eq!(seconds(Some(&Value::Null)), Ok(65));
        assert_eq!(seconds(Some(&Value::Uint(10_000))), Ok(10));
        let longest = Value::Ulong(u32::MAX.into());
        assert_eq!(seconds(Some(&longest)), Ok(4_294_967));
    }
}
