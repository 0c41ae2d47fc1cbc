//! The changes of an operation that must outlive the process, as rows of a store that the owner of the entity writes.
//!
//! After [`crate::Entity::record_changes`] an entity records which messages, session states and ids of duplicate detection an
//! operation touched; [`crate::Entity::take_changes`] turns them into rows. A row has the whole state of its subject, so
//! that only the last row of a subject counts. The sent bytes of a message are stored apart from its row, under a [`BodyId`]
//! that stays with the message when it is moved or copied, so that they are written once. Once written, the body need not
//! stay in memory ([`crate::Entity::drop_body`]); the row has what the broker itself reads.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use bytes::Bytes;
use thiserror::Error;

use crate::ids::{EntityId, Offset, SubQueue};

/// The id under which the bytes of a message are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub NonZeroU64);

/// The changes of one operation in one entity.
#[derive(Debug)]
pub struct Changes {
    /// The changed entity.
    pub entity: EntityId,
    /// Current rows by key; `None` where the row is removed. Each key occurs once.
    pub rows: Vec<(RowKey, Option<Vec<u8>>)>,
    /// References from rows to bodies that were added.
    pub gained: Vec<BodyReference>,
    /// References from rows to bodies that were removed.
    pub lost: Vec<BodyId>,
    /// Whether the description, or the rules of a topic, may have changed.
    pub definition: bool,
    /// Whether the entity was deleted: all its rows are removed.
    pub deleted: bool,
    /// Whether a client may get an answer that depends on these rows; false if only the time of the last use changed.
    pub is_awaited: bool,
}

/// A new reference from a row to the bytes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyReference {
    /// The id of the bytes.
    pub body: BodyId,
    /// The bytes; `None` if they were written before and are no longer in memory.
    pub bytes: Option<Bytes>,
    /// The store and offset of the message.
    pub place: (SubQueue, u64),
}

/// The subject of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKey {
    /// The next sequence numbers, and the time of the entity's last use.
    Counters,
    /// The message at this offset of a store.
    Message(SubQueue, u64),
    /// The application's state of the session of this name.
    Session(Box<str>),
    /// An id that duplicate detection remembers.
    Seen(Box<str>),
}

/// A row whose contents are not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a row of the store is damaged")]
pub struct DamagedRow;

impl RowKey {
    /// Appends the key as a store has it.
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

    /// Reads a key that [`RowKey::encode`] wrote.
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

/// The number of rows that refer to each body.
#[derive(Debug, Default)]
pub struct BodyCounts(BTreeMap<BodyId, u32>);

/// What to do with the bytes of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyChange {
    /// Write the bytes.
    Write(BodyId, Bytes),
    /// Keep the written bytes, although the same operation removed another reference.
    Stay(BodyId),
    /// Remove the bytes: no row refers to them any more.
    Remove(BodyId),
}

impl BodyCounts {
    /// Counts a stored row.
    pub fn count(&mut self, body: BodyId) {
        *self.0.entry(body).or_default() += 1;
    }

    /// Returns how many bodies rows refer to.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns whether no row refers to a body.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a row refers to this body.
    pub fn is_used(&self, body: BodyId) -> bool {
        self.0.contains_key(&body)
    }

    /// Counts the references that an operation changed; passes the bodies to write and remove to `change` in order.
    pub fn follow(&mut self, changes: &mut Changes, mut change: impl FnMut(BodyChange)) {
        for BodyReference { body, bytes, .. } in &changes.gained {
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

/// Appends a text with its length to a row.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(text);
}

/// The unread part of a row.
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

    /// Fails unless the whole row was read.
    pub(crate) fn end(self) -> Result<(), DamagedRow> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(DamagedRow),
        }
    }
}
