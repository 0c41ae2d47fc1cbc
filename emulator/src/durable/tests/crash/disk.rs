//! Files that record writes and synchronizations, and their contents after a crash.

use std::fmt;
use std::io;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use super::SeededRng;

/// Bytes that a disk writes completely or not at all.
const SECTOR: usize = 512;

/// The rows of a store and their journal in memory, shared by clones.
#[derive(Debug, Clone, Default)]
pub(super) struct SimulatedDisk(Arc<Mutex<State>>);

/// One of the two files of a disk.
#[derive(Debug)]
pub(super) struct SimulatedFile(SimulatedDisk, usize);

/// The contents of the rows and of the journal.
type Contents = [Vec<u8>; 2];

#[derive(Default)]
struct State {
    contents: Contents,
    log: Vec<Event>,
    /// The progress of the emulator.
    progress: Option<Progress>,
    fault: Fault,
}

/// The operations that a disk refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Fault {
    #[default]
    None,
    /// Writes: the disk is full.
    Full,
    /// Writes that make this file longer than this: the disk is full.
    FullBeyond(usize, u64),
    /// Synchronizations.
    Unsynchronized,
}

/// Returns how many changes are committed, and how many operations have ended.
pub(super) type Progress = Arc<dyn Fn() -> (u64, usize) + Send + Sync>;

/// An operation on a file of a disk, with the progress of the emulator just before it.
#[derive(Debug, Clone)]
struct Event {
    file: usize,
    kind: Kind,
    committed: u64,
    done: usize,
}

#[derive(Debug, Clone)]
enum Kind {
    Write(u64, Vec<u8>),
    Length(u64),
    Synchronize,
    /// The history ends.
    End,
}

/// A crash just before an operation on a file.
#[derive(Debug)]
pub(super) struct Crash {
    /// The disk after the crash.
    pub(super) disk: SimulatedDisk,
    /// How many changes were committed.
    pub(super) committed: u64,
    /// How many operations had ended.
    pub(super) done: usize,
}

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("State").finish_non_exhaustive()
    }
}

/// The file of the rows.
pub(super) const ROWS: usize = 0;
/// The file of the journal.
pub(super) const JOURNAL: usize = 1;

impl SimulatedDisk {
    /// The file of the rows, and that of the journal.
    pub(super) fn files(&self) -> [SimulatedFile; 2] {
        [ROWS, JOURNAL].map(|file| SimulatedFile(self.clone(), file))
    }

    pub(super) fn set_fault(&self, fault: Fault) {
        self.0.lock().fault = fault;
    }

    /// The length of the journal.
    pub(crate) fn journal_length(&self) -> usize {
        self.0.lock().contents[1].len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().contents.iter().all(Vec::is_empty)
    }

    /// Returns another disk of the same contents.
    pub(super) fn copy(&self) -> Self {
        Self::of(self.0.lock().contents.clone())
    }

    /// Records operations from now on; everything written before is safe.
    pub(super) fn begin_log(&self, progress: Progress) {
        let mut state = self.0.lock();
        state.log.clear();
        state.progress = Some(progress);
    }

    /// Calls `each` for every possible crash since the contents were `before`, each with one of its possible outcomes.
    pub(super) fn crashes(&self, before: &Self, rng: &mut SeededRng, mut each: impl FnMut(Crash)) {
        self.note(0, Kind::End);
        let log = mem::take(&mut self.0.lock().log);
        let mut safe = before.0.lock().contents.clone();
        let mut not_safe: Vec<&Event> = Vec::new();
        for event in &log {
            let mut contents = safe.clone();
            let lost = Lost::random(rng);
            for event in &not_safe {
                lost.apply(&mut contents[event.file], &event.kind, rng);
            }
            each(Crash {
                disk: Self::of(contents),
                committed: event.committed,
                done: event.done,
            });
            if !matches!(event.kind, Kind::Synchronize) {
                not_safe.push(event);
                continue;
            }
            for own in not_safe.extract_if(.., |other| other.file == event.file) {
                own.kind.apply(&mut safe[own.file]);
            }
        }
    }

    fn of(contents: Contents) -> Self {
        let state = State {
            contents,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn note(&self, file: usize, kind: Kind) {
        let progress = self.0.lock().progress.clone();
        // It reads the store, which may be writing.
        let Some((committed, done)) = progress.map(|progress| progress()) else {
            return;
        };
        self.0.lock().log.push(Event {
            file,
            kind,
            committed,
            done,
        });
    }
}

impl SimulatedFile {
    fn change(&self, kind: Kind) -> io::Result<()> {
        let Self(disk, file) = self;
        let fault = disk.0.lock().fault;
        let is_full = match fault {
            Fault::Full => true,
            Fault::FullBeyond(other, length) => {
                other == *file && kind.end() > length.max(self.len()?)
            }
            Fault::None | Fault::Unsynchronized => false,
        };
        if is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        kind.apply(&mut disk.0.lock().contents[*file]);
        disk.note(*file, kind);
        Ok(())
    }
}

impl Kind {
    /// The length that a file has at least.
    fn end(&self) -> u64 {
        match self {
            Self::Write(offset, bytes) => offset + bytes.len() as u64,
            Self::Length(length) => *length,
            Self::Synchronize | Self::End => 0,
        }
    }

    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(offset, bytes) => write(content, *offset, bytes),
            Self::Length(length) => content.resize(size(*length), 0),
            Self::Synchronize | Self::End => {}
        }
    }
}

/// The fate of unsynchronized writes.
#[derive(Debug, Clone, Copy)]
enum Lost {
    /// All are kept: the process was killed.
    Nothing,
    Everything,
    /// Some are kept, in any order.
    Some,
    /// Some are kept in part.
    Parts,
}

impl Lost {
    fn random(rng: &mut SeededRng) -> Self {
        let all = [
            Self::Nothing,
            Self::Everything,
            Self::Some,
            Self::Parts,
            Self::Parts,
        ];
        all[rng.below(all.len())]
    }

    fn apply(self, content: &mut Vec<u8>, kind: &Kind, rng: &mut SeededRng) {
        let is_there = match self {
            Self::Nothing => true,
            Self::Everything => false,
            Self::Some | Self::Parts => rng.one_in(2),
        };
        match (self, kind) {
            (Self::Parts, Kind::Write(offset, bytes)) if rng.one_in(2) => {
                for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                    if rng.one_in(2) {
                        write(content, offset + (number * SECTOR) as u64, sector);
                    }
                }
            }
            _ if is_there => kind.apply(content),
            _ => {}
        }
    }
}

impl StorageBackend for SimulatedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.0.lock().contents[self.1].len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.0.lock();
        let from = state.contents[self.1].get(size(offset)..);
        let part = from.unwrap_or_default().get(..out.len());
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(Kind::Length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        let Self(disk, file) = self;
        if disk.0.lock().fault == Fault::Unsynchronized {
            return Err(io::Error::other("the disk is broken"));
        }
        disk.note(*file, Kind::Synchronize);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Kind::Write(offset, data.to_vec()))
    }
}

fn write(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (from, to) = (size(offset), size(offset) + bytes.len());
    if content.len() < to {
        content.resize(to, 0);
    }
    content[from..to].copy_from_slice(bytes);
}

fn size(length: u64) -> usize {
    usize::try_from(length).expect("it is in memory")
}
