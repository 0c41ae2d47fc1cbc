//! A full disk: what clients send is refused, and what follows from messages that are there is written into a reserve.
//!
//! Space is set aside while there is some. The first write that finds none releases it and goes on, and from then on nothing is
//! accepted. Where that is used up, too, the write waits until there is room: what it was to tell is told then, and nothing is
//! torn. Once a reserve can be set aside again, sends are accepted.

use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a write waits before it looks for room again.
const RETRY: Duration = Duration::from_millis(100);
/// How long it takes at least from one attempt to set a reserve aside to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// Space that is set aside.
pub(crate) trait Reserve: Debug + Send {
    /// Sets it aside, where it is not.
    fn fill(&mut self) -> io::Result<()>;

    /// Gives it up; says whether there was any.
    fn release(&mut self) -> bool;
}

/// Nothing is set aside.
impl Reserve for () {
    fn fill(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn release(&mut self) -> bool {
        false
    }
}

/// Whether there is room on a disk.
#[derive(Debug)]
pub(crate) struct Room {
    is_full: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    reserve: Box<dyn Reserve>,
    is_filled: bool,
    tried_at: Option<Instant>,
    /// Whether a write that finds no room waits for it: not before anything is served, and not when the emulator ends.
    is_patient: bool,
}

impl Room {
    pub(crate) fn new(reserve: Box<dyn Reserve>) -> Self {
        Self {
            is_full: AtomicBool::new(false),
            state: Mutex::new(State {
                reserve,
                is_filled: false,
                tried_at: None,
                is_patient: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Whether what clients send can be written.
    pub(crate) fn is_there(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }

    /// Sets the reserve aside where that is not done, about once a second at most; blocks while it writes.
    pub(super) fn fill(&self) {
        let mut state = self.state.lock();
        if state.is_filled || state.tried_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        state.tried_at = Some(Instant::now());
        match state.reserve.fill() {
            Ok(()) => {
                state.is_filled = true;
                if self.is_full.swap(false, Ordering::Relaxed) {
                    tracing::info!(
                        "the disk of the data directory has room again: sends are accepted"
                    );
                }
            }
            Err(error) if is_no_room(&error) => self.tell_full(),
            // Without a reserve a full disk is told at the first write that finds no room.
            Err(error) => tracing::warn!(%error, "no space can be set aside in the data directory"),
        }
    }

    /// Whether writes may wait.
    pub(super) fn set_patient(&self, is_patient: bool) {
        self.state.lock().is_patient = is_patient;
        self.changed.notify_all();
    }

    /// A write has found no room: returns when it should try again, or the error where it should not.
    #[cfg(feature = "durable")]
    pub(super) fn find(&self, error: io::Error) -> io::Result<()> {
        let mut state = self.state.lock();
        self.tell_full();
        state.is_filled = false;
        if state.reserve.release() {
            return Ok(());
        }
        if !state.is_patient {
            return Err(error);
        }
        self.changed.wait_for(&mut state, RETRY);
        match state.is_patient {
            true => Ok(()),
            false => Err(error),
        }
    }

    fn tell_full(&self) {
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the disk of the data directory is full: sends are refused until there is room"
            );
        }
    }
}

/// Whether a write failed because there is no room for it. An error of another kind, and any of a synchronization, says nothing of
/// what is on the disk.
pub(super) fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
