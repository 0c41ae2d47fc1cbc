//! What an operation changed that outlives the process, as a value: rows of a store that the owner of the entity writes.
//!
//! An entity that is told to ([`crate::Entity::keep_changes`]) notes which messages, session states and ids of duplicate
//! detection an operation touched; [`crate::Entity::take_changes`] makes rows of them, each the whole state of its subject, so
//! that the last row of a subject is all there is to know about it. The bytes that were sent stand apart from the row of their
//! message, under a number that goes along when the message moves or is copied: they are written once. Once they are written
//! those of the body need not stay in memory ([`crate::Entity::leave_out_body`]); the row has what the broker itself reads.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use bytes::Bytes;
use thiserror::Error;

use crate::ids::{EntityId, Offset, SubQueue};

/// The number under which the bytes of a message are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub NonZeroU64);

/// What one operation changed in one entity.
#[derive(Debug)]
pub struct Changes {
    /// Which entity.
    pub entity: EntityId,
    /// Rows as they are now, by their keys; none where the row is gone. Each key stands here once.
    pub rows: Vec<(RowKey, Option<Vec<u8>>)>,
    /// Bytes that one row more refers to.
    pub gained: Vec<Gained>,
    /// Bytes that one row less refers to.
    pub lost: Vec<BodyId>,
    /// Whether its description, or the rules of a topic, may be others.
    pub definition: bool,
    /// Whether it was deleted: nothing of it is kept.
    pub deleted: bool,
    /// Whether a client may be told something that is true only with these rows; false where all that changed is when the entity
    /// was last used.
    pub is_awaited: bool,
}

/// A row more that refers to the bytes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gained {
    /// Their number.
    pub body: BodyId,
    /// The bytes; none where they are not in memory, because they were written before.
    pub bytes: Option<Bytes>,
    /// Where the message stands.
    pub place: (SubQueue, u64),
}

/// What a row of an entity is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKey {
    /// The numbers that come next, and when the entity was last used.
    Counters,
    /// The message at this place of a store.
    Message(SubQueue, u64),
    /// What an application keeps with the session of this name.
    Session(Box<str>),
    /// An id that duplicate detection knows.
    Seen(Box<str>),
}

/// A row that cannot be what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a row of the store is damaged")]
pub struct DamagedRow;

impl RowKey {
    /// As it stands in a key of a store.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Counters => out.push(b'c'),
            Self::Message(kind, offset) => {
                out.extend([b'm', *kind as u8]);
                out.extend(offset.to_be_bytes());
            }
            Self::Session(name) => {
                out.push(b's');
                out.extend(name.as_bytes());
            }
            Self::Seen(id) => {
                out.push(b'd');
                out.extend(id.as_bytes());
            }
        }
    }

    /// What [`RowKey::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, DamagedRow> {
        let text = |bytes: &[u8]| {
            let text = str::from_utf8(bytes).map_err(|_| DamagedRow)?;
            Ok(text.into())
        };
        let (&tag, rest) = bytes.split_first().ok_or(DamagedRow)?;
        match tag {
            b'c' if rest.is_empty() => Ok(Self::Counters),
            b'm' => {
                let (&kind, offset) = rest.split_first().ok_or(DamagedRow)?;
                let kind = SubQueue::ALL.into_iter().find(|k| *k as u8 == kind);
                let offset = offset.try_into().map_err(|_| DamagedRow)?;
                let offset = u64::from_be_bytes(offset);
                Ok(Self::Message(kind.ok_or(DamagedRow)?, offset))
            }
            b's' => text(rest).map(Self::Session),
            b'd' => text(rest).map(Self::Seen),
            _ => Err(DamagedRow),
        }
    }

    pub(crate) fn message(kind: SubQueue, offset: Offset) -> Self {
        Self::Message(kind, offset.0)
    }
}

/// How many rows refer to the bytes under each number.
#[derive(Debug, Default)]
pub struct BodyCounts(BTreeMap<BodyId, u32>);

/// What becomes of the bytes under a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyChange {
    /// They are to be written.
    Write(BodyId, Bytes),
    /// They are written, and stay, although they were to be removed with the same operation.
    Stay(BodyId),
    /// No row refers to them any more.
    Remove(BodyId),
}

impl BodyCounts {
    /// Counts a row that is there already.
    pub fn count(&mut self, body: BodyId) {
        *self.0.entry(body).or_default() += 1;
    }

    /// How many numbers rows refer to.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether no row refers to any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a row refers to these bytes.
    pub fn is_used(&self, body: BodyId) -> bool {
        self.0.contains_key(&body)
    }

    /// Counts what an operation changed; says in which order bytes are to be written and removed for that.
    pub fn follow(&mut self, changes: &mut Changes, mut change: impl FnMut(BodyChange)) {
        for Gained { body, bytes, .. } in &changes.gained {
            let count = self.0.entry(*body).or_default();
            *count += 1;
            if *count == 1 {
                change(match bytes {
                    Some(bytes) => BodyChange::Write(*body, bytes.clone()),
                    None => BodyChange::Stay(*body),
                });
            }
        }
        for body in changes.lost.drain(..) {
            if let Some(count) = self.0.get_mut(&body) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(&body);
                    change(BodyChange::Remove(body));
                }
            }
        }
    }
}

/// Numbers and texts at the end of a row.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(text);
}

/// What is left of a row while it is read.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], DamagedRow> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DamagedRow)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DamagedRow> {
        self.bytes(N)?.try_into().map_err(|_| DamagedRow)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DamagedRow> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DamagedRow> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DamagedRow> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, DamagedRow> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(crate) fn part(&mut self) -> Result<&'a [u8], DamagedRow> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).map_err(|_| DamagedRow)?)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, DamagedRow> {
        str::from_utf8(self.part()?).map_err(|_| DamagedRow)
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), DamagedRow> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(DamagedRow),
        }
    }
}
