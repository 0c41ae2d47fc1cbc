//! The projects of `examples/` in other languages: they start the emulator themselves, and their tests pass.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::built;
use crate::driver::run_within;
use crate::environment::{self, Language};

/// For a whole project, which runs its tests one by one.
const DEADLINE: Duration = Duration::from_secs(180);

#[tokio::test]
async fn the_tests_of_the_pytest_project_pass() {
    let Some(environment) = environment::ready(Language::Python).await else {
        return;
    };
    let wanted = fs::read_to_string(project("pytest").join("requirements.txt")).unwrap();
    let scripts = environment::scripts(Language::Python);
    let installed = fs::read_to_string(scripts.join("requirements.txt")).unwrap();
    for package in wanted.lines() {
        let is_installed = installed.lines().any(|line| line == package);
        assert!(is_installed, "tests/sdks/python has not {package}");
    }
    let mut command = Command::new(environment::python(&environment));
    command
        .args(["-m", "pytest", "-p", "no:cacheprovider"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
        .current_dir(project("pytest"));
    let printed = run_within(DEADLINE, command, "the pytest project").await;
    assert!(printed.contains("5 passed"), "{printed}");
}

#[tokio::test]
async fn the_tests_of_the_vitest_project_pass() {
    let Some(environment) = environment::ready(Language::JavaScript).await else {
        return;
    };
    let wanted = packages(&project("vitest"));
    let installed = packages(&environment::scripts(Language::JavaScript));
    for package in wanted {
        assert!(
            installed.contains(&package),
            "tests/sdks/javascript has not {package:?}"
        );
    }
    let copy = Copied::to(&environment);
    let mut command = Command::new("node");
    command
        .arg(environment.join("node_modules/vitest/vitest.mjs"))
        .args(["run", "--no-color"])
        .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
        .current_dir(&copy.0);
    let printed = run_within(DEADLINE, command, "the vitest project").await;
    assert!(printed.contains("5 passed"), "{printed}");
}

/// The project's files beside the packages of an environment, for these are looked for above a file only.
struct Copied(PathBuf);

impl Copied {
    fn to(environment: &Path) -> Self {
        let directory = environment.join(format!("vitest-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let copied = Self(directory);
        for file in fs::read_dir(project("vitest")).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                fs::copy(file.path(), copied.0.join(file.file_name())).unwrap();
            }
        }
        copied
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // What is left lies in the target directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The names and versions that a `package.json` asks for.
fn packages(directory: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(directory.join("package.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kinds = ["dependencies", "devDependencies"];
    let objects = kinds.iter().filter_map(|kind| file[kind].as_object());
    let packages = objects.flatten();
    packages
        .map(|(name, version)| (name.clone(), version.to_string()))
        .collect()
}

fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name)
}
