//! Where a system has one loopback address the namespaces of a process share an emulator there, and processes take turns.
//!
//! Each test has such an address of its own, so that it waits for no other test: it runs in processes of its own,
//! whose environment names the address.

use std::{
    env, fs,
    hash::{BuildHasher as _, RandomState},
    io::{BufRead, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
};

use servicebus_harness::{ADDRESS_VARIABLE, Builder, MODE_VARIABLE, prelude::*};

use crate::harness::{assert_contains, orders, waiting::until_gone};
use servicebus_test_support::built;

/// Draws an address from 127.1.0.0 to 127.60.255.255, where no other namespace is.
fn any_address() -> Ipv4Addr {
    let [second, third, fourth, ..] = RandomState::new().hash_one("an address").to_be_bytes();
    Ipv4Addr::new(127, 1 + second % 60, third, fourth.clamp(1, 254))
}

/// A test in a process of its own, of this mode, whose namespaces all have this address.
fn again(address: Ipv4Addr, mode: Mode) -> Command {
    let mut command = built::rerun();
    command
        .env(ADDRESS_VARIABLE, address.to_string())
        .env(MODE_VARIABLE, mode.to_string())
        .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Plays a test's child in each mode that starts an emulator, and returns what each wrote to standard error.
pub(crate) fn in_both_modes() -> Vec<(Ipv4Addr, String)> {
    let played = [Mode::InProcess, Mode::Process].map(|mode| {
        let address = any_address();
        let output = again(address, mode).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let rendered = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{mode}: {rendered}\n{stderr}");
        (address, stderr)
    });
    played.to_vec()
}

/// The address that the environment names.
fn named_address() -> Ipv4Addr {
    env::var(ADDRESS_VARIABLE).unwrap().parse().unwrap()
}

async fn start(builder: Builder) -> ServiceBus {
    builder.start().await
}

async fn start_with_orders() -> ServiceBus {
    start(ServiceBus::builder().topology(orders())).await
}

#[test]
fn the_namespaces_of_a_process_share_an_emulator() {
    if built::is_child() {
        return built::run_child(share());
    }
    let played = in_both_modes();
    for (address, stderr) in played {
        let words = format!(
            "servicebus-harness: SERVICEBUS_HARNESS_ADDRESS is {address}: the namespaces of this process share one emulator there, and one process at a time uses it"
        );
        assert_eq!(stderr.matches(&words).count(), 1, "{stderr}");
    }
}

/// That they share nothing else is tested in `shared.rs`.
async fn share() {
    let (one, two) = (start_with_orders().await, start_with_orders().await);
    let endpoint = SocketAddr::from((named_address(), 5672));
    let endpoints = [one.endpoints().amqp, two.endpoints().amqp];
    assert_eq!(endpoints, [endpoint; 2]);
    let host = format!("Endpoint=sb://{};", named_address());
    assert!(one.connection_string().starts_with(&host));
}

#[test]
fn a_namespace_that_cannot_share_waits_for_the_others() {
    if built::is_child() {
        return built::run_child(wait_for_others());
    }
    in_both_modes();
}

async fn wait_for_others() {
    let two_namespaces = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/harness/fixtures/two_namespaces.json"
    );
    let alone = [
        ServiceBus::builder().topology(orders()).seed(17),
        ServiceBus::builder().topology(Topology::file(two_namespaces)),
        ServiceBus::builder().ports(8080, 8443),
    ];
    for builder in alone {
        let first = start_with_orders().await;
        let waiting = tokio::spawn(start(builder));
        // Others come and go meanwhile.
        let second = start_with_orders().await;
        drop(first);
        second.queue("orders").send("hello").await;
        assert_message_count!(second.queue("orders"), active = 1).await;
        assert!(!waiting.is_finished(), "it has started beside another");
        drop(second);
        let alone = waiting.await.unwrap();
        let endpoints = alone.endpoints();
        assert_eq!(endpoints.amqp, SocketAddr::from((named_address(), 5672)));
        alone.wait_idle().await;
        alone.stop().await;
        until_gone(endpoints.http);
    }
}

#[test]
fn processes_use_the_address_one_at_a_time() {
    if built::is_child() {
        return built::run_child(have_a_turn());
    }
    let address = any_address();
    let modes = [Mode::InProcess, Mode::Process, Mode::InProcess];
    let start = |mode| again(address, mode).spawn().unwrap();
    for test in modes.map(start) {
        let output = test.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let rendered = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{rendered}\n{stderr}");
    }
}

async fn have_a_turn() {
    let name = format!("servicebus-harness-turns-{}", named_address());
    let mark = env::temp_dir().join(name);
    for _ in 0..3 {
        let servicebus = start_with_orders().await;
        let made = fs::File::create_new(&mark);
        made.unwrap_or_else(|error| panic!("two at a time: {}: {error}", mark.display()));
        let orders = servicebus.queue("orders");
        orders.send("hello").await;
        assert_message_count!(orders, active = 1).await;
        fs::remove_file(&mark).unwrap();
        drop(servicebus);
    }
}

#[test]
fn a_killed_process_releases_its_lock() {
    if built::is_child() {
        return built::run_child(hold());
    }
    let address = any_address();
    for mode in [Mode::Process, Mode::InProcess] {
        let mut holder = again(address, mode).spawn().unwrap();
        until_printed(&mut holder, "has its turn");
        holder.kill().unwrap();
        holder.wait().unwrap();
    }
    let mut last = again(address, Mode::InProcess).spawn().unwrap();
    let _told = until_printed(&mut last, "has its turn");
    last.stdin.take().unwrap().write_all(b"enough\n").unwrap();
    assert!(last.wait().unwrap().success());
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn hold() {
    let servicebus = start_with_orders().await;
    println!("\nhas its turn");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    servicebus.stop().await;
}

/// Reads up to a line and returns the rest, without whose reader the child could not write.
fn until_printed(child: &mut Child, words: &str) -> impl BufRead + use<> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut rendered = output.by_ref().lines().map(Result::unwrap);
    assert!(
        rendered.any(|line| line == words),
        "it ended without a word"
    );
    output
}

#[test]
fn an_address_that_cannot_be_used_is_named() {
    if built::is_child() {
        return built::run_child(be_refused());
    }
    let mut test = built::rerun();
    let output = test.env(ADDRESS_VARIABLE, "localhost").output().unwrap();
    let rendered = String::from_utf8_lossy(&output.stdout);
    assert_contains(
        &rendered,
        "SERVICEBUS_HARNESS_ADDRESS is \"localhost\"; allowed: a loopback address of IPv4, such as 127.0.0.1",
    );
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn be_refused() {
    let started = ServiceBus::builder()
        .mode(Mode::InProcess)
        .start()
        .result()
        .await;
    println!("\n{}", started.unwrap_err());
}
