//! Tests that run side by side do not meet, and none leaves anything behind.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, TcpListener},
    panic,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use servicebus_harness::prelude::*;
use tokio::task::JoinSet;

use crate::harness::{error_of, namespace_with_orders, waiting::until_gone, within};

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_namespaces_are_isolated() {
    let buses = fifty_namespaces().await;
    let addresses: HashSet<_> = buses.iter().map(|bus| bus.endpoints().amqp).collect();
    assert_eq!(addresses.len(), 50);
}

/// Starts namespaces side by side; each has its own message and no other.
pub(crate) async fn fifty_namespaces() -> Vec<ServiceBus> {
    let mut tests = JoinSet::new();
    for number in 0..50 {
        tests.spawn(async move {
            let (servicebus, orders) = namespace_with_orders().await;
            orders.send(format!("message of test {number}")).await;
            let messages = orders.peek().await;
            assert_eq!(messages.len(), 1);
            assert_eq!(messages[0].body_text(), format!("message of test {number}"));
            servicebus
        });
    }
    tests.join_all().await
}

#[tokio::test]
async fn the_ports_are_the_default_ports() {
    let servicebus = ServiceBus::start().await;
    assert_eq!(servicebus.endpoints().amqp.port(), 5672);
    assert_eq!(servicebus.endpoints().http.port(), 5300);
    let host = servicebus.endpoints().amqp.ip();
    assert!(
        servicebus
            .connection_string()
            .starts_with(&format!("Endpoint=sb://{host};"))
    );
    assert_eq!(
        servicebus.control_url(),
        format!("http://{host}:5300/$emulator/v1")
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn operations_work_on_a_paused_runtime() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send("hello").await;
    assert_message_count!(orders, active = 1).await;
    assert_eq!(orders.receive_and_delete().await.body_text(), "hello");
    assert_completed!(orders, count = 0).await;

    // A deadline of the harness is real time, which the pause does not skip.
    let started = std::time::Instant::now();
    let nothing = orders
        .receive_within(Duration::from_millis(200))
        .result()
        .await;
    assert!(nothing.is_err());
    assert!(started.elapsed() >= Duration::from_millis(200));
}

#[test]
fn operations_work_on_any_executor() {
    block_on(async {
        let (servicebus, _) = namespace_with_orders().await;
        servicebus.queue("orders").send("hello").await;
        assert_message_count!(servicebus.queue("orders"), active = 1).await;
    });
}

#[test]
fn a_panicking_test_ends_its_emulator() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let test = thread::spawn(move || {
        block_on(async {
            let (servicebus, orders) = namespace_with_orders().await;
            orders.send("hello").await;
            let _locked = orders.receive().await;
            sender.send(servicebus.endpoints()).unwrap();
            panic::resume_unwind(Box::new("the test fails here"));
        });
    });
    assert!(test.join().is_err());
    let endpoints = receiver.recv().unwrap();
    until_gone(endpoints.amqp);
    until_gone(endpoints.http);
}

#[tokio::test]
async fn a_namespace_ends_although_its_handles_remain() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("hello").message_id("o-17")).await;
    let locked = orders.receive().await;
    let clock = servicebus.clock();
    let address = servicebus.endpoints().amqp;
    drop(servicebus);
    until_gone(address);
    let ended = "the namespace has ended, because its `ServiceBus` was stopped or dropped; keep that until the last operation";
    assert_eq!(error_of(clock.freeze()).await, ended);
    for (operation, error) in [
        (
            "settle #1 \"hello\" (message-id o-17) of orders",
            error_of(locked.complete()).await,
        ),
        (
            "count the messages of orders",
            error_of(orders.counts()).await,
        ),
        ("send to orders", error_of(orders.send("again")).await),
        ("receive from orders", error_of(orders.receive()).await),
    ] {
        assert_eq!(error, format!("cannot {operation}: {ended}"));
    }
}

#[tokio::test]
async fn a_receive_under_way_names_the_end_of_its_namespace() {
    let (servicebus, orders) = namespace_with_orders().await;
    let attached = servicebus.faults().on(Operation::Attach).entity("orders");
    let attached = attached.delay_real(Duration::from_millis(1)).await;
    let receiving = tokio::spawn(async move { orders.receive().result().await });
    while attached.hits().await == 0 {
        tokio::task::yield_now().await;
    }
    drop(servicebus);
    let error = within(receiving).await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot receive from orders: the namespace has ended, because its `ServiceBus` was stopped or dropped; keep that until the last operation"
    );
}

#[tokio::test]
async fn stopping_waits_for_the_end() {
    let (servicebus, _) = namespace_with_orders().await;
    let address = servicebus.endpoints().amqp;
    servicebus.stop().await;
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn a_cancelled_receive_takes_no_message() {
    let (_servicebus, orders) = namespace_with_orders().await;
    for _ in 0..20 {
        let waiting = orders.receive_within(Duration::from_secs(60)).result();
        let cancelled = tokio::time::timeout(Duration::from_millis(5), waiting).await;
        assert!(cancelled.is_err());
        orders.send("hello").await;
        assert_eq!(orders.receive_and_delete().await.body_text(), "hello");
    }
}

#[tokio::test]
async fn a_receive_that_is_cancelled_when_its_message_is_there_gives_it_back() {
    let topology = Topology::new()
        .queue(Queue::new("orders"))
        .queue(Queue::new("carts").requires_session(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let (orders, carts) = (servicebus.queue("orders"), servicebus.queue("carts"));
    carts.send(Message::from("first").session_id("s")).await;
    let cart = carts.accept_session("s").await;
    let received = cart.receive().await;
    received.complete().await;
    let mut waiting = Box::pin(orders.receive().result().into_future());
    let mut waiting_in_session = Box::pin(cart.receive().result().into_future());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    assert!(waiting_in_session.as_mut().poll(&mut context).is_pending());
    orders.send("hello").await;
    carts.send(Message::from("second").session_id("s")).await;
    // The messages are with the client, whose futures are not polled any more.
    assert_message_count!(orders, locked = 1).await;
    assert_message_count!(carts, locked = 1).await;
    drop((waiting, waiting_in_session));
    assert_eq!(orders.receive().await.delivery_count(), 1);
    assert_eq!(cart.receive().await.body_text(), "second");
}

/// The smallest executor there is.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[tokio::test]
async fn ports_in_use_are_named_with_their_addresses() {
    let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let bus = ServiceBus::builder().mode(Mode::InProcess);
    let text = error_of(bus.ports(port, 8443).start()).await;
    assert!(
        text.starts_with(
            "no free loopback address after 16 attempts; the last error was: cannot listen on 127."
        ),
        "{text}"
    );
    assert!(text.contains(&format!(":{port}: ")), "{text}");
}

#[tokio::test]
async fn ports_that_the_namespace_uses_itself_are_refused() {
    for ((http, https), why) in [
        (
            (5672, 8443),
            "the port 5672 in `ports` is that of AMQP; choose another",
        ),
        (
            (8080, 5671),
            "the port 5671 in `ports` is that of AMQP; choose another",
        ),
        (
            (8080, 8080),
            "the port 8080 is twice in `ports`; HTTP over TLS needs one of its own",
        ),
    ] {
        let bus = ServiceBus::builder().ports(http, https);
        assert_eq!(error_of(bus.start()).await, why);
    }
}
