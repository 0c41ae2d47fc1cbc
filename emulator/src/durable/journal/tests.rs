use std::collections::BTreeMap;
use std::num::NonZeroU64;

use parking_lot::Mutex;
use servicebus_broker::IdSource as _;
use servicebus_test_support::temporary::TemporaryDirectory;

use super::*;
use crate::namespace::Ids;

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

/// A database with the start of its journal.
#[derive(Debug, Clone)]
struct Kept {
    start: Start,
    last: u64,
    rows: BTreeMap<Vec<u8>, Bytes>,
    bodies: BTreeMap<BodyId, Bytes>,
}

impl Kept {
    fn new(generation: u64) -> Self {
        Self {
            start: start(generation),
            last: 0,
            rows: BTreeMap::new(),
            bodies: BTreeMap::new(),
        }
    }

    fn apply(&mut self, batch: Batch) {
        for prefix in batch.removed {
            self.rows.retain(|key, _| !key.starts_with(&prefix));
        }
        for (key, row) in batch.rows {
            match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
        for (body, bytes) in batch.bodies {
            match bytes {
                Some(bytes) => {
                    self.last = self.last.max(body.0.get());
                    self.bodies.insert(body, bytes)
                }
                None => self.bodies.remove(&body),
            };
        }
    }

    /// Checkpoints the `count` oldest records.
    fn take(&mut self, journal: &mut Journal, count: usize) {
        let before: Vec<_> = self.bodies.keys().copied().collect();
        let mut rows = Vec::new();
        for older in 0..count {
            let live = journal.live_part(older).expect("it can be read");
            let written = live.rows.iter().filter(|(_, row)| row.is_some());
            rows.extend(written.map(|(key, _)| key.clone()));
            self.apply(live);
        }
        self.start = journal.start_after(count);
        let taken = self.bodies.keys().filter(|body| !before.contains(body));
        let taken = Vec::from_iter(taken.copied());
        let forgotten = journal.remove_oldest(count, &rows, &taken, self.start);
        forgotten.expect("it can be read");
        let first = journal.records.front().map(|record| record.number);
        let is_left = |record: u64| first.is_some_and(|first| record >= first);
        assert!(journal.rows.values().all(|(record, _)| is_left(*record)));
    }

    /// Returns the state after the next start.
    fn after_a_start(&self, memory: &Memory) -> Self {
        let journal = Journal::open(Arc::new(memory.clone()), self.start, self.last);
        let mut journal = journal.expect("it is whole");
        let mut kept = self.clone();
        let all = journal.records.len();
        kept.take(&mut journal, all);
        kept
    }
}

fn start(generation: u64) -> Start {
    let position = Position {
        generation,
        lap: 0,
        offset: 0,
    };
    Start {
        position,
        length: 0,
    }
}

fn open(memory: &Memory, generation: u64) -> Journal {
    let opened = Journal::open(Arc::new(memory.clone()), start(generation), 0);
    opened.expect("it can be read")
}

fn append(journal: &mut Journal, batch: Batch) {
    journal.encode(&batch);
    journal.extend().expect("there is room");
    journal.append(batch).expect("there is room");
}

fn body(number: u64) -> BodyId {
    BodyId(NonZeroU64::new(number).expect("it is more than 0"))
}

/// Returns a batch with a row and a body, which the next one replaces and removes.
fn batch(number: u8) -> Batch {
    let row = Bytes::from(vec![number; 3]);
    Batch {
        removed: vec![vec![b'x', number]],
        rows: BTreeMap::from([(b"row".to_vec(), Some(row)), (vec![b'y', number], None)]),
        bodies: BTreeMap::from([
            (body(u64::from(number)), Some(vec![number; 100].into())),
            (body(u64::from(number) + 100), None),
        ]),
        ..Batch::default()
    }
}

/// Returns the number of records, and the row after them.
fn records(journal: &Journal) -> (usize, Option<u8>) {
    let parts = (0..journal.records.len()).map(|at| journal.live_part(at).expect("it is whole"));
    let rows = parts.filter_map(|batch| batch.rows.get(&b"row"[..]).cloned());
    let row = rows
        .reduce(|_, row| row)
        .and_then(|row| row?.first().copied());
    (journal.records.len(), row)
}

#[test]
fn appended_records_are_kept_until_the_database_has_them() {
    let memory = Memory::default();
    let mut journal = open(&memory, 7);
    assert!(journal.is_empty());
    for number in 1..=3 {
        append(&mut journal, batch(number));
    }
    assert_eq!(records(&journal), (3, Some(3)));
    assert_eq!(records(&open(&memory, 7)), (3, Some(3)));
    let mut kept = Kept::new(7);
    kept.take(&mut journal, 2);
    assert_eq!(kept.rows, BTreeMap::new(), "the third replaces it");
    assert_eq!(records(&journal), (1, Some(3)));
    kept.take(&mut journal, 1);
    assert_eq!(kept.rows[&b"row"[..]], vec![3; 3]);
    assert!(journal.is_empty());
    let generation = kept.start.position.generation;
    assert!(
        open(&memory, generation).is_empty(),
        "the records are of another generation"
    );
    append(&mut journal, batch(4));
    assert_eq!(records(&open(&memory, generation)), (1, Some(4)));
    let kept = kept.after_a_start(&memory);
    assert_eq!(kept.bodies[&body(4)], vec![4; 100]);
}

#[test]
fn bodies_unknown_to_the_database_are_not_removed_from_it() {
    let mut journal = open(&Memory::default(), 1);
    journal.last_body = 5;
    let removed = |number| Batch {
        bodies: BTreeMap::from([(body(number), None)]),
        ..Batch::default()
    };
    append(&mut journal, batch(6));
    append(&mut journal, removed(6));
    append(&mut journal, removed(5));
    let parts = (0..3).map(|at| journal.live_part(at).expect("it is whole"));
    let bodies: Vec<_> = parts.flat_map(|batch| batch.bodies).collect();
    assert_eq!(bodies, [(body(5), None)]);
}

#[test]
fn the_buffer_of_a_long_record_is_freed_once_written() {
    let mut journal = open(&Memory::default(), 7);
    let long = Bytes::from(vec![7; 100 * GROWTH]);
    let bodies = BTreeMap::from([(body(1), Some(long))]);
    append(
        &mut journal,
        Batch {
            bodies,
            ..Batch::default()
        },
    );
    assert!(journal.buffer.capacity() <= GROWTH);
}

/// Records are appended, replaced, removed and checkpointed, and the ring may end anywhere: the next start finds all of
/// them.
#[test]
fn a_start_recovers_all_records_after_many_laps_of_the_journal() {
    let memory = Memory::default();
    let (mut ids, mut next) = (Ids::new(Some(3), 7), 1);
    let mut below = |limit: u64| ids.next() % limit;
    let (mut journal, mut all, mut kept) = (open(&memory, 7), Kept::new(7), Kept::new(7));
    let (mut laps, mut starts) = (0, 0);
    for _ in 0..3_000 {
        let mut batch = Batch::default();
        if below(20) == 0 {
            batch.removed.push(vec![below(4) as u8]);
        }
        for _ in 0..below(4) {
            let key = vec![below(4) as u8, below(16) as u8];
            let row = (below(3) > 0).then(|| vec![below(256) as u8; below(200) as usize].into());
            batch.rows.insert(key, row);
        }
        for _ in 0..below(4) {
            let bytes = vec![next as u8; below(300) as usize];
            batch.bodies.insert(body(next), Some(bytes.into()));
            next += 1;
        }
        let some = all.bodies.keys().filter(|_| below(8) == 0);
        batch.bodies.extend(some.map(|body| (*body, None)));
        all.apply(decode(payload_of(&batch)).expect("it is whole"));
        journal.encode(&batch);
        while journal.needs_checkpoint() || !journal.has_space() {
            let count = journal.oldest(CHECKPOINT_SIZE);
            kept.take(&mut journal, count);
        }
        let before = journal.end;
        if let Some(start) = journal.extend().expect("there is room") {
            kept.start = start;
        }
        journal.append(batch).expect("there is room");
        laps += u32::from(journal.end.lap != before.lap);
        if below(10) == 0 {
            let found = kept.after_a_start(&memory);
            assert_eq!((&found.rows, &found.bodies), (&all.rows, &all.bodies));
            starts += 1;
        }
    }
    assert!(laps > 50 && starts > 200, "{laps} laps, {starts} starts");
}

fn payload_of(batch: &Batch) -> Bytes {
    let mut record = Vec::new();
    encode(batch, &mut record);
    Bytes::from(record).split_off(HEADER)
}

/// A snapshot reads its bytes even after the database has them and another record has overwritten them.
#[test]
fn pinned_bodies_can_be_read_after_being_overwritten() {
    let memory = Memory::default();
    let mut journal = open(&memory, 7);
    append(&mut journal, batch(1));
    let pinned = journal.bodies.pin(&[body(1), body(2)]);
    assert_eq!(Vec::from_iter(pinned.keys()), [&body(1)]);
    let read = || pinned[&body(1)].read(&memory).expect("it is there");
    assert_eq!(read(), vec![1; 100]);
    let mut kept = Kept::new(7);
    kept.take(&mut journal, 1);
    assert!(
        journal.bodies.pin(&[body(1)]).is_empty(),
        "the database has it"
    );
    memory.0.lock().fill(0);
    assert_eq!(read(), vec![1; 100]);
}

/// A truncated or changed record is not valid, and those before it are complete.
#[test]
fn a_torn_record_is_ignored() {
    let memory = Memory::default();
    let mut journal = open(&memory, 7);
    append(&mut journal, batch(1));
    let first = journal.end.offset as usize;
    append(&mut journal, batch(2));
    let second = journal.end.offset as usize;
    let whole = memory.0.lock().clone();
    for at in first..second {
        memory.0.lock()[at] ^= 1;
        assert_eq!(
            records(&open(&memory, 7)),
            (1, Some(1)),
            "byte {at} differs"
        );
        memory.0.lock().truncate(at);
        assert_eq!(records(&open(&memory, 7)), (1, Some(1)), "cut at {at}");
        memory.0.lock().clone_from(&whole);
    }
    assert_eq!(records(&open(&memory, 7)), (2, Some(2)));
}

/// Any changed byte of a record before another one, also of the record that ends a lap.
#[test]
fn a_damaged_record_before_another_is_reported() {
    let memory = Memory::default();
    let (mut journal, mut kept) = (open(&memory, 7), Kept::new(7));
    let mut number = 0;
    while journal.end.lap == 0 {
        while journal.needs_checkpoint() {
            kept.take(&mut journal, 1);
        }
        number += 1;
        append(&mut journal, batch(number % 100));
    }
    let records = journal.records.iter().rev().skip(1);
    let mut places = Vec::from_iter(records.map(|record| (record.position.offset, record.length)));
    let (last, length) = places[0];
    places.push((last + length, HEADER as u64));
    for at in places
        .into_iter()
        .flat_map(|(from, length)| from..from + length)
    {
        let at = at as usize;
        memory.0.lock()[at] ^= 1;
        let opened = Journal::open(Arc::new(memory.clone()), kept.start, kept.last);
        assert!(opened.is_err(), "byte {at} differs");
        memory.0.lock()[at] ^= 1;
    }
    assert_eq!(
        kept.after_a_start(&memory).rows[&b"row"[..]],
        vec![number; 3]
    );
}

/// The database names an existing record, unless it has them all.
#[test]
fn a_journal_without_its_first_record_is_reported() {
    let memory = Memory::default();
    let (mut journal, mut kept) = (open(&memory, 7), Kept::new(7));
    append(&mut journal, batch(1));
    append(&mut journal, batch(2));
    kept.take(&mut journal, 1);
    assert_eq!(kept.after_a_start(&memory).rows[&b"row"[..]], vec![2; 3]);
    memory.0.lock().clear();
    let opened = Journal::open(Arc::new(memory), kept.start, 0);
    assert!(opened.is_err(), "the second is gone");
}

#[test]
fn an_empty_journal_shrinks_to_its_minimum_size() {
    let memory = Memory::default();
    let mut journal = open(&memory, 7);
    journal.shrink().expect("it can be written");
    assert_eq!(memory.0.lock().len(), GROWTH);
    for number in 1..=20 {
        append(&mut journal, batch(number));
    }
    let length = memory.0.lock().len();
    journal.shrink().expect("it is left as it is");
    assert!(length > GROWTH && length == memory.0.lock().len());
    let mut kept = Kept::new(7);
    kept.take(&mut journal, 20);
    journal.shrink().expect("it can be cut");
    assert_eq!(memory.0.lock().len(), GROWTH);
    append(&mut journal, batch(2));
    assert_eq!(kept.after_a_start(&memory).rows[&b"row"[..]], vec![2; 3]);
}

/// Up to version 2 of the format the database named nothing but the generation, and then no length.
#[test]
fn the_start_of_a_journal_decodes_to_itself() {
    let position = Position {
        generation: 5,
        lap: 6,
        offset: 7,
    };
    let named = |length| Start { position, length };
    let row = named(8).encode();
    assert_eq!(Start::decode(&row), Some(named(8)));
    assert_eq!(Start::decode(&row[..20]), Some(named(0)));
    assert_eq!(Start::decode(&5u64.to_be_bytes()), Some(start(5)));
    assert_eq!(Start::decode(b"short"), None);
}

/// The next start recovers the journal of a killed process, and reports damaged or missing records.
#[test]
fn the_next_start_recovers_the_journal_or_reports_damage() {
    use std::fs;

    use super::super::{Sync, Table, open};
    use crate::options::DataError;

    let temporary = TemporaryDirectory::unused();
    let directory = &temporary.0;
    let start = || open(directory, Sync::Always);
    let (mut disk, _) = start().expect("it is made");
    disk.write(batch(1)).expect("there is room");
    disk.write(batch(2)).expect("there is room");
    drop(disk);
    let file = directory.join("journal");
    let whole = fs::read(&file).expect("it is there");
    let mut damaged = whole.clone();
    damaged[HEADER] ^= 1;
    fs::write(&file, damaged).expect("it can be written");
    let error = start().err().expect("it is damaged");
    assert!(
        matches!(&error, DataError::Damaged { file: own, .. } if *own == file),
        "{error}"
    );
    fs::remove_file(&file).expect("it can be removed");
    let error = start().err().expect("it is gone");
    assert!(
        matches!(&error, DataError::Missing(own) if *own == file),
        "{error}"
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
}

/// Cut at any step of its growth, in the first lap, in a later one, and behind a record that is longer than a step.
#[test]
fn the_next_start_reports_a_journal_cut_between_records() {
    use std::fs;

    use super::super::{Sync, open};

    let temporary = TemporaryDirectory::unused();
    let directory = &temporary.0;
    let file = directory.join("journal");
    for (records, bytes) in [(12, 100), (80, 100), (2, 2 * GROWTH)] {
        let (mut disk, _) = open(directory, Sync::Always).expect("it is whole");
        for number in 1..=records {
            let mut batch = batch(number);
            let long = Bytes::from(vec![7; bytes]);
            batch.bodies.insert(body(u64::from(number)), Some(long));
            disk.write(batch).expect("there is room");
        }
        drop(disk);
        let whole = fs::read(&file).expect("it is there");
        assert!(whole.len() > 2 * GROWTH, "{} bytes", whole.len());
        for length in (GROWTH..whole.len()).step_by(GROWTH) {
            fs::write(&file, &whole[..length]).expect("it can be written");
            let error = open(directory, Sync::Always).err().expect("it was cut");
            let reason = format!(
                "it was cut: it has {length} bytes instead of {}",
                whole.len()
            );
            assert!(error.to_string().contains(&reason), "{error}");
        }
        fs::write(&file, &whole).expect("it can be written");
    }
    drop(open(directory, Sync::Always).expect("it is whole"));
}
