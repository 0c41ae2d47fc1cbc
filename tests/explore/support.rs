//! What the tests of one bug and its twin share: how they are explored, and how code under test connects.

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage, ServiceBusReceivedMessage,
    ServiceBusReceiver, ServiceBusSender, core::BasicRetryPolicy,
};
use serde_json::Value;
pub(crate) use servicebus_harness::{
    explore::{Effect, Explore, Party, Run},
    prelude::*,
};
use tokio::time::timeout;

/// How often each bug and each twin is explored as a whole, and each token repeated: `20,50,100`.
const REPEAT_VARIABLE: &str = "SERVICEBUS_EXPLORE_REPEAT";
/// Runs of a twin where nothing is repeated.
const QUICK_RUNS: u32 = 40;
/// Runs of a whole exploration.
const FULL_RUNS: u32 = 500;
const LONG: Duration = Duration::from_secs(600);
/// How long the code under test waits for an answer. azservicebus waits for some of them without end, for one that was lost
/// when it connects among them.
const TIMEOUT: Duration = Duration::from_secs(70);
/// How long it waits for a message before it asks again.
const WAIT: Duration = Duration::from_secs(60);

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;
pub(crate) type Client = ServiceBusClient<BasicRetryPolicy>;

/// Asserts that exploration finds the bug by this fault, `effect at operation`, and nothing in the twin, which has none.
///
/// Unless [`REPEAT_VARIABLE`] is set, the bug is explored by the effects of the fault alone, and the twin with at most
/// [`QUICK_RUNS`] runs.
#[track_caller]
pub(crate) fn finds<B: Copy, F>(
    bug: B,
    fault: &str,
    explore: impl Fn(Option<B>) -> Explore,
    test: impl Fn(Option<B>) -> F,
) where
    F: AsyncFn(&Run) + Send + Sync + 'static,
{
    let faults = faults(fault);
    let (with, without) = match repetitions() {
        None => {
            let effects = faults.iter().map(|(effect, _)| *effect);
            let quick = explore(Some(bug)).effects(effects);
            (quick, explore(None).budget(QUICK_RUNS))
        }
        Some([bugs, twins, replays]) => {
            let whole = |bug| explore(bug).budget(FULL_RUNS).within(LONG);
            for _ in 1..bugs {
                assert_found(fault, &whole(Some(bug)).result(test(Some(bug))));
            }
            for _ in 1..twins {
                assert_passes(whole(None).result(test(None)));
            }
            assert_repeats(&faults, replays, explore(Some(bug)), test(Some(bug)));
            (whole(Some(bug)), whole(None))
        }
    };
    assert_found(fault, &with.result(test(Some(bug))));
    assert_passes(without.result(test(None)));
}

/// The same where the queue `orders` is all that there is.
#[track_caller]
pub(crate) fn finds_in_orders<B: Copy, F>(bug: B, fault: &str, test: impl Fn(Option<B>) -> F)
where
    F: AsyncFn(&Run) + Send + Sync + 'static,
{
    finds(bug, fault, |_| Explore::new(orders()), test);
}

#[track_caller]
fn assert_found(fault: &str, explored: &Result<String, String>) {
    let report = explored.as_ref().expect_err("the bug is not found");
    // Another has no findings: the test fails without any fault.
    assert!(report.contains("replay: "), "{report}");
    let found = found();
    let is_told = found.iter().any(|found| found == fault);
    assert!(is_told, "{fault} is not among {found:#?}\n{report}");
}

#[track_caller]
fn assert_passes(explored: Result<String, String>) {
    let report = explored.err().unwrap_or_default();
    assert!(report.is_empty(), "found in the twin\n{report}");
}

/// Asserts that a token does the same each time.
fn assert_repeats<F>(faults: &[(Effect, &str)], times: usize, explore: Explore, test: F)
where
    F: AsyncFn(&Run) + Send + Sync + 'static,
{
    let faults = faults
        .iter()
        .map(|(effect, operation)| format!("{operation}={effect}"));
    let token = format!("x1:{}", Vec::from_iter(faults).join("+"));
    let explore = explore.faults(1).only("no operation").within(LONG);
    let again = (0..times).fold(explore, |explore, _| explore.always(&token));
    again.result(test).expect_err("the token fails");
    let report = report();
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{token} is told differently: {report:#}");
    let also = findings[0]["also"].as_array().unwrap();
    assert_eq!(also.len() + 1, times, "{report:#}");
}

fn faults(fault: &str) -> Vec<(Effect, &str)> {
    let faults = fault.split(" and ").map(|fault| {
        let (effect, operation) = fault.split_once(" at ").expect("`effect at operation`");
        let effect = Effect::ALL.iter().find(|known| known.name() == effect);
        (*effect.expect("there is such an effect"), operation)
    });
    faults.collect()
}

/// Returns what the report of this test for programs says.
fn report() -> Value {
    let target = env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let name = thread::current().name().unwrap().replace("::", "-");
    let file = format!("{target}/servicebus-explore/{name}.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Returns the faults of all runs that failed.
fn found() -> Vec<String> {
    let fault_of = |token: &Value| {
        let faults = token.as_str().unwrap().trim_start_matches("x1:").split('+');
        let faults = faults.filter_map(|fault| fault.rsplit_once('='));
        let faults = faults.map(|(operation, effect)| format!("{effect} at {operation}"));
        Vec::from_iter(faults).join(" and ")
    };
    let report = report();
    let findings = report["findings"].as_array().unwrap().iter();
    let tokens = findings.flat_map(|finding| {
        let also = finding["also"].as_array().unwrap();
        also.iter().chain([&finding["token"]])
    });
    tokens.map(fault_of).collect()
}

/// How often bugs and twins are explored and tokens repeated, where that is said.
pub(crate) fn repetitions() -> Option<[usize; 3]> {
    let text = env::var(REPEAT_VARIABLE).ok()?;
    let numbers = Vec::from_iter(text.split(',').map(|number| number.parse().ok()));
    match numbers[..] {
        [Some(bugs), Some(twins), Some(replays)] => Some([bugs, twins, replays]),
        _ => panic!("{REPEAT_VARIABLE} is \"{text}\"; it is three numbers, as in 20,50,100"),
    }
}

pub(crate) async fn with_timeout<T, E>(future: impl Future<Output = Result<T, E>>) -> Outcome<T>
where
    E: Into<Box<dyn Error>>,
{
    timeout(TIMEOUT, future).await?.map_err(Into::into)
}

/// Connects without the retries of the SDK, which reports a send that was refused as done when it has tried it again.
pub(crate) async fn connect(bus: &Party) -> Outcome<Client> {
    connect_retrying(bus, 0).await
}

/// Connects with so many retries of the SDK.
pub(crate) async fn connect_retrying(bus: &Party, retries: u32) -> Outcome<Client> {
    let mut options = ServiceBusClientOptions::default();
    options.retry_options.max_retries = retries;
    let connecting =
        ServiceBusClient::unsecured().new_from_connection_string(bus.connection_string(), options);
    with_timeout(Box::pin(connecting)).await
}

pub(crate) async fn receiver(client: &mut Client, queue: &str) -> Outcome<ServiceBusReceiver> {
    with_timeout(client.create_receiver_for_queue(queue, Default::default())).await
}

pub(crate) async fn sender(client: &mut Client, queue: &str) -> Outcome<ServiceBusSender> {
    with_timeout(client.create_sender(queue, Default::default())).await
}

/// Waits for the next message.
pub(crate) async fn next(receiver: &mut ServiceBusReceiver) -> Outcome<ServiceBusReceivedMessage> {
    loop {
        let receiving = receiver.receive_messages_with_max_wait_time(1, Some(WAIT));
        if let Some(message) = with_timeout(receiving).await?.pop() {
            return Ok(message);
        }
    }
}

/// Sends a message.
pub(crate) async fn send(sender: &mut ServiceBusSender, id: &str, body: &str) -> Outcome {
    let mut message = ServiceBusMessage::new(body);
    message.set_message_id(id)?;
    with_timeout(sender.send_message(message)).await
}

pub(crate) fn id(message: &ServiceBusReceivedMessage) -> String {
    message
        .message_id()
        .expect("a message has an id")
        .into_owned()
}

/// How often something happened to each order, which outlives a crash: a table with a row for each.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountTable(Arc<Mutex<BTreeMap<String, u32>>>);

impl CountTable {
    pub(crate) fn add(&self, id: &str) {
        *self.0.lock().unwrap().entry(id.to_owned()).or_default() += 1;
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.lock().unwrap().contains_key(id)
    }

    #[track_caller]
    pub(crate) fn assert_once(&self, ids: &[&str]) {
        let expected = ids.iter().map(|id| ((*id).to_owned(), 1)).collect();
        assert_eq!(*self.0.lock().unwrap(), expected);
    }
}

pub(crate) fn orders() -> Topology {
    Topology::new().queue(Queue::new("orders"))
}

pub(crate) const IDS: [&str; 3] = ["o-1", "o-2", "o-3"];

pub(crate) async fn put_orders(run: &Run) {
    let orders = IDS.map(|id| Message::from("12.50").message_id(id));
    run.queue("orders").send_all(orders).await;
}

pub(crate) async fn put_order(run: &Run, id: &str) {
    let order = Message::from("{}").message_id(id);
    run.queue("orders").send(order).await;
}

/// Returns the bodies of the messages in a queue, sorted.
pub(crate) async fn bodies(run: &Run, queue: &str) -> Vec<String> {
    let messages = run.queue(queue).peek().await;
    let bodies = messages
        .iter()
        .map(|message| message.body_text().into_owned());
    let mut bodies = Vec::from_iter(bodies);
    bodies.sort();
    bodies
}
