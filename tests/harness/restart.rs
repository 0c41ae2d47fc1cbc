//! An emulator that ends and comes back: what its namespace held is there, at the same address, and the record goes on.

use std::{fs, time::Duration};

use rstest::rstest;
use servicebus_harness::{EventKind, prelude::*};
use servicebus_test_support::{
    built,
    frame::{AMQP_HEADER, CLOSE, Frame, OPEN, SASL_HEADER, performative, sasl_init},
    temporary::TemporaryDirectory,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::{assert_contains, error_of, faults::failure, orders, within};

/// A bus that keeps what it holds.
async fn durable(mode: Mode) -> (ServiceBus, QueueClient) {
    let builder = ServiceBus::builder()
        .topology(orders())
        .mode(mode)
        .durable();
    let servicebus = builder.binary(built::emulator()).start().await;
    let orders = servicebus.queue("orders");
    (servicebus, orders)
}

#[rstest]
#[case(Mode::InProcess, false)]
#[case(Mode::InProcess, true)]
#[case(Mode::Process, false)]
#[case(Mode::Process, true)]
#[tokio::test]
async fn accepted_messages_survive_a_restart(#[case] mode: Mode, #[case] crashes: bool) {
    let (servicebus, orders) = durable(mode).await;
    let before = (
        servicebus.connection_string().to_owned(),
        servicebus.endpoints(),
    );
    for id in ["done", "locked", "later", "left"] {
        orders.send(Message::from(id).message_id(id)).await;
    }
    orders.receive().await.complete().await;
    let locked = orders.receive().await;
    orders.receive().await.defer().await;
    servicebus.clock().advance(Duration::from_secs(30)).await;
    match crashes {
        true => servicebus.crash().await,
        false => servicebus.restart().await,
    }

    let after = (
        servicebus.connection_string().to_owned(),
        servicebus.endpoints(),
    );
    assert_eq!(before, after);
    assert_message_count!(orders, active = 3, deferred = 1, locked = 0).await;
    let error = locked.complete().result().await.unwrap_err().to_string();
    let reason = ": amqp:connection:forced: The emulator is stopping.";
    assert_eq!(error.ends_with(reason), !crashes, "{error}");
    let again = orders.receive().await;
    assert_eq!(
        (again.message_id.as_deref(), again.delivery_count),
        (Some("locked"), 1)
    );
    again.complete().await;

    // The record goes over the end of the emulator, for assertions as for readers.
    assert_completed!(orders, count = 2).await;
    assert_completed!(orders, message_id = "done", count = 1).await;
    assert_delivered!(orders, body = "locked", times = 2).await;
    let timeline = servicebus.timeline(&orders).await;
    let ended = match crashes {
        true => EventKind::Crashed,
        false => EventKind::Restarted,
    };
    assert_eq!(timeline.count(&ended), 1);
    let of_one = timeline.of_message("locked");
    let kinds = of_one.events().iter().map(|event| event.kind.name());
    let ended = ended.name();
    let expected = [
        "sent",
        "delivered",
        "clock-advanced",
        &ended,
        "lock-expired",
        "delivered",
        "completed",
    ];
    assert_eq!(Vec::from_iter(kinds), expected, "{of_one}");
    let offsets: Vec<f64> = of_one.events().iter().map(|event| event.offset).collect();
    assert!(offsets.is_sorted() && offsets[3] >= 30.0, "{offsets:?}");
}

/// Reads frames up to one with this code, or to the end of the connection, and returns their codes.
async fn codes_up_to(code: u8, stream: &mut TcpStream) -> Vec<u8> {
    let (mut input, mut codes) = (Vec::new(), Vec::new());
    while !codes.contains(&code) {
        // A crash may reset the connection.
        if !matches!(stream.read_buf(&mut input).await, Ok(1..)) {
            break;
        }
        loop {
            if input.starts_with(AMQP_HEADER) || input.starts_with(SASL_HEADER) {
                input.drain(..AMQP_HEADER.len());
            }
            let Some(frame) = Frame::split_off(&mut input) else {
                break;
            };
            codes.push(frame.code);
        }
    }
    codes
}

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn a_crash_breaks_connections_without_a_close_frame(#[case] mode: Mode) {
    let (servicebus, _) = durable(mode).await;
    let open = performative(0, OPEN, &["raw".to_owned().into()], &[]);
    let login = sasl_init("ANONYMOUS", b"");
    let handshake = [&SASL_HEADER[..], &login, AMQP_HEADER, &open].concat();
    let mut streams = Vec::new();
    // Several, because a signal to stop would reach only some of them.
    for _ in 0..8 {
        let connected = TcpStream::connect(servicebus.endpoints().amqp).await;
        let mut stream = connected.expect("it listens");
        stream.write_all(&handshake).await.expect("it reads");
        assert!(within(codes_up_to(OPEN, &mut stream)).await.contains(&OPEN));
        streams.push(stream);
    }
    servicebus.crash().await;
    for mut stream in streams {
        let codes = within(codes_up_to(CLOSE, &mut stream)).await;
        assert!(codes.is_empty(), "{codes:?}");
    }
}

#[tokio::test]
async fn repeated_restarts() {
    let (servicebus, orders) = durable(Mode::InProcess).await;
    for number in 1..=4 {
        orders.send("one").await;
        match number % 2 {
            0 => servicebus.restart().await,
            _ => servicebus.crash().await,
        }
        assert_message_count!(orders, active = number).await;
    }
    let timeline = servicebus.timeline(&orders).await;
    assert_eq!(timeline.count(&EventKind::Sent), 4);
    servicebus.stop().await;
}

#[tokio::test]
async fn a_data_directory_outlives_its_service_bus() {
    let directory = TemporaryDirectory::unused();
    let topology = orders().message("orders", "the first").dead_letter(
        "orders",
        "bad",
        "Rejected",
        "it is bad",
    );
    for held in 1..4 {
        let builder = ServiceBus::builder().topology(topology.clone());
        let servicebus = builder.data(&directory.0).start().await;
        let orders = servicebus.queue("orders");
        assert_message_count!(orders, active = held).await;
        assert_dead_lettered!(orders, description = "it is bad", count = 1).await;
        orders.send("one more").await;
        servicebus.stop().await;
    }
}

#[tokio::test]
async fn a_start_waits_for_the_directory_of_a_dropped_service_bus() {
    let directory = TemporaryDirectory::unused();
    for held in 0..5 {
        let builder = ServiceBus::builder().topology(orders());
        let builder = builder.mode(Mode::InProcess).data(&directory.0);
        let servicebus = builder.start().await;
        let orders = servicebus.queue("orders");
        assert_message_count!(orders, active = held).await;
        orders.send("one more").await;
    }
}

#[tokio::test]
async fn a_reset_removes_the_record_from_before_a_restart() {
    let (servicebus, orders) = durable(Mode::InProcess).await;
    orders.send("done").await;
    orders.receive().await.complete().await;
    servicebus.restart().await;
    assert_completed!(orders, count = 1).await;
    servicebus.reset().await;
    assert_completed!(orders, count = 0, "after {what}", what = "a reset").await;
}

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn a_restart_that_failed_can_be_repeated(#[case] mode: Mode) {
    let directory = TemporaryDirectory::unused();
    let builder = ServiceBus::builder().topology(orders()).mode(mode);
    let builder = builder.binary(built::emulator()).data(&directory.0);
    let servicebus = builder.start().await;
    let orders = servicebus.queue("orders");
    orders.send("kept").await;
    let format = directory.0.join("FORMAT");
    let written = fs::read_to_string(&format).unwrap();
    fs::write(&format, "servicebus-emulator data 99\n").unwrap();
    for _ in 0..2 {
        let error = error_of(servicebus.crash()).await;
        assert_contains(&error, "has format 99 of a newer emulator");
    }
    fs::write(&format, written).unwrap();
    servicebus.restart().await;
    assert_message_count!(orders, active = 1).await;
    let timeline = servicebus.timeline(&orders).await;
    let counts = [EventKind::Sent, EventKind::Crashed].map(|kind| timeline.count(&kind));
    assert_eq!(counts, [1, 1], "{timeline}");
    servicebus.restart().await;
    let timeline = servicebus.timeline(&orders).await;
    assert_eq!(timeline.count(&EventKind::Restarted), 1, "{timeline}");
    servicebus.stop().await;
}

#[tokio::test]
async fn a_restart_ends_the_faults_before_it() {
    let failure = failure(async {
        let (servicebus, orders) = durable(Mode::InProcess).await;
        let fired = servicebus
            .faults()
            .on(Operation::Send)
            .delay_real(Duration::from_millis(1))
            .await;
        orders.send("one").await;
        let unfired = servicebus.faults().on(Operation::Send).nth(2);
        unfired.delay_real(Duration::from_millis(1)).await;
        servicebus.restart().await;
        let error = error_of(fired.hits()).await;
        let ended = "the fault ended with the emulator, which was restarted since";
        assert_eq!(error, ended);
        let later = servicebus.faults().on(Operation::Send).nth(1);
        let later = later.delay_real(Duration::from_millis(1)).await;
        assert_eq!(error_of(fired.remove()).await, ended);
        orders.send("two").await;
        assert_eq!(later.hits().await, 1);
    });
    let failure = failure.await;
    let first = failure.lines().next();
    let expected = "a fault never fired: on(Operation::Send).nth(2)";
    assert!(
        first.is_some_and(|line| line.starts_with(expected)),
        "{failure}"
    );
    assert_eq!(failure.matches("never fired").count(), 1, "{failure}");
}

#[tokio::test]
async fn a_start_that_cannot_send_its_messages_says_so_in_spite_of_the_leak_check() {
    let too_large = vec![0_u8; 2 << 20];
    let topology = orders()
        .message("orders", "accepted")
        .message("orders", too_large);
    let builder = ServiceBus::builder().topology(topology);
    let error = error_of(builder.leak_check(true).start()).await;
    assert_contains(&error, "cannot send the messages of the topology");
}

#[tokio::test]
async fn a_restart_without_a_directory_is_refused() {
    let servicebus = ServiceBus::start().await;
    for action in [servicebus.restart(), servicebus.crash()] {
        let error = error_of(action).await;
        let expected = "this namespace is only in memory, and a restart would lose it; start it with `ServiceBus::builder().durable()`, or with `data` and a directory";
        assert_eq!(error, expected);
    }
    let elsewhere = ServiceBus::builder().mode(Mode::Namespace).durable();
    let error = error_of(elsewhere.start()).await;
    assert_contains(&error, "mode \"namespace\" keeps no data in a directory");
}
