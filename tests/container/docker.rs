//! The engine, by its command line: what a test must see, the harness should not tell it.

use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// Much longer than a container stays that is not needed.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs `docker` and returns what it printed; it must succeed.
pub(crate) fn docker(arguments: &[&str]) -> String {
    let output = try_docker(arguments);
    assert!(
        output.status.success(),
        "docker {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs `docker`, whatever comes of it.
pub(crate) fn try_docker(arguments: &[&str]) -> Output {
    let mut command = Command::new("docker");
    let output = command.args(arguments).output();
    output.unwrap_or_else(|error| panic!("the command `docker` cannot be run: {error}"))
}

/// The image under test.
pub(crate) fn image() -> String {
    let named = std::env::var("SERVICEBUS_EMULATOR_IMAGE");
    named.unwrap_or_else(|_| format!("servicebus-emulator:{}", env!("CARGO_PKG_VERSION")))
}

/// The ids of the containers of a test run, in whatever state.
pub(crate) fn containers_of(run: &str) -> Vec<String> {
    let name = format!("name=servicebus-emulator-{run}");
    let listed = docker(&["ps", "--all", "--quiet", "--filter", &name]);
    listed.lines().map(str::to_owned).collect()
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < TIMEOUT,
            "not within {TIMEOUT:?}: {what}"
        );
        thread::sleep(Duration::from_millis(100));
    }
}
