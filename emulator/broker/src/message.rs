//! A message: the envelope parsed, the letter shared.
//!
//! The broker reads what it needs (time to live, message id) once and keeps the rest as the bytes
//! that were sent. Whatever the broker does not own reaches the receiver bit for bit.

mod annotations;
mod application;
mod batch;
mod encode;
mod header;
mod properties;
mod sections;

use std::borrow::Cow;
use std::num::NonZeroU64;

use bytes::Bytes;
use servicebus_codec::DecodeError;
use thiserror::Error;

pub use application::PropertyChanges;
pub use encode::Stamp;

use crate::IdSource;
use sections::Sections;

/// Largest payload that is copied when a message is accepted: a slice would keep its whole read block
/// alive for as long as the message stays (protocol-layer §4, measured at four times the memory).
const COPY_LIMIT: usize = 16 * 1024;

/// One message as it was sent, with what the broker had to add to it.
#[derive(Debug, Clone)]
pub struct Message {
    payload: Bytes,
    sections: Sections,
    /// Stands in for the section of the payload once properties were changed.
    application: Option<Box<Bytes>>,
    /// The message's own time to live in milliseconds.
    time_to_live: Option<NonZeroU64>,
}

/// Why bytes are not a message that can be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Not the encoding of a message.
    #[error("the message cannot be decoded: {0}")]
    Malformed(#[from] DecodeError),
    /// A section out of order, twice, or unknown.
    #[error("the message has an unexpected section 0x{0:x}")]
    Section(u64),
    /// A time to live of zero (semantics §4: answered with an internal error).
    #[error("the time to live of a message must be greater than zero")]
    ZeroTimeToLive,
    /// Larger than the sections of one message can be addressed.
    #[error("the message has {0} bytes; at most {max} can be held", max = u32::MAX)]
    TooLong(usize),
}

impl Message {
    /// Reads one encoded message. A message without id is given one of 32 hexadecimal digits (decision D30).
    pub fn parse(payload: Bytes, ids: &mut dyn IdSource) -> Result<Self, MessageError> {
        let sections = Sections::scan(&payload)?;
        let header = header::Header::parse(sections.header(&payload))?;
        let properties = sections.properties(&payload);
        let glance = properties::glance(properties)?;
        let time_to_live = header.time_to_live(&glance)?;
        let (payload, sections) = if glance.has_message_id {
            (settle_in(payload), sections)
        } else {
            let spliced = properties::with_message_id(properties, &generate_id(ids))?;
            sections.replace_properties(&payload, &spliced)
        };
        Ok(Self {
            payload,
            sections,
            application: None,
            time_to_live: time_to_live.and_then(NonZeroU64::new),
        })
    }

    /// Reads a transfer of message format 0x80013700: one message in each data section
    /// (wire.md §3.3). All of them or none.
    pub fn parse_batch(payload: &Bytes, ids: &mut dyn IdSource) -> Result<Vec<Self>, MessageError> {
        batch::split(payload)?
            .into_iter()
            .map(|range| Self::parse(payload.slice(range), ids))
            .collect()
    }

    /// Size in bytes, as counted against the size of its entity.
    pub fn size(&self) -> u64 {
        let replaced = self.application.as_ref().map_or(0, |bytes| bytes.len());
        (self.payload.len() + replaced) as u64
    }

    /// The time to live that the message brought, in milliseconds.
    pub fn time_to_live(&self) -> Option<u64> {
        self.time_to_live.map(NonZeroU64::get)
    }

    /// The message id as text; binary ids as hexadecimal digits.
    pub fn id(&self) -> Cow<'_, str> {
        properties::message_id(self.sections.properties(&self.payload))
    }

    /// Sets application properties, replacing those of the same name.
    pub fn change_properties(&mut self, changes: &PropertyChanges) -> Result<(), DecodeError> {
        if changes.is_empty() {
            return Ok(());
        }
        let merged = application::merge(self.application_properties(), changes)?;
        self.application = Some(Box::new(merged.into()));
        Ok(())
    }

    /// The encoded application-properties section; empty when there is none.
    pub fn application_properties(&self) -> &[u8] {
        match &self.application {
            Some(replaced) => replaced,
            None => self.sections.application(&self.payload),
        }
    }
}

/// Copies a small payload into memory of its own.
fn settle_in(payload: Bytes) -> Bytes {
    if payload.len() <= COPY_LIMIT {
        Bytes::copy_from_slice(&payload)
    } else {
        payload
    }
}

fn generate_id(ids: &mut dyn IdSource) -> String {
    format!("{:016x}{:016x}", ids.next(), ids.next())
}

#[cfg(test)]
mod tests;
