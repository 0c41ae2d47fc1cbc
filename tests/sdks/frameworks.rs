//! What runs on top of SDKs, unmodified: kombu and Celery, `gocloud.dev`, Spring Cloud Azure and Apache Camel.
//!
//! Each has a program (`frameworks/`) that uses it as its users do, runs its cases and ends with 1 when one has failed.
//! Here it is given a namespace, and what the broker recorded is judged.

pub(crate) mod environments;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use servicebus_harness::{ClientSettings, EventKind, prelude::*};
use servicebus_test_support::{client::part, temporary::TemporaryDirectory};
use tokio::process::Command;

use crate::driver::{control_url, run_within};
use crate::environment::{self, Language, ready};
use environments::{Framework, class_path, go_cloud};

/// For all cases of a framework; each of them gives up much earlier.
const DEADLINE: Duration = Duration::from_secs(240);

/// The tests of `gocloud.dev/pubsub/drivertest`, each of which passes in both modes; the last has two parts of its own.
const CONFORMANCE: [&str; 14] = [
    "SendReceive",
    "SendReceiveTwo",
    "SendReceiveJSON",
    "Nack",
    "Batching",
    "DoubleAck",
    "ErrorOnReceiveFromClosedSubscription",
    "ErrorOnSendToClosedTopic",
    "NonExistentTopicSucceedsOnOpenButFailsOnSend",
    "NonExistentSubscriptionSucceedsOnOpenButFailsOnReceive",
    "CancelSendReceive",
    "Metadata",
    "NonUTF8MessageBody",
    "As",
];

#[tokio::test]
async fn celery() {
    let framework = Language::Framework(Framework::Celery);
    let Some(environment) = ready(framework).await else {
        return;
    };
    let servicebus = ServiceBus::start().await;
    let settings = settings(&servicebus);
    let directory = TemporaryDirectory::unused();
    fs::create_dir(&directory.0).expect("a directory can be made");
    let scripts = environment::scripts(framework);
    let mut command = Command::new(environment::python(&environment));
    trust(&environment, &settings).await;
    command
        .arg(scripts.join("run.py"))
        .envs(settings.env())
        .env("SERVICEBUS_KOMBU_URL", kombu_url(&settings))
        .env("SERVICEBUS_NAME", &settings.host)
        .env("SERVICEBUS_AMQPS", settings.amqps.to_string())
        .env("SERVICEBUS_HTTPS", settings.https.to_string())
        .env("SERVICEBUS_CONTROL_URL", control_url(&servicebus))
        .env("CELERY_RESULTS", &directory.0)
        .env("PYTHONPATH", scripts.join("resolution"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUNBUFFERED", "1");
    let printed = run_within(DEADLINE, command, "celery").await;
    assert_eq!(printed.matches("passed ").count(), 15, "{printed}");
}

/// Go reads no authority from a file there.
#[cfg_attr(any(target_os = "macos", windows), ignore)]
#[tokio::test]
async fn gocloud() {
    let Some(environment) = ready(Language::Framework(Framework::GoCloud)).await else {
        return;
    };
    let servicebus = ServiceBus::start().await;
    let directory = TemporaryDirectory::unused();
    fs::create_dir(&directory.0).expect("a directory can be made");
    let mut command = Command::new(go_cloud(&environment));
    command
        // Without `-record` the tests of packages for a service are skipped.
        .args(["-test.v", "-record"])
        .current_dir(&directory.0)
        .envs(settings(&servicebus).env())
        // Of one string it makes a client of AMQP and one of administration, which comes over TLS: the port is one for both.
        .env(
            "SERVICEBUS_CONNECTION_STRING",
            servicebus.admin_connection_string(),
        );
    let printed = run_within(DEADLINE, command, "gocloud").await;
    for suite in ["TestConformance", "TestConformanceWithAutodelete"] {
        for test in CONFORMANCE {
            // What has been received and deleted cannot be given back.
            let outcome = match (suite, test) {
                ("TestConformanceWithAutodelete", "Nack") => "SKIP",
                _ => "PASS",
            };
            let line = format!("--- {outcome}: {suite}/Test{test} (");
            assert!(printed.contains(&line), "{line:?} is not in\n{printed}");
        }
    }
}

#[tokio::test]
async fn spring() {
    let topology = Topology::new()
        .queue(Queue::new("orders"))
        .queue(Queue::new("poison").max_delivery_count(3))
        .queue(Queue::new("later"))
        .queue(Queue::new("questions"))
        .queue(Queue::new("answers").requires_session(true))
        .queue(Queue::new("numbers"))
        .queue(Queue::new("claims"))
        .topic(Topic::new("prices").subscription(Subscription::new("alerts")))
        .topic(Topic::new("sums").subscription(Subscription::new("audit")));
    let Some(java) = Java::ready(Framework::Spring).await else {
        return;
    };
    let servicebus = start(topology).await;
    java.run(&servicebus, servicebus.connection_string(), &[], 8)
        .await;
    assert_completed!(servicebus.queue("orders"), count = 1).await;
    assert_completed!(servicebus.queue("answers"), count = 0).await;
    assert_completed!(servicebus.queue("numbers"), count = 4).await;
    assert_completed!(servicebus.subscription("prices", "alerts"), count = 1).await;
    assert_completed!(servicebus.subscription("sums", "audit"), count = 2).await;
    assert_scheduled!(servicebus.queue("later"), count = 1).await;
    let poison = servicebus.queue("poison");
    assert_dead_lettered!(poison, reason = "MaxDeliveryCountExceeded").await;
    assert_dead_lettered!(servicebus.queue("claims"), count = 1).await;
}

#[tokio::test]
async fn camel() {
    let Some(java) = Java::ready(Framework::Camel).await else {
        return;
    };
    let servicebus = start(camel_topology()).await;
    let plain = servicebus.connection_string();
    java.run(&servicebus, plain, &[], 10).await;
    assert_camel(&servicebus).await;
}

/// As to the service, with the trust store that the settings name.
#[cfg(feature = "matrices")]
#[tokio::test]
async fn camel_over_tls() {
    let Some(java) = Java::ready(Framework::Camel).await else {
        return;
    };
    let servicebus = start(camel_topology()).await;
    let store = settings(&servicebus).trust_store;
    let store = store.expect("the emulator keeps an authority");
    let secured = servicebus.tls_connection_string();
    let trust = ClientSettings::java_options(&store.display().to_string());
    java.run(&servicebus, secured, &trust, 10).await;
    assert_camel(&servicebus).await;
}

#[test]
fn the_readme_names_the_versions_that_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("there is one");
    for (framework, pin, named) in [
        (Framework::Celery, "kombu==", "| kombu "),
        (Framework::Celery, "celery==", "| Celery "),
        (Framework::GoCloud, "gocloud.dev v", "| `gocloud.dev` "),
        (
            Framework::Spring,
            "dependencies</artifactId>\n        <version>",
            "| Spring Cloud Azure ",
        ),
        (
            Framework::Camel,
            "servicebus</artifactId>\n      <version>",
            "| Apache Camel ",
        ),
    ] {
        let pins = fs::read_to_string(framework.pins()).expect("it is part of the repository");
        let (_, version) = pins.split_once(pin).expect("it is pinned");
        let ends = |c: char| !c.is_ascii_digit() && c != '.';
        let version = version.split(ends).next().expect("a version");
        let name = format!("{named}{version}");
        assert!(readme.contains(&name), "{name:?} is not in README.md");
    }
}

fn camel_topology() -> Topology {
    Topology::new()
        .queue(Queue::new("orders"))
        .queue(Queue::new("in"))
        .queue(Queue::new("out"))
        .queue(Queue::new("carts").requires_session(true))
        .queue(Queue::new("fleeting"))
        .queue(Queue::new("poison").max_delivery_count(3))
        .queue(Queue::new("claims"))
        .queue(Queue::new("later"))
        .topic(Topic::new("prices").subscription(Subscription::new("alerts")))
}

async fn assert_camel(servicebus: &ServiceBus) {
    assert_completed!(servicebus.queue("orders"), count = 1).await;
    assert_completed!(servicebus.queue("out"), count = 4).await;
    assert_completed!(servicebus.queue("carts"), count = 1).await;
    assert_completed!(servicebus.subscription("prices", "alerts"), count = 1).await;
    assert_scheduled!(servicebus.queue("later"), count = 1).await;
    let poison = servicebus.queue("poison");
    assert_dead_lettered!(poison, reason = "MaxDeliveryCountExceeded").await;
    let claims = servicebus.timeline(&servicebus.queue("claims")).await;
    assert_eq!(claims.count(&EventKind::DeadLettered), 1, "{claims}");
    let fleeting = servicebus.timeline(&servicebus.queue("fleeting")).await;
    assert_eq!(
        fleeting.count(&EventKind::ReceivedAndDeleted),
        1,
        "{fleeting}"
    );
}

/// An application in Java.
struct Java {
    environment: PathBuf,
    name: &'static str,
}

impl Java {
    async fn ready(framework: Framework) -> Option<Self> {
        let environment = ready(Language::Framework(framework)).await?;
        let name = framework.name();
        Some(Self { environment, name })
    }

    /// Runs the application, of whose cases so many must pass.
    async fn run(
        &self,
        servicebus: &ServiceBus,
        connection_string: &str,
        options: &[String],
        cases: usize,
    ) {
        let mut command = Command::new("java");
        command
            .args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .args(options)
            .arg("-classpath")
            .arg(class_path(&self.environment))
            .arg("cases.Cases")
            .env("SERVICEBUS_CONNECTION_STRING", connection_string)
            .env("SERVICEBUS_CONTROL_URL", control_url(servicebus));
        let printed = run_within(DEADLINE, command, self.name).await;
        let passed = printed.lines().filter(|line| line.starts_with("passed "));
        assert_eq!(passed.count(), cases, "{printed}");
    }
}

async fn start(topology: Topology) -> ServiceBus {
    let starting = ServiceBus::builder().topology(topology).start();
    starting.await
}

fn settings(servicebus: &ServiceBus) -> ClientSettings {
    let settings = servicebus.client_settings();
    settings.expect("the emulator was started here")
}

/// What kombu and Celery are given: a key and the name of the namespace.
fn kombu_url(settings: &ClientSettings) -> String {
    let part = |name| part(&settings.connection_string, name);
    let (name, key) = (part("SharedAccessKeyName"), part("SharedAccessKey"));
    let namespace = settings.host.split('.').next().expect("a first label");
    format!("azureservicebus://{name}:{key}@{namespace}")
}

/// Appends the authority to the bundle of an environment, once: AMQP of the Python SDK looks nowhere else.
async fn trust(environment: &Path, settings: &ClientSettings) {
    let mut find = Command::new(environment::python(environment));
    find.args(["-m", "certifi"]);
    let bundle = PathBuf::from(run_within(DEADLINE, find, "certifi").await.trim());
    let read = |file: &Path| fs::read_to_string(file).expect("certificates can be read");
    let ca_file = settings.ca_file.as_ref();
    let authority = read(ca_file.expect("the emulator keeps an authority"));
    let before = read(&bundle);
    if before.contains(&authority) {
        return;
    }
    // Another run may read it now.
    let whole = bundle.with_extension("new");
    fs::write(&whole, before + "\n" + &authority).expect("a file can be written");
    fs::rename(whole, bundle).expect("a file can be replaced");
}
