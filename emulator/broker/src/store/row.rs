//! A message with its broker state as a row, from which an [`Entry`] is restored when the process starts again.
//!
//! Of a lock only its end is stored: it has no holder and no token when the row is read.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use bytes::Bytes;

use super::sessions::Slot;
use super::{Entry, Lock, MessageStore, State};
use crate::changes::{BodyId, DamagedRow, Fields, put_text};
use crate::ids::{EntityPath, LockNonce, Offset, ReceiverId, SequenceNumber};
use crate::message::{Message, MessagePrefix, Replaced};
use crate::time::{Deadline, Timestamp};

const READY: u8 = 0;
const DEFERRED: u8 = 1;
const SCHEDULED: u8 = 2;
const LOCKED: u8 = 3;
const LOCKED_DEFERRED: u8 = 4;

const MOVED: u8 = 1;
const STAYS: u8 = 2;
const WAS_SCHEDULED: u8 = 4;
const HAS_DESTINATION: u8 = 8;
const HAS_SESSION: u8 = 16;
const REPLACES: u8 = 32;
const HAS_BEGINNING: u8 = 64;

/// Length of the fixed part of a message's row.
const FIXED: usize = 64;

impl MessageStore {
    /// Encodes the row of an entry, whose body must have an id.
    pub(crate) fn row(&self, offset: Offset, entry: &Entry) -> Vec<u8> {
        let message = &entry.message;
        let destination = self.forwards.destination(offset);
        let session = self.sessions.as_ref().and_then(|all| all.of(offset));
        let (replaced, beginning) = (message.replaced(), message.beginning());
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        let mut out = Vec::with_capacity(FIXED);
        out.push(match entry.state {
            State::Ready | State::Reserved(_) | State::Forwarding => READY,
            State::Deferred => DEFERRED,
            State::Scheduled(_) => SCHEDULED,
            State::Locked(lock) if lock.deferred => LOCKED_DEFERRED,
            State::Locked(_) => LOCKED,
        });
        out.push(
            flag(entry.is_moved, MOVED)
                | flag(entry.stays, STAYS)
                | flag(message.was_scheduled(), WAS_SCHEDULED)
                | flag(destination.is_some(), HAS_DESTINATION)
                | flag(session.is_some(), HAS_SESSION)
                | flag(replaced.is_some(), REPLACES)
                | flag(beginning.is_some(), HAS_BEGINNING),
        );
        out.extend([entry.hops, entry.partition]);
        out.extend(entry.delivery_count.to_be_bytes());
        let body = message.body_id().map_or(0, |BodyId(id)| id.get());
        out.extend(body.to_be_bytes());
        out.extend(entry.enqueued_at.as_millis().to_be_bytes());
        out.extend(entry.enqueued_number.0.to_be_bytes());
        let lock_end = entry.lock().and_then(|lock| lock.until.get());
        for at in [entry.expires_at(), entry.activates_at().or(lock_end)] {
            let at = at.map_or(i64::MAX, Timestamp::as_millis);
            out.extend(at.to_be_bytes());
        }
        out.extend(message.time_to_live().unwrap_or(0).to_be_bytes());
        out.extend(entry.ceiling.map_or(0, NonZeroU64::get).to_be_bytes());
        if let Some(destination) = destination {
            put_text(&mut out, destination.as_str().as_bytes());
        }
        if let Some(session) = session {
            put_text(&mut out, session.name().as_str().as_bytes());
        }
        if let Some(replaced) = replaced {
            for part in replaced.parts() {
                out.push(u8::from(part.is_some()));
                put_text(&mut out, part.unwrap_or_default());
            }
        }
        if let Some(beginning) = beginning {
            for number in beginning.sections.into_iter().chain([beginning.length]) {
                out.extend(number.to_be_bytes());
            }
            put_text(&mut out, beginning.bytes);
        }
        out
    }

    /// Restores an entry from its row, with its bytes where [`body_of`] says that they are needed; a locked entry is locked
    /// by no receiver.
    pub(crate) fn restore(
        &mut self,
        offset: Offset,
        row: &[u8],
        payload: Bytes,
    ) -> Result<(), DamagedRow> {
        let restored = Restored::read(row, payload)?;
        if self.entries.get(offset).is_some() {
            return Err(DamagedRow);
        }
        if let Some(destination) = restored.destination {
            self.address(offset, destination);
        }
        let sessions = self.sessions.as_mut();
        let slot = sessions.zip(restored.session);
        let slot = slot.and_then(|(sessions, name)| sessions.find_or_create(name));
        self.next = self.next.max(Offset(offset.0 + 1));
        self.insert_restored(offset, restored.entry, slot);
        Ok(())
    }

    fn insert_restored(&mut self, offset: Offset, entry: Entry, slot: Option<Slot>) {
        let (state, stays, expires_at) = (entry.state, entry.stays, entry.expires_at);
        let (is_deferred, can_expire) = (entry.is_deferred(), entry.can_expire());
        self.size += entry.message.size();
        self.deferred += usize::from(is_deferred);
        self.entries.insert(offset, entry);
        if let (Some(sessions), Some(slot)) = (&mut self.sessions, slot) {
            sessions.join(offset, slot, matches!(state, State::Scheduled(_)));
            sessions.defer(offset, is_deferred);
        }
        if let Some(at) = expires_at.get().filter(|_| can_expire) {
            self.expiries.insert(at, offset);
        }
        match state {
            State::Scheduled(at) => self.activations.insert(at, offset),
            State::Locked(lock) => {
                if let Some(until) = lock.until.get() {
                    self.locks.insert(until, offset);
                }
                if let Some(sessions) = &mut self.sessions {
                    sessions.lock(offset);
                }
            }
            State::Deferred => {}
            State::Ready | State::Reserved(_) | State::Forwarding => {
                match self.auto_forwards(offset, stays) {
                    true => self.mark_for_forwarding(offset),
                    false => self.make_ready(offset),
                }
            }
        }
    }

    /// Returns the locked entries in the order in which their locks end; those of sessions last.
    pub(crate) fn locked_offsets(&self) -> Vec<Offset> {
        let entries = self.entries.iter();
        let locked = entries.filter_map(|(offset, entry)| Some((entry.lock()?, offset)));
        let end = |lock: &Lock| lock.until.get().unwrap_or(Timestamp::MAX);
        let locked: BTreeSet<_> = locked.map(|(lock, offset)| (end(lock), offset)).collect();
        locked.into_iter().map(|(_, offset)| offset).collect()
    }
}

struct Restored<'a> {
    entry: Entry,
    destination: Option<EntityPath>,
    session: Option<&'a str>,
}

impl<'a> Restored<'a> {
    fn read(row: &'a [u8], payload: Bytes) -> Result<Self, DamagedRow> {
        let mut fields = Fields(row);
        let (state, flags) = (fields.byte()?, fields.byte()?);
        let (hops, partition) = (fields.byte()?, fields.byte()?);
        let delivery_count = fields.u32()?;
        let body = NonZeroU64::new(fields.u64()?).ok_or(DamagedRow)?;
        let enqueued_at = Timestamp::from_millis(fields.i64()?);
        let enqueued_number = SequenceNumber(fields.u64()?);
        let expires_at = Deadline::from(Timestamp::from_millis(fields.i64()?));
        let at = Timestamp::from_millis(fields.i64()?);
        let time_to_live = NonZeroU64::new(fields.u64()?);
        let ceiling = NonZeroU64::new(fields.u64()?);
        let destination = match flags & HAS_DESTINATION {
            0 => None,
            _ => Some(fields.text()?.parse().map_err(|_| DamagedRow)?),
        };
        let session = match flags & HAS_SESSION {
            0 => None,
            _ => Some(fields.text()?),
        };
        let replaced = match flags & REPLACES {
            0 => None,
            _ => Some(replaced(&mut fields)?),
        };
        let restored = match flags & HAS_BEGINNING {
            0 => Message::restore_whole(payload),
            _ => Message::restore_beginning(&beginning(&mut fields)?),
        };
        fields.end()?;
        let mut message = restored.ok_or(DamagedRow)?;
        message
            .restore_rest(BodyId(body), time_to_live, replaced)
            .ok_or(DamagedRow)?;
        if flags & WAS_SCHEDULED != 0 {
            message.set_was_scheduled();
        }
        let entry = Entry {
            message,
            enqueued_at,
            enqueued_number,
            is_moved: flags & MOVED != 0,
            expires_at,
            ceiling,
            delivery_count,
            hops,
            partition,
            stays: flags & STAYS != 0,
            state: match state {
                READY => State::Ready,
                DEFERRED => State::Deferred,
                SCHEDULED => State::Scheduled(at),
                LOCKED => State::Locked(of_before(at, false)),
                LOCKED_DEFERRED => State::Locked(of_before(at, true)),
                _ => return Err(DamagedRow),
            },
        };
        Ok(Self {
            entry,
            destination,
            session,
        })
    }
}

/// Returns the body that a row refers to, and whether its bytes are needed to restore the row.
pub(crate) fn body_of(row: &[u8]) -> Result<(BodyId, bool), DamagedRow> {
    let mut fields = Fields(row);
    let needs_bytes = fields.bytes(8)?[1] & HAS_BEGINNING == 0;
    let body = NonZeroU64::new(fields.u64()?).ok_or(DamagedRow)?;
    Ok((BodyId(body), needs_bytes))
}

fn beginning<'a>(fields: &mut Fields<'a>) -> Result<MessagePrefix<'a>, DamagedRow> {
    let mut sections = [0; 5];
    for end in &mut sections {
        *end = fields.u32()?;
    }
    Ok(MessagePrefix {
        sections,
        length: fields.u32()?,
        bytes: fields.part()?,
    })
}

fn replaced<'a>(fields: &mut Fields<'a>) -> Result<Replaced<'a>, DamagedRow> {
    let mut part = || {
        let is_there = fields.byte()? != 0;
        let bytes = fields.part()?;
        Ok(is_there.then_some(bytes))
    };
    Ok(Replaced {
        annotations: part()?,
        properties: part()?,
        application: part()?,
        dead_letter_source: part()?,
    })
}

/// Returns the lock of a receiver of an earlier process.
fn of_before(until: Timestamp, deferred: bool) -> Lock {
    Lock {
        nonce: LockNonce::of_none(),
        until: until.into(),
        receiver: ReceiverId(0),
        deferred,
    }
}
