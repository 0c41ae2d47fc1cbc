//! The data directory, which stores a namespace across restarts of its emulator.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "in-process")]
use servicebus_emulator::{DataOptions, Sync};

use crate::address::random_number;

/// The data directory.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// A directory of the test, which is not removed.
    Directory(PathBuf),
    /// A temporary directory, to be chosen at the start.
    NewTemporary,
    /// A temporary directory, removed with its last user.
    Temporary(Arc<TemporaryDirectory>),
}

/// A directory that is removed with its content on drop.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory(PathBuf);

impl Data {
    /// Chooses the directory of [`Self::NewTemporary`].
    pub(crate) fn choose_directory(self) -> Self {
        let Self::NewTemporary = self else {
            return self;
        };
        let (process, number) = (std::process::id(), random_number());
        let name = format!("servicebus-harness-data-{process}-{number:016x}");
        let directory = env::temp_dir().join(name);
        Self::Temporary(Arc::new(TemporaryDirectory(directory)))
    }

    pub(crate) fn directory(&self) -> &Path {
        match self {
            Self::Directory(directory) => directory,
            Self::Temporary(temporary) => &temporary.0,
            Self::NewTemporary => Path::new(""),
        }
    }

    /// Returns whether the directory has no content, or does not exist.
    pub(crate) fn is_empty(&self) -> bool {
        fs::read_dir(self.directory()).map_or(true, |mut entries| entries.next().is_none())
    }

    /// Returns the options of an emulator. Tests end processes but not machines, so the emulator need not wait for the disk.
    #[cfg(feature = "in-process")]
    pub(crate) fn options(&self) -> DataOptions {
        DataOptions {
            sync: Sync::Process,
            ..DataOptions::new(self.directory())
        }
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // A remaining temporary directory is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}
