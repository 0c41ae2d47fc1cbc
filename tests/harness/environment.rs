//! Child processes of the code under test find their namespace in the environment.

use std::{collections::HashMap, fs, process::Command};

use rstest::rstest;
use servicebus_harness::prelude::*;

use servicebus_test_support::built;

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn a_child_process_finds_the_namespace(#[case] mode: Mode) {
    let bus = ServiceBus::builder().mode(mode).binary(built::emulator());
    let servicebus = bus.start().await;
    let mut child = Command::new(if cfg!(windows) { "cmd" } else { "env" });
    if cfg!(windows) {
        child.args(["/c", "set"]);
    }
    let output = child.env_clear().envs(servicebus.env()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let read: HashMap<_, _> = printed
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();

    let names = [
        "SERVICEBUS_CONNECTION_STRING",
        "SERVICEBUS_CONNECTION_STR",
        "AZURE_SERVICEBUS_CONNECTION_STRING",
    ];
    for name in names {
        assert_eq!(read[name], servicebus.connection_string());
    }
    let admin = read["SERVICEBUS_ADMIN_CONNECTION_STRING"];
    assert_eq!(admin, servicebus.admin_connection_string());
    let pem = servicebus.ca_certificate_pem().await;
    for name in ["SERVICEBUS_CA_FILE", "NODE_EXTRA_CA_CERTS"] {
        // The authority that vouches for loopback addresses comes first.
        assert!(pem.starts_with(&fs::read_to_string(read[name]).unwrap()));
    }
    assert!(!read.contains_key("SSL_CERT_FILE"), "{printed}");
}

#[tokio::test]
async fn a_child_process_over_tls_trusts_only_the_emulators_ca() {
    let servicebus = ServiceBus::builder().tls(true).start().await;
    let env: HashMap<_, _> = servicebus.env().into_iter().collect();
    let file = servicebus.ca_certificate_file().unwrap();
    for name in ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"] {
        assert_eq!(env[name], file.to_string_lossy());
    }
    let connection_string = &env["SERVICEBUS_CONNECTION_STRING"];
    assert_eq!(*connection_string, servicebus.tls_connection_string());
    assert!(!connection_string.contains("UseDevelopmentEmulator"));
}

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn client_settings_are_in_the_environment(#[case] mode: Mode) {
    let bus = ServiceBus::builder().mode(mode).binary(built::emulator());
    let servicebus = bus.start().await;
    let settings = servicebus.client_settings().unwrap();
    let endpoints = servicebus.endpoints();

    assert_eq!(settings.host, "sbemulatorns.servicebus.windows.net");
    assert_eq!(settings.amqps, endpoints.amqps);
    // Every port takes TLS.
    assert_eq!(settings.https, endpoints.http);
    let line = format!("{} {}", endpoints.amqps.ip(), settings.host);
    assert_eq!(settings.hosts_line(), line);
    let entry = format!("Endpoint=sb://{};", settings.host);
    assert!(settings.connection_string.starts_with(&entry));
    let (_, key) = servicebus.tls_connection_string().split_once(';').unwrap();
    assert!(settings.connection_string.ends_with(key));
    let ca_file = settings.ca_file.as_deref();
    assert_eq!(ca_file, servicebus.ca_certificate_file());
    let env: HashMap<_, _> = settings.env().into_iter().collect();
    assert_eq!(
        env["SERVICEBUS_CONNECTION_STRING"],
        settings.connection_string
    );
    for name in ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"] {
        assert_eq!(env[name], ca_file.unwrap().to_string_lossy());
    }
    assert!(settings.to_string().contains(&line));
}
