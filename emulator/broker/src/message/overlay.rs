//! What stands in for parts of a message, kept beside the bytes that were sent.

use bytes::Bytes;

/// Boxed in its message: hardly any message needs it, and every queued byte counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlay {
    /// Stands in for the section of a large payload that was sent without message id, because only small ones are
    /// copied; or of one that a rule's action has changed.
    pub(super) properties: Option<Bytes>,
    /// Stands in for the message annotations once a rule's action has changed them.
    pub(super) annotations: Option<Bytes>,
    /// Stands in for the section of the payload once properties were changed.
    pub(super) application: Option<Bytes>,
    pub(super) dead_letter_source: Option<Box<str>>,
}

impl Overlay {
    pub(super) fn with_properties(section: Vec<u8>) -> Self {
        Self {
            properties: Some(section.into_boxed_slice().into()),
            ..Self::default()
        }
    }

    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        let sections = [&self.annotations, &self.properties, &self.application];
        let sections: usize = sections.into_iter().flatten().map(Bytes::len).sum();
        sections + self.dead_letter_source.as_deref().map_or(0, str::len)
    }
}
