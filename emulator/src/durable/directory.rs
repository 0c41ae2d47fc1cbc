//! The files of a data directory, and the checks that they are those an earlier process has left.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Sync;
use super::backend::FileBackend;
use super::file::{open_in, prepare};
use super::journal::{DamagedJournal, GROWTH};
use super::space::is_disk_full;
use crate::options::DataError;

/// A database that is being created or copied.
pub(super) const COPY_FILE: &str = "store.new";
/// The database.
pub(super) const STORE_FILE: &str = "store.redb";
/// The journal of changes that are not in the database yet.
pub(super) const JOURNAL_FILE: &str = "journal";
/// The file with the version of the format, written once the store is complete.
pub(super) const FORMAT_FILE: &str = "FORMAT";
const FORMAT_PREFIX: &str = "servicebus-emulator data ";
/// The version of the format. Version 1 has no journal, that of version 2 is not a ring, and that of version 3 may be empty.
/// Up to version 4, rules have the form of a configuration file.
pub(super) const VERSION: u32 = 5;

/// Creates the store of a directory that has none, atomically: a process that is killed meanwhile leaves none. Returns whether the
/// directory had none.
pub(super) fn create_store(directory: &Path, sync: Sync) -> Result<bool, DataError> {
    let (path, draft) = (directory.join(STORE_FILE), directory.join(COPY_FILE));
    if path.exists() {
        return Ok(false);
    }
    if directory.join(JOURNAL_FILE).exists() {
        return Err(DataError::Missing(path));
    }
    let cannot_use = |source| cannot_use(directory, source);
    let file = open_file(&draft).map_err(cannot_use)?;
    lock(&file, directory)?;
    if path.exists() {
        return Err(DataError::InUse(directory.to_owned()));
    }
    file.set_len(0).map_err(cannot_use)?;
    let backend = FileBackend::new(file.try_clone().map_err(cannot_use)?, sync);
    let database = open_in(backend, true);
    let made = database.and_then(|database| prepare(&database));
    made.map_err(|error| open_error(directory, error))?;
    fs::rename(&draft, &path).map_err(cannot_use)?;
    Ok(true)
}

/// Refuses truncated files and a missing journal.
pub(super) fn check_lengths(directory: &Path, version: Option<u32>) -> Result<(), DataError> {
    let Some(version) = version else {
        return Ok(());
    };
    let damaged = |file, reason| DataError::Damaged { file, reason };
    let file = directory.join(STORE_FILE);
    if fs::metadata(&file).is_ok_and(|found| found.len() == 0) {
        return Err(damaged(file, "it is empty".into()));
    }
    let journal = directory.join(JOURNAL_FILE);
    match fs::metadata(&journal) {
        Ok(found) if version > 3 && (found.len() == 0 || found.len() % GROWTH as u64 != 0) => {
            let reason = format!(
                "it was cut: it has {} bytes, which are not a multiple of {GROWTH}",
                found.len()
            );
            Err(damaged(journal, reason))
        }
        Err(error) if version > 1 && error.kind() == io::ErrorKind::NotFound => {
            Err(DataError::Missing(journal))
        }
        _ => Ok(()),
    }
}

/// Why the store in a directory cannot be opened.
pub(super) fn open_error(directory: &Path, error: redb::Error) -> DataError {
    let damaged = |file, reason| DataError::Damaged {
        file: directory.join(file),
        reason,
    };
    let redb::Error::Io(source) = error else {
        return damaged(STORE_FILE, error.to_string());
    };
    let is_of_journal = source
        .get_ref()
        .is_some_and(|inner| inner.is::<DamagedJournal>());
    if is_of_journal {
        damaged(JOURNAL_FILE, source.to_string())
    } else if source.kind() == io::ErrorKind::InvalidData {
        damaged(STORE_FILE, source.to_string())
    } else if source.kind() == io::ErrorKind::UnexpectedEof {
        damaged(STORE_FILE, "it was cut".into())
    } else {
        cannot_use(directory, source)
    }
}

/// The inner error of a start that finds the disk full: the bytes that it needs.
#[derive(Debug, thiserror::Error)]
#[error("a start needs up to {0} bytes")]
pub(crate) struct NeedsSpace(u64);

impl NeedsSpace {
    /// Adds the bytes that a start needs to the error of a full disk.
    pub(crate) fn add_to(error: redb::Error, bytes: u64) -> redb::Error {
        if let redb::Error::Io(source) = &error
            && is_disk_full(source)
        {
            return redb::Error::Io(io::Error::new(source.kind(), Self(bytes)));
        }
        error
    }

    /// The bytes in the error of a full disk, or an upper bound.
    fn of(source: &io::Error, directory: &Path) -> u64 {
        let inner = source
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Self>());
        inner.map_or_else(
            || {
                let journal = fs::metadata(directory.join(JOURNAL_FILE));
                space_for(journal.map_or(0, |journal| journal.len()))
            },
            |Self(bytes)| *bytes,
        )
    }
}

/// The bytes that a start needs at most for rows and bodies in the journal: at least half of each page of the database is used, and an
/// empty journal has a length, too.
pub(crate) fn space_for(journal: u64) -> u64 {
    2 * journal + GROWTH as u64
}

pub(super) fn cannot_use(directory: &Path, source: io::Error) -> DataError {
    // A directory without contents has none to read.
    if is_disk_full(&source) && directory.join(FORMAT_FILE).exists() {
        return DataError::DiskFull {
            needed: NeedsSpace::of(&source, directory),
            directory: directory.to_owned(),
        };
    }
    DataError::Directory {
        directory: directory.to_owned(),
        source,
    }
}

/// Opens and locks the file at a path. While it is opened, the process that has the directory may replace it by a smaller copy and
/// end: the lock of the replaced file then protects nothing.
pub(super) fn open_locked(
    path: &Path,
    directory: &Path,
    open: impl Fn(&Path) -> io::Result<File>,
) -> Result<File, DataError> {
    loop {
        let file = open(path).map_err(|source| cannot_use(directory, source))?;
        lock(&file, directory)?;
        if is_at(&file, path).map_err(|source| cannot_use(directory, source))? {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let [own, there] = [file.metadata()?, fs::metadata(path)?].map(|own| (own.dev(), own.ino()));
    Ok(own == there)
}

/// An open file cannot be replaced there.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Locks the file against other processes for as long as it is open.
fn lock(file: &File, directory: &Path) -> Result<(), DataError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => DataError::InUse(directory.to_owned()),
        TryLockError::Error(source) => cannot_use(directory, source),
    })
}

/// The version of the store, if one was completed; an incomplete or newer one is refused.
pub(super) fn read_version(directory: &Path, file: &Path) -> Result<Option<u32>, DataError> {
    let format = directory.join(FORMAT_FILE);
    let text = match fs::read(&format) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(cannot_use(directory, with_file_name(&format, source)));
        }
    };
    let version = text.strip_prefix(FORMAT_PREFIX);
    let version = version.and_then(|version| version.trim().parse::<u32>().ok());
    match version {
        Some(version @ 1..=VERSION) if file.exists() => Ok(Some(version)),
        Some(1..=VERSION) => Err(DataError::Missing(file.to_owned())),
        None | Some(0) => Err(DataError::Damaged {
            file: format,
            reason: "it does not say which version the data has".into(),
        }),
        Some(version) => Err(DataError::Version {
            directory: directory.to_owned(),
            version,
            known: VERSION,
        }),
    }
}

/// Marks the store as complete.
pub(super) fn write_version(directory: &Path, sync: Sync) -> io::Result<()> {
    let draft: PathBuf = directory.join("FORMAT.new");
    let mut file = File::create(&draft)?;
    writeln!(file, "{FORMAT_PREFIX}{VERSION}")?;
    if sync == Sync::Always {
        file.sync_all()?;
    }
    fs::rename(&draft, directory.join(FORMAT_FILE))?;
    sync_directory(directory, sync)
}

/// Synchronizes the entries of a directory.
pub(super) fn sync_directory(directory: &Path, sync: Sync) -> io::Result<()> {
    if cfg!(unix) && sync == Sync::Always {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

pub(super) fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| with_file_name(path, error))
}

pub(super) fn with_file_name(path: &Path, error: io::Error) -> io::Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use servicebus_test_support::temporary::TemporaryDirectory;

    use super::super::open;
    use super::*;

    #[test]
    fn a_full_disk_says_that_nothing_is_lost_only_where_there_is_something() {
        let temporary = TemporaryDirectory::unused();
        let directory = &temporary.0;
        fs::create_dir(directory).expect("it can be made");
        let error = || cannot_use(directory, io::ErrorKind::StorageFull.into());
        assert!(matches!(error(), DataError::Directory { .. }));
        write_version(directory, Sync::Process).expect("it can be written");
        assert!(matches!(error(), DataError::DiskFull { .. }));
    }

    /// The process that has the directory shrinks the database and ends, after the other one has opened it.
    #[cfg(unix)]
    #[test]
    fn a_file_replaced_while_it_is_opened_is_opened_again() {
        use std::io::Read as _;

        let temporary = TemporaryDirectory::unused();
        let directory = &temporary.0;
        fs::create_dir(directory).expect("it can be made");
        let [path, copy] = [STORE_FILE, COPY_FILE].map(|name| directory.join(name));
        fs::write(&path, "replaced").expect("it can be written");
        fs::write(&copy, "present").expect("it can be written");
        let open = |path: &Path| {
            let file = open_file(path);
            // There is nothing to rename the second time.
            let _ = fs::rename(&copy, path);
            file
        };
        let mut file = open_locked(&path, directory, open).expect("it is free");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("it can be read");
        assert_eq!(text, "present");
        let used = open_locked(&path, directory, open_file);
        assert!(matches!(used, Err(DataError::InUse(_))), "{used:?}");
    }

    #[test]
    fn an_empty_store_of_a_killed_start_can_be_opened() {
        let temporary = TemporaryDirectory::unused();
        let directory = &temporary.0;
        fs::create_dir(directory).expect("it can be made");
        assert!(create_store(directory, Sync::Always).expect("there is room"));
        assert!(!create_store(directory, Sync::Always).expect("it is there"));
        drop(open(directory, Sync::Always).expect("it is empty"));
        assert!(directory.join(FORMAT_FILE).exists());
    }
}
