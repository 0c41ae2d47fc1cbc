//! The write-ahead journal. Commits append to it; a checkpoint moves its oldest records into the database when it has reached
//! [`CHECKPOINT_THRESHOLD`] or the store is idle. For one message a transaction of the database writes ten pages in as many places,
//! the journal its bytes. A checkpoint writes only what no later record has replaced or removed: most messages are completed before
//! their record is the oldest.
//!
//! The file is a ring: at its end, and once a checkpoint has freed its beginning, the next lap begins at offset 0. A record is valid
//! if its checksum matches, which covers its lap, its generation is the one that the database names, and it follows a valid record;
//! the database has the position of the first. A checkpoint of all records draws a new generation, and the journal begins again at
//! offset 0. So no record has to be erased, and a record that a crash has torn is not valid. Generations are random: no client can
//! send a message whose bytes would be a valid record.
//!
//! The database also has a length that covers all records. It is committed after the file has that length, and before a record
//! needs it, so that a start can report a file that was cut.

mod bodies;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;
use redb::StorageBackend;
use servicebus_broker::BodyId;

use self::bodies::BodyLocation;
pub(super) use self::bodies::{JournalBodies, PinnedBody};
pub(super) use self::record::DamagedJournal;
use self::record::{
    HEADER, damaged, damaged_record, decode, encode, is_valid, length_and_generation, write_header,
};
use super::Batch;
use super::batch::remove_prefix;

/// Bytes of records from which on a write waits for a checkpoint. Memory has the keys of their rows and the places of their bodies,
/// and the start after a kill checkpoints all of them.
const CHECKPOINT_THRESHOLD: u64 = if cfg!(test) { 4096 } else { 128 << 20 };
/// Bytes of records of one checkpoint, if its only record is not longer.
pub(super) const CHECKPOINT_SIZE: u64 = if cfg!(test) { 1024 } else { 16 << 20 };
/// Rows and bodies of one checkpoint: clients wait while it lasts, and the database takes longer for each of them than for its bytes.
pub(super) const CHECKPOINT_ROWS: usize = if cfg!(test) { 8 } else { 8 << 10 };
/// Where the ring ends, unless its first record is longer: records that follow at the threshold have space until there.
const RING_SIZE: u64 = CHECKPOINT_THRESHOLD + 2 * CHECKPOINT_SIZE;
/// The journal grows by so many zeros: a synchronization for which the file system has to allocate blocks takes half as long again.
/// The file is never shorter, so that an empty journal differs from a truncated file.
pub(super) const GROWTH: usize = if cfg!(test) { 1024 } else { 1 << 20 };
/// Bytes of one read of [`Journal::has_later_record`].
const WINDOW: usize = 1 << 20;

pub(super) struct Journal {
    file: Arc<dyn StorageBackend>,
    /// The position of the next record.
    end: Position,
    length: u64,
    /// The length that the database has, but at least that of an empty journal.
    covered: u64,
    /// The records that are not in the database, the oldest first.
    records: VecDeque<Record>,
    /// Bytes of all records.
    used: u64,
    /// The number of the next record.
    number: u64,
    /// The last record that wrote a row and was not followed by a removal, with the row's length, by the row's key.
    rows: BTreeMap<Vec<u8>, (u64, usize)>,
    bodies: Arc<JournalBodies>,
    /// The highest body id that the database may have.
    last_body: u64,
    /// The record that is to be appended next, and the bodies in it.
    buffer: Vec<u8>,
    parts: Vec<record::Part>,
}

/// What the database has about its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    position: Position,
    /// Bytes that the file has at least; 0 if there are no records.
    length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    generation: u64,
    lap: u32,
    offset: u64,
}

/// A valid record.
#[derive(Debug, Clone, Copy)]
struct Record {
    number: u64,
    position: Position,
    length: u64,
    /// Rows and bodies.
    rows: usize,
}

impl Start {
    /// The start of a new generation; never 0, because zeros that are not overwritten yet would be records of that one.
    pub(super) fn random() -> Self {
        let position = Position {
            generation: rand::random::<u64>() | 1,
            lap: 0,
            offset: 0,
        };
        Self {
            position,
            length: 0,
        }
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let mut row = self.position.generation.to_be_bytes().to_vec();
        row.extend(self.position.lap.to_be_bytes());
        row.extend(self.position.offset.to_be_bytes());
        row.extend(self.length.to_be_bytes());
        row
    }

    /// Reads what [`Self::encode`] wrote; up to version 2 of the format only the generation, because that journal was not a
    /// ring. The length may be missing in version 4.
    pub(super) fn decode(row: &[u8]) -> Option<Self> {
        let (generation, rest) = row.split_first_chunk()?;
        let (lap, rest) = rest.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let (offset, rest) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (length, _) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let position = Position {
            generation: u64::from_be_bytes(*generation),
            lap: u32::from_be_bytes(*lap),
            offset: u64::from_be_bytes(*offset),
        };
        Some(Self {
            position,
            length: u64::from_be_bytes(*length),
        })
    }
}

impl Position {
    fn next_lap(self) -> Self {
        Self {
            lap: self.lap.wrapping_add(1),
            offset: 0,
            ..self
        }
    }
}

impl Journal {
    /// Recovers the journal in `file`, whose database has `start` and bodies up to `last_body`.
    pub(super) fn open(
        file: Arc<dyn StorageBackend>,
        start: Start,
        last_body: u64,
    ) -> io::Result<Self> {
        let length = file.len()?;
        if length < start.length {
            return Err(damaged(DamagedJournal::Cut(length, start.length)));
        }
        let mut journal = Self {
            length,
            covered: start.length.max(length.min(GROWTH as u64)),
            file,
            end: start.position,
            records: VecDeque::new(),
            used: 0,
            number: 0,
            rows: BTreeMap::new(),
            bodies: Arc::default(),
            last_body,
            buffer: Vec::new(),
            parts: Vec::new(),
        };
        while let Some(batch) = journal.next()? {
            journal.encode(&batch);
            journal.index(batch);
        }
        let Position { lap, offset, .. } = start.position;
        let is_lost = journal.is_empty() && (lap, offset) != (0, 0);
        if is_lost || journal.has_later_record()? {
            return Err(damaged_record());
        }
        Ok(journal)
    }

    /// Whether all records are in the database.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn needs_checkpoint(&self) -> bool {
        self.used >= CHECKPOINT_THRESHOLD
    }

    /// The places of bodies that only the journal has, and its file.
    pub(super) fn bodies(&self) -> (&Arc<JournalBodies>, &Arc<dyn StorageBackend>) {
        (&self.bodies, &self.file)
    }

    /// Encodes the batch that is to be appended next.
    pub(super) fn encode(&mut self, batch: &Batch) {
        self.parts = encode(batch, &mut self.buffer);
    }

    /// Whether the ring has space for the encoded record; an empty one always has.
    pub(super) fn has_space(&self) -> bool {
        self.next_position().is_some()
    }

    /// Whether the file is too short for the encoded record.
    pub(crate) fn must_grow(&self) -> bool {
        let next = self.next_position();
        next.is_some_and(|position| self.end_at(position) > self.length)
    }

    /// Extends the file for the encoded record. Returns the start that the database must have before [`Self::append`].
    pub(crate) fn extend(&mut self) -> io::Result<Option<Start>> {
        let position = self.next_position().ok_or(io::ErrorKind::StorageFull)?;
        let end = self.end_at(position);
        if end <= self.covered {
            return Ok(None);
        }
        while self.length < end {
            self.file.set_len(self.length + GROWTH as u64)?;
            self.file.write(self.length, &vec![0; GROWTH])?;
            self.length += GROWTH as u64;
        }
        self.file.sync_data()?;
        self.covered = self.length;
        let first = self.records.front();
        Ok(Some(Start {
            position: first.map_or(position, |record| record.position),
            length: self.covered,
        }))
    }

    /// Appends the encoded batch; returns when it is as durable as the file makes it.
    pub(super) fn append(&mut self, batch: Batch) -> io::Result<()> {
        let position = self.next_position().ok_or(io::ErrorKind::StorageFull)?;
        if position.lap != self.end.lap {
            self.end_lap()?;
        }
        self.end = position;
        let mut record = mem::take(&mut self.buffer);
        write_header(&mut record, position.generation, position.lap);
        self.write(&record)?;
        self.buffer = record;
        self.index(batch);
        Ok(())
    }

    /// Bytes of the rows and bodies that are not in the database.
    pub(super) fn live_bytes(&self) -> u64 {
        let rows = self.rows.iter().map(|(key, (_, row))| key.len() + row);
        (rows.sum::<usize>() + self.bodies.bytes()) as u64
    }

    /// The number of the oldest records that one checkpoint of `size` bytes moves.
    pub(super) fn oldest(&self, size: u64) -> usize {
        let (mut bytes, mut rows) = (0, 0);
        let is_enough = |record: &Record| {
            bytes += record.length;
            rows += record.rows;
            bytes >= size || rows >= CHECKPOINT_ROWS
        };
        let last = self.records.iter().position(is_enough);
        last.map_or(self.records.len(), |last| last + 1)
    }

    /// The part of a record that no later one has replaced, by the record's index.
    pub(super) fn live_part(&self, index: usize) -> io::Result<Batch> {
        let record = self.records[index];
        let mut payload = vec![0; record.length as usize - HEADER];
        let offset = record.position.offset + HEADER as u64;
        self.file.read(offset, &mut payload)?;
        let mut batch = decode(payload.into()).ok_or_else(damaged_record)?;
        batch
            .rows
            .retain(|key, row| row.is_none() || self.is_last(index, key));
        batch.bodies.retain(|body, bytes| match bytes {
            Some(_) => self.has_body(*body),
            // The database never had a body beyond it.
            None => body.0.get() <= self.last_body,
        });
        Ok(batch)
    }

    /// Whether no later record has replaced the row that the record of this index wrote under `key`.
    pub(super) fn is_last(&self, index: usize, key: &[u8]) -> bool {
        let last = self.rows.get(key);
        last.is_some_and(|(number, _)| *number == self.records[index].number)
    }

    /// Whether no later record has removed a body that is not in the database.
    pub(super) fn has_body(&self, body: BodyId) -> bool {
        self.bodies.has(body)
    }

    /// The start of the journal without the `count` oldest records.
    pub(super) fn start_after(&self, count: usize) -> Start {
        let record = self.records.get(count);
        record.map_or_else(Start::random, |record| Start {
            position: record.position,
            length: self.covered,
        })
    }

    /// Removes the `count` oldest records, whose `rows` and `bodies` are in the database now; the other records begin at `start`.
    pub(super) fn remove_oldest(
        &mut self,
        count: usize,
        rows: &[Vec<u8>],
        bodies: &[BodyId],
        start: Start,
    ) -> io::Result<()> {
        let removed = self.records.drain(..count);
        self.used -= removed.map(|record| record.length).sum::<u64>();
        let first = self.records.front();
        let first = first.map_or(self.number, |record| record.number);
        if self.records.is_empty() {
            self.end = start.position;
            self.covered = self.length.min(GROWTH as u64);
        }
        for key in rows {
            self.rows.remove(key);
        }
        let last = bodies.iter().map(|body| body.0.get()).max();
        self.last_body = self.last_body.max(last.unwrap_or(0));
        self.bodies.remove_moved(bodies, first, &*self.file)
    }

    /// Whether all records are in the database, and it has no length above the shortest.
    pub(crate) fn can_shrink(&self) -> bool {
        self.is_empty() && self.covered <= GROWTH as u64
    }

    /// Truncates the file to its shortest length, if it can shrink.
    pub(super) fn shrink(&mut self) -> io::Result<()> {
        if !self.can_shrink() || self.length == GROWTH as u64 {
            return Ok(());
        }
        let missing = GROWTH.saturating_sub(self.length as usize);
        self.file.set_len(GROWTH as u64)?;
        if missing > 0 {
            self.file.write(self.length, &vec![0; missing])?;
            self.file.sync_data()?;
        }
        self.length = GROWTH as u64;
        self.covered = self.length;
        Ok(())
    }

    /// The position of the encoded record, if the ring has space for it.
    fn next_position(&self) -> Option<Position> {
        let length = self.buffer.len() as u64;
        let Some(Record { position, .. }) = self.records.front() else {
            return Some(self.end);
        };
        let end = self.end.offset + length;
        if self.end.lap != position.lap {
            return (end <= position.offset).then_some(self.end);
        }
        if end + HEADER as u64 <= RING_SIZE {
            return Some(self.end);
        }
        (length <= position.offset).then(|| self.end.next_lap())
    }

    /// The length that the file needs for the encoded record at `position`: an empty record may follow, which ends the lap.
    fn end_at(&self, position: Position) -> u64 {
        position.offset + (self.buffer.len() + HEADER) as u64
    }

    /// Writes an empty record, after which the lap ends. It is synchronized before the next record, which would otherwise be the only
    /// one after some crashes.
    fn end_lap(&mut self) -> io::Result<()> {
        let mut last = [0; HEADER];
        write_header(&mut last, self.end.generation, self.end.lap);
        self.write(&last)
    }

    /// Writes a record at the end and synchronizes it.
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write(self.end.offset, record)?;
        self.file.sync_data()
    }

    /// Indexes the record of `batch` at the end, and moves the end behind it.
    fn index(&mut self, batch: Batch) {
        let record = Record {
            number: self.number,
            position: self.end,
            length: self.buffer.len() as u64,
            rows: batch.rows.len() + batch.bodies.len(),
        };
        for prefix in batch.removed {
            remove_prefix(&mut self.rows, &prefix);
        }
        for (key, row) in batch.rows {
            match row {
                Some(row) => self.rows.insert(key, (record.number, row.len())),
                None => self.rows.remove(&key),
            };
        }
        let location = |(body, offset, length)| {
            let location = BodyLocation {
                record: record.number,
                offset: record.position.offset + offset,
                length,
            };
            (body, location)
        };
        let written = Vec::from_iter(self.parts.drain(..).map(location));
        let bodies = batch.bodies.into_iter();
        let removed = bodies.filter_map(|(body, bytes)| bytes.is_none().then_some(body));
        self.bodies.update(&written, &Vec::from_iter(removed));
        self.number += 1;
        self.end.offset += record.length;
        self.used += record.length;
        self.records.push_back(record);
        // A record can be as long as the longest messages.
        self.buffer.clear();
        self.buffer.shrink_to(GROWTH);
    }

    /// Reads the batch of the record at the end, if that is valid.
    fn next(&mut self) -> io::Result<Option<Batch>> {
        let mut payload = self.payload(self.end)?;
        if payload.as_ref().is_some_and(Bytes::is_empty) {
            self.end = self.end.next_lap();
            payload = self.payload(self.end)?;
        }
        let batch = payload.map(|payload| decode(payload).ok_or_else(damaged_record));
        batch.transpose()
    }

    /// Reads the payload of the record at `position`, if that is valid.
    fn payload(&self, position: Position) -> io::Result<Option<Bytes>> {
        let record = self.record(position.offset)?;
        let record = record.filter(|record| is_valid(record, position.lap));
        Ok(record.map(|record| Bytes::from(record).split_off(HEADER)))
    }

    /// Reads the bytes at `offset` that may be a record of this generation; the checksum is not verified.
    fn record(&self, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let rest = self.length.saturating_sub(offset);
        let mut record = vec![0; HEADER];
        if rest < HEADER as u64 {
            return Ok(None);
        }
        self.file.read(offset, &mut record)?;
        let (length, generation) = length_and_generation(&record);
        if generation != self.end.generation || length > rest - HEADER as u64 {
            return Ok(None);
        }
        record.resize(HEADER + length as usize, 0);
        self.file.read(offset, &mut record)?;
        Ok(Some(record))
    }

    /// Whether the file has a record of this lap behind the last valid one, or of the next lap anywhere. A crash tears only the last
    /// record, so that the one before such a record is damaged.
    fn has_later_record(&self) -> io::Result<bool> {
        let (this, next) = (self.end.lap, self.end.next_lap().lap);
        let generation = self.end.generation.to_be_bytes();
        let mut window = vec![0; WINDOW.min(self.length as usize)];
        let mut from = 0;
        while from + HEADER as u64 <= self.length {
            window.truncate((self.length - from) as usize);
            self.file.read(from, &mut window)?;
            // A generation follows the length in its header. A header that begins before the window was in the previous one.
            let found = memmem::find_iter(&window, &generation);
            for at in found.filter_map(|found| found.checked_sub(8)) {
                let offset = from + at as u64;
                let is_behind = offset >= self.end.offset;
                let is_later = |record: Vec<u8>| {
                    is_valid(&record, next) || is_behind && is_valid(&record, this)
                };
                if self.record(offset)?.is_some_and(is_later) {
                    return Ok(true);
                }
            }
            from += (window.len() - HEADER + 1) as u64;
        }
        Ok(false)
    }
}
