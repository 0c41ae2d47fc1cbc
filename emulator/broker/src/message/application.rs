//! Application properties that are set when a message is abandoned, deferred or dead-lettered.

use std::collections::BTreeMap;

use servicebus_codec::{DecodeError, Reader, Writer};

use super::{MessageError, limits, sections};

/// Application properties to set, by name, with their encoded values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PropertyChanges {
    entries: BTreeMap<String, Vec<u8>>,
}

impl PropertyChanges {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an encoded map with string or symbol keys: `message-annotations` of `modified`, `info` of a `rejected` error,
    /// `properties-to-modify` (semantics §2.3).
    pub fn from_map(encoded: &[u8]) -> Result<Self, MessageError> {
        Self::read(encoded, &[])
    }

    /// Reads such a map, and takes out the texts with these names. One of another type, which may be a list or a map, counts
    /// as none.
    pub fn with_texts<const COUNT: usize>(
        encoded: &[u8],
        names: [&str; COUNT],
    ) -> Result<(Self, [Option<String>; COUNT]), MessageError> {
        let mut changes = Self::read(encoded, &names)?;
        let texts = names.map(|name| changes.take_text(name));
        Ok((changes, texts))
    }

    /// Reads a map whose values are of primitive types, but for those with the names `any`.
    fn read(encoded: &[u8], any: &[&str]) -> Result<Self, MessageError> {
        let mut reader = Reader::new(encoded);
        reader.validate()?;
        let mut changes = Self::new();
        for entry in Reader::new(encoded).map()?.raw_entries() {
            let (key, value) = entry?;
            let name = Reader::new(key).value()?.as_text();
            let name = name.ok_or_else(|| unexpected("a string or symbol as key", key))?;
            if !Reader::new(value).next_is_primitive() && !any.contains(&name) {
                return Err(MessageError::IllegalProperty { name: name.into() });
            }
            changes.set(name, value.to_vec());
        }
        Ok(changes)
    }

    /// Returns whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of its names and values.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.iter();
        entries.map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Sets `name` to a string.
    pub fn set_text(&mut self, name: &str, text: &str) {
        let mut encoded = Vec::with_capacity(text.len() + 5);
        Writer::new(&mut encoded).string(text);
        self.set(name, encoded);
    }

    /// Removes `name` and returns its value if that is a text.
    fn take_text(&mut self, name: &str) -> Option<String> {
        let encoded = self.entries.remove(name)?;
        let value = Reader::new(&encoded).value().ok()?;
        value.as_text().map(str::to_owned)
    }

    fn set(&mut self, name: &str, encoded: Vec<u8>) {
        self.entries.insert(name.to_owned(), encoded);
    }
}

fn unexpected(expected: &'static str, found: &[u8]) -> DecodeError {
    DecodeError::Unexpected {
        expected,
        code: found.first().copied().unwrap_or_default(),
    }
}

/// Checks the limits after a merge.
pub(crate) fn check(section: &[u8]) -> Result<(), MessageError> {
    limits::check_application(sections::content(section)?.map()?).map(drop)
}

/// Returns the section with the changes; other entries stay byte for byte.
pub(crate) fn merge(section: &[u8], changes: &PropertyChanges) -> Result<Vec<u8>, DecodeError> {
    let changed = changes.entries.iter();
    let changed = changed.map(|(name, value)| (&**name, Some(&**value)));
    edit(section, |name| changes.entries.contains_key(name), changed)
}

/// Returns the section with these properties, which are those that `is_edited` accepts, set, or removed where there is no
/// value; others stay byte for byte.
pub(crate) fn edit<'a>(
    section: &[u8],
    is_edited: impl Fn(&str) -> bool,
    edits: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>,
) -> Result<Vec<u8>, DecodeError> {
    let mut edited = Vec::with_capacity(section.len() + 256);
    let mut out = Writer::new(&mut edited);
    out.descriptor(sections::APPLICATION_PROPERTIES as u8);
    let mark = out.begin_map();
    let mut entries = 0;
    if !section.is_empty() {
        for entry in sections::content(section)?.map()?.raw_entries() {
            let (key, value) = entry?;
            let name = Reader::new(key).value()?.as_text();
            if !name.is_some_and(&is_edited) {
                out.raw(key);
                out.raw(value);
                entries += 1;
            }
        }
    }
    for (name, value) in edits {
        if let Some(value) = value {
            out.string(name);
            out.raw(value);
            entries += 1;
        }
    }
    out.end(mark, entries * 2);
    Ok(edited)
}
