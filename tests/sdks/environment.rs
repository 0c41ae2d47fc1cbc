//! The environments the scripts run in: an interpreter, the pinned SDK and what runs tests, under `target/sdks`.
//!
//! The test that needs one first makes it, under a file lock, since tests run in parallel and, with
//! nextest, in processes of their own. A stamp with the text of the pins is written last: an
//! environment that is half made, or made from other pins, is made anew.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::dotnet;
use crate::frameworks::environments::{Framework, make_framework, make_go_cloud, make_shop};

/// An installer that takes longer is stuck.
const INSTALL_DEADLINE: Duration = Duration::from_secs(900);
/// How often an environment is made before it is given up, and how long after one another: a registry may be out of
/// reach for a moment.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(10);

/// A language whose SDK is driven.
#[derive(Clone, Copy)]
pub(crate) enum Language {
    /// Python, with a virtual environment of its own.
    Python,
    /// The same with the SDK's 7.14, which does not wait for the answers to settlements.
    Python714,
    /// Python with `azure-cli`, which is large.
    #[cfg_attr(
        not(feature = "matrices"),
        expect(dead_code, reason = "only the matrices need it")
    )]
    Az,
    /// Python with Proton, which is built from source.
    Proton,
    /// JavaScript on Node.js, with a `node_modules` of its own.
    JavaScript,
    /// The same with the newest `@azure/core-amqp`, as an application has it whose lock file is newer than the SDK.
    JavaScriptNewestAmqp,
    /// The beta of JavaScript's SDK that deletes messages in batches.
    JavaScriptBeta,
    /// Go: the program itself, built.
    Go,
    /// Java: the program itself, compiled, beside the SDK's libraries.
    Java,
    /// .NET: the program itself, compiled, beside the SDK's assemblies.
    DotNet,
    /// JMS, in Java: the same, for `jakarta.jms`.
    Jms,
    /// The same for `javax.jms`.
    JmsJavax,
    /// What runs on top of an SDK.
    Framework(Framework),
}

/// The directory of a language's environment, made if need be; `None` where it may be skipped.
///
/// # Panics
///
/// Panics with what to install when the environment cannot be made.
pub(crate) async fn ready(language: Language) -> Option<PathBuf> {
    if let Language::DotNet = language
        && !cfg!(all(target_os = "linux", target_arch = "x86_64"))
    {
        note(language, "skipped: the packages are for Linux on x86-64");
        return None;
    }
    if is_optional(language) {
        note(language, "skipped: named in SERVICEBUS_SKIP_SDKS");
        return None;
    }
    let directory = sdks_directory().join(language.name());
    let pins = language.made_from();
    if is_made(&directory, &pins) {
        return Some(directory);
    }
    let lock = lock(language).await;
    if !is_made(&directory, &pins) {
        note(language, "making the environment; this happens once");
        make(language, &directory).await;
        fs::write(stamp(&directory), pins).expect("the environment can be stamped");
        note(language, "the environment is ready");
    }
    drop(lock);
    Some(directory)
}

/// The Python interpreter of an environment.
pub(crate) fn python(environment: &Path) -> PathBuf {
    if cfg!(windows) {
        environment.join("Scripts").join("python.exe")
    } else {
        environment.join("bin").join("python")
    }
}

/// Node.js with the SDK, once that is there; `None` where it may be skipped.
pub(crate) async fn node(language: Language) -> Option<Command> {
    let environment = ready(language).await?;
    let mut command = Command::new("node");
    command.env("NODE_PATH", environment.join("node_modules"));
    Some(command)
}

/// Runs the module in a directory.
pub(crate) fn go_run(directory: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .args(["run", "-mod=readonly", "-buildvcs=false", "."])
        .current_dir(directory);
    command
}

/// The program of the cases in Go.
pub(crate) fn go(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "cases.exe" } else { "cases" })
}

/// Where the scripts and pins are.
pub(crate) fn scripts(language: Language) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join("sdks")
        .join(match language {
            Language::Python714 => Language::Python.name().into(),
            Language::JavaScriptNewestAmqp | Language::JavaScriptBeta => {
                Language::JavaScript.name().into()
            }
            Language::Jms | Language::JmsJavax => "jms".into(),
            Language::Framework(Framework::Shop) => Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("examples")
                .join("spring"),
            Language::Framework(framework) => Path::new("frameworks").join(framework.name()),
            other @ (Language::Python
            | Language::Az
            | Language::Proton
            | Language::JavaScript
            | Language::Go
            | Language::Java
            | Language::DotNet) => other.name().into(),
        })
}

impl Language {
    fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Python714 => "python-7.14",
            Self::Az => "az",
            Self::Proton => "proton",
            Self::JavaScript => "javascript",
            Self::JavaScriptNewestAmqp => "javascript-newest-amqp",
            Self::JavaScriptBeta => "javascript-beta",
            Self::Go => "go",
            Self::Java => "java",
            Self::DotNet => "dotnet",
            Self::Jms => "java-jms",
            Self::JmsJavax => "java-jms-javax",
            Self::Framework(framework) => framework.name(),
        }
    }

    /// What an environment is made from: the text of the pins, and of the sources where they are built.
    fn made_from(self) -> String {
        let mut files = vec![self.pins()];
        match self {
            Self::Go => {
                files.push(scripts(self).join("go.mod"));
                files.extend(sources(&scripts(self), "go"));
            }
            Self::Java => files.extend(sources(&scripts(self).join("src").join("cases"), "java")),
            Self::DotNet => files.extend(sources(&scripts(self), "cs")),
            Self::Jms | Self::JmsJavax => files.extend(jms_sources()),
            Self::Framework(framework) => {
                files.extend(framework.sources());
                files.sort();
            }
            Self::Python
            | Self::Python714
            | Self::Az
            | Self::Proton
            | Self::JavaScript
            | Self::JavaScriptNewestAmqp
            | Self::JavaScriptBeta => {}
        }
        let read = |path: &PathBuf| fs::read_to_string(path).expect("it is part of the repository");
        files.iter().map(read).collect()
    }

    fn pins(self) -> PathBuf {
        if let Self::Framework(framework) = self {
            return framework.pins();
        }
        if let Self::DotNet = self {
            return dotnet::toolchain();
        }
        scripts(self).join(match self {
            Self::Python | Self::Az | Self::Proton => "requirements.txt",
            Self::Python714 => "requirements-7.14.txt",
            Self::JavaScript => "package-lock.json",
            Self::JavaScriptNewestAmqp => "newest-amqp/package-lock.json",
            Self::JavaScriptBeta => "beta/package-lock.json",
            Self::Java | Self::Jms | Self::JmsJavax => "pom.xml",
            Self::Go | Self::DotNet | Self::Framework(_) => "go.sum",
        })
    }

    fn needs(self) -> &'static str {
        match self {
            Self::Python | Self::Python714 | Self::Az => {
                "`python3` (3.10 or newer, with its venv module)"
            }
            Self::Proton => {
                "`python3` (3.10 or newer, with its venv module and headers) and a C compiler"
            }
            Self::JavaScript | Self::JavaScriptNewestAmqp | Self::JavaScriptBeta => {
                "`node` (20.19 or newer) and `npm`"
            }
            Self::Go => "`go` (1.25 or newer)",
            Self::Java | Self::Jms | Self::JmsJavax => {
                "a JDK (`java` and `javac`, 17 or newer) and Maven (`mvn`)"
            }
            Self::DotNet => {
                "`npm`, `python3` (3.10 or newer) and `mcs`, the C# compiler of Mono (Debian's `mono-devel`)"
            }
            Self::Framework(framework) => framework.needs(),
        }
    }
}

/// The files of a program in a directory, in the order of their names.
fn sources(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(directory).expect("the sources are part of the repository");
    let paths = listed.map(|entry| entry.expect("a file").path());
    let mut sources: Vec<PathBuf> = paths
        .filter(|path| path.extension() == Some(OsStr::new(extension)))
        .collect();
    sources.sort();
    sources
}

/// Whether it is named, or what it is a variant of.
fn is_optional(language: Language) -> bool {
    let is_named = |name: &str| {
        let rest = language.name().strip_prefix(name.trim());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    std::env::var("SERVICEBUS_SKIP_SDKS").is_ok_and(|names| names.split(',').any(is_named))
}

fn sdks_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("sdks")
}

fn stamp(directory: &Path) -> PathBuf {
    directory.join("made-from")
}

fn is_made(directory: &Path, pins: &str) -> bool {
    fs::read_to_string(stamp(directory)).is_ok_and(|made_from| made_from == pins)
}

/// Waits for the test that makes the environment now; the file's closing gives the lock back.
async fn lock(language: Language) -> File {
    fs::create_dir_all(sdks_directory()).expect("target/sdks can be made");
    let path = sdks_directory().join(format!("{}.lock", language.name()));
    tokio::task::spawn_blocking(move || {
        let file = File::create(path).expect("the lock file can be opened");
        file.lock().expect("the lock file can be locked");
        file
    })
    .await
    .expect("locking does not panic")
}

async fn make(language: Language, directory: &Path) {
    for attempt in 1.. {
        let Err(problem) = try_to_make(language, directory).await else {
            return;
        };
        assert!(
            attempt < ATTEMPTS,
            "the tests of {name} need {needs}: install it, or set SERVICEBUS_SKIP_SDKS={name} \
             to leave them out\n{problem}",
            name = language.name(),
            needs = language.needs(),
        );
        note(language, &format!("once more, since {problem}"));
        tokio::time::sleep(PAUSE).await;
    }
}

async fn try_to_make(language: Language, directory: &Path) -> Result<(), String> {
    if directory.exists() {
        fs::remove_dir_all(directory).expect("the old environment can be removed");
    }
    match language {
        Language::Python
        | Language::Python714
        | Language::Az
        | Language::Proton
        | Language::Framework(Framework::Celery) => make_python(language, directory).await,
        Language::JavaScript | Language::JavaScriptNewestAmqp | Language::JavaScriptBeta => {
            make_javascript(language, directory).await
        }
        Language::Go => make_go(directory).await,
        Language::DotNet => {
            let mut compile = dotnet::compile(directory, &sources(&scripts(language), "cs"));
            install(language, &mut compile).await
        }
        Language::Java => make_java(Language::Java, directory, &[]).await,
        Language::Jms | Language::JmsJavax => make_jms(language, directory).await,
        Language::Framework(Framework::GoCloud) => make_go_cloud(directory).await,
        Language::Framework(java @ (Framework::Spring | Framework::Camel)) => {
            make_framework(java, directory).await
        }
        Language::Framework(Framework::Shop) => make_shop(directory).await,
    }
}

async fn make_python(language: Language, directory: &Path) -> Result<(), String> {
    let interpreter = if cfg!(windows) { "python" } else { "python3" };
    let mut create = Command::new(interpreter);
    install(language, create.args(["-m", "venv"]).arg(directory)).await?;
    let mut fetch = Command::new(python(directory));
    fetch
        .args([
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .arg("--requirement")
        .arg(language.pins());
    install(language, &mut fetch).await
}

async fn make_javascript(language: Language, directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).expect("the environment's directory can be made");
    for file in ["package.json", "package-lock.json"] {
        let pins = language.pins().with_file_name(file);
        fs::copy(pins, directory.join(file)).expect("the pins can be copied");
    }
    let mut fetch = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    fetch
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        .current_dir(directory);
    install(language, &mut fetch).await
}

async fn make_go(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).expect("the environment's directory can be made");
    let mut build = Command::new("go");
    build
        .args(["build", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(go(directory))
        .current_dir(scripts(Language::Go));
    install(Language::Go, &mut build).await
}

async fn make_java(language: Language, directory: &Path, options: &[&str]) -> Result<(), String> {
    let mut build = Command::new(if cfg!(windows) { "mvn.cmd" } else { "mvn" });
    build
        .args(["--quiet", "--batch-mode", "compile", "--file"])
        .arg(language.pins())
        .arg(format!("-Denvironment={}", directory.display()))
        .args(options);
    install(language, &mut build).await
}

/// The cases of JMS, and what runs cases of Java's SDK too.
fn jms_sources() -> Vec<PathBuf> {
    let mut files = sources(&scripts(Language::Jms).join("src").join("cases"), "java");
    files.push(scripts(Language::Java).join("src/cases/Run.java"));
    files
}

/// Compiles the cases of JMS, with the names that the libraries of `javax.jms` have for it.
async fn make_jms(language: Language, directory: &Path) -> Result<(), String> {
    let copied = directory.join("src").join("cases");
    fs::create_dir_all(&copied).expect("the environment's directory can be made");
    for file in jms_sources() {
        let mut text = fs::read_to_string(&file).expect("it is part of the repository");
        if matches!(language, Language::JmsJavax) {
            text = text
                .replace("jakarta.jms", "javax.jms")
                .replace("com.azure.servicebus", "com.microsoft.azure.servicebus");
        }
        let name = file.file_name().expect("a file has a name");
        fs::write(copied.join(name), text).expect("the sources can be copied");
    }
    let is_javax = matches!(language, Language::JmsJavax);
    let profile: &[&str] = if is_javax { &["-Pjavax"] } else { &[] };
    make_java(language, directory, profile).await
}

/// Runs an installer to its end, or returns why it failed, with its output.
pub(crate) async fn install(language: Language, command: &mut Command) -> Result<(), String> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let shown = shown(command);
    note(language, &shown);
    let problem = match tokio::time::timeout(INSTALL_DEADLINE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => return Ok(()),
        Ok(Ok(output)) => format!(
            "{}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it took longer than {INSTALL_DEADLINE:?}"),
    };
    Err(format!("`{shown}` failed: {problem}"))
}

fn shown(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Progress; straight to standard error, which the test runner does not hold back.
fn note(language: Language, text: &str) {
    // A standard error that is closed must not fail the run.
    let _ = writeln!(io::stderr(), "{}: {text}", language.name());
}
