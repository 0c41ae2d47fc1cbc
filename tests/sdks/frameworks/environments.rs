//! What the programs of frameworks run in, made as the environments of SDKs are.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::environment::{Language, install, scripts};

/// What runs on top of an SDK.
#[derive(Clone, Copy)]
pub(crate) enum Framework {
    /// kombu and Celery, in a virtual environment of Python.
    Celery,
    /// The conformance test of `gocloud.dev`'s `azuresb`, built.
    GoCloud,
    /// Spring Cloud Azure: an application, compiled beside its libraries.
    Spring,
    /// Apache Camel: the same.
    Camel,
    /// The application of `examples/spring`: the same.
    Shop,
}

impl Framework {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Celery => "celery",
            Self::GoCloud => "gocloud",
            Self::Spring => "spring",
            Self::Camel => "camel",
            Self::Shop => "java-shop",
        }
    }

    pub(crate) fn needs(self) -> &'static str {
        match self {
            Self::Celery => "`python3` (3.10 or newer, with its venv module)",
            Self::GoCloud => "`go` (1.26 or newer)",
            Self::Spring | Self::Camel | Self::Shop => "a JDK (17 or newer) and `mvn`",
        }
    }

    /// The file with the versions.
    pub(crate) fn pins(self) -> PathBuf {
        scripts(Language::Framework(self)).join(match self {
            Self::Celery => "requirements.txt",
            Self::GoCloud => "go.sum",
            Self::Spring | Self::Camel | Self::Shop => "pom.xml",
        })
    }

    /// The other files that an environment is made from.
    pub(crate) fn sources(self) -> Vec<PathBuf> {
        let directory = scripts(Language::Framework(self));
        match self {
            Self::Celery => Vec::new(),
            Self::GoCloud => vec![directory.join("go.mod"), directory.join("azuresb.go")],
            Self::Spring | Self::Camel => files_below(&directory.join("src")),
            Self::Shop => files_below(&directory.join("src").join("main")),
        }
    }
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(directory).expect("the sources are part of the repository");
    let below = |path: PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    };
    listed
        .flat_map(|entry| below(entry.expect("a file").path()))
        .collect()
}

/// The program with the conformance test.
pub(crate) fn go_cloud(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) {
        "azuresb.exe"
    } else {
        "azuresb"
    })
}

/// Where Java finds the classes of an application and its libraries.
pub(crate) fn class_path(environment: &Path) -> OsString {
    let parts = [
        environment.join("classes"),
        environment.join("lib").join("*"),
    ];
    std::env::join_paths(parts).expect("the target directory has no separator in its name")
}

/// Builds the test that the package itself has.
pub(crate) async fn make_go_cloud(directory: &Path) -> Result<(), String> {
    let language = Language::Framework(Framework::GoCloud);
    fs::create_dir_all(directory).expect("the environment's directory can be made");
    let mut build = Command::new("go");
    build
        .args(["test", "-c", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(go_cloud(directory))
        .arg("gocloud.dev/pubsub/azuresb")
        .current_dir(scripts(language));
    install(language, &mut build).await
}

/// Compiles an application beside its libraries.
pub(crate) async fn make_framework(framework: Framework, directory: &Path) -> Result<(), String> {
    let language = Language::Framework(framework);
    let mut made_in = OsString::from("-Dmade.in=");
    made_in.push(directory);
    let mut build = maven();
    build.arg(made_in).current_dir(scripts(language));
    install(language, &mut build).await
}

/// The same of the example, in a copy of it, since it is an application like any, which Maven builds where it stands.
pub(crate) async fn make_shop(directory: &Path) -> Result<(), String> {
    let language = Language::Framework(Framework::Shop);
    let from = scripts(language);
    let files = Framework::Shop.sources().into_iter();
    for file in files.chain([Framework::Shop.pins()]) {
        let copy = directory.join(file.strip_prefix(&from).expect("it is below"));
        let parent = copy.parent().expect("it is in a directory");
        fs::create_dir_all(parent).expect("a directory can be made");
        fs::copy(&file, copy).expect("the sources can be copied");
    }
    let mut libraries = OsString::from("-DoutputDirectory=");
    libraries.push(directory.join("lib"));
    let mut build = maven();
    build
        .args(["-DskipTests", "-DincludeScope=runtime"])
        .arg(libraries)
        .current_dir(directory);
    install(language, &mut build).await?;
    let classes = directory.join("target").join("classes");
    fs::rename(classes, directory.join("classes")).map_err(|error| error.to_string())
}

/// Compiles, and puts the libraries beside.
fn maven() -> Command {
    let mut maven = Command::new(if cfg!(windows) { "mvn.cmd" } else { "mvn" });
    maven.args([
        "--batch-mode",
        "--quiet",
        "resources:resources",
        "compiler:compile",
        "dependency:copy-dependencies",
    ]);
    maven
}
