//! Programs of this workspace that tests run.
//!
//! A plain `cargo test` has built them before any test runs; a run of one test target has not. So each build of the tests
//! runs cargo once, and a test never uses a program older than itself.
//!
//! A test that needs a process of its own starts its own executable in another role.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;
use std::{env, fs, thread};

/// Returns the emulator's binary.
pub fn emulator() -> PathBuf {
    program("servicebus-emulator")
}

/// Returns the path of a program relative to the emulator's: `examples/hello`.
pub fn program(name: &str) -> PathBuf {
    let path = directory().join(format!("{name}{}", env::consts::EXE_SUFFIX));
    build_once(&path);
    path
}

/// Returns the output directory of cargo for the profile of this test.
fn directory() -> PathBuf {
    let executable = env::current_exe().unwrap();
    let deps = executable.parent().unwrap();
    deps.parent().unwrap().to_owned()
}

fn build_once(wanted: &Path) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    let stamp = directory().join("harness-programs-built");
    let is_recent = changed(&stamp) > changed(&env::current_exe().unwrap());
    if is_recent && wanted.exists() {
        return;
    }
    build();
    assert!(wanted.exists(), "cargo did not build {}", wanted.display());
    fs::write(stamp, "").unwrap();
}

fn build() {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let is_release = directory().ends_with("release");
    let mut build = Command::new(cargo);
    // With the profile and the packages of `cargo test`, so that cargo rebuilds nothing.
    build.args([
        "build",
        "--quiet",
        "--workspace",
        "--bin",
        "servicebus-emulator",
        "--examples",
        "--profile",
        if is_release { "release" } else { "test" },
    ]);
    // The target directory of these tests, also if set by `--target-dir`.
    build.arg("--target-dir").arg(directory().parent().unwrap());
    // Build scripts depend on cargo's variables about the package under test. With them cargo would rebuild those crates and
    // all their dependents, once for the tests and once here, each time.
    for (name, _) in env::vars_os() {
        let rendered = name.to_string_lossy();
        if rendered.starts_with("CARGO_PKG_") || rendered.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&name);
        }
    }
    assert!(build.status().unwrap().success(), "cargo failed");
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

const CHILD_VARIABLE: &str = "SERVICEBUS_HARNESS_TEST_CHILD";

/// Returns whether [`rerun`] started this process.
pub fn is_child() -> bool {
    env::var_os(CHILD_VARIABLE).is_some()
}

/// Returns the command that runs the test of this thread in a process of its own, where [`is_child`] is true.
pub fn rerun() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", &test(), "--nocapture"])
        .env(CHILD_VARIABLE, "1");
    command
}

/// Returns the name of the test, by which the test runner names its thread.
pub fn test() -> String {
    let thread = thread::current();
    thread.name().expect("it is a test").to_owned()
}

/// Runs the part of the child.
pub fn run_child(part: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(part);
}
