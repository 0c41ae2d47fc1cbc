//! Changes of a rule's action on its copy of a message (semantics §13.2).
//!
//! Only the changed sections are encoded anew, beside the payload, so that the message stays shared.

use std::num::NonZeroU64;

use bytes::Bytes;
use servicebus_codec::{DecodeError, Writer};

use super::sections::Sections;
use super::{Message, annotations, application, generate_id, properties};
use crate::changes::BodyId;
use crate::filter::{self, Edit, Edits, Properties, SystemProperty, Target, Value};
use crate::ids::IdSource;

/// Ticks of 100 ns, the language's unit of time, in a millisecond.
const TICKS: i64 = 10_000;

/// The location of a system property in a message.
enum PropertyLocation {
    /// A field of the properties section.
    Field(u32),
    /// A message annotation.
    Annotation(&'static str),
    TimeToLive,
    /// The property belongs to the broker.
    Nowhere,
}

/// Replacements of parts of a message, beside the sent bytes. Boxed, since few messages need it and every queued byte
/// counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlay {
    /// Replaces the section of a large payload that was sent without message id, because only small ones are copied, or of
    /// one that a rule's action has changed.
    pub(crate) properties: Option<Bytes>,
    /// Replaces the message annotations that a rule's action has changed.
    pub(crate) annotations: Option<Bytes>,
    /// Replaces the section whose properties were changed.
    pub(crate) application: Option<Bytes>,
    pub(crate) dead_letter_source: Option<Box<str>>,
    /// The id under which the payload is stored, if it is; here, so that other messages need no field for it.
    pub(crate) body: Option<BodyId>,
    /// How many bytes at the end of the payload are stored and not in memory.
    pub(crate) stored_body: u32,
}

/// Replacements of parts of a message, as in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Replaced<'a> {
    pub(crate) annotations: Option<&'a [u8]>,
    pub(crate) properties: Option<&'a [u8]>,
    pub(crate) application: Option<&'a [u8]>,
    pub(crate) dead_letter_source: Option<&'a [u8]>,
}

impl<'a> Replaced<'a> {
    /// Returns the parts in the order of a row.
    pub(crate) fn parts(&self) -> [Option<&'a [u8]>; 4] {
        [
            self.annotations,
            self.properties,
            self.application,
            self.dead_letter_source,
        ]
    }
}

impl Overlay {
    pub(crate) fn with_properties(section: Vec<u8>) -> Self {
        Self {
            properties: Some(section.into_boxed_slice().into()),
            ..Self::default()
        }
    }

    /// Returns the bytes that it adds to the payload, including what is left out, and those of the sections in the payload
    /// that it replaces.
    pub(crate) fn sizes(&self, sections: &Sections) -> (usize, usize) {
        let source = self.dead_letter_source.as_deref().map_or(0, str::len);
        let (mut added, mut replaced) = (source + self.stored_body as usize, 0);
        let [_, before, annotations, properties, application] = sections.ends();
        for (replacement, sent) in [
            (&self.annotations, annotations - before),
            (&self.properties, properties - annotations),
            (&self.application, application - properties),
        ] {
            if let Some(replacement) = replacement {
                added += replacement.len();
                replaced += sent as usize;
            }
        }
        (added, replaced)
    }
}

impl Message {
    pub(crate) fn replaced(&self) -> Option<Replaced<'_>> {
        let overlay = self.overlay.as_ref()?;
        let replaced = Replaced {
            annotations: overlay.annotations.as_deref(),
            properties: overlay.properties.as_deref(),
            application: overlay.application.as_deref(),
            dead_letter_source: overlay.dead_letter_source.as_deref().map(str::as_bytes),
        };
        let is_there = replaced.parts().iter().any(Option::is_some);
        is_there.then_some(replaced)
    }

    /// Returns the id under which its payload is stored.
    pub(crate) fn body_id(&self) -> Option<BodyId> {
        self.overlay.as_ref()?.body
    }

    /// Sets the id of its stored payload, which all later copies of the message share.
    pub(crate) fn set_body_id(&mut self, body: BodyId) {
        self.overlay.get_or_insert_default().body = Some(body);
    }

    /// Restores the stored rest of the message, with its body's id; `None` if that is not valid.
    pub(crate) fn restore_rest(
        &mut self,
        body: BodyId,
        time_to_live: Option<NonZeroU64>,
        replaced: Option<Replaced<'_>>,
    ) -> Option<()> {
        let replaced = replaced.unwrap_or_default();
        let source = replaced.dead_letter_source.map(str::from_utf8);
        let own = |section: Option<&[u8]>| section.map(Bytes::copy_from_slice);
        let overlay = self.overlay.get_or_insert_default();
        overlay.properties = own(replaced.properties);
        overlay.annotations = own(replaced.annotations);
        overlay.application = own(replaced.application);
        overlay.dead_letter_source = source.transpose().ok()?.map(Box::from);
        overlay.body = Some(body);
        self.time_to_live = time_to_live;
        self.drop_body();
        Some(())
    }

    /// Returns the properties as filters see them; `system` has the broker's values.
    pub fn filter_view<'m>(
        &'m self,
        system: &filter::System<'m>,
    ) -> Result<Properties<'m>, DecodeError> {
        let sections = filter::Sections {
            header: self.sections.header(&self.payload),
            annotations: self.annotations(),
            properties: self.properties(),
            application: self.application_properties(),
        };
        Properties::decode(&sections, system)
    }

    /// Applies an action's changes. The caller checks [afterwards](Self::exceeds_header_limit) whether the message still fits.
    /// A message whose id was removed gets a new one from `ids`, like one that was sent without (decision D30).
    pub fn apply(&mut self, edits: &Edits, ids: &mut dyn IdSource) -> Result<(), DecodeError> {
        let mut user = Vec::new();
        for edit in edits.iter() {
            match edit.target() {
                Target::User(name) => {
                    user.push((&**name, edit.encoded().map(|value| value.as_amqp())));
                }
                Target::System(property) => self.apply_system(*property, edit)?,
            }
        }
        if !user.is_empty() {
            let is_edited = |name: &str| user.iter().any(|(edited, _)| *edited == name);
            let section = self.application_properties();
            let edited = application::edit(section, is_edited, user.iter().copied())?;
            let edited = edited.into_boxed_slice();
            self.overlay.get_or_insert_default().application = Some(edited.into());
        }
        let is_of_id = |edit: &Edit| *edit.target() == Target::System(SystemProperty::MessageId);
        let lacks_id = |properties| {
            properties::summary(properties).is_ok_and(|summary| !summary.has_message_id)
        };
        if edits.iter().any(is_of_id) && lacks_id(self.properties()) {
            let section = properties::with_message_id(self.properties(), &generate_id(ids))?;
            let section = section.into_boxed_slice();
            self.overlay.get_or_insert_default().properties = Some(section.into());
        }
        Ok(())
    }

    fn apply_system(&mut self, property: SystemProperty, edit: &Edit) -> Result<(), DecodeError> {
        let value = edit.value();
        match place(property) {
            PropertyLocation::Field(index) => {
                let is_symbol = property == SystemProperty::ContentType;
                let section = properties::with_field(self.properties(), index, |out| {
                    write(value, is_symbol, out);
                })?;
                let section = section.into_boxed_slice();
                self.overlay.get_or_insert_default().properties = Some(section.into());
            }
            PropertyLocation::Annotation(name) => {
                let value = edit.encoded().map(|_| value);
                let section = annotations::edit(self.annotations(), name, |out| match value {
                    Some(value) => {
                        write(value, false, out);
                        true
                    }
                    None => false,
                })?;
                let section = section.into_boxed_slice();
                self.overlay.get_or_insert_default().annotations = Some(section.into());
            }
            PropertyLocation::TimeToLive => {
                let milliseconds = match value {
                    // Headers count milliseconds: a shorter lifetime must not become none.
                    Some(Value::Span(ticks)) => ticks.div_euclid(TICKS).max(1),
                    _ => 0,
                };
                self.set_time_to_live(u64::try_from(milliseconds).unwrap_or(0))?;
            }
            PropertyLocation::Nowhere => {}
        }
        Ok(())
    }
}

fn place(property: SystemProperty) -> PropertyLocation {
    match property {
        SystemProperty::MessageId => PropertyLocation::Field(0),
        SystemProperty::To => PropertyLocation::Field(2),
        SystemProperty::Label => PropertyLocation::Field(3),
        SystemProperty::ReplyTo => PropertyLocation::Field(4),
        SystemProperty::CorrelationId => PropertyLocation::Field(5),
        SystemProperty::ContentType => PropertyLocation::Field(6),
        SystemProperty::SessionId => PropertyLocation::Field(10),
        SystemProperty::ReplyToSessionId => PropertyLocation::Field(12),
        SystemProperty::PartitionKey => PropertyLocation::Annotation("x-opt-partition-key"),
        SystemProperty::ViaPartitionKey => PropertyLocation::Annotation("x-opt-via-partition-key"),
        SystemProperty::ScheduledEnqueueTimeUtc => {
            PropertyLocation::Annotation("x-opt-scheduled-enqueue-time")
        }
        SystemProperty::TimeToLive => PropertyLocation::TimeToLive,
        SystemProperty::DeadLetterSource
        | SystemProperty::DeliveryCount
        | SystemProperty::EnqueuedSequenceNumber
        | SystemProperty::EnqueuedTimeUtc
        | SystemProperty::ExpiresAtUtc
        // Every message is durable here.
        | SystemProperty::ForcePersistence
        | SystemProperty::LockedUntilUtc
        | SystemProperty::LockToken
        | SystemProperty::SequenceNumber
        | SystemProperty::Size
        | SystemProperty::State => PropertyLocation::Nowhere,
    }
}

/// Encodes a value in the type of its location.
fn write(value: Option<&Value<'_>>, is_symbol: bool, out: &mut Writer<'_>) {
    match value {
        Some(Value::Text(text)) if is_symbol => out.symbol(text),
        Some(Value::Text(text)) => out.string(text),
        Some(Value::Instant(ticks)) => out.timestamp(ticks / TICKS),
        _ => out.null(),
    }
}
