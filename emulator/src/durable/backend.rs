//! The files behind the database and the journal: synchronized or not, with writes that wait while the disk is full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use redb::StorageBackend;

use super::Sync;
use super::space::{DiskSpace, Reserve, is_disk_full};

/// Bytes of the reserve, which hold rows of settlements, deliveries and forwards of about 30,000 messages.
const RESERVE: u64 = 8 << 20;

/// A backend that tries writes again when the disk is full.
#[derive(Debug)]
pub(super) struct RetryWhenFull<B> {
    backend: B,
    space: Arc<DiskSpace>,
}

/// A file that is synchronized as [`Sync`] says.
#[derive(Debug)]
pub(super) struct FileBackend {
    file: File,
    sync: Sync,
}

/// The file that reserves space.
#[derive(Debug)]
pub(super) struct ReserveFile(pub(super) PathBuf);

impl<B: StorageBackend> RetryWhenFull<B> {
    pub(super) fn new(backend: B, space: Arc<DiskSpace>) -> Self {
        Self { backend, space }
    }

    fn retry_when_full(&self, write: impl Fn(&B) -> io::Result<()>) -> io::Result<()> {
        loop {
            match write(&self.backend) {
                Err(error) if is_disk_full(&error) => self.space.wait(error)?,
                done => return done,
            }
        }
    }
}

impl<B: StorageBackend> StorageBackend for RetryWhenFull<B> {
    fn len(&self) -> io::Result<u64> {
        self.backend.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.retry_when_full(|backend| backend.set_len(length))
    }

    // Never tried again: after a failed synchronization the content of the disk is unknown.
    fn sync_data(&self) -> io::Result<()> {
        self.backend.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.retry_when_full(|backend| backend.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.backend.close()
    }
}

impl Reserve for ReserveFile {
    fn allocate(&mut self) -> io::Result<()> {
        if fs::metadata(&self.0).is_ok_and(|own| own.len() == RESERVE) {
            return Ok(());
        }
        let written = self.write();
        if written.is_err() {
            self.release();
        }
        written
    }

    fn release(&mut self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}

impl ReserveFile {
    fn write(&self) -> io::Result<()> {
        // Pseudo-random bytes: a file system that compresses would allocate nothing for zeros.
        let mut state = 1u64;
        let block: Vec<u8> = (0..8192)
            .flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            })
            .collect();
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&self.0)?;
        for _ in 0..RESERVE / block.len() as u64 {
            file.write_all(&block)?;
        }
        Ok(())
    }
}

impl FileBackend {
    pub(super) fn new(file: File, sync: Sync) -> Self {
        Self { file, sync }
    }
}

impl StorageBackend for FileBackend {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        read_exact_at(&self.file, out, offset)
    }

    fn set_len(&self, length: u64) -> Result<(), io::Error> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        match self.sync {
            Sync::Always => self.file.sync_data(),
            Sync::Process => Ok(()),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        write_all_at(&self.file, data, offset)
    }
}

#[cfg(unix)]
use std::os::unix::fs::FileExt as _;

#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(out, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(data, offset)
}

#[cfg(windows)]
use std::os::windows::fs::FileExt as _;

#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match file.seek_read(out, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                out = &mut out[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut data: &[u8], mut offset: u64) -> io::Result<()> {
    while !data.is_empty() {
        let written = file.seek_write(data, offset)?;
        data = &data[written..];
        offset += written as u64;
    }
    Ok(())
}
