//! The lock of a resource that a machine has once: the only loopback address, or a namespace that runs elsewhere.
//!
//! The system releases the lock of a file when its process ends. The lock excludes threads and processes of one machine. The
//! file names the holder.

use std::{
    env,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    net::Ipv4Addr,
    path::PathBuf,
    process, thread,
    time::{Duration, Instant},
};

use crate::{error::Error, text};

/// How long to wait for the lock: earlier tests may wait for real lock durations and expiries.
const WITHIN: Duration = Duration::from_secs(600);
/// How long to wait before reporting the wait.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two attempts.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// A held lock, which excludes other processes and threads.
#[derive(Debug)]
pub(crate) struct FileLock(#[expect(dead_code, reason = "its lock is what counts")] File);

/// An attempt to take the lock.
#[derive(Debug)]
pub(crate) struct PendingLock {
    /// The place that the lock protects, as part of a sentence: `at 127.0.0.1`.
    scope: String,
    /// Creates the error from a sentence about the lock.
    failed: fn(String) -> Error,
    lock: PathBuf,
    since: Instant,
    within: Duration,
    has_warned: bool,
}

impl PendingLock {
    /// Starts to wait for the only address at which emulators listen.
    pub(crate) fn at(address: Ipv4Addr) -> Self {
        Self::new("at", &address.to_string(), |sentence| {
            Error::start(format!(
                "{sentence}; no other address is available: the namespaces of a process share one emulator, one process at a time uses it, and a test cannot hold two namespaces that cannot share it (of another mode, binary, seed or ports, or with keys or several namespaces of their own)"
            ))
        })
    }

    /// Starts to wait for a namespace that runs elsewhere.
    pub(crate) fn in_namespace(host: &str) -> Self {
        Self::new("in the namespace", host, |sentence| {
            Error::namespace(format!(
                "{sentence}; one `ServiceBus` of a machine at a time uses the namespace, and a test that holds two at once starts them with `.prefixed()`"
            ))
        })
    }

    fn new(preposition: &str, name: &str, failed: fn(String) -> Error) -> Self {
        let plain = name.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
        Self {
            scope: format!("{preposition} {name}"),
            failed,
            lock: env::temp_dir().join(format!("servicebus-harness-{plain}.lock")),
            since: Instant::now(),
            within: WITHIN,
            has_warned: false,
        }
    }

    /// Waits for the lock. Must run on a runtime with real time.
    pub(crate) async fn take(mut self) -> Result<FileLock, Error> {
        loop {
            match self.try_take()? {
                Some(file_lock) => return Ok(file_lock),
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Takes the lock if it is free; returns an error after [`WITHIN`].
    pub(crate) fn try_take(&mut self) -> Result<Option<FileLock>, Error> {
        let failed = |error: io::Error| {
            let (lock, scope) = (self.lock.display(), &self.scope);
            (self.failed)(format!(
                "cannot lock {lock} for exclusive use {scope}: {error}"
            ))
        };
        // Opened at each attempt, because a cleanup of temporary files may have removed the file.
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true).truncate(false);
        let mut file = options.open(&self.lock).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                // The name only serves messages of other processes.
                let _ = write_holder(&mut file);
                Ok(Some(FileLock(file)))
            }
            Err(TryLockError::Error(source)) => Err(failed(source)),
            Err(TryLockError::WouldBlock) if self.since.elapsed() < self.within => {
                self.warn_once();
                Ok(None)
            }
            Err(TryLockError::WouldBlock) => Err((self.failed)(format!(
                "no lock {} within {}: {} holds it, by {}",
                self.scope,
                text::seconds(self.within),
                self.holder(),
                self.lock.display()
            ))),
        }
    }

    /// Reports once which process it waits for, because a test runner may time out first.
    fn warn_once(&mut self) {
        if self.has_warned || self.since.elapsed() < TIMEOUT {
            return;
        }
        self.has_warned = true;
        let (scope, holder) = (&self.scope, self.holder());
        eprintln!("servicebus-harness: waits for the lock {scope}, which {holder} holds");
    }

    fn holder(&self) -> String {
        // Some systems do not let other processes read a locked file.
        let signed = fs::read_to_string(&self.lock).unwrap_or_default();
        match signed.trim() {
            "" => "another process".to_owned(),
            signed => signed.replacen(&format!("{} ", this_process()), "this process ", 1),
        }
    }
}

fn write_holder(file: &mut File) -> io::Result<()> {
    let program = env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name());
    let program = program.unwrap_or_default().to_string_lossy();
    let thread = thread::current();
    let test = thread.name().unwrap_or("without a name");
    file.set_len(0)?;
    write!(file, "{} ({program}, thread {test})", this_process())
}

fn this_process() -> String {
    format!("process {}", process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::random_number;

    /// For a place that no other test uses.
    fn waiting() -> PendingLock {
        let name = format!("a test's {:016x}", random_number());
        PendingLock::new("at", &name, Error::start)
    }

    fn again(waiting: &PendingLock) -> PendingLock {
        PendingLock {
            scope: waiting.scope.clone(),
            lock: waiting.lock.clone(),
            within: Duration::ZERO,
            ..*waiting
        }
    }

    #[test]
    fn one_process_at_a_time_holds_the_lock() {
        let mut first = waiting();
        let file_lock = first.try_take().unwrap();
        assert!(file_lock.is_some());
        assert!(first.try_take().unwrap().is_none());
        drop(file_lock);
        assert!(first.try_take().unwrap().is_some());
        fs::remove_file(&first.lock).unwrap();
    }

    #[test]
    fn a_timed_out_wait_names_the_holder() {
        let mut first = waiting();
        let file_lock = first.try_take().unwrap();
        let error = again(&first).try_take().unwrap_err().to_string();
        let scope = &first.scope;
        let program = env::current_exe().unwrap();
        let program = program.file_name().unwrap().to_string_lossy();
        let test = "file_lock::tests::a_timed_out_wait_names_the_holder";
        assert_eq!(
            error,
            format!(
                "no lock {scope} within 0 s: this process ({program}, thread {test}) holds it, by {}",
                first.lock.display()
            )
        );
        first.scope = "at 127.0.0.1".to_owned();
        fs::write(&first.lock, "process 1 (init)").unwrap();
        first.failed = PendingLock::at(Ipv4Addr::LOCALHOST).failed;
        let error = again(&first).try_take().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "no lock at 127.0.0.1 within 0 s: process 1 (init) holds it, by {}; no other address is available: the namespaces of a process share one emulator, one process at a time uses it, and a test cannot hold two namespaces that cannot share it (of another mode, binary, seed or ports, or with keys or several namespaces of their own)",
                first.lock.display()
            )
        );
        first.failed = PendingLock::in_namespace("h").failed;
        let text = again(&first).try_take().unwrap_err().to_string();
        assert!(
            text.ends_with("; one `ServiceBus` of a machine at a time uses the namespace, and a test that holds two at once starts them with `.prefixed()`"),
            "{text}"
        );
        fs::write(&first.lock, "").unwrap();
        let error = again(&first).try_take().unwrap_err().to_string();
        assert!(error.contains(": another process holds it, "), "{error}");
        fs::remove_file(&first.lock).unwrap();
        drop(file_lock);
    }

    #[test]
    fn a_file_that_cannot_be_locked_is_named() {
        let mut nowhere = waiting();
        nowhere.lock = PathBuf::from("/nowhere/at/all.lock");
        let error = nowhere.try_take().unwrap_err().to_string();
        let beginning = format!(
            "cannot lock /nowhere/at/all.lock for exclusive use {}: ",
            nowhere.scope
        );
        assert!(error.starts_with(&beginning), "{error}");
    }
}
