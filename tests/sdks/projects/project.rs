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

pub(super) const PYTEST: Project = Project {
    name: "pytest",
    language: Language::Python,
};
pub(super) const VITEST: Project = Project {
    name: "vitest",
    language: Language::JavaScript,
};

#[derive(Clone, Copy)]
pub(super) struct Project {
    name: &'static str,
    language: Language,
}

/// The files of a project and the packages that it needs; the files are gone when it is dropped.
pub(super) struct Copied {
    project: Project,
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
        let environment = environment::ready(self.language).await?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", self.name, std::process::id());
        let copied = Copied {
            project: self,
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
        let file = match self.project.language {
            Language::Python | Language::Python714 | Language::Proton => "requirements.txt",
            Language::JavaScript | Language::JavaScriptNewestAmqp | Language::JavaScriptBeta => {
                "package.json"
            }
            Language::Go => "go.mod",
            Language::Java => "pom.xml",
            Language::Az | Language::Framework(_) => unreachable!("projects use SDKs"),
        };
        let installed = environment::scripts(self.project.language).join(file);
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
        let mut command = match self.project.language {
            Language::Python | Language::Python714 | Language::Proton => {
                let mut python = Command::new(environment::python(&self.environment));
                python.args(["-m", "pytest", "-p", "no:cacheprovider"]);
                python
            }
            Language::JavaScript | Language::JavaScriptNewestAmqp | Language::JavaScriptBeta => {
                let mut node = Command::new("node");
                node.arg(self.environment.join("node_modules/vitest/vitest.mjs"));
                node.args(["run", "--no-color"]);
                node
            }
            Language::Go => {
                let mut go = Command::new("go");
                go.args(["test", "./..."]);
                go
            }
            Language::Java => {
                let mut maven = Command::new("mvn");
                maven.args(["--quiet", "--batch-mode", "test"]);
                maven
            }
            Language::Az | Language::Framework(_) => unreachable!("projects use SDKs"),
        };
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

/// What a file asks for, with the versions: a line each, of a `package.json` those of both kinds of dependencies.
fn packages(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let Ok(parsed) = serde_json::from_str::<serde_json::Value>(&text) else {
        return text.lines().map(str::to_owned).collect();
    };
    let kinds = ["dependencies", "devDependencies"];
    let objects = kinds.iter().filter_map(|kind| parsed[kind].as_object());
    let packages = objects.flatten();
    packages
        .map(|(name, version)| format!("{name} {version}"))
        .collect()
}
