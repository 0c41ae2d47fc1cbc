//! A message: its envelope is parsed, its bytes are shared.
//!
//! The broker parses what it needs (time to live, message id) once and keeps the rest as sent. Everything that the broker
//! does not own reaches the receiver bit for bit.

mod annotations;
mod application;
mod edit;
mod encode;
mod limits;
mod properties;
pub(crate) mod sections;
mod stored_body;

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use servicebus_codec::DecodeError;

pub use application::PropertyChanges;
pub use encode::BrokerProperties;
pub use limits::MessageError;

use crate::ids::IdSource;
use crate::time::Timestamp;
use edit::Overlay;
pub(crate) use edit::Replaced;
use sections::Sections;
pub(crate) use stored_body::MessagePrefix;

/// Largest payload that is copied when a message is accepted, equal to the largest frame of a connection: a slice of a read
/// block would keep the whole block, up to 1 MiB, in memory for as long as the message stays. A message of several frames
/// has memory of exactly its size.
const COPY_LIMIT: usize = 64 * 1024;

/// One message as it was sent, with the broker's changes.
#[derive(Debug, Clone)]
pub struct Message {
    /// Without the body where that is [left out](Self::missing).
    payload: Bytes,
    sections: Sections,
    /// Replacements of parts of the payload.
    overlay: Option<Box<Overlay>>,
    /// The message's own time to live in milliseconds.
    time_to_live: Option<NonZeroU64>,
    was_scheduled: bool,
}

impl Message {
    /// Parses one encoded message. A message without id gets one of 32 hexadecimal digits (decision D30).
    pub fn parse(payload: Bytes, ids: &mut dyn IdSource) -> Result<Self, MessageError> {
        let (payload, sections) = in_standard_form(payload)?;
        let header = encode::Header::parse(sections.header(&payload))?;
        let properties = sections.properties(&payload);
        let summary = properties::summary(properties)?;
        let time_to_live = header.time_to_live(&summary)?;
        let spliced = match summary.has_message_id {
            true => None,
            false => Some(properties::with_message_id(properties, &generate_id(ids))?),
        };
        let mut overlay = None;
        let (payload, sections) = match spliced {
            Some(spliced) if payload.len() <= COPY_LIMIT => {
                sections.replace_properties(&payload, &spliced)
            }
            Some(spliced) => {
                overlay = Some(Box::new(Overlay::with_properties(spliced)));
                (payload, sections)
            }
            None => (copy_small(payload), sections),
        };
        let message = Self {
            payload,
            sections,
            overlay,
            time_to_live: time_to_live.and_then(NonZeroU64::new),
            was_scheduled: false,
        };
        match message.headers_size() {
            size if size > limits::HEADERS => Err(MessageError::HeadersTooLarge { size }),
            _ => Ok(message),
        }
    }

    /// Parses a transfer of message format 0x80013700, which has one message in each data section (wire.md §3.3): all of
    /// them or none.
    pub fn parse_batch(payload: &Bytes, ids: &mut dyn IdSource) -> Result<Vec<Self>, MessageError> {
        sections::split_batch(payload)?
            .into_iter()
            .map(|range| Self::parse(part(payload, range), ids))
            .collect()
    }

    /// Returns its size in bytes, as it counts towards the size of its entity.
    pub fn size(&self) -> u64 {
        let Some(overlay) = &self.overlay else {
            return self.payload.len() as u64;
        };
        let (added, replaced) = overlay.sizes(&self.sections);
        (self.payload.len() + added - replaced) as u64
    }

    /// Returns the sender's time to live in milliseconds.
    pub fn time_to_live(&self) -> Option<u64> {
        self.time_to_live.map(NonZeroU64::get)
    }

    /// Returns the message id as text; binary ids as hexadecimal digits.
    pub fn id(&self) -> Cow<'_, str> {
        properties::message_id(self.properties())
    }

    /// Returns the id of its session.
    pub fn session_id(&self) -> Option<Cow<'_, str>> {
        properties::group_id(self.properties())
    }

    /// Returns the body sections and the footer; empty where they are [missing](Self::missing).
    pub fn content(&self) -> Bytes {
        let (_, end) = self.sections.application_range();
        self.payload.slice(end..)
    }

    /// Returns the key that determines its partition.
    pub fn partition_key(&self) -> Option<Cow<'_, str>> {
        annotations::text(self.annotations(), annotations::PARTITION_KEY)
    }

    /// Returns the key that determines its partition in an entity that it only passes through (semantics §12).
    pub fn via_partition_key(&self) -> Option<Cow<'_, str>> {
        annotations::text(self.annotations(), annotations::VIA_PARTITION_KEY)
    }

    /// Returns when the message becomes active, if its sender scheduled it: in the namespace's time once it was
    /// [shifted](Self::shift_to_namespace_time).
    pub fn scheduled_at(&self) -> Option<Timestamp> {
        annotations::schedule(self.annotations())
            .map(|(instant, _)| Timestamp::from_millis(instant))
    }

    /// Converts the instants of a message that was just sent into the namespace's time, which is `ahead` milliseconds later
    /// than the client's (decision D20).
    pub fn shift_to_namespace_time(&mut self, ahead: i64) {
        let found = annotations::schedule(self.annotations()).filter(|_| ahead != 0);
        let Some((instant, from_end)) = found else {
            return;
        };
        let entered = instant.saturating_add(ahead);
        let replaced = self.overlay.as_ref();
        if replaced.is_some_and(|overlay| overlay.annotations.is_some()) {
            self.reschedule(Timestamp::from_millis(entered));
            return;
        }
        let entered = entered.to_be_bytes();
        let begin = self.sections.message_annotations_end() - from_end;
        let mut payload = std::mem::take(&mut self.payload)
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&*shared));
        payload[begin..begin + annotations::TIMESTAMP_WIDTH].copy_from_slice(&entered);
        self.payload = payload.freeze();
    }

    /// Changes when the message becomes active, if its sender scheduled it: beside the payload, which may be stored.
    pub(crate) fn reschedule(&mut self, at: Timestamp) {
        let Some((_, from_end)) = annotations::schedule(self.annotations()) else {
            return;
        };
        let mut section = self.annotations().to_vec();
        let begin = section.len() - from_end;
        section[begin..begin + annotations::TIMESTAMP_WIDTH]
            .copy_from_slice(&at.as_millis().to_be_bytes());
        self.overlay.get_or_insert_default().annotations = Some(section.into());
    }

    /// Takes the sent bytes of `other`, of which this is a copy.
    pub(crate) fn share_payload(&mut self, other: &Self) {
        self.payload = other.payload.clone();
    }

    /// Sets the source of a forwarded dead letter (semantics §3.3).
    pub fn set_dead_letter_source(&mut self, source: &str) {
        self.overlay.get_or_insert_default().dead_letter_source = Some(source.into());
    }

    /// Returns whether the message in its current form exceeds the limits of headers (decision D23).
    pub fn exceeds_header_limit(&self) -> bool {
        let replaced = self.replaced_application();
        self.headers_size() > limits::HEADERS
            || replaced.is_some_and(|section| application::check(section).is_err())
    }

    /// Sets application properties, replacing those of the same name.
    pub fn change_properties(&mut self, changes: &PropertyChanges) -> Result<(), DecodeError> {
        if changes.is_empty() {
            return Ok(());
        }
        let merged = application::merge(self.application_properties(), changes)?;
        let merged = merged.into_boxed_slice();
        self.overlay.get_or_insert_default().application = Some(merged.into());
        Ok(())
    }

    /// Returns the encoded application-properties section; empty if there is none.
    pub fn application_properties(&self) -> &[u8] {
        match self.replaced_application() {
            Some(replaced) => replaced,
            None => self.sections.application(&self.payload),
        }
    }

    /// Marks it as scheduled before and active now.
    pub(crate) fn set_was_scheduled(&mut self) {
        self.was_scheduled = true;
    }

    pub(crate) fn was_scheduled(&self) -> bool {
        self.was_scheduled
    }

    /// Sets the time to live, and the expiry instant if there is a creation time; 0 means none.
    fn set_time_to_live(&mut self, milliseconds: u64) -> Result<(), DecodeError> {
        self.time_to_live = NonZeroU64::new(milliseconds);
        let expiry = self.time_to_live();
        let expiry = expiry.and_then(|own| properties::expiry_after(self.properties(), own));
        let section = properties::with_expiry(self.properties(), expiry)?.into_boxed_slice();
        self.overlay.get_or_insert_default().properties = Some(section.into());
        Ok(())
    }

    /// Returns the encoded message annotations; empty if there are none.
    fn annotations(&self) -> &[u8] {
        let overlay = self.overlay.as_ref();
        match overlay.and_then(|overlay| overlay.annotations.as_deref()) {
            Some(replaced) => replaced,
            None => self.sections.message_annotations(&self.payload),
        }
    }

    /// Returns the encoded properties section, which always exists.
    fn properties(&self) -> &[u8] {
        match self.replaced_properties() {
            Some(replaced) => replaced,
            None => self.sections.properties(&self.payload),
        }
    }

    fn replaced_properties(&self) -> Option<&[u8]> {
        self.overlay.as_ref()?.properties.as_deref()
    }

    fn replaced_application(&self) -> Option<&[u8]> {
        self.overlay.as_ref()?.application.as_deref()
    }

    /// Returns the cost of evaluating a filter, in messages with few headers.
    pub fn evaluation_cost(&self) -> usize {
        1 + self.headers_size() / 256
    }

    pub(crate) fn dead_letter_source(&self) -> Option<&str> {
        self.overlay.as_ref()?.dead_letter_source.as_deref()
    }

    /// Returns the current size of the sections before the body in bytes.
    fn headers_size(&self) -> usize {
        let sent = self.sections.message_annotations(&self.payload).len();
        self.sections.message_annotations_end() - sent
            + self.annotations().len()
            + self.properties().len()
            + self.application_properties().len()
            + self.dead_letter_source().map_or(0, str::len)
    }
}

/// Returns a message in the form in which it is delivered, and its sections.
fn in_standard_form(payload: Bytes) -> Result<(Bytes, Sections), MessageError> {
    let scanned = Sections::scan(&payload)?;
    if !scanned.is_other_form {
        return Ok((payload, scanned.sections));
    }
    let payload = Bytes::from(sections::standard_form(&payload)?);
    let scanned = Sections::scan(&payload)?;
    Ok((payload, scanned.sections))
}

/// Copies a small payload into memory of its own.
fn copy_small(payload: Bytes) -> Bytes {
    if payload.len() <= COPY_LIMIT {
        Bytes::copy_from_slice(&payload)
    } else {
        payload
    }
}

/// Returns a message of a batch, which shares the batch's memory only if it is at least half of it.
fn part(batch: &Bytes, range: Range<usize>) -> Bytes {
    let part = batch.slice(range);
    match part.len() > COPY_LIMIT && part.len() < batch.len() / 2 {
        true => Bytes::copy_from_slice(&part),
        false => part,
    }
}

fn generate_id(ids: &mut dyn IdSource) -> String {
    format!("{:016x}{:016x}", ids.next(), ids.next())
}

#[cfg(test)]
mod tests;
