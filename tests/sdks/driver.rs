//! Runs one case's script against a bus of its own, and ends it when it does not end itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use servicebus_harness::prelude::*;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::broker_side;
use crate::doors::Door;
use crate::environment::{self, Language};
use crate::go;
use crate::interpreter::{self, Environment};
use crate::java;
use crate::topology::topology;

/// Longer than the scripts' own deadline, which says more about what they wait for.
const DEADLINE: Duration = Duration::from_secs(240);

/// Turns at running a script: no more at a time than four for each processor, whatever the number of tests, so that the
/// locks and deadlines of each are not used up by waiting for the others.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(2, usize::from);
    Semaphore::new((4 * processors).clamp(8, 32))
});

/// A client library under test.
#[derive(Clone, Copy)]
pub(crate) enum Sdk {
    /// `azure.servicebus`.
    PythonBlocking,
    /// `azure.servicebus.aio`.
    PythonAsynchronous,
    /// The blocking clients of 7.14.
    PythonBlocking714,
    /// The others of 7.14.
    PythonAsynchronous714,
    /// `@azure/service-bus`.
    JavaScript,
    /// `azservicebus`.
    Go,
    /// `azure-messaging-servicebus`.
    Java,
}

/// How the cases of an SDK are run.
enum Runner {
    /// By a command for each of them.
    Command(Command),
    /// By the one process that runs all of Java's, from this environment.
    Java(PathBuf),
}

impl Sdk {
    /// Whether it cannot do what a case is about.
    fn lacks(self, case: &str) -> bool {
        match self {
            Self::Go => go::LACKING.contains(&case),
            Self::Java => java::LACKING.contains(&case),
            Self::PythonBlocking
            | Self::PythonAsynchronous
            | Self::PythonBlocking714
            | Self::PythonAsynchronous714
            | Self::JavaScript => false,
        }
    }
}

/// The namespace settings a case runs under.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) entities: Entities,
    pub(crate) expiry: Expiry,
    pub(crate) locks_on_detach: LocksOnDetach,
    pub(crate) tier: Tier,
    pub(crate) door: Door,
}

/// What there is in a namespace.
#[derive(Clone, Copy)]
pub(crate) enum Entities {
    /// Queues alone.
    Queues,
    /// Those of `topics.json`, under the default settings.
    Topics,
    /// Those of `sessions.json`, under the default settings.
    Sessions,
}

/// What a namespace has unless told otherwise.
pub(crate) const SETTINGS: Settings = Settings {
    entities: Entities::Queues,
    expiry: Expiry::Eager,
    locks_on_detach: LocksOnDetach::Keep,
    tier: Tier::Standard,
    door: Door::Plain,
};
/// Expired messages leave at their instant (D1).
pub(crate) const EAGER: Settings = SETTINGS;
/// Expired messages leave once a receiver is active (D1).
pub(crate) const ON_RECEIVE: Settings = Settings {
    expiry: Expiry::OnReceive,
    ..SETTINGS
};
/// Locks outlive their link (D2).
pub(crate) const KEEP: Settings = SETTINGS;
/// Locks end with their link (D2).
pub(crate) const RELEASE: Settings = Settings {
    locks_on_detach: LocksOnDetach::Release,
    ..SETTINGS
};

/// There are topics.
pub(crate) const TOPICS: Settings = Settings {
    entities: Entities::Topics,
    ..SETTINGS
};

/// There are queues and subscriptions that require sessions.
pub(crate) const SESSIONS: Settings = Settings {
    entities: Entities::Sessions,
    ..SETTINGS
};

/// Messages may be large.
pub(crate) const PREMIUM: Settings = Settings {
    tier: Tier::Premium,
    ..SETTINGS
};

/// Clients come over TLS.
pub(crate) const TLS: Settings = Settings {
    door: Door::Tls,
    ..SETTINGS
};
/// Clients come over WebSocket.
pub(crate) const WEBSOCKET: Settings = Settings {
    door: Door::WebSocket,
    ..SETTINGS
};
/// Clients come over WebSocket and TLS.
pub(crate) const SECURED_WEBSOCKET: Settings = Settings {
    door: Door::SecuredWebSocket,
    ..SETTINGS
};

/// Runs cases side by side, each on a bus of its own; fails with the names of those that failed.
pub(crate) async fn run_all(sdk: Sdk, settings: Settings, cases: &[&'static str]) {
    let mut running = JoinSet::new();
    let mut names = HashMap::new();
    for case in cases.iter().filter(|case| !sdk.lacks(case)) {
        let Some(runner) = runner(sdk, case).await else {
            return;
        };
        names.insert(running.spawn(run(runner, settings, case)).id(), *case);
    }
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next().await {
        if let Err(failure) = ended {
            failed.push(names[&failure.id()]);
        }
    }
    assert!(
        failed.is_empty(),
        "failed, for the reasons above: {}",
        failed.join(", ")
    );
}

/// Starts a bus with the entities of the cases, runs a case, and asserts what the broker recorded.
async fn run(runner: Runner, settings: Settings, case: &'static str) {
    let servicebus = ServiceBus::builder()
        .topology(topology(settings))
        .start()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let control_url = format!(
        "{}/namespaces/{}",
        servicebus.control_url(),
        servicebus.namespace()
    );
    let mut environment = Environment::from([
        ("SERVICEBUS_CONTROL_URL", control_url),
        ("SERVICEBUS_EXPIRY", expiry_name(settings.expiry).to_owned()),
        (
            "SERVICEBUS_LOCKS_ON_DETACH",
            locks_name(settings.locks_on_detach).to_owned(),
        ),
    ]);
    let _authority = settings.door.lead(&mut environment, &servicebus).await;
    let _certificate = match case.split_once('.') {
        Some(("admin" | "rules", _)) => Some(let_administer(&mut environment, &servicebus).await),
        _ => None,
    };
    match runner {
        Runner::Command(mut command) => {
            command.envs(&environment);
            run_to_the_end(command, case).await;
        }
        Runner::Java(made) => interpret(&made, case, &environment).await,
    }
    broker_side::check(case, &servicebus).await;
}

/// Tells the script of the administration API, and whom to trust there.
async fn let_administer(environment: &mut Environment, servicebus: &ServiceBus) -> CertificateFile {
    let certificate = CertificateFile::new(&servicebus.ca_certificate_pem().await);
    let file = certificate.0.display().to_string();
    environment.extend([
        (
            "SERVICEBUS_ADMIN_CONNECTION_STRING",
            servicebus.tls_admin_connection_string().to_owned(),
        ),
        ("SERVICEBUS_CA_FILE", file.clone()),
        ("NODE_EXTRA_CA_CERTS", file),
    ]);
    certificate
}

/// A certificate that is there for as long as a script needs it.
struct CertificateFile(PathBuf);

impl CertificateFile {
    fn new(pem: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("sdks-ca-{}-{number}.pem", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, pem).expect("a file can be written");
        Self(path)
    }
}

impl Drop for CertificateFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn expiry_name(expiry: Expiry) -> &'static str {
    match expiry {
        Expiry::Eager => "eager",
        Expiry::OnReceive => "on-receive",
    }
}

fn locks_name(locks: LocksOnDetach) -> &'static str {
    match locks {
        LocksOnDetach::Keep => "keep",
        LocksOnDetach::Release => "release",
    }
}

/// What runs a case, or `None` where the SDK may be skipped.
async fn runner(sdk: Sdk, case: &str) -> Option<Runner> {
    let mut command = match sdk {
        Sdk::PythonBlocking => python(Language::Python, "sync").await?,
        Sdk::PythonAsynchronous => python(Language::Python, "async").await?,
        Sdk::PythonBlocking714 => python(Language::Python714, "sync").await?,
        Sdk::PythonAsynchronous714 => python(Language::Python714, "async").await?,
        Sdk::JavaScript => javascript().await?,
        Sdk::Go => Command::new(environment::go(&environment::ready(Language::Go).await?)),
        Sdk::Java => return environment::ready(Language::Java).await.map(Runner::Java),
    };
    command.arg(case);
    Some(Runner::Command(command))
}

async fn python(language: Language, flavour: &str) -> Option<Command> {
    let environment = environment::ready(language).await?;
    let mut command = Command::new(environment::python(&environment));
    command
        .arg(environment::scripts(Language::Python).join("run.py"))
        .arg(flavour)
        // No caches beside the scripts; output as it comes, also of a script that is killed.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUNBUFFERED", "1");
    Some(command)
}

async fn javascript() -> Option<Command> {
    let environment = environment::ready(Language::JavaScript).await?;
    let mut command = Command::new("node");
    command
        .arg(environment::scripts(Language::JavaScript).join("run.js"))
        .env("NODE_PATH", environment.join("node_modules"));
    Some(command)
}

/// Has Java's process run a case; fails with what the case says when it fails, and without it past the deadline.
async fn interpret(made: &Path, case: &str, environment: &Environment) {
    let _turn = TURNS.acquire().await.expect("it is never closed");
    let running = interpreter::run("Java", || java::command(made), case, environment);
    let Ok(answer) = tokio::time::timeout(DEADLINE, running).await else {
        panic!("{case} was not answered within {DEADLINE:?}");
    };
    assert!(answer.passed, "{case} failed\n{}", answer.output);
}

/// Runs a script; fails with all it printed when it fails, and kills it past the deadline.
pub(crate) async fn run_to_the_end(command: Command, case: &str) {
    run_within(DEADLINE, command, case).await;
}

/// Runs a script up to a deadline of its own, and returns what it printed.
pub(crate) async fn run_within(deadline: Duration, command: Command, case: &str) -> String {
    let (status, printed) = end_within(deadline, command, case).await;
    assert!(status.success(), "{case} failed ({status})\n{printed}");
    printed
}

/// Runs a script to its end, good or bad, and returns how it ended and what it printed.
pub(crate) async fn end_within(
    deadline: Duration,
    mut command: Command,
    case: &str,
) -> (ExitStatus, String) {
    let _turn = TURNS.acquire().await.expect("it is never closed");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the interpreter of a ready environment starts");
    let mut stdout = child.stdout.take().expect("standard output is piped");
    let mut stderr = child.stderr.take().expect("standard error is piped");
    let (mut printed, mut complained) = (Vec::new(), Vec::new());
    let ended = tokio::time::timeout(deadline, async {
        let (status, _, _) = tokio::join!(
            child.wait(),
            stdout.read_to_end(&mut printed),
            stderr.read_to_end(&mut complained)
        );
        status
    })
    .await;
    let printed = [printed, complained].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    match ended {
        Ok(status) => (status.expect("a child can be waited for"), printed),
        Err(_) => panic!("{case} did not end within {deadline:?} and was killed\n{printed}"),
    }
}
