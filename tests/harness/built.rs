//! Programs of this workspace that tests run.
//!
//! A plain `cargo test` has built them before any test runs. A run of one test target has not: then they are
//! built here, so that a test never meets an old one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::SystemTime,
};

/// The emulator's binary.
pub(crate) fn emulator() -> PathBuf {
    let name = format!("servicebus-emulator{}", env::consts::EXE_SUFFIX);
    let path = directory().join(name);
    let wanted = [
        "--package",
        "servicebus-emulator",
        "--bin",
        "servicebus-emulator",
    ];
    build_if_old(&path, &wanted);
    path
}

/// An example of the root package.
pub(crate) fn example(name: &str) -> PathBuf {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let path = directory().join("examples").join(file);
    build_if_old(&path, &["--package", "servicebus-tests", "--example", name]);
    path
}

/// Where cargo puts what it builds in the profile of this test.
fn directory() -> PathBuf {
    let executable = env::current_exe().unwrap();
    let deps = executable.parent().unwrap();
    deps.parent().unwrap().to_owned()
}

fn build_if_old(path: &Path, wanted: &[&str]) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    if changed(path) >= changed(&env::current_exe().unwrap()) {
        return;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet"]).args(wanted);
    if directory().ends_with("release") {
        build.arg("--release");
    }
    let built = build.status().unwrap();
    assert!(built.success(), "cargo could not build {}", path.display());
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
