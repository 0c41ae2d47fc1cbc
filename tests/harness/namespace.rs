//! Mode `Namespace`: nothing is started, everything goes over TLS by a connection string, and nothing stays.
//!
//! The namespace is that of an emulator in a process of its own. The environment says which one it is and whom to trust,
//! so each test plays its part in a process that is started with that environment.

use std::{
    collections::HashMap,
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use servicebus_harness::{
    CONNECTION_STRING_VARIABLE, KEEP_VARIABLE, MODE_VARIABLE, UNCHECKED_VARIABLE, prelude::*,
};

use crate::harness::{assert_contains, error_of, orders};
use servicebus_test_support::built;

mod cleanup;

const SECOND: Duration = Duration::from_secs(1);

/// An emulator of which a child knows a connection string and the authority.
struct ExternalNamespace {
    servicebus: ServiceBus,
    authority: PathBuf,
}

impl ExternalNamespace {
    async fn start() -> Self {
        let bus = ServiceBus::builder().mode(Mode::Process);
        let bus = bus.binary(built::emulator()).topology(Topology::new());
        let servicebus = bus.start().await;
        let host = servicebus.endpoints().amqps.ip();
        let authority = env::temp_dir().join(format!("servicebus-harness-test-{host}.pem"));
        fs::write(&authority, servicebus.ca_certificate_pem().await).unwrap();
        Self {
            servicebus,
            authority,
        }
    }

    /// The test in a process that knows nothing else of the emulator.
    fn command(&self) -> Command {
        let mut command = built::rerun();
        let string = self.servicebus.tls_admin_connection_string();
        command
            .env(MODE_VARIABLE, "namespace")
            .env(CONNECTION_STRING_VARIABLE, string)
            .env("SSL_CERT_FILE", &self.authority)
            .env_remove("SSL_CERT_DIR");
        command
    }

    /// Plays the test, and returns what it said.
    async fn run_child(&self) -> String {
        output(self.command()).await.1
    }

    async fn assert_passes(&self) {
        let (succeeded, output_text) = output(self.command()).await;
        assert!(succeeded, "{output_text}");
    }

    /// Whether the emulator has a queue of this name.
    async fn has(&self, queue: &str) -> bool {
        match self.servicebus.queue(queue).counts().result().await {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::EntityNotFound => false,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Drop for ExternalNamespace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.authority);
    }
}

/// Whether a process succeeds, and what it says.
async fn output(mut command: Command) -> (bool, String) {
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let output_text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8(output_text).unwrap(),
    )
}

/// Runs the part of the test in a child, else the test around it.
fn with_child(part: impl Future<Output = ()>, whole: impl AsyncFnOnce(&ExternalNamespace)) {
    if built::is_child() {
        return built::run_child(part);
    }
    built::run_child(async {
        let external = ExternalNamespace::start().await;
        whole(&external).await;
    });
}

#[test]
fn clients_and_assertions_work_and_entities_are_deleted() {
    with_child(work(), async |external| {
        external.assert_passes().await;
        for queue in ["orders", "inbox", "later"] {
            assert!(!external.has(queue).await, "{queue} was left");
        }
        let topics = external.servicebus.topic("prices").counts().result().await;
        assert_eq!(topics.unwrap_err().kind(), ErrorKind::EntityNotFound);
    });
}

async fn work() {
    let high =
        Subscription::new("high").rule(Rule::sql("high", "price > 10").action("SET seen = 1"));
    let prices = Topic::new("prices").subscription(high.rule(Rule::sql("low", "price < 0")));
    let carts = Queue::new("carts").requires_session(true);
    let topology = orders()
        .queue(Queue::new("inbox").forward_to("orders"))
        .queue(carts);
    let bus = ServiceBus::builder().topology(topology.topic(prices));
    let servicebus = bus.max_real_wait(SECOND).start().await;
    assert_eq!(servicebus.mode(), Mode::Namespace);
    let string = servicebus.connection_string();
    assert!(!string.contains("UseDevelopmentEmulator"), "{string}");

    poison(&servicebus).await;
    topics(&servicebus).await;
    let carts = servicebus.queue("carts");
    carts.send(Message::from("add").session_id("cart-7")).await;
    let cart = carts.accept_session("cart-7").await;
    cart.receive().await.complete().await;
    cart.set_state("paying").await;
    cart.close().await;
    assert_session_state!(carts, session = "cart-7", text = "paying").await;

    let later = servicebus.create_queue(Queue::new("later")).await;
    later
        .update(|queue| queue.status(EntityStatus::SendDisabled))
        .await;
    let refused = error_of(later.send("no")).await;
    assert_contains(&refused, "entity-disabled");
    servicebus.clock().advance(SECOND).await;
    unchecked(&servicebus).await;
    hints(&servicebus).await;
    surroundings(&servicebus);
    servicebus.stop().await;
}

/// The keys are those of the namespace, and a child process finds it as the test did.
fn surroundings(servicebus: &ServiceBus) {
    let string = servicebus.connection_string();
    assert_eq!(servicebus.connection_string_with(Claims::ALL), string);
    let limited = || servicebus.connection_string_with(Claims::LISTEN);
    let panic = panic::catch_unwind(AssertUnwindSafe(limited)).unwrap_err();
    let panic = panic.downcast::<String>().unwrap();
    assert_contains(&panic, "no key with the rights \"Listen\"");

    let found: HashMap<_, _> = servicebus.env().into_iter().collect();
    assert_eq!(found[CONNECTION_STRING_VARIABLE], string);
    let authority = env::var("SSL_CERT_FILE").unwrap();
    for name in ["SERVICEBUS_CA_FILE", "SSL_CERT_FILE"] {
        assert_eq!(found[name], authority);
    }
}

async fn poison(servicebus: &ServiceBus) {
    let (orders, inbox) = (servicebus.queue("orders"), servicebus.queue("inbox"));
    let message = Message::from("not json").message_id("o-17");
    inbox.send(message).await;
    for delivery in 1..=3 {
        let received = orders.receive().await;
        assert_eq!(received.delivery_count(), delivery);
        received.abandon().await;
    }
    let reason = "MaxDeliveryCountExceeded";
    assert_dead_lettered!(orders, reason = reason, message_id = "o-17", count = 1).await;
    orders.send("deferred").await;
    let number = orders.receive().await.defer().await;
    assert_message_count!(orders, active = 1, deferred = 1, dead_letter = 1).await;
    orders.receive_deferred(number).await.complete().await;
    assert_empty!(orders).await;
    let number = orders.schedule("reminder", 600 * SECOND).await;
    assert_scheduled!(orders, due_in = 600 * SECOND, tolerance = 30 * SECOND).await;
    orders.cancel_scheduled(number).await;
}

async fn topics(servicebus: &ServiceBus) {
    let prices = servicebus.topic("prices");
    let high = prices.subscription("high");
    for price in [5, 12, -1] {
        let message = Message::from("{}").application_property("price", price);
        prices.send(message).await;
    }
    assert_message_count!(high, active = 2).await;
    let message = high.receive().await;
    assert_eq!(message.application_properties["seen"].to_string(), "1");
    message.complete().await;
}

/// What only an emulator knows is an error that says so.
async fn unchecked(servicebus: &ServiceBus) {
    let orders = servicebus.queue("orders");
    let counted = orders.expect_message_count().locked(0);
    let errors = [
        orders.expect_completed().await.unwrap_err().to_string(),
        counted.await.unwrap_err().to_string(),
        error_of(servicebus.wait_idle_within(SECOND)).await,
        error_of(servicebus.reset()).await,
        error_of(servicebus.topology()).await,
    ];
    let expected = [
        "the record of message events",
        "how many messages of orders are locked",
        "whether the namespace is idle",
        "a reset",
        "an export of the topology",
    ];
    for (error, what) in errors.iter().zip(expected) {
        let is_reported = error.contains("could not check: ") && error.contains(what);
        assert!(is_reported, "{error}");
    }
    let clock = servicebus.clock();
    let waited = clock.advance(2 * SECOND).result().await.unwrap_err();
    assert_eq!(waited.kind(), ErrorKind::Unsupported);
    let waited = waited.to_string();
    assert!(
        waited.contains("what happens after 2 s") && waited.contains("is 1 s"),
        "{waited}"
    );
    let missing = error_of(servicebus.queue("ordres").send("x")).await;
    assert_contains(&missing, "there is no queue \"ordres\"");
}

/// Hints claim and advise nothing that needs the record or the clock of an emulator.
async fn hints(servicebus: &ServiceBus) {
    let orders = servicebus.queue("orders");
    orders.dead_letters().purge().await;
    orders.send("12").await;
    orders.receive().await.abandon().await;
    let empty = || orders.expect_empty().within(SECOND / 100);
    let text = empty().await.unwrap_err().to_string();
    assert!(!text.contains("hint: "), "{text}");

    let reason = "TTLExpiredException";
    orders.receive().await.dead_letter(reason, "").await;
    let rejected = orders.expect_dead_lettered().reason("Rejected");
    let text = rejected.within(SECOND / 100).await.unwrap_err().to_string();
    let hint = "\nhint: the message expired; raise its time to live";
    assert!(text.ends_with(hint), "{text}");
    orders.dead_letters().purge().await;

    let message = Message::from("later").message_id("o-18");
    let number = orders.schedule(message, 600 * SECOND).await;
    let text = empty().await.unwrap_err().to_string();
    let (_, hint) = text
        .split_once("\nhint: o-18 is scheduled and due in ")
        .unwrap();
    assert!(!hint.contains(';'), "{text}");
    orders.cancel_scheduled(number).await;
}

#[test]
fn uncheckable_assertions_are_skipped_and_reported_on_request() {
    let skips = async {
        let servicebus = ServiceBus::builder().topology(orders()).start().await;
        let orders = servicebus.queue("orders");
        assert_completed!(orders).await;
        assert_message_count!(orders, locked = 0).await;
        orders.expect_empty().await.unwrap();
        orders.send("left").await;
        let failed = orders.expect_empty().within(SECOND / 100).await;
        failed.expect_err("what can be checked still is");
    };
    with_child(skips, async |external| {
        let mut command = external.command();
        command.env(UNCHECKED_VARIABLE, "skip");
        let (succeeded, output_text) = output(command).await;
        assert!(succeeded, "{output_text}");
        let expected = [
            "SERVICEBUS_HARNESS_UNCHECKED: 2 assertions skipped\n",
            "  Completed of orders: ",
            "  MessageCount of orders: ",
        ];
        for expected in expected {
            assert_contains(&output_text, expected);
        }
        let mut command = external.command();
        command.env(UNCHECKED_VARIABLE, "Skip");
        let (succeeded, output_text) = output(command).await;
        assert!(!succeeded, "{output_text}");
        let refused = "SERVICEBUS_HARNESS_UNCHECKED is \"Skip\"; allowed: skip";
        assert_contains(&output_text, refused);
    });
}

#[test]
fn the_leak_check_covers_entities_of_the_test() {
    let leaks = async {
        let bus = ServiceBus::builder().topology(orders()).leak_check(true);
        let servicebus = bus.start().await;
        servicebus.queue("orders").send("left").await;
    };
    with_child(leaks, async |external| {
        let theirs = external.servicebus.create_queue(Queue::new("theirs"));
        theirs.await.send("kept").await;
        let (succeeded, output_text) = output(external.command()).await;
        assert!(!succeeded, "{output_text}");
        let expected = "orders: expected no messages when the test ended, found 1 active";
        assert_contains(&output_text, expected);
        for unknown in ["timeline of", "was ever sent", "theirs"] {
            assert!(!output_text.contains(unknown), "{output_text}");
        }
        assert!(!external.has("orders").await, "orders was left");
        assert!(external.has("theirs").await, "theirs was removed");
    });
}

#[test]
fn a_namespace_that_is_kept_is_removed_when_enter_is_pressed() {
    let fails = async {
        let bus = ServiceBus::builder().topology(orders());
        let _servicebus = bus.start().await;
        panic!("as a failed assertion does");
    };
    with_child(fails, async |external| {
        let mut command = external.command();
        command.env(KEEP_VARIABLE, "1").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut rendered = |what: &str| {
            let mut lines = stderr.by_ref().map(Result::unwrap);
            lines.find(|line| line.contains(what)).unwrap()
        };
        rendered("connection string");
        rendered("it ends when you press Enter");
        assert!(external.has("orders").await, "orders was not kept");
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!external.has("orders").await, "orders was left");
    });
}

#[test]
fn uses_of_a_namespace_are_sequential() {
    let two = async {
        let start = || ServiceBus::builder().topology(orders()).start();
        let first = start().await;
        let mut second = tokio::spawn(start());
        first.queue("orders").send("of the first").await;
        let early = tokio::time::timeout(SECOND / 4, &mut second).await;
        assert!(early.is_err(), "the second has to wait");
        first.stop().await;
        let second = second.await.unwrap();
        assert_empty!(second.queue("orders")).await;
    };
    with_child(two, async |external| {
        external.assert_passes().await;
    });
}

#[test]
fn prefixed_uses_are_parallel() {
    let two = async {
        let inbox = Queue::new("inbox").forward_to("orders");
        let audit = Subscription::new("audit").forward_to("orders");
        let topology = orders()
            .queue(inbox)
            .topic(Topic::new("prices").subscription(audit));
        let builder = ServiceBus::builder().topology(topology.message("orders", "declared"));
        let builder = builder.prefixed();
        let (first, second) = (builder.clone().start().await, builder.start().await);
        let orders = first.queue("orders");
        assert!(orders.name().starts_with("test-"), "{}", orders.name());
        assert!(orders.name().ends_with("-orders"), "{}", orders.name());
        assert_eq!(first.queue(orders.name()).name(), orders.name());
        first.queue("inbox").send("forwarded").await;
        first.topic("prices").send("published").await;
        let late = Queue::new("late").forward_to("inbox");
        let late = first.create_queue(late).await;
        late.send("forwarded twice").await;
        assert_message_count!(orders, active = 4).await;
        assert_message_count!(second.queue("orders"), active = 1).await;
        let missing = first.queue("ordres").counts().result().await;
        let missing = missing.unwrap_err().to_string();
        let second_name = second.queue("orders").name().to_owned();
        assert!(missing.contains(orders.name()), "{missing}");
        assert!(!missing.contains(&second_name), "{missing}");
        first.stop().await;
        assert_message_count!(second.queue("orders"), active = 1).await;
    };
    with_child(two, async |external| {
        external.assert_passes().await;
        let left = external.servicebus.topology().await.json().unwrap();
        assert!(!left.contains("test-"), "{left}");
    });
}

#[tokio::test]
async fn no_prefix_without_a_shared_namespace() {
    let builder = ServiceBus::builder().topology(orders());
    let servicebus = builder.prefixed().start().await;
    assert_eq!(servicebus.queue("orders").name(), "orders");
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn an_unreachable_or_untrusted_namespace_is_explained() {
    let external = ExternalNamespace::start().await;
    let string = external.servicebus.tls_admin_connection_string();
    let entity = format!("{string};EntityPath=orders");
    let cases = [
        (
            "nothing at all",
            "is not a connection string: part 1 has no '='",
        ),
        (entity.as_str(), "belongs to the entity \"orders\" only"),
        // This process was not told which authority to trust.
        (string, "SSL_CERT_FILE must name its ca.pem"),
        (
            "Endpoint=sb://127.0.0.9;SharedAccessKeyName=n;SharedAccessKey=k",
            "the administration API at 127.0.0.9 (127.0.0.9:443) does not answer: ",
        ),
    ];
    for (string, expected) in cases {
        let bus = ServiceBus::builder()
            .mode(Mode::Namespace)
            .connection_string(string);
        let error = bus.start().result().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Namespace);
        assert_contains(&error, expected);
    }
}

#[test]
fn an_unknown_key_is_explained() {
    #[expect(clippy::print_stdout, reason = "the test below reads it")]
    let refused = async {
        let error = ServiceBus::builder().start().result().await.unwrap_err();
        println!("\n{error}");
    };
    with_child(refused, async |external| {
        let string = external.servicebus.tls_admin_connection_string();
        let wrong = string.replace("SharedAccessKey=", "SharedAccessKey=wrong");
        let mut command = external.command();
        command.env(CONNECTION_STRING_VARIABLE, wrong);
        let (_, rendered) = output(command).await;
        let endpoint = external.servicebus.endpoints().http;
        let words = format!(
            "cannot use the namespace at {endpoint}: SubCode=40103. Invalid signature: unauthorized access to '$namespaceinfo': the signature does not match the key named \"RootManageSharedAccessKey\"."
        );
        assert_contains(&rendered, &words);
        let advice = "; SERVICEBUS_CONNECTION_STRING takes the connection string of a key of the whole namespace with the claim Manage: in the portal under \"Shared access policies\", for an emulator the `admin_connection_string` of its ready line\n";
        assert_contains(&rendered, advice);
    });
}
