//! A project of `examples/`, copied to where a test may add to it: beside the packages of its language, for Node.js looks
//! for them above a file only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::process::Command;

use crate::built;
use crate::environment::{self, Language};

const LANGUAGE: Language = Language::JavaScript;
pub(super) const VITEST: Project = Project { name: "vitest" };

#[derive(Clone, Copy)]
pub(super) struct Project {
    name: &'static str,
}

/// The files of a project and the packages that it needs; the files are gone when it is dropped.
pub(super) struct Copied {
    environment: PathBuf,
    directory: PathBuf,
}

impl Project {
    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// A copy of its files, or `None` where its language may be skipped.
    pub(super) async fn copied(self) -> Option<Copied> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let environment = environment::ready(LANGUAGE).await?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", self.name, std::process::id());
        let copied = Copied {
            directory: environment.join(name),
            environment,
        };
        fs::create_dir(&copied.directory).unwrap();
        for file in fs::read_dir(self.source()).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                fs::copy(file.path(), copied.directory.join(file.file_name())).unwrap();
            }
        }
        Some(copied)
    }

    fn source(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples")
            .join(self.name)
    }
}

impl Copied {
    /// The packages that the project asks for are among those of the environment, in the same versions.
    pub(super) fn has_its_packages(&self) {
        let file = "package.json";
        let installed = environment::scripts(LANGUAGE).join(file);
        let installed = packages(&installed);
        for package in packages(&self.directory.join(file)) {
            assert!(
                installed.contains(&package),
                "tests/sdks/{file} has not {package}"
            );
        }
    }

    /// The command that runs all tests of the project.
    pub(super) fn run_all(&self) -> Command {
        let mut command = Command::new("node");
        command.arg(self.environment.join("node_modules/vitest/vitest.mjs"));
        command.args(["run", "--no-color"]);
        command
            .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        command
    }

    /// The command that runs a file of tests that is added.
    pub(super) fn run_with(&self, file: &str, tests: &str) -> Command {
        fs::write(self.directory.join(file), tests).unwrap();
        let mut command = self.run_all();
        command.arg(file);
        command
    }

    /// The line of a file, as soon as it has been written.
    pub(super) async fn read(&self, file: &str) -> String {
        let file = self.directory.join(file);
        loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if let Some(line) = text.strip_suffix('\n') {
                return line.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // What is left lies in the target directory.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What a `package.json` asks for, with the versions: the dependencies of both kinds.
fn packages(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kinds = ["dependencies", "devDependencies"];
    let objects = kinds.iter().filter_map(|kind| parsed[kind].as_object());
    let packages = objects.flatten();
    packages
        .map(|(name, version)| format!("{name} {version}"))
        .collect()
}
