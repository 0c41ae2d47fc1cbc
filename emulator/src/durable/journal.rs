//! What is written goes to the end of a journal first, in one piece, and into the database when there is much of it or nothing else
//! to do: a transaction of the database writes ten pages in as many places for one message, the journal its bytes.
//!
//! A record counts when its checksum is right and its generation is the one that the database names; the transaction that takes
//! the journal into the database names the next. So nothing has to be removed from the journal, which begins again at its start,
//! and a record that a crash has torn does not count. Generations are drawn by chance: no client can send a message whose bytes
//! would count as a record.

use std::io;
use std::mem;
use std::num::NonZeroU64;

use bytes::{Buf as _, Bytes};
use redb::StorageBackend;
use servicebus_broker::BodyId;

use super::Batch;

/// Bytes of records that one transaction takes into the database, if no single record has more.
const MUCH: u64 = 16 << 20;
/// The journal grows by as many bytes, which are written: where a file system has to find a place for what is written, telling
/// the disk takes half as long again.
const STEP: usize = if cfg!(test) { 4096 } else { 1 << 20 };
/// What stands before the payload of a record: its length, generation and checksum.
const HEAD: usize = 20;

/// The journal, and what it has that the database has not.
pub(super) struct Journal {
    file: Box<dyn StorageBackend>,
    generation: u64,
    end: u64,
    length: u64,
    ahead: Batch,
    /// The last number of bytes that the database may have.
    last: u64,
    buffer: Vec<u8>,
}

impl Journal {
    /// The journal in `file`, of a database that names this generation and has bodies up to `last`.
    pub(super) fn open(
        file: Box<dyn StorageBackend>,
        generation: u64,
        last: u64,
    ) -> io::Result<Self> {
        let length = file.len()?;
        let mut journal = Self {
            file,
            generation,
            end: 0,
            length,
            ahead: Batch::default(),
            last,
            buffer: Vec::new(),
        };
        while let Some(batch) = journal.next()? {
            journal.merge(batch);
        }
        if journal.has_more()? {
            return Err(damaged());
        }
        Ok(journal)
    }

    /// Whether the database has everything.
    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Whether the database is to take in what there is before more comes.
    pub(super) fn is_much(&self) -> bool {
        self.end >= MUCH
    }

    /// Appends a batch; returns when it is as safe as the file makes it.
    pub(super) fn append(&mut self, batch: Batch) -> io::Result<()> {
        let mut buffer = mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(HEAD, 0);
        encode(&batch, &mut buffer);
        let length = (buffer.len() - HEAD) as u64;
        let checksum = crc32fast::hash(&buffer[HEAD..]);
        buffer[..8].copy_from_slice(&length.to_be_bytes());
        buffer[8..16].copy_from_slice(&self.generation.to_be_bytes());
        buffer[16..HEAD].copy_from_slice(&checksum.to_be_bytes());
        self.grow(self.end + buffer.len() as u64)?;
        self.file.write(self.end, &buffer)?;
        self.file.sync_data()?;
        self.end += buffer.len() as u64;
        buffer.shrink_to(STEP);
        self.buffer = buffer;
        self.merge(batch);
        Ok(())
    }

    /// What the database is to take in, with the generation that it names from then on.
    pub(super) fn take(&mut self) -> (Batch, u64) {
        let batch = mem::take(&mut self.ahead);
        if let Some((last, _)) = batch.bodies.last_key_value() {
            self.last = self.last.max(last.0.get());
        }
        (batch, draw())
    }

    /// Begins anew: the database has everything, and names this generation.
    pub(super) fn begin(&mut self, generation: u64) {
        self.generation = generation;
        self.end = 0;
    }

    /// Gives the file's room back, if the database has everything.
    pub(super) fn shrink(&mut self) -> io::Result<()> {
        if self.is_empty() && self.length > 0 {
            self.file.set_len(0)?;
            self.length = 0;
        }
        Ok(())
    }

    fn grow(&mut self, end: u64) -> io::Result<()> {
        while self.length < end {
            self.file.set_len(self.length + STEP as u64)?;
            self.file.write(self.length, &vec![0; STEP])?;
            self.length += STEP as u64;
        }
        Ok(())
    }

    fn merge(&mut self, batch: Batch) {
        for prefix in batch.removed {
            self.ahead.remove(prefix);
        }
        self.ahead.rows.extend(batch.rows);
        for (body, bytes) in batch.bodies {
            if bytes.is_none() && body.0.get() > self.last {
                // The database never had it.
                self.ahead.bodies.remove(&body);
            } else {
                self.ahead.bodies.insert(body, bytes);
            }
        }
    }

    /// Whether a record stands behind the last that counts: a crash tears only the last.
    fn has_more(&self) -> io::Result<bool> {
        let mut rest = vec![0; (self.length - self.end) as usize];
        self.file.read(self.end, &mut rest)?;
        let generation = self.generation.to_be_bytes();
        let begins = |at: &usize| rest[at + 8..].starts_with(&generation);
        let records = (0..rest.len().saturating_sub(HEAD)).filter(begins);
        Ok(records.into_iter().any(|at| payload(&rest[at..]).is_some()))
    }

    /// The batch of the next record, if there is a whole one.
    fn next(&mut self) -> io::Result<Option<Batch>> {
        let mut head = [0; HEAD];
        if self.end + HEAD as u64 > self.length {
            return Ok(None);
        }
        self.file.read(self.end, &mut head)?;
        let (length, generation) = length_and_generation(&head);
        let rest = self.length - self.end - HEAD as u64;
        if generation != self.generation || length > rest {
            return Ok(None);
        }
        let mut record = vec![0; HEAD + length as usize];
        self.file.read(self.end, &mut record)?;
        let Some(payload) = payload(&record) else {
            return Ok(None);
        };
        self.end += record.len() as u64;
        let batch = decode(Bytes::copy_from_slice(payload));
        batch.map(Some).ok_or_else(damaged)
    }
}

/// A generation that no record has: not 0, since what is not written yet would be records of that.
pub(super) fn draw() -> u64 {
    rand::random::<u64>() | 1
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a record is damaged")
}

fn length_and_generation(head: &[u8]) -> (u64, u64) {
    let (numbers, _) = head.as_chunks();
    (
        u64::from_be_bytes(numbers[0]),
        u64::from_be_bytes(numbers[1]),
    )
}

/// The payload of the record at the beginning of these bytes, if it is whole.
fn payload(record: &[u8]) -> Option<&[u8]> {
    let (length, _) = length_and_generation(record);
    let payload = record[HEAD..].get(..usize::try_from(length).ok()?)?;
    let checksum = crc32fast::hash(payload).to_be_bytes();
    (record[16..HEAD] == checksum).then_some(payload)
}

fn encode(batch: &Batch, out: &mut Vec<u8>) {
    let part = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend((bytes.len() as u32).to_be_bytes());
        out.extend(bytes);
    };
    let value = |out: &mut Vec<u8>, value: &Option<Bytes>| {
        out.push(u8::from(value.is_some()));
        part(out, value.as_deref().unwrap_or_default());
    };
    out.extend((batch.removed.len() as u32).to_be_bytes());
    batch.removed.iter().for_each(|prefix| part(out, prefix));
    out.extend((batch.rows.len() as u32).to_be_bytes());
    for (key, row) in &batch.rows {
        part(out, key);
        value(out, row);
    }
    for (body, bytes) in &batch.bodies {
        out.extend(body.0.get().to_be_bytes());
        value(out, bytes);
    }
}

/// What [`encode`] wrote; none where that cannot be.
fn decode(mut payload: Bytes) -> Option<Batch> {
    let rest = &mut payload;
    let mut batch = Batch::default();
    for _ in 0..number(rest)? {
        batch.removed.push(part(rest)?.to_vec());
    }
    for _ in 0..number(rest)? {
        let key = part(rest)?.to_vec();
        batch.rows.insert(key, value(rest)?);
    }
    while !rest.is_empty() {
        let body = NonZeroU64::new(rest.try_get_u64().ok()?)?;
        batch.bodies.insert(BodyId(body), value(rest)?);
    }
    Some(batch)
}

fn number(rest: &mut Bytes) -> Option<u32> {
    rest.try_get_u32().ok()
}

fn part(rest: &mut Bytes) -> Option<Bytes> {
    let length = number(rest)? as usize;
    (length <= rest.len()).then(|| rest.split_to(length))
}

fn value(rest: &mut Bytes) -> Option<Option<Bytes>> {
    let is_there = rest.try_get_u8().ok()? != 0;
    let bytes = part(rest)?;
    Some(is_there.then_some(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// A file in memory that outlives its journal.
    #[derive(Debug, Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl StorageBackend for Memory {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            out.copy_from_slice(&self.0.lock()[offset as usize..][..out.len()]);
            Ok(())
        }

        fn set_len(&self, length: u64) -> io::Result<()> {
            self.0.lock().resize(length as usize, 0);
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.0.lock()[offset as usize..][..data.len()].copy_from_slice(data);
            Ok(())
        }
    }

    fn open(memory: &Memory, generation: u64) -> Journal {
        Journal::open(Box::new(memory.clone()), generation, 0).expect("it can be read")
    }

    fn body(number: u64) -> BodyId {
        BodyId(NonZeroU64::new(number).expect("it is more than 0"))
    }

    /// A row and a body, which the next one replaces and removes.
    fn batch(number: u8) -> Batch {
        let row = Bytes::from(vec![number; 3]);
        Batch {
            removed: vec![vec![b'x', number]],
            rows: BTreeMap::from([(b"row".to_vec(), Some(row)), (vec![b'y', number], None)]),
            bodies: BTreeMap::from([
                (
                    body(u64::from(number)),
                    Some(Bytes::from(vec![number; 100])),
                ),
                (body(u64::from(number) + 100), None),
            ]),
            ..Batch::default()
        }
    }

    fn told(journal: &Journal) -> (usize, Option<u8>) {
        let row = journal.ahead.rows.get(&b"row"[..]);
        let row = row.and_then(|row| row.as_deref()?.first().copied());
        (journal.ahead.removed.len(), row)
    }

    #[test]
    fn what_was_appended_is_there_until_the_database_has_it() {
        let memory = Memory::default();
        let mut journal = open(&memory, 7);
        assert!(journal.is_empty());
        for number in 1..=3 {
            journal.append(batch(number)).expect("there is room");
        }
        assert_eq!(told(&journal), (3, Some(3)));
        assert_eq!(told(&open(&memory, 7)), (3, Some(3)));
        journal.take();
        journal.begin(8);
        assert!(
            open(&memory, 8).is_empty(),
            "the records are of another generation"
        );
        journal.append(batch(4)).expect("there is room");
        let again = open(&memory, 8);
        assert_eq!(told(&again), (1, Some(4)));
        assert_eq!(again.ahead.bodies[&body(4)].as_deref(), Some(&[4; 100][..]));
        assert_eq!(again.ahead.rows[&b"y\x04"[..]], None);
    }

    #[test]
    fn what_the_database_never_had_is_not_removed_from_it() {
        let mut journal = open(&Memory::default(), 1);
        journal.last = 5;
        let removed = |number| Batch {
            bodies: BTreeMap::from([(body(number), None)]),
            ..Batch::default()
        };
        journal.append(batch(6)).expect("there is room");
        journal.append(removed(6)).expect("there is room");
        journal.append(removed(5)).expect("there is room");
        let bodies: Vec<_> = journal.ahead.bodies.into_keys().collect();
        assert_eq!(bodies, [body(5)]);
    }

    /// Wherever a record is cut or changed it is none, and those before it are whole.
    #[test]
    fn a_torn_record_is_none() {
        let memory = Memory::default();
        let mut journal = open(&memory, 7);
        journal.append(batch(1)).expect("there is room");
        let first = journal.end as usize;
        journal.append(batch(2)).expect("there is room");
        let second = journal.end as usize;
        let whole = memory.0.lock().clone();
        for at in first..second {
            memory.0.lock()[at] ^= 1;
            assert_eq!(told(&open(&memory, 7)), (1, Some(1)), "byte {at} differs");
            memory.0.lock().truncate(at);
            assert_eq!(told(&open(&memory, 7)), (1, Some(1)), "cut at {at}");
            memory.0.lock().clone_from(&whole);
        }
        assert_eq!(told(&open(&memory, 7)), (2, Some(2)));
    }

    #[test]
    fn a_damaged_record_before_another_is_told_of() {
        let memory = Memory::default();
        let mut journal = open(&memory, 7);
        journal.append(batch(1)).expect("there is room");
        let first = journal.end as usize;
        journal.append(batch(2)).expect("there is room");
        for at in 0..first {
            memory.0.lock()[at] ^= 1;
            let opened = Journal::open(Box::new(memory.clone()), 7, 0);
            assert!(opened.is_err(), "byte {at} differs");
            memory.0.lock()[at] ^= 1;
        }
    }

    #[test]
    fn a_journal_that_is_empty_takes_no_room() {
        let memory = Memory::default();
        let mut journal = open(&memory, 7);
        journal.append(batch(1)).expect("there is room");
        journal.shrink().expect("it can be cut");
        assert!(!memory.0.lock().is_empty(), "it is not empty");
        journal.begin(8);
        journal.shrink().expect("it can be cut");
        assert!(memory.0.lock().is_empty());
        journal.append(batch(2)).expect("there is room");
        assert_eq!(told(&open(&memory, 8)), (1, Some(2)));
    }

    /// What a killed process has left in its journal is there at the next start, and what is damaged or gone is told of.
    #[test]
    fn the_next_start_takes_it_in_or_says_what_is_wrong() {
        use std::{env, fs};

        use super::super::{Sync, Table, open};
        use crate::options::DataError;

        let name = format!("servicebus-journal-{}", std::process::id());
        let directory = env::temp_dir().join(name);
        let start = || open(&directory, Sync::Always);
        let (mut disk, _) = start().expect("it is made");
        disk.write(batch(1)).expect("there is room");
        disk.write(batch(2)).expect("there is room");
        drop(disk);
        let file = directory.join("journal");
        let whole = fs::read(&file).expect("it is there");
        let mut damaged = whole.clone();
        damaged[HEAD] ^= 1;
        fs::write(&file, damaged).expect("it can be written");
        let told = start().err().expect("it is damaged");
        assert!(
            matches!(&told, DataError::Damaged { file: own, .. } if *own == file),
            "{told}"
        );
        fs::remove_file(&file).expect("it can be removed");
        let told = start().err().expect("it is gone");
        assert!(
            matches!(&told, DataError::Missing(own) if *own == file),
            "{told}"
        );
        fs::write(&file, whole).expect("it can be written");
        let (disk, _) = start().expect("it is whole");
        let mut found = Vec::new();
        let read = disk.read(Table::Rows, b"", &mut |key, row| {
            found.push((key.to_vec(), row.to_vec()));
            Ok(())
        });
        read.expect("it can be read");
        assert_eq!(found, [(b"row".to_vec(), vec![2; 3])]);
        assert_eq!(disk.body(body(2)), Ok(Some(Bytes::from_static(&[2; 100]))));
        drop(disk);
        fs::remove_dir_all(&directory).expect("it can be removed");
    }
}
