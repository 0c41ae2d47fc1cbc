//! The Rust SDK against a namespace of the harness.
//!
//! Connection strings with fewer rights than all.
//!
//! Clients come over TLS as they do to the service, and trust one authority for every namespace.

#![expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does not matter here"
)]

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use azservicebus::{ServiceBusMessage, ServiceBusReceiverOptions, ServiceBusSenderOptions};
use rstest::rstest;
use servicebus_harness::prelude::*;
use servicebus_test_support::built;
use servicebus_test_support::client::Client;

use super::{namespace_with_orders, orders};

#[tokio::test]
async fn a_ready_client_sends_and_receives() {
    let (servicebus, _) = namespace_with_orders().await;
    let mut client = servicebus.client().await;
    let mut sender = client
        .create_sender("orders", ServiceBusSenderOptions::default())
        .await
        .unwrap();
    sender
        .send_message(ServiceBusMessage::new("hello"))
        .await
        .unwrap();

    let options = ServiceBusReceiverOptions::default();
    let receiver = client.create_receiver_for_queue("orders", options).await;
    let mut receiver = receiver.unwrap();
    let message = receiver.receive_message().await.unwrap();
    assert_eq!(message.body().unwrap(), b"hello");
    receiver.complete_message(&message).await.unwrap();

    assert_completed!(servicebus.queue("orders"), count = 1).await;
    client.dispose().await.unwrap();
}

#[tokio::test]
async fn the_harness_observes_a_rejecting_worker() {
    let (servicebus, orders) = namespace_with_orders().await;
    let message = Message::json(serde_json::json!({ "total": -1 })).message_id("o-17");
    orders.send(message).await;

    let mut client = servicebus.client().await;
    let options = ServiceBusReceiverOptions::default();
    let receiver = client.create_receiver_for_queue("orders", options).await;
    let mut receiver = receiver.unwrap();
    let wait = Some(Duration::from_secs(30));
    let message = receiver.receive_message_with_max_wait_time(wait).await;
    let message = message.unwrap().unwrap();
    let options = azservicebus::receiver::DeadLetterOptions {
        dead_letter_reason: Some("Rejected".to_owned()),
        dead_letter_error_description: Some("total is negative".to_owned()),
        ..Default::default()
    };
    receiver
        .dead_letter_message(&message, options)
        .await
        .unwrap();

    assert_dead_lettered!(
        orders,
        reason = "Rejected",
        description = contains("negative"),
        message_id = "o-17"
    )
    .await;
}

/// Which of sending and receiving a connection string allows.
async fn allowed(servicebus: &ServiceBus, connection_string: &str) -> (bool, bool) {
    let endpoint = servicebus.endpoints().amqp;
    let connecting = Client::connect(endpoint, connection_string, "limited");
    let mut client = connecting.await.unwrap();
    let sends = client
        .try_sender("queue.1", Default::default())
        .await
        .is_ok();
    client.begin().await.unwrap();
    let receives = client.try_receiver("queue.1").await.is_ok();
    // A refused attach may have left it in any state.
    let _ = client.connection.close().await;
    (sends, receives)
}

#[rstest]
#[case(ServiceBus::builder())]
#[case(ServiceBus::builder().mode(Mode::Process).binary(built::emulator()))]
#[tokio::test]
async fn a_key_has_exactly_its_claims(#[case] builder: servicebus_harness::Builder) {
    each_key_has_its_claims(&builder.start().await).await;
}

/// Expects that a client can do what its key allows and nothing else.
pub(crate) async fn each_key_has_its_claims(servicebus: &ServiceBus) {
    let cases = [
        (Claims::SEND, (true, false)),
        (Claims::LISTEN, (false, true)),
        (Claims::SEND | Claims::LISTEN, (true, true)),
        (Claims::ALL, (true, true)),
    ];
    for (claims, expected) in cases {
        let connection_string = servicebus.connection_string_with(claims);
        let found = allowed(servicebus, &connection_string).await;
        assert_eq!(found, expected, "{claims}");
    }
    let all = servicebus.connection_string_with(Claims::ALL);
    assert_eq!(all, servicebus.connection_string());
}

#[tokio::test]
#[should_panic(
    expected = "this namespace has no key with the rights \"none\"; in the modes in-process, process and container a namespace has keys"
)]
async fn a_key_without_claims_is_refused() {
    let servicebus = ServiceBus::start().await;
    servicebus.connection_string_with(Claims::NONE);
}

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn every_namespace_listens_for_tls(#[case] mode: Mode) {
    let start = |tls| {
        let bus = ServiceBus::builder().topology(orders()).mode(mode);
        bus.binary(built::emulator()).tls(tls).start()
    };
    let (plain, secured) = (start(false).await, start(true).await);

    assert_eq!(plain.endpoints().amqps.port(), 5671);
    let host = plain.endpoints().amqps.ip();
    let key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE";
    assert_eq!(
        plain.tls_connection_string(),
        format!("Endpoint=sb://{host};{key}")
    );
    assert_eq!(
        plain.tls_admin_connection_string(),
        format!("Endpoint=sb://{host}:5300;{key}")
    );
    assert!(
        plain
            .connection_string()
            .ends_with("UseDevelopmentEmulator=true;")
    );
    assert_eq!(secured.connection_string(), secured.tls_connection_string());
    assert_eq!(
        secured.admin_connection_string(),
        secured.tls_admin_connection_string()
    );

    let ca = plain.ca_certificate_pem().await;
    assert!(ca.starts_with("-----BEGIN CERTIFICATE-----"), "{ca}");
    // There is one for all, where it can be kept; each emulator has another one beside it.
    let (kept, _of_run) = ca.split_at(ca.rfind("-----BEGIN").unwrap());
    if is_cached(kept) {
        assert!(secured.ca_certificate_pem().await.starts_with(kept));
    }
    // The harness's own clients come without TLS, against the strings.
    secured.queue("orders").send("hello").await;
    assert_message_count!(secured.queue("orders"), active = 1).await;
}

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn the_configured_http_ports_are_used(#[case] mode: Mode) {
    let bus = ServiceBus::builder().mode(mode).binary(built::emulator());
    let servicebus = bus.ports(8080, 8443).start().await;
    let endpoints = servicebus.endpoints();
    assert_eq!(endpoints.http.port(), 8080);
    assert_eq!(endpoints.https.map(|endpoint| endpoint.port()), Some(8443));
    servicebus.wait_idle().await;
}

/// Whether a certificate is that in the user's cache directory; not every user has one.
fn is_cached(certificate: &str) -> bool {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let home = || variable("HOME").map(|home| home.join(".cache"));
    let cache = variable("XDG_CACHE_HOME").or_else(home);
    let file = cache.map(|cache| cache.join("servicebus-emulator").join("ca.pem"));
    file.is_some_and(|file| fs::read_to_string(file).is_ok_and(|kept| kept == certificate))
}
