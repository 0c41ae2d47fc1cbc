//! Links and connections that are not used, where `"IdleTimeouts": "service"` asks for the service's time-outs: an emulator
//! without sockets, in the time of a paused runtime (spec/newest.md 9).
//!
//! Auto-delete on idle: a queue that is not used for five minutes is deleted, with what it holds.
//!
//! Source: the property AutoDeleteOnIdle of queues.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::{Connection, Sender, Session};
use servicebus_emulator::{Config, Emulator, Options};
use servicebus_harness::azservicebus::ServiceBusMessage;
use servicebus_harness::prelude::*;
use tokio::io::duplex;
use tokio::time::sleep;

use crate::conformance::client::{
    assert_refused, complete, connected, done, receive, receiver, send, sender, start,
};

const MINUTE: Duration = Duration::from_secs(60);

fn emulator(setting: &str) -> Emulator {
    let text = format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Name":"ns","Queues":[{{"Name":"orders"}}],
           "Emulator":{{"TokenCheck":"none"{setting}}}}}]}}}}"#
    );
    let options = Options {
        config: Config::parse(&text).expect("a configuration"),
        ..Options::default()
    };
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    Emulator::start_simulated(options, wall).expect("it starts")
}

async fn connect(emulator: &Emulator) -> fe2o3_amqp::connection::ConnectionHandle<()> {
    let (ours, theirs) = duplex(64 * 1024);
    emulator.accept(theirs, SocketAddr::from(([127, 0, 0, 1], 40_000)));
    let opening = Connection::builder()
        .container_id("idle")
        .hostname("localhost")
        .idle_time_out(60_000_u32)
        .sasl_profile(SaslProfile::Anonymous)
        .open_with_stream(ours);
    opening.await.expect("it is opened")
}

#[tokio::test(start_paused = true)]
async fn an_idle_link_is_detached_after_ten_minutes_and_its_connection_closed_after_five_more() {
    let emulator = emulator(r#","IdleTimeouts":"service""#);
    let mut connection = connect(&emulator).await;
    let mut session = Session::begin(&mut connection).await.expect("a session");
    let mut sender = Sender::attach(&mut session, "sender", "orders")
        .await
        .expect("a link");
    for _ in 0..3 {
        sleep(9 * MINUTE).await;
        sender.send("used").await.expect("it was used in time");
    }
    sleep(10 * MINUTE + MINUTE).await;
    let failure = sender.send("late").await.expect_err("it is detached");
    assert!(
        format!("{failure:?}").contains("IdleTimerExpired"),
        "{failure:?}"
    );
    sleep(5 * MINUTE).await;
    let closed = connection.on_close().await.expect_err("it is closed");
    let closed = format!("{closed:?}");
    assert!(
        closed.contains("did not have any active links in the past 300000 milliseconds"),
        "{closed}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_had_a_link_is_closed_after_a_minute() {
    let emulator = emulator(r#","IdleTimeouts":"service""#);
    let mut connection = connect(&emulator).await;
    let before = tokio::time::Instant::now();
    let closed = connection.on_close().await.expect_err("it is closed");
    assert!(
        format!("{closed:?}").contains("in the past 60000 milliseconds"),
        "{closed:?}"
    );
    assert!(
        (MINUTE..2 * MINUTE).contains(&before.elapsed()),
        "{:?}",
        before.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_a_link_stays() {
    let emulator = emulator("");
    let mut connection = connect(&emulator).await;
    let mut session = Session::begin(&mut connection).await.expect("a session");
    let mut sender = Sender::attach(&mut session, "sender", "orders")
        .await
        .expect("a link");
    sleep(60 * MINUTE).await;
    sender.send("late").await.expect("it is still attached");
}

#[tokio::test]
async fn an_idle_queue_is_deleted() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "idle", ["left"]).await;
    servicebus.clock().advance(Duration::from_secs(301)).await;
    let opening = client.create_sender("idle", Default::default());
    assert_refused(opening, &["could not be found"]).await;
}

#[tokio::test]
async fn sends_peeks_and_scheduled_messages_postpone_the_deletion() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "idle").await;
    let mut receiver = receiver(&mut client, "idle").await;
    servicebus.clock().advance(Duration::from_secs(240)).await;
    sender.send_message("kept").await.unwrap();
    servicebus.clock().advance(Duration::from_secs(240)).await;
    done("a peek", receiver.peek_message(None)).await;
    servicebus.clock().advance(Duration::from_secs(240)).await;
    let at = SystemTime::now() + Duration::from_secs(600);
    let scheduling = sender.schedule_message(ServiceBusMessage::new("later"), at.into());
    done("its number", scheduling).await;
    servicebus.clock().advance(Duration::from_secs(601)).await;
    servicebus.clock().advance(Duration::from_secs(240)).await;
    for message in receive(&mut receiver, 2).await {
        complete(&mut receiver, &message).await;
    }
    assert_empty!(servicebus.queue("idle")).await;
}

async fn bus() -> ServiceBus {
    let queue = Queue::new("idle").auto_delete_on_idle(Duration::from_secs(300));
    start(Topology::new().queue(queue)).await
}
