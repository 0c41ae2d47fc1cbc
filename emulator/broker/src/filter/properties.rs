//! The properties of a message, decoded once for all filters.
//!
//! Values borrow from the encoded sections. Names are found by a hash of their folded form, which a rule computes once, so
//! that a look-up compares numbers and only at the end a name.

use std::borrow::Cow;

use servicebus_codec::{DecodeError, Reader};
use uuid::fmt::Hyphenated;

use super::system::{System, SystemProperty};
use super::value::Value;
use crate::message::sections::content;

const PARTITION_KEY: &str = "x-opt-partition-key";
const VIA_PARTITION_KEY: &str = "x-opt-via-partition-key";
const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";

/// The first instant of the year 1, by which .NET encodes an unset time (wire.md §7.1).
const NOT_SET: i64 = -62_135_596_800_000;

/// The encoded sections with properties; empty if missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sections<'a> {
    /// Header.
    pub header: &'a [u8],
    /// Message annotations.
    pub annotations: &'a [u8],
    /// Properties.
    pub properties: &'a [u8],
    /// Application properties.
    pub application: &'a [u8],
}

/// The name of a user property, folded and hashed once.
#[derive(Debug, Clone)]
pub struct Name {
    text: Box<str>,
    hash: u64,
}

/// A view of one message: its system and user properties.
#[derive(Debug, Clone)]
pub struct Properties<'a> {
    system: [Value<'a>; SystemProperty::ALL.len()],
    /// Ordered by hash; equal ones in the order of the message.
    user: Vec<User<'a>>,
    /// Encoded header and properties, for fields that are rarely needed.
    sections: (&'a [u8], &'a [u8]),
}

/// One user property.
#[derive(Debug, Clone)]
pub(crate) struct User<'a> {
    pub(crate) hash: u64,
    pub(crate) name: &'a str,
    /// The AMQP encoding, whose constructor has the width of a number.
    pub(crate) encoded: &'a [u8],
    pub(crate) value: Value<'a>,
}

impl Name {
    /// Creates a name for repeated look-ups.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            hash: fold(text),
        }
    }

    /// Returns the name as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && same_name(&self.text, &other.text)
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let folded = |name: &Self| {
            name.text
                .chars()
                .flat_map(char::to_lowercase)
                .collect::<String>()
        };
        self.hash
            .cmp(&other.hash)
            .then_with(|| folded(self).cmp(&folded(other)))
    }
}

impl<'a> Properties<'a> {
    /// Decodes the properties of a message.
    pub fn decode(sections: &Sections<'a>, system: &System<'a>) -> Result<Self, DecodeError> {
        let mut view = Self::of_broker(system);
        view.sections = (sections.header, sections.properties);
        view.note_properties(sections.properties)?;
        view.note_annotations(sections.annotations)?;
        view.note_application(sections.application)?;
        Ok(view)
    }

    /// Returns the broker's properties of a message, without those of its sender.
    pub(crate) fn of_broker(system: &System<'a>) -> Self {
        let mut view = Self {
            system: std::array::from_fn(|_| Value::Null),
            user: Vec::new(),
            sections: (&[], &[]),
        };
        view.note_system(system);
        view
    }

    /// Returns a system property; null if it is not set.
    #[inline]
    pub fn system(&self, property: SystemProperty) -> &Value<'a> {
        &self.system[property as usize]
    }

    /// Returns a user property by its name, ignoring case; the first of several that differ in case.
    #[inline]
    pub fn user(&self, name: &Name) -> Option<&Value<'a>> {
        self.find(name.hash, &name.text).map(|user| &user.value)
    }

    /// Returns a user property by a name that was computed.
    pub fn user_named(&self, name: &str) -> Option<&Value<'a>> {
        self.find(fold(name), name).map(|user| &user.value)
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, name: &str) -> Option<&User<'a>> {
        let begin = self.user.partition_point(|user| user.hash < hash);
        let candidates = self.user[begin..].iter();
        let mut same = candidates.take_while(|user| user.hash == hash);
        same.find(|user| same_name(user.name, name))
    }

    /// Returns all user properties; of names that differ in case, the first.
    pub(crate) fn all_user(&self) -> impl Iterator<Item = &User<'a>> {
        let mut last = None;
        self.user.iter().filter(move |user| {
            let repeats = last.replace(user.hash) == Some(user.hash);
            !repeats
                || self
                    .find(user.hash, user.name)
                    .is_some_and(|first| std::ptr::eq(first, *user))
        })
    }

    /// Returns the encoded header and properties; empty if missing.
    pub(crate) fn sections(&self) -> (&'a [u8], &'a [u8]) {
        self.sections
    }

    fn set(&mut self, property: SystemProperty, value: Value<'a>) {
        self.system[property as usize] = value;
    }

    fn note_system(&mut self, system: &System<'a>) {
        use SystemProperty as P;
        let number = |number: u64| Value::Signed(i64::try_from(number).unwrap_or(i64::MAX));
        let instant = |instant: Option<crate::time::Timestamp>| {
            instant.map_or(Value::Null, |instant| Value::instant(instant.as_millis()))
        };
        let sequence = |place: Option<crate::ids::SequenceNumber>| {
            place.map_or(Value::Null, |place| number(place.0))
        };
        self.set(P::SequenceNumber, sequence(system.sequence_number));
        self.set(
            P::EnqueuedSequenceNumber,
            sequence(system.enqueued_sequence_number),
        );
        self.set(P::EnqueuedTimeUtc, instant(system.enqueued_at));
        self.set(P::ExpiresAtUtc, instant(system.expires_at));
        self.set(P::LockedUntilUtc, instant(system.locked_until));
        self.set(
            P::LockToken,
            system.lock_token.map_or(Value::Null, Value::Guid),
        );
        self.set(P::DeliveryCount, number(system.delivery_count.into()));
        self.set(P::State, Value::Signed(system.state.into()));
        self.set(P::Size, number(system.size));
        let ticks =
            |span: std::time::Duration| i64::try_from(span.as_nanos() / 100).unwrap_or(i64::MAX);
        self.set(
            P::TimeToLive,
            system
                .time_to_live
                .map_or(Value::Null, |span| Value::Span(ticks(span))),
        );
        self.set(
            P::DeadLetterSource,
            system.dead_letter_source.map_or(Value::Null, Value::text),
        );
        self.set(P::ForcePersistence, Value::Bool(system.force_persistence));
    }

    fn note_properties(&mut self, section: &'a [u8]) -> Result<(), DecodeError> {
        const FIELDS: [Option<SystemProperty>; 13] = [
            Some(SystemProperty::MessageId),
            None,
            Some(SystemProperty::To),
            Some(SystemProperty::Label),
            Some(SystemProperty::ReplyTo),
            Some(SystemProperty::CorrelationId),
            Some(SystemProperty::ContentType),
            None,
            None,
            None,
            Some(SystemProperty::SessionId),
            None,
            Some(SystemProperty::ReplyToSessionId),
        ];
        if section.is_empty() {
            return Ok(());
        }
        let mut fields = content(section)?.fields()?;
        for property in FIELDS {
            let Some(raw) = fields.raw()? else { continue };
            if let Some(property) = property {
                self.set(property, id_text(Value::decode(raw)?));
            }
        }
        Ok(())
    }

    fn note_annotations(&mut self, section: &'a [u8]) -> Result<(), DecodeError> {
        if section.is_empty() {
            return Ok(());
        }
        for entry in content(section)?.map()?.raw_entries() {
            let (key, value) = entry?;
            let property = match Reader::new(key).value()?.as_text() {
                Some(PARTITION_KEY) => SystemProperty::PartitionKey,
                Some(VIA_PARTITION_KEY) => SystemProperty::ViaPartitionKey,
                Some(SCHEDULED) => SystemProperty::ScheduledEnqueueTimeUtc,
                _ => continue,
            };
            let value = Value::decode(value)?;
            // The first of several counts.
            if self.system(property).is_null() && value != Value::instant(NOT_SET) {
                self.set(property, value);
            }
        }
        Ok(())
    }

    fn note_application(&mut self, section: &'a [u8]) -> Result<(), DecodeError> {
        if section.is_empty() {
            return Ok(());
        }
        let map = content(section)?.map()?;
        self.user.reserve_exact(map.count as usize / 2);
        for entry in map.raw_entries() {
            let (key, value) = entry?;
            let Some(name) = Reader::new(key).value()?.as_text() else {
                continue;
            };
            self.user.push(User {
                hash: fold(name),
                name,
                encoded: value,
                value: Value::decode(value)?,
            });
        }
        self.user.sort_by_key(|user| user.hash);
        Ok(())
    }
}

/// Ids may be GUIDs, numbers or bytes on the wire; for .NET, and so for filters, they are strings.
fn id_text(value: Value<'_>) -> Value<'_> {
    let text = match value {
        Value::Guid(uuid) => Hyphenated::from_uuid(uuid).to_string(),
        Value::Unsigned(number) => number.to_string(),
        Value::Signed(number) => number.to_string(),
        Value::Binary(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Null
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Instant(_)
        | Value::Span(_)
        | Value::Other(_) => return value,
    };
    Value::Text(Cow::Owned(text))
}

/// Returns whether two names mean the same property.
#[inline]
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a == b || eq_ignore_case(a, b)
}

fn eq_ignore_case(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    let fold = char::to_lowercase;
    a.chars().flat_map(fold).eq(b.chars().flat_map(fold))
}

/// Returns the hash of a name in lower case (FNV-1a).
pub(crate) fn fold(name: &str) -> u64 {
    let mut hash = Fnv::default();
    if name.is_ascii() {
        name.bytes()
            .for_each(|byte| hash.add(byte.to_ascii_lowercase()));
    } else {
        let mut buffer = [0; 4];
        for character in name.chars().flat_map(char::to_lowercase) {
            hash.add_all(character.encode_utf8(&mut buffer).as_bytes());
        }
    }
    hash.0
}

/// A hash that is the same on every machine and in every run, unlike those of the standard library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    pub(crate) fn add_all(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.add(byte));
    }
}
