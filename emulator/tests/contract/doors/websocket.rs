//! AMQP over WebSocket, plain and in TLS.

use std::io::{Read as _, Write as _};

use tokio_tungstenite::tungstenite::{Error, Message as Frame};

use super::send_and_receive;
use crate::support::*;

const PATH: &str = "/$servicebus/websocket";

#[test]
fn every_spelling_of_path_and_subprotocol_is_served_at_every_door() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    for door in [bus.http.0, bus.amqp] {
        for path in [PATH, "/$servicebus/websocket/", "/%24servicebus/websocket"] {
            for protocol in ["AMQPWSB10", "amqp"] {
                let plain = Stream::plain(door);
                send_and_receive(plain.websocket(path, protocol));
                let secured = Stream::secured(door, "localhost", &ca).expect("TLS begins");
                send_and_receive(secured.websocket(path, protocol));
            }
        }
    }
}

#[test]
fn the_first_known_subprotocol_is_chosen_and_none_need_be_offered() {
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
fn a_request_that_is_no_upgrade_is_told_so() {
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
fn frames_may_be_cut_anywhere_and_pings_are_answered() {
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

#[test]
fn text_and_endless_messages_end_the_connection() {
    let bus = Bus::with_queues(&["q"]);
    let upgraded = || Stream::plain(bus.http.0).upgraded(PATH, Some("amqp"));
    let (mut socket, _) = upgraded().expect("it is granted");
    socket
        .send(Frame::Text("AMQP".into()))
        .expect("text can be sent");
    assert!(!matches!(socket.read(), Ok(Frame::Binary(_))));
    let (socket, _) = upgraded().expect("it is granted");
    let mut stream = socket.into_inner();
    // The head of a masked frame of 2^62 bytes.
    let mut head = vec![0x82, 0xff];
    head.extend((1_u64 << 62).to_be_bytes());
    head.extend([0; 4]);
    stream.write_all(&head).expect("a head can be sent");
    let mut rest = Vec::new();
    stream.set_read_timeout(PATIENCE);
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(bus.http.get("/health").status, 200);
}

#[test]
fn stopping_says_goodbye_through_a_websocket() {
    let bus = Bus::with_queues(&["q"]);
    let stream = Stream::plain(bus.http.0).websocket(PATH, "AMQPWSB10");
    let mut peer = Peer::open_over(stream, &Open::default());
    let stopping = std::thread::spawn(move || bus.stop());
    assert_eq!(peer.closed().condition, "amqp:connection:forced");
    stopping.join().expect("the emulator stops");
}
