//! The Spring Boot application of `examples/spring` as it runs in production, and what the namespace has of it: the test sends
//! orders and looks at nothing else.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use servicebus_harness::{ClientSettings, prelude::*};
use tokio::process::{Child, Command};

use crate::environment;
use crate::frameworks::environments::{Framework, class_path};

/// The application has to start first.
const START: Duration = Duration::from_secs(120);

#[tokio::test]
async fn orders_are_received_retried_and_dead_lettered() {
    let language = environment::Language::Framework(Framework::Shop);
    let Some(environment) = environment::ready(language).await else {
        return;
    };
    let topology = Topology::new()
        .tier(Tier::Premium)
        .queue(Queue::new("orders"));
    let starting = ServiceBus::builder()
        .topology(topology)
        .tls(true)
        .within(START)
        .start();
    let servicebus = starting.await;
    let _shop = run(&servicebus, &class_path(&environment));
    let archive = servicebus.jms_subscription("invoices", "archive", "shop");
    // What is invoiced before would reach no subscription.
    archive.wait_for_receiver().await;
    let orders = servicebus.queue("orders");
    for order in [
        "one teapot",
        "a teapot in a rush",
        "a teapot without an address",
    ] {
        // By its type the client makes a text of it.
        let order = Message::new(order)
            .message_id(order)
            .content_type("text/plain");
        orders.send(order).await;
    }
    assert_completed!(orders, message_id = "one teapot").await;
    assert_completed!(orders, message_id = "a teapot in a rush").await;
    assert_abandoned!(orders, message_id = "a teapot in a rush", times = 2).await;
    let never = "a teapot without an address";
    assert_dead_lettered!(
        orders,
        reason = "MaxDeliveryCountExceeded",
        message_id = never
    )
    .await;
    assert_delivered!(orders, message_id = never, times = 10).await;
    assert_not_completed!(orders, message_id = never).await;
    assert_completed!(archive, count = 2).await;
}

/// Starts the application, which ends with what is returned.
fn run(servicebus: &ServiceBus, class_path: &OsStr) -> Child {
    let settings = servicebus.client_settings().expect("it was started here");
    let trust_store = settings
        .trust_store
        .expect("the emulator keeps an authority");
    let mut command = Command::new("java");
    command
        .args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .args(ClientSettings::java_options(
            &trust_store.display().to_string(),
        ))
        .arg("-classpath")
        .arg(class_path)
        .arg("shop.Shop")
        .env(
            "SERVICEBUS_CONNECTION_STRING",
            servicebus.tls_connection_string(),
        )
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
        .spawn()
        .expect("`java` of a ready environment starts")
}
