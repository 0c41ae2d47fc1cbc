//! A store that no emulator serves: read without a change of its files, or compacted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use redb::{Builder, StorageBackend};

use super::backend::read_exact_at;
use super::directory::{
    FORMAT_FILE, JOURNAL_FILE, STORE_FILE, cannot_use, check_lengths, open_error, open_locked,
    read_version, with_file_name,
};
use super::file::{CACHE, RowFile, open_rows};
use super::space::DiskSpace;
use super::{Disk, Sync};
use crate::failures::panic_text;
use crate::options::DataError;

/// The unit of an overlay.
const BLOCK: usize = 4096;

/// A store that is only read.
pub(crate) struct OfflineStore {
    pub(crate) disk: Box<dyn Disk>,
    pub(crate) file: PathBuf,
    /// Why the file fails the integrity check, if it does.
    pub(crate) damage: Option<String>,
}

/// Opens the store in a directory to read it, also a damaged one that can still be opened.
pub(crate) fn open_offline(directory: &Path) -> Result<OfflineStore, DataError> {
    check_exists(directory)?;
    let file = directory.join(STORE_FILE);
    check_lengths(directory, read_version(directory, &file)?)?;
    let open = |checks| open_overlay(directory, &file, checks);
    let (disk, damage) = match open(true)? {
        Ok(whole) => (whole, None),
        Err(reason) => match open(false)? {
            Ok(readable) => (readable, Some(reason)),
            Err(_) => return Err(DataError::Damaged { file, reason }),
        },
    };
    Ok(OfflineStore {
        disk: Box::new(disk),
        file,
        damage,
    })
}

/// Compacts the database of a directory; returns the bytes of its file before and after.
pub(crate) fn compact(directory: &Path) -> Result<(u64, u64), DataError> {
    check_exists(directory)?;
    let file = directory.join(STORE_FILE);
    let length = || fs::metadata(&file).map(|found| found.len());
    let before = length().map_err(|source| cannot_use(directory, source))?;
    let (rows, _) = open_rows(directory, Sync::Always)?;
    if let Some(mut database) = rows.into_database() {
        let failed = |error: redb::CompactionError| {
            cannot_use(directory, io::Error::other(error.to_string()))
        };
        while database.compact().map_err(failed)? {}
    }
    let after = length().map_err(|source| cannot_use(directory, source))?;
    Ok((before, after))
}

/// Refuses a directory that has no store, which opening it would create.
fn check_exists(directory: &Path) -> Result<(), DataError> {
    let format = directory.join(FORMAT_FILE);
    let exists = |file: &Path| {
        let found = file.try_exists();
        found.map_err(|source| cannot_use(directory, source))
    };
    match exists(&format)? {
        true => Ok(()),
        false if exists(&directory.join(STORE_FILE))? => Err(DataError::Missing(format)),
        false => {
            let source = io::Error::other("it has no data of an emulator");
            Err(cannot_use(directory, source))
        }
    }
}

/// Opens overlays of the files; the inner error is damage of the database.
fn open_overlay(
    directory: &Path,
    file: &Path,
    checks: bool,
) -> Result<Result<RowFile, String>, DataError> {
    let failed = |source| cannot_use(directory, source);
    let own = open_locked(file, directory, |file| {
        File::open(file).map_err(|error| with_file_name(file, error))
    })?;
    let rows = Overlay::of(file.to_owned(), own).map_err(failed)?;
    // The first version has no journal.
    let journal = Arc::new(Overlay::open(directory.join(JOURNAL_FILE)).map_err(failed)?);
    let open = || {
        let database = Builder::new()
            .set_cache_size(CACHE)
            .set_check_integrity_on_open(checks)
            .create_with_backend(rows)?;
        RowFile::recover(database, journal, Arc::new(DiskSpace::new(Box::new(()))))
    };
    // The database may panic on a damaged file that was not checked.
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(Ok(opened)) => Ok(Ok(opened)),
        Ok(Err(error @ redb::Error::Io(_))) => Err(open_error(directory, error)),
        Ok(Err(error)) => Ok(Err(error.to_string())),
        Err(payload) => Ok(Err(panic_text(&*payload))),
    }
}

/// A file that is not changed: blocks that are written stay in memory.
#[derive(Debug)]
struct Overlay {
    path: PathBuf,
    /// `None` if there is no such file.
    file: Option<File>,
    length: Mutex<u64>,
    written: Mutex<BTreeMap<u64, Box<[u8; BLOCK]>>>,
}

impl Overlay {
    fn open(path: PathBuf) -> io::Result<Self> {
        match File::open(&path) {
            Ok(file) => Self::of(path, file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self {
                path,
                file: None,
                length: Mutex::default(),
                written: Mutex::default(),
            }),
            Err(error) => Err(with_file_name(&path, error)),
        }
    }

    fn of(path: PathBuf, file: File) -> io::Result<Self> {
        let found = file.metadata();
        let found = found.map_err(|error| with_file_name(&path, error))?;
        Ok(Self {
            path,
            file: Some(file),
            length: Mutex::new(found.len()),
            written: Mutex::default(),
        })
    }

    /// A block of the file, padded with zeros behind its end.
    fn block(&self, number: u64) -> io::Result<Box<[u8; BLOCK]>> {
        let mut block = Box::new([0; BLOCK]);
        if let Some(file) = &self.file {
            let (start, end) = (number * BLOCK as u64, file.metadata()?.len());
            let there = usize::try_from(end.saturating_sub(start)).unwrap_or(BLOCK);
            let read = read_exact_at(file, &mut block[..there.min(BLOCK)], start);
            read.map_err(|error| with_file_name(&self.path, error))?;
        }
        Ok(block)
    }

    /// Calls `part` for each block of a range of the file, with the part of the block and the part of the range.
    fn parts(
        offset: u64,
        length: usize,
        mut part: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let within = (at % BLOCK as u64) as usize;
            let taken = (BLOCK - within).min(length - done);
            part(
                at / BLOCK as u64,
                within..within + taken,
                done..done + taken,
            )?;
            done += taken;
        }
        Ok(())
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(*self.length.lock())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let written = self.written.lock();
        Self::parts(offset, out.len(), |number, within, range| {
            let out = &mut out[range];
            match written.get(&number) {
                Some(block) => out.copy_from_slice(&block[within]),
                None => out.copy_from_slice(&self.block(number)?[within]),
            }
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> Result<(), io::Error> {
        *self.length.lock() = length;
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let mut written = self.written.lock();
        Self::parts(offset, data.len(), |number, within, range| {
            let block = match written.entry(number) {
                Entry::Occupied(written) => written.into_mut(),
                Entry::Vacant(first) => first.insert(self.block(number)?),
            };
            block[within].copy_from_slice(&data[range]);
            Ok(())
        })
    }
}
