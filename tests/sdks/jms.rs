//! JMS, as Java programs speak it to Premium namespaces: Qpid JMS and Microsoft's libraries, for `jakarta.jms` and for `javax.jms`.
//!
//! The cases (`jms/src/cases`) assert what JMS 2.0 says. The same process runs them against an embedded ActiveMQ Artemis, the
//! control: what passes there passes here, or the case asserts what Service Bus documents in its place
//! (`Difference.java`, which is the table of `jms/README.md`).

#[cfg(feature = "matrices")]
mod shop;

#[cfg(feature = "matrices")]
use std::env;
use std::fs;
#[cfg(feature = "matrices")]
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use servicebus_harness::prelude::*;
use tokio::task::JoinSet;

#[cfg(feature = "matrices")]
use crate::driver::run_within;
use crate::driver::{Sdk, TURNS, control_url};
use crate::environment::{self, Language};
use crate::interpreter::{self, Environment};
use crate::java;

/// The case whose namespace has as many queues and topics as it may have.
const FULL: &str = "refusals.fullNamespace";
/// As many queues and topics as a namespace may have.
const MAX_ENTITIES: usize = 10_000;
/// Longer than the interpreter's own deadline.
const DEADLINE: Duration = Duration::from_secs(240);
/// For 100,000 messages on a machine that has other work.
#[cfg(feature = "matrices")]
const MEASURE_DEADLINE: Duration = Duration::from_secs(1800);

/// Those of what Artemis does not have.
#[cfg(feature = "matrices")]
const OF_SERVICE_BUS: [&str; 3] = ["entities", "outcomes", "refusals"];

/// What Qpid JMS does with any namespace, in whatever tier.
#[cfg(feature = "matrices")]
const PLAIN: [&str; 4] = ["messages", "queues", "acknowledge", "transacted"];

/// Messages and cuts of the soak: as many as a machine for tests does in seconds, and those of `SERVICEBUS_JMS_SOAK`.
#[cfg(feature = "matrices")]
const SOAK: &str = "2000,10";

/// Messages and rounds of the comparison of speeds: enough to see that it runs, and those of `SERVICEBUS_JMS_SPEED`.
#[cfg(feature = "matrices")]
const SPEED: &str = "200,1";

/// What runs the cases, and against what.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "matrices"),
    expect(dead_code, reason = "only the matrices run all of them")
)]
enum Client {
    /// Qpid JMS, against Artemis.
    Control,
    /// Qpid JMS that asks for JMS 2.0, over TCP.
    Qpid,
    /// Qpid JMS as it is, over TCP, in a standard namespace.
    Plain,
    /// Microsoft's library, over TLS.
    Microsoft,
    /// Microsoft's library for `javax.jms`, over TLS.
    Javax,
}

impl Client {
    fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Qpid => "qpid",
            Self::Plain => "plain",
            Self::Microsoft | Self::Javax => "microsoft",
        }
    }

    fn is_secured(self) -> bool {
        matches!(self, Self::Microsoft | Self::Javax)
    }

    fn sdk(self) -> Sdk {
        match self {
            Self::Control | Self::Qpid | Self::Plain | Self::Microsoft => Sdk::Jms,
            Self::Javax => Sdk::JmsJavax,
        }
    }

    fn language(self) -> Language {
        match self {
            Self::Control | Self::Qpid | Self::Plain | Self::Microsoft => Language::Jms,
            Self::Javax => Language::JmsJavax,
        }
    }
}

#[tokio::test]
async fn smoke() {
    run_all(
        Client::Qpid,
        &["messages.headers", "transacted.commitsSends"],
    )
    .await;
    run_all(Client::Microsoft, &["acknowledge.client"]).await;
}

#[cfg(feature = "matrices")]
#[tokio::test]
async fn artemis() {
    let mut cases = all();
    cases.retain(|case| !OF_SERVICE_BUS.iter().any(|topic| case.starts_with(topic)));
    run_all(Client::Control, &cases).await;
}

#[cfg(feature = "matrices")]
#[tokio::test]
async fn qpid_over_tcp() {
    run_all(Client::Qpid, &all()).await;
}

#[cfg(feature = "matrices")]
#[tokio::test]
async fn plain_over_tcp() {
    let mut cases = all();
    cases.retain(|case| PLAIN.iter().any(|topic| case.starts_with(topic)));
    run_all(Client::Plain, &cases).await;
}

#[cfg(feature = "matrices")]
#[tokio::test]
async fn microsoft_over_tls() {
    run_all(Client::Microsoft, &all()).await;
}

#[cfg(feature = "matrices")]
#[tokio::test]
async fn microsoft_for_javax_over_tls() {
    run_all(Client::Javax, &all()).await;
}

/// Eight transacted sessions, half of them with rollbacks, whose connections are cut.
#[cfg(feature = "matrices")]
#[tokio::test]
async fn soak() {
    let size = env::var("SERVICEBUS_JMS_SOAK").unwrap_or_else(|_| SOAK.to_owned());
    let (messages, _) = size.split_once(',').expect("messages,cuts");
    let done = format!("{messages} messages moved once each");
    let printed = measure("cases.Soak", &["-XX:TieredStopAtLevel=1"], &size).await;
    assert!(printed.is_none_or(|printed| printed.contains(&done)));
}

/// What a session does in a second, with the emulator and with Artemis.
#[cfg(feature = "matrices")]
#[tokio::test]
async fn speed() {
    let size = env::var("SERVICEBUS_JMS_SPEED").unwrap_or_else(|_| SPEED.to_owned());
    let printed = measure("cases.Speed", &[], &size).await;
    assert!(printed.is_none_or(|printed| printed.matches(" |\n").count() == 9));
}

/// Runs a program on a namespace of its own, prints what it printed, and returns that.
#[cfg(feature = "matrices")]
async fn measure(class: &str, options: &[&str], size: &str) -> Option<String> {
    let environment = environment::ready(Language::Jms).await?;
    let servicebus = start(topology(Tier::Premium)).await;
    let mut command = program(&environment, class, options);
    command
        .args(size.split(','))
        .env("SERVICEBUS_JMS_CLIENT", Client::Qpid.name())
        .envs(of(&servicebus, false));
    let printed = run_within(MEASURE_DEADLINE, command.into(), class).await;
    // A standard output that is closed must not fail the run.
    let _ = write!(io::stdout(), "{printed}");
    Some(printed)
}

#[test]
fn the_cases_are_found_in_their_sources() {
    let cases = all();
    assert!(cases.len() >= 80, "{cases:?}");
    assert!(cases.iter().any(|case| case == FULL), "{cases:?}");
}

/// All cases by their names, such as `topics.durable`: the methods of `src/cases` that take a namespace.
fn all() -> Vec<String> {
    let mut cases = Vec::new();
    for source in sources() {
        let text = fs::read_to_string(&source).expect("it is part of the repository");
        let class = source.file_stem().and_then(|name| name.to_str());
        let class = class.expect("a name");
        let topic = class[..1].to_lowercase() + &class[1..];
        let methods = text
            .lines()
            .filter_map(|line| line.strip_prefix("    static void "));
        let names = methods.filter_map(|method| method.split_once("(Namespace namespace) "));
        cases.extend(names.map(|(name, _)| format!("{topic}.{name}")));
    }
    cases
}

#[test]
fn the_table_has_every_difference() {
    let text = |name: &str| fs::read_to_string(directory().join(name)).expect("there is one");
    let (table, source) = (text("README.md"), text("src/cases/Difference.java"));
    // The sentences are written in several literals each.
    let joined = source.replace("\"\n            + \"", "");
    let constants = joined.lines().filter(|line| line.contains("(\""));
    let mut differences = 0;
    for line in constants {
        let (_, sentence) = line.split_once("(\"").expect("it begins");
        let (sentence, _) = sentence.rsplit_once("\")").expect("it ends");
        assert!(table.contains(sentence), "{sentence:?} is not in the table");
        differences += 1;
    }
    assert_eq!(table.matches("\n| `").count(), differences);
}

/// Runs cases side by side; fails with the names of those that failed.
async fn run_all<T: AsRef<str>>(client: Client, cases: &[T]) {
    let Some(environment) = environment::ready(client.language()).await else {
        return;
    };
    let environment = Arc::new(environment);
    let mut running = JoinSet::new();
    for case in cases {
        let (environment, case) = (Arc::clone(&environment), case.as_ref().to_owned());
        running.spawn(async move { run(client, &environment, case).await });
    }
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next().await {
        failed.extend(ended.expect("a case that fails is not a panic"));
    }
    let names = || failed.iter().map(|(case, _)| &**case).collect::<Vec<_>>();
    let outputs = || {
        failed
            .iter()
            .map(|(_, output)| &**output)
            .collect::<Vec<_>>()
    };
    assert!(
        failed.is_empty(),
        "{}\nfailed, for the reasons above: {}",
        outputs().join("\n"),
        names().join(", ")
    );
}

/// Runs a case in a namespace of its own; returns its name and what it printed where it has failed.
async fn run(client: Client, environment: &Path, case: String) -> Option<(String, String)> {
    let _turn = TURNS.acquire().await.expect("it is never closed");
    let mut variables = Environment::from([("SERVICEBUS_JMS_CLIENT", client.name().to_owned())]);
    let topology = match client {
        Client::Control => None,
        Client::Plain => Some(topology(Tier::Standard)),
        Client::Qpid | Client::Microsoft | Client::Javax => Some(topology(Tier::Premium)),
    };
    let servicebus = match topology {
        Some(topology) if case == FULL => Some(start(filled(topology)).await),
        Some(topology) => Some(start(topology).await),
        None => None,
    };
    if let Some(servicebus) = &servicebus {
        variables.extend(of(servicebus, client.is_secured()));
    }
    let running = interpreter::run(client.sdk(), command(environment), &case, &variables);
    let answer = tokio::time::timeout(DEADLINE, running).await;
    let Ok(answer) = answer else {
        return Some((case, format!("it was not answered within {DEADLINE:?}")));
    };
    match answer.passed {
        true => None,
        false => Some((case, answer.output)),
    }
}

async fn start(topology: Topology) -> ServiceBus {
    let starting = ServiceBus::builder().topology(topology).tls(true).start();
    starting.await
}

/// Eight queues and topics.
fn topology(tier: Tier) -> Topology {
    Topology::new()
        .tier(tier)
        .queue(Queue::new("orders"))
        .queue(Queue::new("answers"))
        .queue(Queue::new("expiring").dead_lettering_on_message_expiration(true))
        .queue(Queue::new("carts").requires_session(true))
        .queue(Queue::new("in").max_delivery_count(2000))
        .queue(Queue::new("out"))
        .topic(Topic::new("prices"))
        .topic(Topic::new("sums"))
}

/// The same with all others that there is room for.
fn filled(topology: Topology) -> Topology {
    let others = (8..MAX_ENTITIES).map(|number| Queue::new(format!("other-{number}")));
    others.fold(topology, Topology::queue)
}

/// What a case is told of its namespace.
fn of(servicebus: &ServiceBus, is_secured: bool) -> Environment {
    let settings = servicebus.client_settings().expect("it was started here");
    let trust_store = settings
        .trust_store
        .expect("the emulator keeps an authority");
    let connection_string = match is_secured {
        true => servicebus.tls_connection_string(),
        false => servicebus.connection_string(),
    };
    // Microsoft's library takes the rest of the string for the key.
    let connection_string = connection_string.trim_end_matches(';');
    Environment::from([
        ("SERVICEBUS_CONNECTION_STRING", connection_string.to_owned()),
        (
            "SERVICEBUS_TRANSPORT",
            if is_secured { "tls" } else { "plain" }.to_owned(),
        ),
        ("SERVICEBUS_TRUST_STORE", trust_store.display().to_string()),
        ("SERVICEBUS_CONTROL_URL", control_url(servicebus)),
    ])
}

/// The program of the cases. As many as have turns at once are light.
pub(crate) fn command(environment: &Path) -> Command {
    program(environment, "cases.Main", &["-XX:TieredStopAtLevel=1"])
}

/// A program by its main class. Its memory is bounded.
fn program(environment: &Path, class: &str, options: &[&str]) -> Command {
    java::program_with(environment, &[&["-Xmx768m"], options].concat(), class)
}

fn sources() -> Vec<PathBuf> {
    let listed =
        fs::read_dir(directory().join("src/cases")).expect("they are part of the repository");
    listed.map(|entry| entry.expect("a file").path()).collect()
}

fn directory() -> PathBuf {
    environment::scripts(Language::Jms)
}
