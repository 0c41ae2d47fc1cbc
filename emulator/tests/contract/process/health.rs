//! `servicebus-emulator health`, with which a container engine checks the image.

use std::net::TcpListener;

use crate::support::*;

#[test]
fn health_succeeds_for_a_running_emulator() {
    let process = Process::start(&[]);
    let port = process.address("http").port().to_string();
    let arguments = ["health", "--host", "127.0.0.1", "--http-port", &port];
    assert_contains(&printed(&arguments), r#""status":"healthy""#);
    let variables = [
        ("SERVICEBUS_EMULATOR_HOST", "0.0.0.0"),
        ("EMULATOR_HTTP_PORT", port.as_str()),
    ];
    let output = run(&["health"], &variables);
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn health_fails_without_a_response() {
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = unused.local_addr().expect("it has an address").port();
    drop(unused);
    let port = port.to_string();
    let text = failure(1, &["health", "--host", "127.0.0.1", "--http-port", &port]);
    let expected = format!("no emulator responds at 127.0.0.1:{port}: ");
    assert_starts_with(&text, &expected);
}

#[test]
fn health_refuses_an_invalid_port() {
    failure(2, &["health", "--http-port", "http"]);
    // The variable of an emulator on a free port may still be set.
    let output = run(&["health"], &[("EMULATOR_HTTP_PORT", "0")]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let text = failure(1, &["health", "--http-port", "0"]);
    assert_starts_with(&text, "the port 0 stands for any free one; ");
}
