//! What stands in the directory of a store: which files there are, and whether they can be those that were left there.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Sync;
use super::backend::Backend;
use super::file::{open_in, prepare};
use super::journal::{DamagedRecord, STEP};
use crate::options::DataError;

/// The rows of a directory as they are copied.
pub(super) const COPY: &str = "store.new";
/// The rows of a directory.
pub(super) const FILE: &str = "store.redb";
/// What the rows of a directory do not have yet.
pub(super) const JOURNAL_FILE: &str = "journal";
/// What says that a directory has a store, and of which version.
pub(super) const MARK: &str = "FORMAT";
/// What stands in the mark, before the number of the version.
const MARK_TEXT: &str = "servicebus-emulator data ";
/// The version of what is written. Up to the first one there was no journal, up to the second it was no ring, and up to the third
/// it could have no bytes.
pub(super) const VERSION: u32 = 4;

/// Makes the store of a directory that has none, as a whole: what a process leaves that is killed meanwhile is none. Returns
/// whether there was none.
pub(super) fn begin(directory: &Path, sync: Sync) -> Result<bool, DataError> {
    let (path, draft) = (directory.join(FILE), directory.join(COPY));
    if path.exists() {
        return Ok(false);
    }
    if directory.join(JOURNAL_FILE).exists() {
        return Err(DataError::Missing(path));
    }
    let cannot_use = |source| DataError::Directory {
        directory: directory.to_owned(),
        source,
    };
    let file = open_file(&draft).map_err(cannot_use)?;
    lock(&file, directory)?;
    if path.exists() {
        return Err(DataError::InUse(directory.to_owned()));
    }
    file.set_len(0).map_err(cannot_use)?;
    let backend = Backend::new(file.try_clone().map_err(cannot_use)?, sync);
    let database = open_in(backend, true);
    let made = database.and_then(|database| prepare(&database));
    made.map_err(|error| cannot_open(directory, error))?;
    fs::rename(&draft, &path).map_err(cannot_use)?;
    Ok(true)
}

/// Refuses files that were cut, and a journal that is gone.
pub(super) fn check_lengths(directory: &Path, version: Option<u32>) -> Result<(), DataError> {
    let Some(version) = version else {
        return Ok(());
    };
    let damaged = |file, reason| DataError::Damaged { file, reason };
    let file = directory.join(FILE);
    if fs::metadata(&file).is_ok_and(|found| found.len() == 0) {
        return Err(damaged(file, "it is empty".into()));
    }
    let journal = directory.join(JOURNAL_FILE);
    match fs::metadata(&journal) {
        Ok(found) if version > 3 && (found.len() == 0 || found.len() % STEP as u64 != 0) => {
            let reason = format!(
                "it was cut: it has {} bytes, which are no multiple of {STEP}",
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

/// Why the store of a directory cannot be opened.
pub(super) fn cannot_open(directory: &Path, error: redb::Error) -> DataError {
    let damaged = |file, reason| DataError::Damaged {
        file: directory.join(file),
        reason,
    };
    let redb::Error::Io(source) = error else {
        return damaged(FILE, error.to_string());
    };
    let is_of_journal = source
        .get_ref()
        .is_some_and(|inner| inner.is::<DamagedRecord>());
    let kind = source.kind();
    if is_of_journal {
        return damaged(JOURNAL_FILE, source.to_string());
    }
    if kind == io::ErrorKind::InvalidData {
        return damaged(FILE, source.to_string());
    }
    if kind == io::ErrorKind::UnexpectedEof {
        return damaged(FILE, "it was cut".into());
    }
    DataError::Directory {
        directory: directory.to_owned(),
        source,
    }
}

/// Sees to it that no other process has the file, for as long as it is open.
pub(super) fn lock(file: &File, directory: &Path) -> Result<(), DataError> {
    let directory = directory.to_owned();
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(DataError::InUse(directory)),
        Err(TryLockError::Error(source)) => Err(DataError::Directory { directory, source }),
    }
}

/// The version of a store, if there is one yet; a store that is of no use is refused.
pub(super) fn check_mark(directory: &Path, file: &Path) -> Result<Option<u32>, DataError> {
    let mark = directory.join(MARK);
    let text = match fs::read(&mark) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(DataError::Directory {
                directory: directory.to_owned(),
                source: of_file(&mark, source),
            });
        }
    };
    let version = text.strip_prefix(MARK_TEXT);
    let version = version.and_then(|version| version.trim().parse::<u32>().ok());
    match version {
        Some(version @ 1..=VERSION) if file.exists() => Ok(Some(version)),
        Some(1..=VERSION) => Err(DataError::Missing(file.to_owned())),
        Some(version) => Err(DataError::Version {
            directory: directory.to_owned(),
            version,
            known: VERSION,
        }),
        None => Err(DataError::Damaged {
            file: mark,
            reason: "it does not say which version the data has".into(),
        }),
    }
}

/// Says that there is a store, once it is there.
pub(super) fn write_mark(directory: &Path, sync: Sync) -> io::Result<()> {
    let draft: PathBuf = directory.join("FORMAT.new");
    let mut file = File::create(&draft)?;
    writeln!(file, "{MARK_TEXT}{VERSION}")?;
    if sync == Sync::Always {
        file.sync_all()?;
    }
    fs::rename(&draft, directory.join(MARK))?;
    sync_directory(directory, sync)
}

/// Has what a directory contains outlive a loss of power.
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
        .map_err(|error| of_file(path, error))
}

/// The error with the name of the file.
fn of_file(path: &Path, error: io::Error) -> io::Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::open;
    use super::*;

    #[test]
    fn a_store_of_a_start_that_was_killed_is_opened_where_it_has_nothing() {
        let name = format!("servicebus-directory-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).expect("it can be made");
        assert!(begin(&directory, Sync::Always).expect("there is room"));
        assert!(!begin(&directory, Sync::Always).expect("it is there"));
        drop(open(&directory, Sync::Always).expect("it is empty"));
        assert!(directory.join(MARK).exists());
        fs::remove_dir_all(&directory).expect("it can be removed");
    }
}
