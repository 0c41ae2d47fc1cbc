//! What the embedded database writes to: a file that is synchronized or not, and waits for room where there is none.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use redb::StorageBackend;

use super::Sync;
use super::room::{Reserve, Room, is_no_room};

/// Bytes of the reserve: rows of settlements, deliveries and forwards of about 30,000 messages.
const RESERVE: u64 = 8 << 20;

/// A backend whose writes wait for room.
#[derive(Debug)]
pub(super) struct Waiting<B> {
    backend: B,
    room: Arc<Room>,
}

/// A file, of which the disk is told to write only where that was asked for.
#[derive(Debug)]
pub(super) struct Backend {
    file: File,
    sync: Sync,
}

/// A file that is there so that its blocks are.
#[derive(Debug)]
pub(super) struct ReserveFile(pub(super) PathBuf);

impl<B: StorageBackend> Waiting<B> {
    pub(super) fn new(backend: B, room: Arc<Room>) -> Self {
        Self { backend, room }
    }

    fn until_room(&self, write: impl Fn(&B) -> io::Result<()>) -> io::Result<()> {
        loop {
            match write(&self.backend) {
                Err(error) if is_no_room(&error) => self.room.find(error)?,
                done => return done,
            }
        }
    }
}

impl<B: StorageBackend> StorageBackend for Waiting<B> {
    fn len(&self) -> io::Result<u64> {
        self.backend.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.until_room(|backend| backend.set_len(length))
    }

    // What is on the disk once this has failed is not known: it is not tried again, whatever the reason.
    fn sync_data(&self) -> io::Result<()> {
        self.backend.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.until_room(|backend| backend.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.backend.close()
    }
}

impl Reserve for ReserveFile {
    fn fill(&mut self) -> io::Result<()> {
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
        // File systems that compress would keep nothing of zeros.
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

impl Backend {
    pub(super) fn new(file: File, sync: Sync) -> Self {
        Self { file, sync }
    }
}

impl StorageBackend for Backend {
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
