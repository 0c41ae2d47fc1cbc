//! Clients come over TLS as they do to the service, and trust one authority for every namespace.

use std::{env, fs, path::PathBuf};

use rstest::rstest;
use servicebus_harness::prelude::*;

use crate::harness::orders;
use servicebus_test_support::built;

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn every_namespace_has_a_door_for_tls(#[case] mode: Mode) {
    let start = |tls| {
        let bus = ServiceBus::builder().topology(orders()).mode(mode);
        bus.binary(built::emulator()).tls(tls).start()
    };
    let (plain, secured) = (start(false).await, start(true).await);

    assert_eq!(plain.endpoints().amqps.port(), 5671);
    let host = plain.endpoints().amqps.ip();
    let key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;";
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
    if is_kept(kept) {
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
async fn web_ports_are_those_that_were_asked_for(#[case] mode: Mode) {
    let bus = ServiceBus::builder().mode(mode).binary(built::emulator());
    let servicebus = bus.ports(8080, 8443).start().await;
    let endpoints = servicebus.endpoints();
    assert_eq!(endpoints.http.port(), 8080);
    assert_eq!(endpoints.https.map(|endpoint| endpoint.port()), Some(8443));
    servicebus.wait_idle().await;
}

/// Whether a certificate is that in the user's cache directory; not every user has one.
fn is_kept(certificate: &str) -> bool {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let home = || variable("HOME").map(|home| home.join(".cache"));
    let cache = variable("XDG_CACHE_HOME").or_else(home);
    let file = cache.map(|cache| cache.join("servicebus-emulator").join("ca.pem"));
    file.is_some_and(|file| fs::read_to_string(file).is_ok_and(|kept| kept == certificate))
}
