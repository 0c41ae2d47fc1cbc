//! Input that is not a protocol, or half of one: bounded, and logged once.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use servicebus_emulator::Options;

use crate::support::*;

#[test]
fn an_unknown_protocol_closes_the_connection_with_one_log_line() {
    let process = Process::start(&[]);
    let ca = process.ready["ca_certificate"].as_str().expect("a file");
    let ca = std::fs::read_to_string(ca).expect("it can be read");
    let listeners = [process.amqp(), process.http().0, process.address("amqps")];
    for listener in listeners {
        for garbage in [
            &b"\x16\x03\x01\x00\x05hello"[..],
            b"\x00\x01 an old protocol",
        ] {
            let mut peer = Peer::connect(listener);
            peer.write(garbage);
            peer.read_to_end();
        }
        let mut inside = Stream::secured(listener, "localhost", &ca).expect("TLS begins");
        inside
            .write_all(b"\x00 an old protocol")
            .expect("it can be written");
        Peer::over(inside).read_to_end();
    }
    let ended = process.ended_by("TERM");
    assert_eq!(ended.code, Some(0));
    let logged = |text: &str| ended.stderr.matches(text).count();
    assert_eq!(
        logged("the TLS handshake failed"),
        listeners.len(),
        "{}",
        ended.stderr
    );
    assert_eq!(
        logged("neither AMQP nor HTTP nor TLS"),
        2 * listeners.len(),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_protocol_violation_is_logged_once() {
    let process = Process::start(&[]);
    let ca = process.ready["ca_certificate"].as_str().expect("a file");
    let ca = std::fs::read_to_string(ca).expect("it can be read");
    let read_to_end = |mut stream: Stream| {
        stream.set_read_timeout(TIMEOUT);
        let _ = stream.read_to_end(&mut Vec::new());
    };
    let listener = process.address("amqps");
    let secured = Stream::secured(listener, "localhost", &ca).expect("TLS begins");
    let Stream::Secured(secured) = secured else {
        unreachable!("it was secured");
    };
    let mut plain = Stream::Plain(secured.sock);
    plain.write_all(AMQP_HEADER).expect("it can be written");
    read_to_end(plain);
    let upgraded = Stream::plain(listener).upgraded("/$servicebus/websocket", Some("amqp"));
    let mut socket = upgraded.expect("it is granted").0.into_inner();
    socket
        .write_all(b"\x83\x80\0\0\0\0")
        .expect("it can be written");
    read_to_end(socket);
    let mut web = Stream::plain(process.http().0);
    web.write_all(b"GET \0 HTTP/1.1\r\n\r\n")
        .expect("it can be written");
    read_to_end(web);
    // A client that just disconnects has done nothing wrong.
    drop(Stream::plain(listener).upgraded("/$servicebus/websocket", Some("amqp")));
    drop(Stream::secured(listener, "localhost", &ca));
    let log = process.ended_by("TERM").stderr;
    // The first may come before the handshake is over for both.
    assert!(log.matches("violated the protocol").count() >= 2, "{log}");
    assert_eq!(log.lines().count(), 3, "{log}");
}

#[test]
fn plain_bytes_within_tls_close_only_their_connection() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    let secured = || Stream::secured(bus.amqp, "localhost", &ca).expect("TLS begins");
    let mut other_client = Peer::open_over(secured(), &Open::default());
    other_client.let_in();
    let Stream::Secured(stream) = secured() else {
        unreachable!("it was secured");
    };
    let mut plain = stream.sock.try_clone().expect("a socket has two ends");
    plain.write_all(AMQP_HEADER).expect("it can be written");
    Peer::over(Stream::Plain(plain)).read_to_end();
    other_client.sender("q");
}

#[test]
fn an_incomplete_tls_handshake_does_not_block_other_connections() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    let half: Vec<Stream> = (0..20)
        .map(|_| {
            let mut stream = Stream::plain(bus.amqp);
            stream
                .write_all(b"\x16\x03\x01\x02\x00\x01")
                .expect("it can be written");
            stream
        })
        .collect();
    let stream = Stream::secured(bus.amqp, "localhost", &ca).expect("TLS begins");
    let mut peer = Peer::open_over(stream, &Open::default());
    peer.let_in();
    peer.sender("q");
    drop(half);
    // Emulators stop without waiting for any of this.
    bus.stop();
}

#[test]
fn an_incomplete_handshake_or_request_times_out() {
    let bus = Bus::started(Options {
        config: parse(&queues("", &[("q", "")])),
        step_timeout: Duration::from_millis(500),
        ..Options::default()
    });
    let ca = bus.ca();
    // The handshake has the same timeout: on a slower machine, another attempt passes.
    let secured = || {
        let mut tries = (0..10).filter_map(|_| Stream::secured(bus.amqp, "localhost", &ca).ok());
        tries.next().expect("TLS begins")
    };
    let head = b"GET /health HTTP/1.1\r\nHost: ";
    // Opened one by one: the timeout of each begins when it is connected.
    let slow: [(&dyn Fn() -> Stream, &[u8]); 5] = [
        (&|| Stream::plain(bus.amqp), b""),
        (&|| Stream::plain(bus.amqp), b"\x16\x03\x01\x02\x00\x01"),
        (&|| Stream::plain(bus.http.0), head),
        (&secured, b""),
        (&secured, head),
    ];
    for (connect, beginning) in slow {
        let mut stream = connect();
        stream.set_read_timeout(TIMEOUT);
        let mut answer = Vec::new();
        // A dropped stream ends TLS without a close, and one that is written to too late is reset; what counts is that it
        // ends, and well before the test's own timeout.
        let ended = stream
            .write_all(beginning)
            .and_then(|()| stream.read_to_end(&mut answer));
        let waited_for = ended.is_err_and(|error| {
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        });
        assert!(!waited_for, "{beginning:?} was waited for");
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 408 "),
            "{answer}"
        );
    }
}

/// Sends a request with these headers and another behind it, and returns what comes until the connection ends.
fn smuggle(bus: &Bus, headers: &str, body: &str) -> String {
    let health = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
    let mut stream = Stream::plain(bus.http.0);
    let request = format!("{health}{headers}\r\n{body}{health}\r\n");
    // The rest may meet a closed socket, and the response a reset.
    let _ = stream.write_all(request.as_bytes());
    stream.set_read_timeout(TIMEOUT);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn requests_with_ambiguous_framing_are_refused() {
    let bus = Bus::with_queues(&["q"]);
    for (headers, body) in [
        ("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
        ("Content-Length: +5\r\n", "hello"),
        ("Content-Length: 5, 6\r\n", "hello"),
        ("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: x\r\n", "0\r\n\r\n"),
        ("Content-Length : 5\r\n", "hello"),
        ("X-Folded: a\r\n b\r\n", ""),
        ("X-Zero: a\0b\r\n", ""),
    ] {
        let answer = smuggle(&bus, headers, body);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{headers}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{headers}: {answer}");
    }
    // Parsed as RFC 9112 §6.3 requires, by its chunks; what follows it is not trusted.
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    let answer = smuggle(&bus, both, "0\r\n\r\n");
    assert_contains(&answer, "connection: close");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(bus.http.get("/health").status, 200);
}

#[test]
fn an_http_head_is_limited_in_size() {
    let bus = Bus::with_queues(&["q"]);
    let mut stream = Stream::plain(bus.http.0);
    let mut head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec();
    head.resize(1024 * 1024, b'x');
    let _ = stream.write_all(&head);
    stream.set_read_timeout(TIMEOUT);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    // A client that continues to write is reset, and may not see the response.
    let text = String::from_utf8_lossy(&answer);
    assert!(
        text.is_empty() || text.starts_with("HTTP/1.1 431 "),
        "{text}"
    );
    assert_eq!(bus.http.get("/health").status, 200);
}
