//! The directory that keeps what a namespace holds while its emulator is started again.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "in-process")]
use servicebus_emulator::{DataOptions, Sync};

use crate::address::random_number;

/// Where that is. Without a directory nothing is kept.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// The test has it, and keeps it.
    In(PathBuf),
    /// One of its own is made when it starts.
    Fresh,
    /// It goes with its last user.
    Temporary(Arc<TemporaryDirectory>),
}

/// A directory that is removed with what is in it.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory(PathBuf);

impl Data {
    /// The same with a directory.
    pub(crate) fn made(self) -> Self {
        let Self::Fresh = self else {
            return self;
        };
        let (process, number) = (std::process::id(), random_number());
        let name = format!("servicebus-harness-data-{process}-{number:016x}");
        let directory = env::temp_dir().join(name);
        Self::Temporary(Arc::new(TemporaryDirectory(directory)))
    }

    pub(crate) fn directory(&self) -> &Path {
        match self {
            Self::In(directory) => directory,
            Self::Temporary(temporary) => &temporary.0,
            Self::Fresh => Path::new(""),
        }
    }

    /// As an emulator is told. A test ends processes and no machines, so that the disk need not be waited for.
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
        // One that is left behind among temporary files is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}
