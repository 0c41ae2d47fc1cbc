//! Runs cases, each against a namespace of its own, and programs, which it ends when they do not end themselves.

use std::collections::HashMap;
use std::process::{self, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use servicebus_harness::prelude::*;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::broker_side;
use crate::dotnet;
use crate::environment::{self, Language};
use crate::go;
use crate::interpreter::{self, Environment};
use crate::java;
use crate::jms;
use crate::topology::topology;
use crate::transport::Transport;

/// Longer than the interpreters' own deadline, which says more about what a case waits for.
const DEADLINE: Duration = Duration::from_secs(240);

/// Turns at running a script: no more at a time than twelve for each processor, so that the locks and deadlines of each are
/// not used up by waiting for the others. Most scripts wait most of the time.
pub(crate) static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(2, usize::from);
    Semaphore::new((12 * processors).clamp(24, 64))
});

/// A client library under test.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
    /// The same with the newest `@azure/core-amqp` below it.
    JavaScriptNewestAmqp,
    /// Its beta that deletes messages in batches.
    JavaScriptBeta,
    /// `azservicebus`.
    Go,
    /// `azure-messaging-servicebus`.
    Java,
    /// `Azure.Messaging.ServiceBus`.
    DotNet,
    /// Clients of JMS (`jms`), and Artemis beside them.
    Jms,
    /// The same for `javax.jms`.
    JmsJavax,
}

impl Sdk {
    /// Whether it cannot do what a case is about.
    fn is_unsupported(self, case: &str) -> bool {
        self == Self::Go && go::UNSUPPORTED.contains(&case)
    }

    /// The program that runs its cases, or `None` where the SDK may be skipped.
    async fn interpreter(self) -> Option<process::Command> {
        Some(match self {
            Self::PythonBlocking => python(Language::Python, "sync").await?,
            Self::PythonAsynchronous => python(Language::Python, "async").await?,
            Self::PythonBlocking714 => python(Language::Python714, "sync").await?,
            Self::PythonAsynchronous714 => python(Language::Python714, "async").await?,
            Self::JavaScript => javascript(Language::JavaScript).await?,
            Self::JavaScriptNewestAmqp => javascript(Language::JavaScriptNewestAmqp).await?,
            Self::JavaScriptBeta => javascript(Language::JavaScriptBeta).await?,
            Self::Go => {
                process::Command::new(environment::go(&environment::ready(Language::Go).await?))
            }
            Self::Java => java::command(&environment::ready(Language::Java).await?),
            Self::DotNet => dotnet::command(&environment::ready(Language::DotNet).await?),
            Self::Jms => jms::command(&environment::ready(Language::Jms).await?),
            Self::JmsJavax => jms::command(&environment::ready(Language::JmsJavax).await?),
        })
    }
}

/// The namespace settings a case runs under.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) entities: Entities,
    pub(crate) expiry: Expiry,
    pub(crate) locks_on_detach: LocksOnDetach,
    pub(crate) tier: Tier,
    pub(crate) transport: Transport,
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
    /// Those of `observed.json`, under the default settings.
    Observed,
    /// A queue, and one that forwards to it, where what the service was seen to do otherwise is done: batches have a
    /// limit of messages, and disabled entities take what is forwarded.
    OtherReadings,
    /// The queue `orders` alone, which every tier has.
    Orders,
}

/// What a namespace has unless told otherwise.
pub(crate) const SETTINGS: Settings = Settings {
    entities: Entities::Queues,
    expiry: Expiry::Eager,
    locks_on_detach: LocksOnDetach::Keep,
    tier: Tier::Standard,
    transport: Transport::Plain,
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

/// There is what the cases of `observed` are about.
pub(crate) const OBSERVED: Settings = Settings {
    entities: Entities::Observed,
    ..SETTINGS
};

/// The namespace has the other readings of what is documented one way and was seen another.
pub(crate) const OTHER_READINGS: Settings = Settings {
    entities: Entities::OtherReadings,
    ..SETTINGS
};

/// There are neither topics nor transactions.
pub(crate) const BASIC: Settings = Settings {
    entities: Entities::Orders,
    tier: Tier::Basic,
    ..SETTINGS
};

/// Messages may be large.
pub(crate) const PREMIUM: Settings = Settings {
    tier: Tier::Premium,
    ..SETTINGS
};

/// Clients come over TLS.
pub(crate) const TLS: Settings = Settings {
    transport: Transport::Tls,
    ..SETTINGS
};
/// Clients come over WebSocket.
pub(crate) const WEBSOCKET: Settings = Settings {
    transport: Transport::WebSocket,
    ..SETTINGS
};
/// Clients come over WebSocket and TLS.
pub(crate) const SECURED_WEBSOCKET: Settings = Settings {
    transport: Transport::SecuredWebSocket,
    ..SETTINGS
};

/// Runs cases side by side, each in a namespace of its own; fails with the names of those that failed.
pub(crate) async fn run_all(sdk: Sdk, settings: Settings, cases: &[&'static str]) {
    if sdk.interpreter().await.is_none() {
        return;
    }
    let mut running = JoinSet::new();
    let mut names = HashMap::new();
    for case in cases.iter().filter(|case| !sdk.is_unsupported(case)) {
        names.insert(running.spawn(run(sdk, settings, case)).id(), *case);
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

/// Runs a case of an SDK that is not skipped, in a namespace that it returns, and asserts what the broker recorded.
pub(crate) async fn run_one(sdk: Sdk, case: &'static str) -> Option<ServiceBus> {
    sdk.interpreter().await?;
    Some(run(sdk, SETTINGS, case).await)
}

/// Starts a namespace with the entities of the cases, runs a case, and asserts what the broker recorded.
async fn run(sdk: Sdk, settings: Settings, case: &'static str) -> ServiceBus {
    let _turn = TURNS.acquire().await.expect("it is never closed");
    let command = sdk.interpreter().await.expect("it is not skipped");
    let servicebus = ServiceBus::builder()
        .topology(topology(settings))
        .start()
        .await;
    let control_url = control_url(&servicebus);
    let mut environment = Environment::from([
        ("SERVICEBUS_CONTROL_URL", control_url),
        ("SERVICEBUS_EXPIRY", expiry_name(settings.expiry).to_owned()),
        (
            "SERVICEBUS_LOCKS_ON_DETACH",
            locks_name(settings.locks_on_detach).to_owned(),
        ),
    ]);
    let _authority = settings
        .transport
        .set_in(&mut environment, &servicebus)
        .await;
    let running = interpreter::run(sdk, command, case, &environment);
    let Ok(answer) = tokio::time::timeout(DEADLINE, running).await else {
        panic!("{case} was not answered within {DEADLINE:?}");
    };
    assert!(answer.passed, "{case} failed\n{}", answer.output);
    broker_side::check(case, &servicebus).await;
    servicebus
}

/// The URL of a namespace in the control API.
pub(crate) fn control_url(servicebus: &ServiceBus) -> String {
    let url = servicebus.control_url();
    format!("{url}/namespaces/{}", servicebus.namespace())
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

async fn python(language: Language, flavour: &str) -> Option<process::Command> {
    let environment = environment::ready(language).await?;
    let mut command = process::Command::new(environment::python(&environment));
    command
        .arg(environment::scripts(language).join("run.py"))
        .arg(flavour)
        // No caches beside the scripts.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

async fn javascript(language: Language) -> Option<process::Command> {
    let mut command = environment::node(language).await?.into_std();
    command.arg(environment::scripts(language).join("run.js"));
    Some(command)
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
async fn end_within(deadline: Duration, mut command: Command, case: &str) -> (ExitStatus, String) {
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
