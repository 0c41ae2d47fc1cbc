//! What changed on a message since it was accepted, kept beside the bytes that were sent.

use bytes::Bytes;

/// Boxed in its message: hardly any message needs it, and every queued byte counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlay {
    /// Stands in for the section of the payload once properties were changed.
    pub(super) application: Option<Bytes>,
    pub(super) dead_letter_source: Option<Box<str>>,
}

impl Overlay {
    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        let application = self.application.as_ref().map_or(0, Bytes::len);
        let source = self
            .dead_letter_source
            .as_ref()
            .map_or(0, |text| text.len());
        application + source
    }
}
