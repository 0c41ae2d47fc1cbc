//! Whose turn it is with what a machine has but once: the only loopback address, or a namespace that runs elsewhere.
//!
//! A turn is the lock of a file, which the system takes back from a process that dies, whatever became of it. It holds
//! between threads and processes of one machine. The file says who has it, for those who wait.

use std::{
    env,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::PathBuf,
    process, thread,
    time::{Duration, Instant},
};

use crate::text;

/// How long one waits for those before it: they may wait for locks and expiries to run their time.
const WITHIN: Duration = Duration::from_secs(600);
/// How long one waits without a word.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two attempts.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Nobody else has the place while this is there.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "its lock is what counts")] File);

/// Somebody who waits for a turn.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Where the turn is, as part of a sentence: `at 127.0.0.1`.
    place: String,
    lock: PathBuf,
    since: Instant,
    within: Duration,
    has_complained: bool,
}

impl Waiting {
    /// Starts to wait for a place: `at`, `127.0.0.1`.
    pub(crate) fn new(preposition: &str, name: &str) -> Self {
        let plain = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        Self {
            place: format!("{preposition} {name}"),
            lock: env::temp_dir().join(format!("servicebus-harness-{plain}.lock")),
            since: Instant::now(),
            within: WITHIN,
            has_complained: false,
        }
    }

    /// Waits for the turn. To be awaited where time is real.
    pub(crate) async fn take(mut self) -> Result<Turn, TurnError> {
        loop {
            match self.try_take()? {
                Some(turn) => return Ok(turn),
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Takes the turn if nobody has it; fails when that has been so for too long.
    pub(crate) fn try_take(&mut self) -> Result<Option<Turn>, TurnError> {
        let failed = |source| TurnError::Lock {
            place: self.place.clone(),
            lock: self.lock.clone(),
            source,
        };
        // Opened each time: whoever tidies up temporary files may have removed it.
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true).truncate(false);
        let mut file = options.open(&self.lock).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                // Only those who wait miss it.
                let _ = sign(&mut file);
                Ok(Some(Turn(file)))
            }
            Err(TryLockError::Error(source)) => Err(failed(source)),
            Err(TryLockError::WouldBlock) if self.since.elapsed() < self.within => {
                self.complain();
                Ok(None)
            }
            Err(TryLockError::WouldBlock) => Err(TurnError::Late {
                place: self.place.clone(),
                within: self.within,
                holder: self.holder(),
                lock: self.lock.clone(),
            }),
        }
    }

    /// Says once for whom it waits, because a test runner may lose its patience first.
    fn complain(&mut self) {
        if self.has_complained || self.since.elapsed() < PATIENCE {
            return;
        }
        self.has_complained = true;
        let (place, holder) = (&self.place, self.holder());
        eprintln!("servicebus-harness: waits for its turn {place}, which {holder} has");
    }

    fn holder(&self) -> String {
        // Some systems let nobody read what is locked.
        let signed = fs::read_to_string(&self.lock).unwrap_or_default();
        match signed.trim() {
            "" => "another process".to_owned(),
            signed => signed.replacen(&format!("{} ", own_name()), "this process ", 1),
        }
    }
}

/// Why there was no turn.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// Somebody has it and does not give it back.
    #[error(
        "no turn {place} within {}: {holder} has it, by the lock of {}",
        text::seconds(*within),
        lock.display()
    )]
    Late {
        /// Where the turn is.
        place: String,
        /// How long was waited.
        within: Duration,
        /// Who has it, as far as that is known.
        holder: String,
        /// The file whose lock is the turn.
        lock: PathBuf,
    },
    /// The file cannot be locked.
    #[error("cannot lock {} to be alone {place}: {source}", lock.display())]
    Lock {
        /// Where the turn is.
        place: String,
        /// The file whose lock is the turn.
        lock: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn sign(file: &mut File) -> io::Result<()> {
    let program = env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name());
    let program = program.unwrap_or_default().to_string_lossy();
    let thread = thread::current();
    let test = thread.name().unwrap_or("without a name");
    file.set_len(0)?;
    write!(file, "{} ({program}, thread {test})", own_name())
}

fn own_name() -> String {
    format!("process {}", process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StartError, address::random_number, remote::RemoteError};

    /// For a place of which no other test knows.
    fn waiting() -> Waiting {
        Waiting::new("at", &format!("a test's {:016x}", random_number()))
    }

    fn again(waiting: &Waiting) -> Waiting {
        Waiting {
            place: waiting.place.clone(),
            lock: waiting.lock.clone(),
            within: Duration::ZERO,
            ..*waiting
        }
    }

    #[test]
    fn one_at_a_time_has_the_turn() {
        let mut first = waiting();
        let turn = first.try_take().unwrap();
        assert!(turn.is_some());
        assert!(first.try_take().unwrap().is_none());
        drop(turn);
        assert!(first.try_take().unwrap().is_some());
        fs::remove_file(&first.lock).unwrap();
    }

    #[test]
    fn whoever_waits_in_vain_learns_who_has_it() {
        let mut first = waiting();
        let turn = first.try_take().unwrap();
        let error = again(&first).try_take().unwrap_err().to_string();
        let place = &first.place;
        let program = env::current_exe().unwrap();
        let program = program.file_name().unwrap().to_string_lossy();
        let test = "turn::tests::whoever_waits_in_vain_learns_who_has_it";
        assert_eq!(
            error,
            format!(
                "no turn {place} within 0 s: this process ({program}, thread {test}) has it, by the lock of {}",
                first.lock.display()
            )
        );
        first.place = "at 127.0.0.1".to_owned();
        fs::write(&first.lock, "process 1 (init)").unwrap();
        let error = StartError::Turn(again(&first).try_take().unwrap_err());
        assert_eq!(
            error.to_string(),
            format!(
                "no turn at 127.0.0.1 within 0 s: process 1 (init) has it, by the lock of {}; buses have no other address here: those of a process share one emulator, processes take turns, and buses of one test that cannot share one (of another mode, binary, seed or ports, or with keys or namespaces of their own) wait for each other in vain",
                first.lock.display()
            )
        );
        let error = RemoteError::Turn(again(&first).try_take().unwrap_err());
        let text = error.to_string();
        assert!(
            text.ends_with("; one bus of a machine at a time works there, and a test that holds two buses at once cannot run in this mode"),
            "{text}"
        );
        fs::write(&first.lock, "").unwrap();
        let error = again(&first).try_take().unwrap_err().to_string();
        assert!(error.contains(": another process has it, "), "{error}");
        fs::remove_file(&first.lock).unwrap();
        drop(turn);
    }

    #[test]
    fn a_file_that_cannot_be_locked_is_named() {
        let mut nowhere = waiting();
        nowhere.lock = PathBuf::from("/nowhere/at/all.lock");
        let error = nowhere.try_take().unwrap_err().to_string();
        let beginning = format!(
            "cannot lock /nowhere/at/all.lock to be alone {}: ",
            nowhere.place
        );
        assert!(error.starts_with(&beginning), "{error}");
    }
}
