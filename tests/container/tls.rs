//! Clients come over TLS to a container as to any other bus.

#![expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does no harm here"
)]

use std::{env, fs};

use azservicebus::{ServiceBusClient, ServiceBusClientOptions, ServiceBusSenderOptions};
use servicebus_harness::prelude::*;

use crate::orders;
use servicebus_test_support::built;

/// Where OpenSSL, by which the SDK comes, looks for the authorities to trust.
const TRUSTED: &str = "SSL_CERT_FILE";

#[test]
fn the_certificate_is_valid_for_the_address() {
    if built::is_child() {
        return built::run_child(send_over_tls());
    }
    let file = format!("servicebus-container-{}.pem", std::process::id());
    let file = env::temp_dir().join(file);
    let output = built::rerun()
        .env(TRUSTED, &file)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let _ = fs::remove_file(&file);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

async fn send_over_tls() {
    let builder = ServiceBus::builder().mode(Mode::Container);
    let servicebus = builder.topology(orders()).tls(true).start().await;
    let trusted = env::var_os(TRUSTED).unwrap();
    fs::write(trusted, servicebus.ca_certificate_pem().await).unwrap();

    let options = ServiceBusClientOptions::default();
    let connecting =
        ServiceBusClient::new_from_connection_string(servicebus.connection_string(), options);
    let mut client = connecting.await.unwrap();
    let options = ServiceBusSenderOptions::default();
    let mut sender = client.create_sender("orders", options).await.unwrap();
    sender.send_message("hello").await.unwrap();
    assert_message_count!(servicebus.queue("orders"), active = 1).await;
    sender.dispose().await.unwrap();
    client.dispose().await.unwrap();
}
