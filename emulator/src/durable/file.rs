//! The store in a directory: an embedded database behind a write-ahead journal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::{
    Builder, Database, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition,
    WriteTransaction,
};
use servicebus_broker::BodyId;

use super::backend::{FileBackend, ReserveFile, RetryWhenFull};
use super::batch::end_of;
use super::directory::{
    COPY_FILE, FORMAT_FILE, JOURNAL_FILE, NeedsSpace, STORE_FILE, VERSION, cannot_use,
    check_lengths, create_store, open_error, open_file, open_locked, read_version, space_for,
    sync_directory, write_version,
};
use super::journal::{CHECKPOINT_ROWS, CHECKPOINT_SIZE, Journal, Start};
use super::reader::BodyReader;
use super::shrink::{self, FreeSpace};
use super::space::DiskSpace;
use super::{Batch, Bodies, Disk, EachRow, LoadError, Sync, Table};
use crate::options::DataError;

/// Reserves disk space; deleted when the disk is full.
const RESERVE: &str = "reserve";
/// Bytes of a checkpoint for which no write waits, and of all that are moved on a full disk: the reserve has space for it, because
/// at least half of each page of the database is used.
const IDLE_CHECKPOINT_SIZE: u64 = CHECKPOINT_SIZE / 8;
/// Rows and bodies that one step moves on a full disk: each may copy a page of the database, even one that removes a row, and
/// later steps use the replaced pages.
const ROWS_WHEN_FULL: usize = CHECKPOINT_ROWS.div_ceil(16);
/// Bytes of the database's page cache.
pub(super) const CACHE: usize = 32 << 20;

pub(super) type TableKind = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Writable<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

pub(super) const ROWS: TableKind = TableDefinition::new("rows");
pub(super) const BODIES: TableKind = TableDefinition::new("bodies");
/// Holds, under [`START`], the position of the first journal record that is not in the other tables, and the journal's length.
pub(super) const JOURNAL: TableKind = TableDefinition::new("journal");
const START: &[u8] = b"generation";

pub(super) struct RowFile {
    database: Arc<Database>,
    /// The database for readers, which do not keep the directory open.
    current: Arc<Mutex<Weak<Database>>>,
    journal: Journal,
    /// What a checkpoint has left of the oldest record, which has too many rows for one step.
    rest: Option<Batch>,
    space: Arc<DiskSpace>,
    /// The directory, if the database can be shrunk.
    directory: Option<(PathBuf, Sync)>,
    waste: FreeSpace,
}

/// Opens the store in a directory, which is created if it does not exist.
pub(crate) fn open(directory: &Path, sync: Sync) -> Result<(Box<dyn Disk>, PathBuf), DataError> {
    let (disk, path) = open_rows(directory, sync)?;
    Ok((Box::new(disk), path))
}

pub(super) fn open_rows(directory: &Path, sync: Sync) -> Result<(RowFile, PathBuf), DataError> {
    let cannot_use = |source| cannot_use(directory, source);
    fs::create_dir_all(directory).map_err(|source| {
        if source.kind() != io::ErrorKind::AlreadyExists {
            return cannot_use(source);
        }
        // The operating system says only that the file exists.
        let text = "it is a file, not a directory";
        cannot_use(io::Error::new(io::ErrorKind::NotADirectory, text))
    })?;
    let path = directory.join(STORE_FILE);
    let version = read_version(directory, &path)?;
    let is_new = version.is_none() && create_store(directory, sync)?;
    let file = open_locked(&path, directory, open_file)?;
    check_lengths(directory, version)?;
    let journal = open_file(&directory.join(JOURNAL_FILE)).map_err(cannot_use)?;
    let space = DiskSpace::new(Box::new(ReserveFile(directory.join(RESERVE))));
    shrink::remove(&directory.join(COPY_FILE)).map_err(cannot_use)?;
    let length = file.metadata().map_err(cannot_use)?.len();
    let [file, journal] = [file, journal].map(|file| FileBackend::new(file, sync));
    let opened = RowFile::new(file, journal, space, is_new);
    let opened = opened.and_then(|disk| disk.at(directory.to_owned(), sync, length));
    let disk = opened.map_err(|error| open_error(directory, error))?;
    if version.is_none() && !disk.has_no_rows().map_err(|e| open_error(directory, e))? {
        return Err(DataError::Missing(directory.join(FORMAT_FILE)));
    }
    if version != Some(VERSION) {
        write_version(directory, sync).map_err(cannot_use)?;
    }
    Ok((disk, path))
}

/// Opens the database of a file, which is created in an empty one; the integrity of one that is not new is checked.
pub(super) fn open_in(backend: impl StorageBackend, is_new: bool) -> Result<Database, redb::Error> {
    let database = Builder::new()
        .set_cache_size(CACHE)
        .set_check_integrity_on_open(!is_new)
        .create_with_backend(backend)?;
    Ok(database)
}

/// Creates tables that are missing; returns the start of the journal.
pub(super) fn prepare(database: &Database) -> Result<Start, redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(ROWS)?;
    transaction.open_table(BODIES)?;
    let table = transaction.open_table(JOURNAL)?;
    let found = table.get(START)?.and_then(|own| Start::decode(own.value()));
    drop(table);
    let start = found.unwrap_or_else(Start::random);
    put_start(&transaction, start)?;
    transaction.commit()?;
    Ok(start)
}

fn put_start(transaction: &WriteTransaction, start: Start) -> Result<(), redb::Error> {
    let mut table = transaction.open_table(JOURNAL)?;
    table.insert(START, &start.encode()[..])?;
    Ok(())
}

impl RowFile {
    /// Opens the database in `backend` as [`open_in`] does, and recovers its journal.
    pub(super) fn new(
        backend: impl StorageBackend,
        journal: impl StorageBackend,
        space: DiskSpace,
        is_new: bool,
    ) -> Result<Self, redb::Error> {
        let space = Arc::new(space);
        let database = open_in(RetryWhenFull::new(backend, Arc::clone(&space)), is_new)?;
        let journal = RetryWhenFull::new(journal, Arc::clone(&space));
        Self::recover(database, Arc::new(journal), space)
    }

    /// Recovers the journal of a database, and checkpoints all of it.
    pub(super) fn recover(
        database: Database,
        journal: Arc<dyn StorageBackend>,
        space: Arc<DiskSpace>,
    ) -> Result<Self, redb::Error> {
        let start = prepare(&database)?;
        let journal = Journal::open(journal, start, last_body(&database)?)?;
        let database = Arc::new(database);
        let mut store = Self {
            current: Arc::new(Mutex::new(Arc::downgrade(&database))),
            database,
            journal,
            rest: None,
            space,
            directory: None,
            waste: FreeSpace::none(),
        };
        let needed = space_for(store.journal.live_bytes());
        // After a crash between the growth of the file and its first record the database has a length, but there are no records.
        while !store.journal.can_shrink() {
            store
                .checkpoint_oldest(CHECKPOINT_SIZE)
                .map_err(|error| NeedsSpace::add_to(error, needed))?;
        }
        store.journal.shrink()?;
        Ok(store)
    }

    /// Enables shrinking in a directory; the file has `length` bytes.
    fn at(self, directory: PathBuf, sync: Sync, length: u64) -> Result<Self, redb::Error> {
        Ok(Self {
            waste: FreeSpace::of(&self.database, length)?,
            directory: Some((directory, sync)),
            ..self
        })
    }

    /// Whether a checkpoint cannot use up the reserve of a full disk, which settlements need.
    fn has_space_for_checkpoint(&self) -> bool {
        self.space.is_available() || self.journal.live_bytes() <= IDLE_CHECKPOINT_SIZE
    }

    fn has_no_rows(&self) -> Result<bool, redb::Error> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        Ok(table.first()?.is_none())
    }

    /// The database, if no reader has it.
    #[cfg(feature = "cli")]
    pub(super) fn into_database(self) -> Option<Database> {
        Arc::into_inner(self.database)
    }

    /// Moves the oldest records of the journal into the database, but at most [`CHECKPOINT_ROWS`] rows and bodies. A record of
    /// which a part is moved stays in the journal: the next start moves all of it again, with the same result.
    fn checkpoint_oldest(&mut self, size: u64) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        let oldest = self.journal.oldest(size);
        let (done, moved_rows, moved_bodies) = self.move_oldest(oldest, &transaction)?;
        let start = self.journal.start_after(done);
        put_start(&transaction, start)?;
        transaction.commit()?;
        self.journal
            .remove_oldest(done, &moved_rows, &moved_bodies, start)?;
        Ok(())
    }

    /// On a full disk, moves the whole journal into the database before it would grow for the encoded batch: most of it is replaced
    /// while clients settle messages, and the batch then overwrites it.
    fn reuse_journal(&mut self) -> Result<(), redb::Error> {
        if self.space.is_available() || !self.journal.must_grow() {
            return Ok(());
        }
        while !self.journal.is_empty() && self.has_space_for_checkpoint() {
            self.checkpoint_oldest(IDLE_CHECKPOINT_SIZE)?;
        }
        Ok(())
    }

    /// Appends the encoded batch to the journal.
    fn append(&mut self, batch: Batch) -> Result<(), redb::Error> {
        if let Some(start) = self.journal.extend()? {
            let transaction = self.database.begin_write()?;
            put_start(&transaction, start)?;
            transaction.commit()?;
        }
        Ok(self.journal.append(batch)?)
    }

    fn move_oldest(
        &mut self,
        oldest: usize,
        transaction: &WriteTransaction,
    ) -> Result<Moved, redb::Error> {
        let rows = match self.space.is_available() {
            true => CHECKPOINT_ROWS,
            false => ROWS_WHEN_FULL,
        };
        let mut step = Step {
            rows: transaction.open_table(ROWS)?,
            bodies: transaction.open_table(BODIES)?,
            waste: &mut self.waste,
            left: rows,
            moved_rows: Vec::new(),
            moved_bodies: Vec::new(),
        };
        for index in 0..oldest {
            let mut batch = match self.rest.take() {
                Some(rest) => rest,
                None => self.journal.live_part(index)?,
            };
            step.take(&mut batch, &self.journal, index)?;
            if !batch.is_empty() {
                self.rest = Some(batch);
                return Ok((index, step.moved_rows, step.moved_bodies));
            }
        }
        Ok((oldest, step.moved_rows, step.moved_bodies))
    }

    /// Copies the database to a file, which replaces the present one of `length` bytes; nothing if it may not continue to the end.
    fn replace(
        &mut self,
        (directory, sync): &(PathBuf, Sync),
        length: u64,
        may_continue: &dyn Fn() -> bool,
    ) -> Result<(), redb::Error> {
        let copy = directory.join(COPY_FILE);
        let file = open_file(&copy)?;
        // Not synchronized: a crash discards the copy.
        let backend = FileBackend::new(file.try_clone()?, Sync::Process);
        let database = open_in(backend, true)?;
        prepare(&database)?;
        if !shrink::copy(&self.database, &database, length / 4 * 3, may_continue)? {
            drop(database);
            shrink::remove(&copy)?;
            return Ok(());
        }
        drop(database);
        if *sync == Sync::Always {
            file.sync_all()?;
        }
        file.lock()?;
        let backend = RetryWhenFull::new(FileBackend::new(file, *sync), Arc::clone(&self.space));
        let database = Arc::new(open_in(backend, true)?);
        fs::rename(&copy, directory.join(STORE_FILE))?;
        // Writes to the old file would be lost from here on.
        *self.current.lock() = Arc::downgrade(&database);
        self.database = database;
        sync_directory(directory, *sync)?;
        Ok(())
    }

    fn table(
        &self,
        table: TableKind,
    ) -> Result<redb::ReadOnlyTable<&'static [u8], &'static [u8]>, LoadError> {
        let transaction = self.database.begin_read().map_err(disk_error)?;
        transaction.open_table(table).map_err(disk_error)
    }
}

impl Disk for RowFile {
    fn space(&self) -> Arc<DiskSpace> {
        Arc::clone(&self.space)
    }

    fn write(&mut self, batch: Batch) -> Result<(), String> {
        self.journal.encode(&batch);
        let mut is_due = self.journal.needs_checkpoint();
        while is_due || !self.journal.has_space() {
            self.checkpoint_oldest(CHECKPOINT_SIZE)
                .map_err(|error| error.to_string())?;
            // The next write moves another part of a long record.
            is_due = self.journal.needs_checkpoint() && self.rest.is_none();
        }
        self.reuse_journal()
            .and_then(|()| self.append(batch))
            .map_err(|error| error.to_string())
    }

    fn needs_checkpoint(&self) -> bool {
        self.journal.needs_checkpoint()
    }

    fn checkpoint(&mut self, may_continue: &dyn Fn() -> bool) -> Result<(), String> {
        while !self.journal.is_empty() && self.has_space_for_checkpoint() && may_continue() {
            self.checkpoint_oldest(IDLE_CHECKPOINT_SIZE)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn read(&self, table: Table, prefix: &[u8], each: &mut EachRow<'_>) -> Result<(), LoadError> {
        let table = self.table(match table {
            Table::Rows => ROWS,
            Table::Bodies => BODIES,
        })?;
        for row in table.range(prefix..).map_err(disk_error)? {
            let (key, value) = row.map_err(disk_error)?;
            if !key.value().starts_with(prefix) {
                break;
            }
            each(key.value(), value.value())?;
        }
        Ok(())
    }

    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError> {
        let key = body.0.get().to_be_bytes();
        let found = self.table(BODIES)?.get(&key[..]).map_err(disk_error)?;
        Ok(found.map(|bytes| Bytes::copy_from_slice(bytes.value())))
    }

    fn reader(&self) -> Box<dyn Bodies> {
        Box::new(BodyReader::new(&self.current, &self.journal))
    }

    fn shrink(&mut self, may_continue: &dyn Fn() -> bool) -> Result<(), String> {
        self.journal.shrink().map_err(|error| error.to_string())?;
        let Some(directory) = self.directory.clone() else {
            return Ok(());
        };
        let length = fs::metadata(directory.0.join(STORE_FILE));
        let length = length.map_err(|error| error.to_string())?.len();
        if !self.waste.is_worth(length) {
            return Ok(());
        }
        let replaced = self.replace(&directory, length, may_continue);
        // A full disk may have space for the copy later.
        if may_continue() && (replaced.is_ok() || self.space.is_available()) {
            self.waste = FreeSpace::none();
        }
        replaced.map_err(|error| {
            // Otherwise the next start removes it.
            let _ = shrink::remove(&directory.0.join(COPY_FILE));
            error.to_string()
        })
    }

    fn bodies(&self) -> Result<(u64, u64), LoadError> {
        use redb::ReadableTableMetadata as _;
        let count = self.table(BODIES)?.len().map_err(disk_error)?;
        Ok((count, last_body(&self.database).map_err(disk_error)?))
    }
}

/// The highest body id.
fn last_body(database: &Database) -> Result<u64, redb::Error> {
    let table = database.begin_read()?.open_table(BODIES)?;
    let last = table.last()?;
    let last = last.and_then(|(key, _)| key.value().try_into().ok());
    Ok(last.map_or(0, u64::from_be_bytes))
}

/// The number of records that are moved completely, and the rows and bodies that were written.
type Moved = (usize, Vec<Vec<u8>>, Vec<BodyId>);

/// A transaction of a checkpoint.
struct Step<'a> {
    rows: Writable<'a>,
    bodies: Writable<'a>,
    waste: &'a mut FreeSpace,
    /// How many rows and bodies it may still move.
    left: usize,
    moved_rows: Vec<Vec<u8>>,
    moved_bodies: Vec<BodyId>,
}

impl Step<'_> {
    /// Moves as much of the record of this index as is allowed into the database, and removes it from `batch`. What a later record
    /// has replaced or removed is left out: that was appended since the first part of this one was moved.
    fn take(
        &mut self,
        batch: &mut Batch,
        journal: &Journal,
        index: usize,
    ) -> Result<(), redb::Error> {
        while let Some(prefix) = batch.removed.last() {
            let end = end_of(prefix);
            let removed = self
                .rows
                .extract_from_if(&prefix[..]..&end[..], |_, _| true)?;
            for removed in removed.take(self.left) {
                let (key, row) = removed?;
                self.waste.add(key.value().len() + row.value().len());
                self.left -= 1;
            }
            if self.left == 0 {
                return Ok(());
            }
            batch.removed.pop();
        }
        while self.left > 0
            && let Some((key, row)) = batch.rows.pop_first()
        {
            self.left -= 1;
            if row.is_none() || journal.is_last(index, &key) {
                put(&mut self.rows, &key, row.as_deref(), self.waste)?;
                self.moved_rows.extend(row.is_some().then_some(key));
            }
        }
        while self.left > 0
            && let Some((body, bytes)) = batch.bodies.pop_first()
        {
            self.left -= 1;
            if bytes.is_none() || journal.has_body(body) {
                let key = body.0.get().to_be_bytes();
                put(&mut self.bodies, &key, bytes.as_deref(), self.waste)?;
                self.moved_bodies.extend(bytes.is_some().then_some(body));
            }
        }
        Ok(())
    }
}

/// Writes or removes a row, and counts what it replaces.
fn put(
    table: &mut Writable<'_>,
    key: &[u8],
    row: Option<&[u8]>,
    waste: &mut FreeSpace,
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

pub(super) fn disk_error(error: impl std::fmt::Display) -> LoadError {
    LoadError::Disk(error.to_string())
}
