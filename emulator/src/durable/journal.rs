//! What is written goes to the end of a journal first, in one piece, and into the database when there is much of it or nothing else
//! to do: a transaction of the database writes ten pages in as many places for one message, the journal its bytes. The database
//! takes in the oldest records first, and of them only what no later record has replaced or removed: most messages are completed
//! before their record is the oldest.
//!
//! The file is a ring: when its end is reached, and the database has what stands at its beginning, the next lap begins there. A
//! record counts when its checksum is right, which its lap is a part of, its generation is the one that the database names, and it
//! follows one that counts; the database names where the first one is. The transaction that takes in all there is names another
//! generation, and the journal begins again at its start. So nothing has to be removed from the journal, and a record that a crash
//! has torn does not count. Generations are drawn by chance: no client can send a message whose bytes would count as a record.

mod bodies;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use redb::StorageBackend;
use servicebus_broker::BodyId;

use self::bodies::Place;
pub(super) use self::bodies::{JournalBodies, SeenBody};
use self::record::{HEAD, decode, encode, is_of, length_and_generation, seal};
use super::Batch;

/// Bytes of records from which on the database takes in the oldest before more comes. The keys of
/// their rows and the places of their bodies are in memory, and a start that follows a kill takes all of them in.
const MUCH: u64 = if cfg!(test) { 4096 } else { 128 << 20 };
/// Bytes of records that one transaction takes into the database, if no single record has more.
pub(super) const SOME: u64 = if cfg!(test) { 1024 } else { 16 << 20 };
/// Where the ring ends, but for a first record that is longer: what is still to come of a lap has room behind [`MUCH`].
const RING: u64 = MUCH + 2 * SOME;
/// The journal grows by as many bytes, which are written: where a file system has to find a place for what is written, telling
/// the disk takes half as long again. It never has fewer, so that a file that was cut is told from one that has no records.
pub(super) const STEP: usize = if cfg!(test) { 1024 } else { 1 << 20 };
/// Bytes that are looked through at once.
const WINDOW: usize = 1 << 20;

/// The journal, and what it has that the database has not.
pub(super) struct Journal {
    file: Arc<dyn StorageBackend>,
    /// Where the next record goes.
    end: Position,
    length: u64,
    /// Those that the database has not taken in, the oldest first.
    records: VecDeque<Record>,
    /// Bytes of all of them.
    used: u64,
    /// The number of the next record.
    number: u64,
    /// By the keys of rows that the journal has written and not removed since: the number of the last record that wrote them.
    rows: BTreeMap<Vec<u8>, u64>,
    bodies: Arc<JournalBodies>,
    /// The last number of bytes that the database may have.
    last: u64,
    buffer: Vec<u8>,
    parts: Vec<record::Part>,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    generation: u64,
    lap: u32,
    offset: u64,
}

/// A record that counts.
#[derive(Debug, Clone, Copy)]
struct Record {
    number: u64,
    position: Position,
    length: u64,
}

impl Position {
    /// The start of a journal of another generation: not 0, since what is not written yet would be records of that.
    pub(super) fn draw() -> Self {
        Self {
            generation: rand::random::<u64>() | 1,
            lap: 0,
            offset: 0,
        }
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let mut row = self.generation.to_be_bytes().to_vec();
        row.extend(self.lap.to_be_bytes());
        row.extend(self.offset.to_be_bytes());
        row
    }

    /// What [`Self::encode`] wrote; up to version 2 of the format the journal was no ring, and the generation all there was.
    pub(super) fn decode(row: &[u8]) -> Option<Self> {
        let (generation, rest) = row.split_first_chunk()?;
        let (lap, rest) = rest.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let (offset, _) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        Some(Self {
            generation: u64::from_be_bytes(*generation),
            lap: u32::from_be_bytes(*lap),
            offset: u64::from_be_bytes(*offset),
        })
    }

    fn next_lap(self) -> Self {
        Self {
            lap: self.lap.wrapping_add(1),
            offset: 0,
            ..self
        }
    }
}

impl Journal {
    /// The journal in `file`, of a database that names where its records begin and has bodies up to `last`.
    pub(super) fn open(
        file: Arc<dyn StorageBackend>,
        start: Position,
        last: u64,
    ) -> io::Result<Self> {
        let mut journal = Self {
            length: file.len()?,
            file,
            end: start,
            records: VecDeque::new(),
            used: 0,
            number: 0,
            rows: BTreeMap::new(),
            bodies: Arc::default(),
            last,
            buffer: Vec::new(),
            parts: Vec::new(),
        };
        while let Some(batch) = journal.next()? {
            journal.encode(&batch);
            journal.merge(batch);
        }
        let is_lost = journal.is_empty() && (start.lap, start.offset) != (0, 0);
        if is_lost || journal.has_more()? {
            return Err(damaged());
        }
        Ok(journal)
    }

    /// Whether the database has everything.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether the database is to take in some of what there is before more comes.
    pub(super) fn is_much(&self) -> bool {
        self.used >= MUCH
    }

    /// Where the bytes of messages stand that the database has not, and the file in which they do.
    pub(super) fn bodies(&self) -> (&Arc<JournalBodies>, &Arc<dyn StorageBackend>) {
        (&self.bodies, &self.file)
    }

    /// Makes a record of the batch that is to be appended next.
    pub(super) fn encode(&mut self, batch: &Batch) {
        self.parts = encode(batch, &mut self.buffer);
    }

    /// Whether there is room for the record; none is too long for an empty journal.
    pub(super) fn has_room(&self) -> bool {
        self.place().is_some()
    }

    /// Appends the batch of which a record was made; returns when it is as safe as the file makes it.
    pub(super) fn append(&mut self, batch: Batch) -> io::Result<()> {
        let place = self.place().ok_or(io::ErrorKind::StorageFull)?;
        if place.lap != self.end.lap {
            self.end_lap()?;
        }
        self.end = place;
        let mut record = mem::take(&mut self.buffer);
        seal(&mut record, place.generation, place.lap);
        self.write(&record)?;
        self.buffer = record;
        self.merge(batch);
        Ok(())
    }

    /// How many of the oldest records have so many bytes together; all, if they have less.
    pub(super) fn oldest(&self, bytes: u64) -> usize {
        let mut sum = 0;
        let is_enough = |record: &Record| {
            sum += record.length;
            sum >= bytes
        };
        let last = self.records.iter().position(is_enough);
        last.map_or(self.records.len(), |last| last + 1)
    }

    /// What the database is to have of the record before which there are so many others: what no later one has replaced.
    pub(super) fn remainder(&self, before: usize) -> io::Result<Batch> {
        let record = self.records[before];
        let mut payload = vec![0; record.length as usize - HEAD];
        let offset = record.position.offset + HEAD as u64;
        self.file.read(offset, &mut payload)?;
        let mut batch = decode(payload.into()).ok_or_else(damaged)?;
        batch.rows.retain(|key, row| {
            row.is_none()
                || self
                    .rows
                    .get(key)
                    .is_some_and(|last| *last == record.number)
        });
        batch.bodies.retain(|body, bytes| match bytes {
            Some(_) => self.bodies.has(*body),
            // The database never had others.
            None => body.0.get() <= self.last,
        });
        Ok(batch)
    }

    /// Where the records begin of which the database has so many of the oldest.
    pub(super) fn start_after(&self, count: usize) -> Position {
        let record = self.records.get(count);
        record.map_or_else(Position::draw, |record| record.position)
    }

    /// Forgets so many of the oldest records, and these bytes, which the database has; the other records begin at `start`.
    pub(super) fn forget(
        &mut self,
        count: usize,
        taken: &[BodyId],
        start: Position,
    ) -> io::Result<()> {
        let forgotten = self.records.drain(..count);
        self.used -= forgotten.map(|record| record.length).sum::<u64>();
        let first = self.records.front();
        let first = first.map_or(self.number, |record| record.number);
        if self.records.is_empty() {
            self.end = start;
        }
        self.rows.retain(|_, record| *record >= first);
        let last = taken.iter().map(|body| body.0.get()).max();
        self.last = self.last.max(last.unwrap_or(0));
        self.bodies.forget(taken, first, &*self.file)
    }

    /// Gives the file's room back but for its first step, if the database has everything.
    pub(super) fn shrink(&mut self) -> io::Result<()> {
        if !self.is_empty() || self.length == STEP as u64 {
            return Ok(());
        }
        let missing = STEP.saturating_sub(self.length as usize);
        self.file.set_len(STEP as u64)?;
        if missing > 0 {
            self.file.write(self.length, &vec![0; missing])?;
            self.file.sync_data()?;
        }
        self.length = STEP as u64;
        Ok(())
    }

    /// Where the record would stand, if there is room for it.
    fn place(&self) -> Option<Position> {
        let length = self.buffer.len() as u64;
        let Some(Record { position, .. }) = self.records.front() else {
            return Some(self.end);
        };
        let behind = self.end.offset + length;
        if self.end.lap != position.lap {
            return (behind <= position.offset).then_some(self.end);
        }
        if behind + HEAD as u64 <= RING {
            return Some(self.end);
        }
        (length <= position.offset).then(|| self.end.next_lap())
    }

    /// Says that the next record stands at the beginning of the file. Without that a crash could leave the next record and not this.
    fn end_lap(&mut self) -> io::Result<()> {
        let mut last = [0; HEAD];
        seal(&mut last, self.end.generation, self.end.lap);
        self.write(&last)
    }

    /// Writes a record at the end, as safe as the file makes it.
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        while self.length < self.end.offset + record.len() as u64 {
            self.file.set_len(self.length + STEP as u64)?;
            self.file.write(self.length, &vec![0; STEP])?;
            self.length += STEP as u64;
        }
        self.file.write(self.end.offset, record)?;
        self.file.sync_data()
    }

    /// Takes note of the record at the end, which was made of this batch; the end is behind it then.
    fn merge(&mut self, batch: Batch) {
        let record = Record {
            number: self.number,
            position: self.end,
            length: self.buffer.len() as u64,
        };
        for prefix in batch.removed {
            let rows = self.rows.range(prefix.clone()..);
            let rows = rows.take_while(|(key, _)| key.starts_with(&prefix));
            for key in Vec::from_iter(rows.map(|(key, _)| key.clone())) {
                self.rows.remove(&key);
            }
        }
        for (key, row) in batch.rows {
            match row {
                Some(_) => self.rows.insert(key, record.number),
                None => self.rows.remove(&key),
            };
        }
        let place = |(body, offset, length)| {
            let place = Place {
                record: record.number,
                offset: record.position.offset + offset,
                length,
            };
            (body, place)
        };
        let written = Vec::from_iter(self.parts.drain(..).map(place));
        let bodies = batch.bodies.into_iter();
        let removed = bodies.filter_map(|(body, bytes)| bytes.is_none().then_some(body));
        self.bodies.merge(&written, &Vec::from_iter(removed));
        self.number += 1;
        self.end.offset += record.length;
        self.used += record.length;
        self.records.push_back(record);
        // A batch can be as long as the longest messages.
        self.buffer.clear();
        self.buffer.shrink_to(STEP);
    }

    /// The batch of the record at the end, if there is a whole one.
    fn next(&mut self) -> io::Result<Option<Batch>> {
        let mut payload = self.payload(self.end)?;
        if payload.as_ref().is_some_and(Bytes::is_empty) {
            self.end = self.end.next_lap();
            payload = self.payload(self.end)?;
        }
        let batch = payload.map(|payload| decode(payload).ok_or_else(damaged));
        batch.transpose()
    }

    /// The payload of the record there, if it is whole.
    fn payload(&self, position: Position) -> io::Result<Option<Bytes>> {
        let record = self.record(position.offset)?;
        let record = record.filter(|record| is_of(record, position.lap));
        Ok(record.map(|record| Bytes::from(record).split_off(HEAD)))
    }

    /// What stands there, if it can be a record of this generation.
    fn record(&self, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let rest = self.length.saturating_sub(offset);
        let mut record = vec![0; HEAD];
        if rest < HEAD as u64 {
            return Ok(None);
        }
        self.file.read(offset, &mut record)?;
        let (length, generation) = length_and_generation(&record);
        if generation != self.end.generation || length > rest - HEAD as u64 {
            return Ok(None);
        }
        record.resize(HEAD + length as usize, 0);
        self.file.read(offset, &mut record)?;
        Ok(Some(record))
    }

    /// Whether a record of this lap stands behind the last that counts, or one of the next lap anywhere: a crash tears only the last.
    fn has_more(&self) -> io::Result<bool> {
        let (this, next) = (self.end.lap, self.end.next_lap().lap);
        let generation = self.end.generation.to_be_bytes();
        let mut window = vec![0; WINDOW.min(self.length as usize)];
        let mut from = 0;
        while from + HEAD as u64 <= self.length {
            window.truncate((self.length - from) as usize);
            self.file.read(from, &mut window)?;
            let heads = window.windows(HEAD).enumerate();
            for (at, _) in heads.filter(|(_, head)| head[8..16] == generation) {
                let offset = from + at as u64;
                let is_behind = offset >= self.end.offset;
                let is_one =
                    |record: Vec<u8>| is_of(&record, next) || is_behind && is_of(&record, this);
                if self.record(offset)?.is_some_and(is_one) {
                    return Ok(true);
                }
            }
            from += (window.len() - HEAD + 1) as u64;
        }
        Ok(false)
    }
}

/// What the error of a journal has that is not as it was written.
#[derive(Debug, thiserror::Error)]
#[error("a record is damaged")]
pub(super) struct DamagedRecord;

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, DamagedRecord)
}
