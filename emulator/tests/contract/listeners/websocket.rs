//! AMQP over WebSocket, plain and in TLS.

use std::io::{Read as _, Write as _};

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message as Frame};

use super::send_and_receive;
use crate::support::*;

const PATH: &str = "/$servicebus/websocket";

#[test]
fn every_listener_accepts_every_websocket_path_and_subprotocol() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    for listener in [bus.http.0, bus.amqp] {
        for path in [PATH, "/$servicebus/websocket/", "/%24servicebus/websocket"] {
            for protocol in ["AMQPWSB10", "amqp"] {
                let plain = Stream::plain(listener);
                send_and_receive(plain.websocket(path, protocol));
                let secured = Stream::secured(listener, "localhost", &ca).expect("TLS begins");
                send_and_receive(secured.websocket(path, protocol));
            }
        }
    }
}

#[test]
fn the_first_known_websocket_subprotocol_is_chosen_if_offered() {
    let bus = Bus::with_queues(&["q"]);
    let chosen = |offered| {
        let upgraded = Stream::plain(bus.http.0).upgraded(PATH, offered);
        upgraded.map(|(_, chosen)| chosen)
    };
    assert_eq!(chosen(Some("x, amqp, AMQPWSB10")), Ok(Some("amqp".into())));
    assert_eq!(chosen(None), Ok(None));
    assert!(chosen(Some("mqtt")).is_err_and(|error| error.contains("400")));
}

#[test]
fn o51_a_websocket_at_another_path_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    for path in [
        "/",
        "/q",
        "/$servicebus/websockets",
        "/$emulator/v1/namespaces",
    ] {
        let mut stream = Stream::plain(bus.http.0);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("it is written");
        let mut answer = vec![0; 400];
        let read = stream.read(&mut answer).expect("it is answered");
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert_starts_with(&answer, "HTTP/1.1 404 ");
        let expected = format!("There is no WebSocket at {path}; ");
        assert_contains(&answer, &expected);
        assert_contains(&answer, PATH);
    }
}

#[test]
fn a_websocket_request_without_upgrade_headers_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    let ask = |headers: &str| {
        let mut stream = Stream::plain(bus.http.0);
        let request =
            format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("it is written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is answered");
        answer
    };
    let answer = ask("");
    assert!(
        answer.starts_with("HTTP/1.1 426 ") && answer.to_lowercase().contains("upgrade: websocket"),
        "{answer}"
    );
    for headers in [
        "Upgrade: websocket\r\n",
        "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 8\r\n",
        "Upgrade: h2c\r\nConnection: upgrade\r\n",
    ] {
        let answer = ask(headers);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{headers}: {answer}");
    }
}

#[test]
fn a_websocket_of_a_foreign_origin_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    let ask = |origin: &str| {
        let request = format!(
            "GET {PATH} HTTP/1.1\r\nHost: bus.example.org\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: {origin}\r\n\r\n"
        );
        let mut stream = Stream::plain(bus.http.0);
        stream.write_all(request.as_bytes()).expect("it is written");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("it is answered");
        String::from_utf8_lossy(&status).into_owned()
    };
    // A client in Python sends the host that it asks for.
    for origin in ["http://bus.example.org", "https://localhost:8080"] {
        assert_eq!(ask(origin), "HTTP/1.1 101", "{origin}");
    }
    for origin in ["http://evil.example", "null", "http://bus.example.org:8080"] {
        assert_eq!(ask(origin), "HTTP/1.1 403", "{origin}");
    }
}

#[test]
fn websocket_messages_may_split_frames_and_pings_are_answered() {
    let bus = Bus::with_queues(&["q"]);
    let (mut socket, _) = Stream::plain(bus.http.0)
        .upgraded(PATH, Some("AMQPWSB10"))
        .expect("it is granted");
    let mut bytes = AMQP_HEADER.to_vec();
    bytes.extend(Open::default().frame());
    for byte in bytes {
        let binary = Frame::Binary(vec![byte].into());
        socket.write(binary).expect("a byte can be sent");
    }
    socket
        .send(Frame::Ping("are you there".into()))
        .expect("a ping can be sent");
    let (mut answered, mut binary) = (false, Vec::new());
    while !answered || binary.len() < 16 {
        match socket.read().expect("answers come") {
            Frame::Binary(bytes) => binary.extend_from_slice(&bytes),
            Frame::Pong(bytes) => answered = bytes == "are you there",
            other => panic!("{other:?}"),
        }
    }
    assert!(binary.starts_with(AMQP_HEADER));
    socket.close(None).expect("it can be closed");
    let ended = loop {
        match socket.read() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::ConnectionClosed), "{ended}");
}

/// The bytes of a frame with this first byte and a mask of zeros.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | payload.len() as u8];
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

#[test]
fn an_invalid_websocket_frame_is_answered_with_a_close_reason() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    // The head of a frame of 2^62 bytes, and the beginning of what it announces.
    let mut endless = vec![0x82, 0xff];
    endless.extend((1_u64 << 62).to_be_bytes());
    endless.extend([0; 100]);
    let unmasked = vec![0x82, 0x01, 0x00];
    let offences = [
        (masked(0x81, b"AMQP"), CloseCode::Unsupported),
        (masked(0x81, &[0xff]), CloseCode::Invalid),
        (endless, CloseCode::Size),
        (unmasked, CloseCode::Protocol),
        (masked(0x83, b"x"), CloseCode::Protocol),
        (masked(0x80, b"x"), CloseCode::Protocol),
    ];
    for (bytes, code) in offences {
        let secured = Stream::secured(bus.amqp, "localhost", &ca).expect("TLS begins");
        for stream in [Stream::plain(bus.http.0), secured] {
            let (mut socket, _) = stream.upgraded(PATH, Some("amqp")).expect("it is granted");
            socket.get_mut().set_read_timeout(TIMEOUT);
            let written = socket.get_mut().write_all(&bytes);
            written.expect("it can be written");
            match socket.read() {
                Ok(Frame::Close(Some(close))) => {
                    assert_eq!(close.code, code, "{bytes:?}: {close}");
                    assert!(!close.reason.is_empty());
                }
                other => panic!("{bytes:?} is answered {other:?}"),
            }
            // However it ends: a client that is slow to answer the close may find no socket there.
            socket.read().expect_err("nothing comes after a close");
        }
    }
    assert_eq!(bus.http.get("/health").status, 200);
}

/// Row 57 of spec/observed.md: Microsoft's library for Java spins for ever on a close frame without a status.
#[test]
fn a_websocket_close_frame_has_a_status() {
    let bus = Bus::with_queues(&["q"]);
    let stream = Stream::plain(bus.http.0);
    let (mut socket, _) = stream
        .upgraded(PATH, Some("AMQPWSB10"))
        .expect("it is granted");
    let mut bytes = AMQP_HEADER.to_vec();
    bytes.extend(Open::default().frame());
    bytes.extend(performative(0, CLOSE, &[], &[]));
    socket
        .send(Frame::Binary(bytes.into()))
        .expect("it can be sent");
    let close = loop {
        match socket.read().expect("answers come") {
            Frame::Binary(_) => {}
            Frame::Close(close) => break close,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(close.map(|close| close.code), Some(CloseCode::Normal));
}

#[test]
fn a_close_frame_without_status_is_answered_with_one() {
    let bus = Bus::with_queues(&["q"]);
    let (mut stream, _) = Stream::plain(bus.http.0)
        .upgraded(PATH, Some("amqp"))
        .expect("a WebSocket");
    for (sent, answer) in [
        // A payload that looks like such a frame.
        (masked(0x89, &[0x88, 0]), &[0x8a, 2, 0x88, 0][..]),
        (masked(0x88, &[]), &[0x88, 2, 0x03, 0xe8]),
    ] {
        let beneath = stream.get_mut();
        beneath.write_all(&sent).expect("it is written");
        let mut answered = vec![0; answer.len()];
        beneath.read_exact(&mut answered).expect("it is answered");
        assert_eq!(answered, answer);
    }
}

#[test]
fn a_stop_sends_a_close_over_a_websocket() {
    let bus = Bus::with_queues(&["q"]);
    let stream = Stream::plain(bus.http.0).websocket(PATH, "AMQPWSB10");
    let mut peer = Peer::open_over(stream, &Open::default());
    let stopping = std::thread::spawn(move || bus.stop());
    assert_eq!(peer.closed().condition, "amqp:connection:forced");
    drop(peer);
    stopping.join().expect("the emulator stops");
}
