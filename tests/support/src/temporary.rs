//! Directories and files of a test's own, which are removed when it ends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A directory, which is removed with its content.
#[derive(Debug)]
pub struct TemporaryDirectory(pub PathBuf);

impl TemporaryDirectory {
    /// Returns a directory that does not exist yet.
    pub fn unused() -> Self {
        Self(unused())
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("it is text")
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file.
#[derive(Debug)]
pub struct TemporaryFile(pub PathBuf);

impl TemporaryFile {
    /// Writes a file.
    pub fn new(content: &str) -> Self {
        let path = unused();
        fs::write(&path, content).expect("a file can be written");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("it is text")
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn unused() -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("servicebus-test-{}-{number}", process::id()));
        // A killed process leaves its files, and its number is used again.
        if !path.exists() {
            return path;
        }
    }
}
