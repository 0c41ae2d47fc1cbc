//! Messages whose stored bodies are not in memory; the parts that the broker reads are.

use bytes::Bytes;

use super::sections::Sections;
use super::{Message, in_standard_form};
use crate::changes::BodyId;

/// Bodies up to this size stay in memory: leaving them out would save next to nothing.
const SMALL: usize = 128;
/// Maximum bytes of a message's beginning in its row, since it is written with every change of the row.
const LONGEST_BEGINNING: usize = 4096;

/// A message as in its row: the part before its body, or all of it if that is hardly more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessagePrefix<'a> {
    /// The ends of its sections.
    pub(crate) sections: [u32; 5],
    /// Bytes of the whole payload.
    pub(crate) length: u32,
    pub(crate) bytes: &'a [u8],
}

impl Message {
    /// Returns the id of its stored bytes, if those of its body are not in memory. Then it must be [filled](Self::fill)
    /// before it is encoded.
    pub fn missing(&self) -> Option<BodyId> {
        let overlay = self.overlay.as_ref()?;
        overlay.body.filter(|_| overlay.stored_body > 0)
    }

    /// Sets the stored bytes; returns false if they are not those of this message.
    pub fn fill(&mut self, kept: Bytes) -> bool {
        let Some(overlay) = &mut self.overlay else {
            return false;
        };
        let length = self.payload.len() + overlay.stored_body as usize;
        let is_own = kept.len() == length && kept.starts_with(&self.payload);
        if is_own {
            self.payload = kept;
            overlay.stored_body = 0;
        }
        is_own
    }

    /// Drops the stored bytes of its body from memory.
    pub(crate) fn drop_body(&mut self) {
        let kept = self.kept_in_memory();
        if let Some(overlay) = &mut self.overlay
            && kept < self.payload.len()
        {
            overlay.stored_body = (self.payload.len() - kept) as u32;
            self.payload = Bytes::copy_from_slice(&self.payload[..kept]);
        }
    }

    /// Returns the bytes to store, if they are in memory.
    pub(crate) fn payload(&self) -> Option<&Bytes> {
        self.missing().is_none().then_some(&self.payload)
    }

    /// Returns the beginning for its row, unless that is too long.
    pub(crate) fn beginning(&self) -> Option<MessagePrefix<'_>> {
        let stored_body = self
            .overlay
            .as_ref()
            .map_or(0, |overlay| overlay.stored_body);
        let bytes = &self.payload[..self.kept_in_memory()];
        (bytes.len() <= LONGEST_BEGINNING).then(|| MessagePrefix {
            sections: self.sections.ends(),
            length: self.payload.len() as u32 + stored_body,
            bytes,
        })
    }

    /// Restores a message from the beginning in its row; `None` if that is not valid.
    pub(crate) fn restore_beginning(beginning: &MessagePrefix<'_>) -> Option<Self> {
        let sections = Sections::of_ends(beginning.sections)?;
        let (_, body) = sections.application_range();
        let stored_body = beginning.length.checked_sub(beginning.bytes.len() as u32)?;
        if body > beginning.bytes.len() {
            return None;
        }
        let mut message = Self::bare(Bytes::copy_from_slice(beginning.bytes), sections);
        message.overlay.get_or_insert_default().stored_body = stored_body;
        Some(message)
    }

    /// Restores a message from all its bytes; `None` if they are not a message.
    pub(crate) fn restore_whole(payload: Bytes) -> Option<Self> {
        let (payload, sections) = in_standard_form(payload).ok()?;
        Some(Self::bare(payload, sections))
    }

    fn bare(payload: Bytes, sections: Sections) -> Self {
        Self {
            payload,
            sections,
            overlay: None,
            time_to_live: None,
            was_scheduled: false,
        }
    }

    /// Returns how many bytes from the first stay in memory without its body.
    fn kept_in_memory(&self) -> usize {
        let (_, body) = self.sections.application_range();
        match self.payload.len() - body {
            small if small <= SMALL => self.payload.len(),
            _ => body,
        }
    }
}
