//! A full disk: sends are refused, and changes that follow from stored messages are written into a reserve.
//!
//! A file reserves space. The first write that finds the disk full deletes it and is tried again; from then on sends are refused.
//! When the reserve is used up, too, writes wait for space, and so do the answers to clients. Once the reserve can be allocated
//! again, sends are accepted.

use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a write that found the disk full waits before it is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// The shortest time between two attempts to allocate the reserve.
const RESERVE_INTERVAL: Duration = Duration::from_secs(1);

/// Space that is allocated for a full disk.
pub(crate) trait Reserve: Debug + Send {
    /// Allocates the space unless it is allocated.
    fn allocate(&mut self) -> io::Result<()>;

    /// Frees the space; returns whether any was allocated.
    fn release(&mut self) -> bool;
}

/// No reserve.
impl Reserve for () {
    fn allocate(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn release(&mut self) -> bool {
        false
    }
}

/// Whether a disk has free space.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    is_full: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    reserve: Box<dyn Reserve>,
    is_allocated: bool,
    tried_at: Option<Instant>,
    /// The error of the last attempt, which is logged once.
    error: Option<String>,
    /// Whether a write waits while the disk is full: neither before namespaces are served nor when the emulator ends.
    may_wait: bool,
}

impl State {
    /// Whether the reserve was not tried just before.
    fn may_try(&self) -> bool {
        (self.tried_at).is_none_or(|at| at.elapsed() >= RESERVE_INTERVAL)
    }
}

impl DiskSpace {
    pub(crate) fn new(reserve: Box<dyn Reserve>) -> Self {
        Self {
            is_full: AtomicBool::new(false),
            state: Mutex::new(State {
                reserve,
                is_allocated: false,
                tried_at: None,
                error: None,
                may_wait: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Whether sends are accepted.
    pub(crate) fn is_available(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }

    /// Allocates the reserve unless it is allocated or was tried just before; blocks while it is written.
    pub(crate) fn fill_reserve(&self) {
        let mut state = self.state.lock();
        if state.is_allocated || !state.may_try() {
            return;
        }
        state.tried_at = Some(Instant::now());
        match state.reserve.allocate() {
            Ok(()) => {
                state.is_allocated = true;
                state.error = None;
                if self.is_full.swap(false, Ordering::Relaxed) {
                    tracing::info!(
                        "the disk of the data directory has free space again: sends are accepted"
                    );
                }
            }
            Err(error) if is_disk_full(&error) => self.report_full(),
            // Without a reserve the first write that finds the disk full reports it.
            Err(error) => {
                let error = Some(error.to_string());
                if state.error != error {
                    tracing::warn!(error, "cannot reserve space in the data directory");
                    state.error = error;
                }
            }
        }
    }

    /// Whether the disk is full and the reserve may be tried again: space should be freed before.
    pub(crate) fn is_retry_due(&self) -> bool {
        !self.is_available() && self.state.lock().may_try()
    }

    pub(crate) fn set_may_wait(&self, may_wait: bool) {
        self.state.lock().may_wait = may_wait;
        self.changed.notify_all();
    }

    /// Returns when a write that found the disk full should be tried again, or its error if it should not.
    #[cfg(feature = "durable")]
    pub(super) fn wait(&self, error: io::Error) -> io::Result<()> {
        let mut state = self.state.lock();
        self.report_full();
        state.is_allocated = false;
        if state.reserve.release() {
            return Ok(());
        }
        if !state.may_wait {
            return Err(error);
        }
        self.changed.wait_for(&mut state, RETRY);
        match state.may_wait {
            true => Ok(()),
            false => Err(error),
        }
    }

    fn report_full(&self) {
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the disk of the data directory is full: sends are refused until space is free"
            );
        }
    }
}

/// Whether a write may be tried again: after another error, and after any of a synchronization, the content of the disk is unknown.
pub(super) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
