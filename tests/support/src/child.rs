//! A test that needs a process of its own starts itself again, in another role.

use std::env;
use std::process::Command;

const ROLE: &str = "SERVICEBUS_HARNESS_TEST_CHILD";

/// Whether this process was started by [`again`].
pub fn is_child() -> bool {
    env::var_os(ROLE).is_some()
}

/// The test of this name in a process of its own, where [`is_child`].
pub fn again(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, "1");
    command
}

/// Runs what the child has to do.
pub fn play(part: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(part);
}
