//! Whose turn it is in a namespace, because entities have their own names there.
//!
//! A lock of a file that the system takes back from a process that dies, whatever became of it. It holds between
//! threads and processes of one machine; two machines need two namespaces.

use std::{
    env,
    fs::{File, OpenOptions, TryLockError},
    time::{Duration, Instant},
};

use super::RemoteError;

/// How long a bus waits for those before it: they may wait for locks and expiries to run their time.
const WITHIN: Duration = Duration::from_secs(600);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Nobody else has the namespace while this is there.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "its lock is what counts")] File);

/// Waits for a turn.
pub(super) async fn take(host: &str) -> Result<Turn, RemoteError> {
    let plain = host.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let lock = env::temp_dir().join(format!("servicebus-harness-{plain}.lock"));
    let failed = |source| RemoteError::Turn {
        lock: lock.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    let file = options.create(true).write(true).truncate(false).open(&lock);
    let file = file.map_err(failed)?;
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Turn(file)),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) if since.elapsed() >= WITHIN => {
                return Err(RemoteError::NoTurn {
                    host: host.to_owned(),
                    within: WITHIN,
                    lock,
                });
            }
            Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
        }
    }
}
