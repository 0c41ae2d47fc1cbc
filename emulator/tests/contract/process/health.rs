//! `servicebus-emulator health`, with which a container engine checks the image.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

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
fn health_fails_for_another_server() {
    for (answer, code) in [
        ("SSH-2.0-x\r\n", None),
        ("SSH-2.0-x y\r\n", None),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            Some("200"),
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\n{\"status\":\"starting\"}",
            Some("200"),
        ),
        ("HTTP/1.0 404 Not Found\r\n\r\n<html>", Some("404")),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            // The whole request: closing with unread bytes resets the connection.
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request");
                request.extend(byte);
            }
            stream.write_all(answer.as_bytes()).expect("an answer");
        });
        let port = port.to_string();
        let text = failure(1, &["health", "--host", "127.0.0.1", "--http-port", &port]);
        let code = code.map(|code| format!(": it answers GET /health with HTTP status {code}"));
        let code = code.unwrap_or_default();
        let expected = format!("the server at 127.0.0.1:{port} is not an emulator{code}");
        assert_eq!(text.trim_end(), expected, "{answer}");
        server.join().expect("it has answered");
    }
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
