//! The store as a file of a directory: an embedded database, on a file that is synchronised or not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::{
    Builder, Database, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition,
    TableError,
};
use servicebus_broker::BodyId;

use super::backend::{Backend, ReserveFile, Waiting};
use super::directory::{
    COPY, FILE, JOURNAL_FILE, MARK, VERSION, begin, cannot_open, check_lengths, check_mark, lock,
    open_file, sync_directory, write_mark,
};
use super::journal::{Journal, Position, SOME};
use super::reader::BodyReader;
use super::room::Room;
use super::shrink::{self, Waste};
use super::{Batch, Bodies, Disk, EachRow, LoadError, Sync, Table};
use crate::options::DataError;

/// What is given up when the disk is full.
const RESERVE: &str = "reserve";
/// Pages of the file that are kept in memory.
pub(super) const CACHE: usize = 32 << 20;

pub(super) type Own = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Writable<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

pub(super) const ROWS: Own = TableDefinition::new("rows");
pub(super) const BODIES: Own = TableDefinition::new("bodies");
/// Under [`START`], where the records in the journal begin which are not in the other tables.
pub(super) const JOURNAL: Own = TableDefinition::new("journal");
const START: &[u8] = b"generation";

pub(super) struct RowFile {
    database: Arc<Database>,
    /// The same, for those who read while it is written: who has it keeps no directory.
    current: Arc<Mutex<Weak<Database>>>,
    journal: Journal,
    room: Arc<Room>,
    /// Where it is, and how safe, if that is a directory.
    place: Option<(PathBuf, Sync)>,
    waste: Waste,
}

/// Opens the store of a directory, which is made if it is not there.
pub(crate) fn open(directory: &Path, sync: Sync) -> Result<(Box<dyn Disk>, PathBuf), DataError> {
    let (disk, path) = open_rows(directory, sync)?;
    Ok((Box::new(disk), path))
}

/// The same, as a file.
pub(super) fn open_rows(directory: &Path, sync: Sync) -> Result<(RowFile, PathBuf), DataError> {
    let cannot_use = |source| DataError::Directory {
        directory: directory.to_owned(),
        source,
    };
    fs::create_dir_all(directory).map_err(cannot_use)?;
    let path = directory.join(FILE);
    let version = check_mark(directory, &path)?;
    let is_new = version.is_none() && begin(directory, sync)?;
    let file = open_file(&path).map_err(cannot_use)?;
    lock(&file, directory)?;
    check_lengths(directory, version)?;
    let journal = open_file(&directory.join(JOURNAL_FILE)).map_err(cannot_use)?;
    let room = Room::new(Box::new(ReserveFile(directory.join(RESERVE))));
    shrink::remove(&directory.join(COPY)).map_err(cannot_use)?;
    let length = file.metadata().map_err(cannot_use)?.len();
    let [file, journal] = [file, journal].map(|file| Backend::new(file, sync));
    let opened = RowFile::new(file, journal, room, is_new);
    let opened = opened.and_then(|disk| disk.at(directory.to_owned(), sync, length));
    let disk = opened.map_err(|error| cannot_open(directory, error))?;
    if version.is_none() && !disk.has_no_rows().map_err(|e| cannot_open(directory, e))? {
        return Err(DataError::Missing(directory.join(MARK)));
    }
    if version != Some(VERSION) {
        write_mark(directory, sync).map_err(cannot_use)?;
    }
    Ok((disk, path))
}

/// The database in a file, which is made there where there is none; one that is not new is checked.
pub(super) fn open_in(backend: impl StorageBackend, is_new: bool) -> Result<Database, redb::Error> {
    let database = Builder::new()
        .set_cache_size(CACHE)
        .set_check_integrity_on_open(!is_new)
        .create_with_backend(backend)?;
    Ok(database)
}

/// Sees to it that the tables are there; returns where the records of the journal begin.
pub(super) fn prepare(database: &Database) -> Result<Position, redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(ROWS)?;
    transaction.open_table(BODIES)?;
    let mut table = transaction.open_table(JOURNAL)?;
    let found = table.get(START)?;
    let found = found.and_then(|own| Position::decode(own.value()));
    let start = found.unwrap_or_else(Position::draw);
    table.insert(START, &start.encode()[..])?;
    drop(table);
    transaction.commit()?;
    Ok(start)
}

impl RowFile {
    /// The store that is in `backend` and its journal, which is made there where there is none; one that is not new is checked.
    pub(super) fn new(
        backend: impl StorageBackend,
        journal: impl StorageBackend,
        room: Room,
        is_new: bool,
    ) -> Result<Self, redb::Error> {
        let room = Arc::new(room);
        let database = open_in(Waiting::new(backend, Arc::clone(&room)), is_new)?;
        let journal = Waiting::new(journal, Arc::clone(&room));
        Self::of(database, Arc::new(journal), room)
    }

    /// The store that is in a database, which takes in what its journal has.
    pub(super) fn of(
        database: Database,
        journal: Arc<dyn StorageBackend>,
        room: Arc<Room>,
    ) -> Result<Self, redb::Error> {
        let start = prepare(&database)?;
        let last = last_body(&database)?;
        let journal = Journal::open(journal, start, last)?;
        let database = Arc::new(database);
        let mut store = Self {
            current: Arc::new(Mutex::new(Arc::downgrade(&database))),
            database,
            journal,
            room,
            place: None,
            waste: Waste::none(),
        };
        while !store.journal.is_empty() {
            store.take_oldest()?;
        }
        store.journal.shrink()?;
        Ok(store)
    }

    /// The same in a directory, where it can become smaller; its file has so many bytes.
    fn at(self, directory: PathBuf, sync: Sync, length: u64) -> Result<Self, redb::Error> {
        Ok(Self {
            waste: Waste::of(&self.database, length)?,
            place: Some((directory, sync)),
            ..self
        })
    }

    fn has_no_rows(&self) -> Result<bool, redb::Error> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        Ok(table.first()?.is_none())
    }

    /// The database, where no one else has it.
    #[cfg(feature = "cli")]
    pub(super) fn into_database(self) -> Option<Database> {
        Arc::into_inner(self.database)
    }

    /// Takes the oldest of what the journal has into the database.
    fn take_oldest(&mut self) -> Result<(), redb::Error> {
        let count = self.journal.oldest(SOME);
        let start = self.journal.start_after(count);
        let waste = &mut self.waste;
        let mut taken = Vec::new();
        let transaction = self.database.begin_write()?;
        let mut rows = transaction.open_table(ROWS)?;
        let mut bodies = transaction.open_table(BODIES)?;
        for before in 0..count {
            let batch = self.journal.remainder(before)?;
            for prefix in batch.removed {
                let end = end_of(&prefix);
                rows.retain_in(&prefix[..]..&end[..], |key, row| {
                    waste.add(key.len() + row.len());
                    false
                })?;
            }
            for (key, row) in batch.rows {
                put(&mut rows, &key, row.as_deref(), waste)?;
            }
            for (body, bytes) in batch.bodies {
                let key = body.0.get().to_be_bytes();
                put(&mut bodies, &key, bytes.as_deref(), waste)?;
                taken.extend(bytes.is_some().then_some(body));
            }
        }
        drop((rows, bodies));
        let mut journal = transaction.open_table(JOURNAL)?;
        journal.insert(START, &start.encode()[..])?;
        drop(journal);
        transaction.commit()?;
        self.journal.forget(count, &taken, start)?;
        Ok(())
    }

    /// Copies everything to a file that takes the place of that of so many bytes; nothing where that was not wanted to its end.
    fn replace(
        &mut self,
        (directory, sync): &(PathBuf, Sync),
        length: u64,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<(), redb::Error> {
        let copy = directory.join(COPY);
        let file = open_file(&copy)?;
        // As long as it is a copy nothing depends on it.
        let backend = Backend::new(file.try_clone()?, Sync::Process);
        let database = open_in(backend, true)?;
        prepare(&database)?;
        if !shrink::copy(&self.database, &database, length / 4 * 3, is_wanted)? {
            drop(database);
            shrink::remove(&copy)?;
            return Ok(());
        }
        drop(database);
        if *sync == Sync::Always {
            file.sync_all()?;
        }
        file.lock()?;
        let backend = Waiting::new(Backend::new(file, *sync), Arc::clone(&self.room));
        let database = Arc::new(open_in(backend, true)?);
        fs::rename(&copy, directory.join(FILE))?;
        // From now on a write to the old file would be lost.
        *self.current.lock() = Arc::downgrade(&database);
        self.database = database;
        sync_directory(directory, *sync)?;
        Ok(())
    }

    fn table(
        &self,
        table: Own,
    ) -> Result<redb::ReadOnlyTable<&'static [u8], &'static [u8]>, LoadError> {
        let transaction = self.database.begin_read().map_err(told)?;
        transaction
            .open_table(table)
            .map_err(|error: TableError| told(error))
    }
}

impl Disk for RowFile {
    fn room(&self) -> Arc<Room> {
        Arc::clone(&self.room)
    }

    fn write(&mut self, batch: Batch) -> Result<(), String> {
        self.journal.encode(&batch);
        while self.journal.is_much() || !self.journal.has_room() {
            self.take_oldest().map_err(|error| error.to_string())?;
        }
        let written = self.journal.append(batch);
        written.map_err(|error| error.to_string())
    }

    fn is_much(&self) -> bool {
        self.journal.is_much()
    }

    fn settle(&mut self, is_wanted: &dyn Fn() -> bool) -> Result<(), String> {
        while !self.journal.is_empty() && is_wanted() {
            self.take_oldest().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn read(&self, table: Table, prefix: &[u8], each: &mut EachRow<'_>) -> Result<(), LoadError> {
        let table = self.table(match table {
            Table::Rows => ROWS,
            Table::Bodies => BODIES,
        })?;
        for row in table.range(prefix..).map_err(told)? {
            let (key, value) = row.map_err(told)?;
            if !key.value().starts_with(prefix) {
                break;
            }
            each(key.value(), value.value())?;
        }
        Ok(())
    }

    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError> {
        let key = body.0.get().to_be_bytes();
        let found = self.table(BODIES)?.get(&key[..]).map_err(told)?;
        Ok(found.map(|bytes| Bytes::copy_from_slice(bytes.value())))
    }

    fn reader(&self) -> Box<dyn Bodies> {
        Box::new(BodyReader::new(&self.current, &self.journal))
    }

    fn shrink(&mut self, is_wanted: &dyn Fn() -> bool) -> Result<(), String> {
        self.journal.shrink().map_err(|error| error.to_string())?;
        let Some(place) = self.place.clone() else {
            return Ok(());
        };
        let length = fs::metadata(place.0.join(FILE));
        let length = length.map_err(|error| error.to_string())?.len();
        if !self.waste.is_worth(length) {
            return Ok(());
        }
        let replaced = self.replace(&place, length, is_wanted);
        if is_wanted() {
            self.waste = Waste::none();
        }
        replaced.map_err(|error| {
            // What is left of it goes at the next start.
            let _ = shrink::remove(&place.0.join(COPY));
            error.to_string()
        })
    }

    fn bodies(&self) -> Result<(u64, u64), LoadError> {
        use redb::ReadableTableMetadata as _;
        let count = self.table(BODIES)?.len().map_err(told)?;
        Ok((count, last_body(&self.database).map_err(told)?))
    }
}

/// The last number of a message's bytes.
fn last_body(database: &Database) -> Result<u64, redb::Error> {
    let table = database.begin_read()?.open_table(BODIES)?;
    let last = table.last()?;
    let last = last.and_then(|(key, _)| key.value().try_into().ok());
    Ok(last.map_or(0, u64::from_be_bytes))
}

/// Writes a row or removes it, and counts what was there.
fn put(
    table: &mut Writable<'_>,
    key: &[u8],
    row: Option<&[u8]>,
    waste: &mut Waste,
) -> Result<(), redb::Error> {
    let before = match row {
        Some(row) => table.insert(key, row)?,
        None => table.remove(key)?,
    };
    if let Some(before) = before {
        waste.add(key.len() + before.value().len());
    }
    Ok(())
}

pub(super) fn told(error: impl std::fmt::Display) -> LoadError {
    LoadError::Disk(error.to_string())
}

/// The first key behind all that begin with `prefix`, which does not end with the greatest byte for ever.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}
