//! The memory that a peer uses is counted, reported, and limited for a connection and in total.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value as Json;
use servicebus_emulator::Options;
use tokio_tungstenite::tungstenite::Message as Incoming;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as WebSocketFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

use crate::support::*;

const MIB: usize = 1024 * 1024;
const TOO_MUCH: &str = "amqp:resource-limit-exceeded";
const PATH: &str = "/$servicebus/websocket";

/// What all connections hold, as soon as that is wanted.
fn held(http: &Http, what: &str, wanted: impl Fn(usize) -> bool) -> usize {
    eventually(what, || {
        let held = memory(http)["held_bytes"].as_u64().expect("a number");
        Some(held as usize).filter(|&held| wanted(held))
    })
}

fn memory(http: &Http) -> Json {
    http.get("/health").ok()["memory"].clone()
}

/// A message of which more is announced than arrives.
fn unfinished(peer: &mut Peer, link: &Link, size: usize) -> bool {
    let id = peer.next_delivery_id();
    let part = vec![b'x'; 50_000];
    (0..size / part.len()).all(|_| {
        let tag = binary(&id.to_be_bytes());
        let more = serde_amqp::Value::Bool(true);
        let fields = [
            uint(link.handle),
            uint(id),
            tag,
            uint(0),
            false.into(),
            more,
        ];
        peer.try_write(&performative(link.channel, TRANSFER, &fields, &part))
    })
}

fn with_limits(connection_memory: u64, process_memory: u64) -> Bus {
    Bus::started(Options {
        config: parse(&queues("", &[("q", "")])),
        connection_memory,
        process_memory,
        ..Options::default()
    })
}

#[test]
fn incomplete_transfers_before_a_token_are_limited() {
    let bus = Bus::with_queues(&["q"]);
    let mut unauthenticated_clients: Vec<Peer> =
        (0..4).map(|_| bus.unauthenticated_client()).collect();
    for client in &mut unauthenticated_clients {
        let link = client.sender("$cbs");
        assert!(unfinished(client, &link, 200_000));
    }
    held(&bus.http, "four of them", |held| held > 4 * 200_000);
    for client in &mut unauthenticated_clients {
        let refusal = attach_many(client, "$cbs", 1_000).expect_err("too much");
        assert_eq!(refusal.condition, TOO_MUCH);
        let words = refusal.words();
        let limit = "the limit until a token is accepted is 1048576.";
        assert_contains(words, limit);
    }
    held(&bus.http, "nothing", |held| held == 0);
    assert_eq!(memory(&bus.http)["closed_connections"], 4);
}

#[test]
fn incomplete_websocket_messages_are_counted_as_memory() {
    let bus = Bus::with_queues(&["q"]);
    let part = |code, size| {
        let payload = vec![0; size];
        Incoming::Frame(WebSocketFrame::message(payload, OpCode::Data(code), false))
    };
    let mut sockets: Vec<_> = (0..4)
        .map(|_| {
            let stream = Stream::plain(bus.http.0);
            let (mut socket, _) = stream.upgraded(PATH, Some("amqp")).expect("it is granted");
            socket
                .send(part(Data::Binary, 900_000))
                .expect("it is sent");
            // What stands between the frames of a message ends nothing.
            socket
                .send(Incoming::Ping(vec![1; 100].into()))
                .expect("it is sent");
            socket
        })
        .collect();
    held(&bus.http, "four of them", |held| held > 3_500_000);
    for socket in &mut sockets {
        // It may be closed before all of this is sent.
        let _ = socket.send(part(Data::Continue, 300_000));
        let frame = loop {
            match socket.read().expect("it says why") {
                Incoming::Close(frame) => break frame.expect("there is a reason"),
                other => assert!(other.is_pong() || other.is_binary(), "{other}"),
            }
        };
        assert_eq!(frame.code, CloseCode::Size);
        let limit = "the limit until a token is accepted is 1048576.";
        assert_contains(&frame.reason, limit);
    }
    drop(sockets);
    held(&bus.http, "nothing", |held| held == 0);
}

#[test]
fn unread_pongs_before_a_token_are_limited() {
    let process = Process::start(&[]);
    let stream = Stream::plain(process.http().0);
    let (mut socket, _) = stream.upgraded(PATH, Some("amqp")).expect("it is granted");
    let ping = Incoming::Ping(vec![1; 125].into());
    // Until the system buffers no more for either side, and then the emulator.
    let closed = |http: &Http| memory(http)["closed_connections"] == 1;
    while !closed(&process.http()) {
        let sent = (0..4096).try_for_each(|_| socket.write(ping.clone()));
        if sent.and_then(|()| socket.flush()).is_err() {
            break;
        }
    }
    until("the end", || closed(&process.http()));
    drop(socket);
    held(&process.http(), "nothing", |held| held == 0);
    let log = process.ended_by("TERM").stderr;
    let logged = log.matches("the limit until a token is accepted is 1048576.");
    assert_eq!(logged.count(), 1, "{log}");
}

/// Attaches links with names of 4,000 bytes; returns how many before the connection ended.
fn attach_many(peer: &mut Peer, address: &str, count: usize) -> Result<(), ServiceError> {
    for number in 0..count {
        let channel = (number / 200 + 1) as u16;
        let handle = (number % 200) as u32;
        if handle == 0 {
            let windows = [serde_amqp::Value::Null, uint(0), uint(1_000), uint(1_000)];
            // The connection may have been closed after the previous answer.
            peer.try_write(&performative(channel, BEGIN, &windows, &[]));
        }
        let link = Attach::sender(address).named(&format!("{number:04000}"));
        let fields = link.fields(handle);
        let is_sent = peer.try_write(&performative(channel, ATTACH, &fields, &[]));
        if !is_sent || number % 50 == 49 && peer.is_closed_before(channel, handle) {
            return Err(peer.closed());
        }
    }
    Ok(())
}

#[test]
fn links_with_long_names_are_counted_as_memory() {
    let bus = Bus::with_queues(&["q"]);
    let refusal =
        attach_many(&mut bus.unauthenticated_client(), "$cbs", 1_000).expect_err("too many");
    assert_eq!(refusal.condition, TOO_MUCH);
    let mut client = bus.client();
    attach_many(&mut client, "q", 4_000).expect("few enough for the usual limit");
    let all = held(&bus.http, "the links", |held| held > 4_000 * 5_000);
    assert!(all < 4_000 * 6_000, "{all}");

    let bus = with_limits(8 << 20, 1 << 30);
    let refusal = attach_many(&mut bus.client(), "q", 4_000).expect_err("too many");
    assert_eq!(refusal.condition, TOO_MUCH);
    let words = refusal.words();
    assert_contains(words, "the limit is 8388608 (--connection-memory).");
    held(&bus.http, "nothing", |held| held == 0);
}

#[test]
fn unread_replies_and_deliveries_are_counted_as_memory() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    for _ in 0..5 {
        peer.send(&sender, &Message::new("large").body(vec![b'x'; 100_000]));
    }
    held(&bus.http, "little", |held| held < 10_000);
    let node = peer.node_without_credit("q/$management", "never");
    let body = map([
        (text("from-sequence-number"), long(1)),
        (text("message-count"), serde_amqp::Value::Int(100)),
    ]);
    let ask = Message::request(text("id"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:peek-message"));
    for _ in 0..4 {
        peer.transfer(&node.requests, 0, true, &ask.encode());
    }
    held(&bus.http, "four replies", |held| held > 2_000_000);
    peer.credit(&node.replies, 4);
    for _ in 0..4 {
        peer.receive(&node.replies);
    }
    held(&bus.http, "little", |held| held < 10_000);
}

/// Sends five messages of 200,000 bytes to the queue `q`.
fn fill(peer: &mut Peer) {
    let sender = peer.sender("q");
    for _ in 0..5 {
        peer.send(&sender, &Message::new("large").body(vec![b'x'; 200_000]));
    }
}

#[test]
fn the_memory_limit_applies_while_requests_of_one_turn_are_answered() {
    let bus = with_limits(8 << 20, 1 << 30);
    let mut peer = bus.client();
    fill(&mut peer);
    let nodes: Vec<_> = (0..10)
        .map(|n| peer.node_without_credit("q/$management", &format!("never {n}")))
        .collect();
    let ask = |node: &Node| {
        Message::request(
            text("id"),
            text(&node.reply_to),
            peek_from(1, serde_amqp::Value::Int(100)),
        )
        .application("operation", text("com.microsoft:peek-message"))
        .encode()
    };
    let sender = peer.sender("q");
    let mut requests: Vec<u8> = (0..4)
        .flat_map(|_| &nodes)
        .flat_map(|node| peer.transfer_frame(&node.requests, true, &ask(node)))
        .collect();
    requests.extend(peer.transfer_frame(&sender, true, &Message::new("later").encode()));
    peer.write(&requests);
    let refusal = peer.closed();
    assert_eq!(refusal.condition, TOO_MUCH);
    let words = refusal.words();
    assert_contains(words, "the limit is 8388608 (--connection-memory).");
    let number = words.split(' ').find_map(|word| word.parse::<usize>().ok());
    let most = number.expect("it says how much");
    assert!(most < 11 * MIB, "{most}");
    // What was read with the requests is not handled any more.
    held(&bus.http, "nothing", |held| held == 0);
    assert_eq!(bus.http.held("q"), (5, 0));
}

#[test]
fn deferred_messages_above_half_the_memory_limit_stay_in_the_queue() {
    let bus = with_limits(1 << 20, 1 << 30);
    let mut peer = bus.client();
    fill(&mut peer);
    let node = peer.node("q/$management");
    let receiver = peer.receiver("q");
    let held: Vec<_> = (0..5).map(|_| peer.receive_one(&receiver)).collect();
    for delivery in &held {
        peer.settle(delivery, deferred());
    }
    let mut fetch =
        |numbers: &[i64]| peer.call(&node, "receive-by-sequence-number", receive_by(numbers, 0));
    let words = refused_with(&fetch(&[1, 2, 3, 4, 5]), 403, TOO_MUCH);
    assert_contains(&words, "a reply may have 524288");
    assert_eq!(received(&fetch(&[1, 2])).len(), 2);
    assert_eq!(received(&fetch(&[3, 4])).len(), 2);
    assert_eq!(received(&fetch(&[5])).len(), 1);
}

#[test]
fn at_the_process_memory_limit_the_requesting_client_is_closed() {
    let bus = with_limits(64 << 20, 4 << 20);
    let allowed = 200_000;
    let many = |peer: &mut Peer, count: usize| -> Vec<Link> {
        let link = |number| Attach::sender("q").named(&format!("sender {number}"));
        let links: Vec<Link> = (0..count).map(|n| peer.attached(&link(n))).collect();
        for link in &links {
            unfinished(peer, link, allowed);
        }
        links
    };
    let mut first = bus.client();
    let links = many(&mut first, 15);
    held(&bus.http, "three megabytes", |held| held > 15 * allowed);
    let mut second = bus.client();
    many(&mut second, 10);
    let refusal = second.closed();
    assert_eq!(refusal.condition, TOO_MUCH);
    let words = refusal.words();
    assert_contains(words, "the limit is 4194304 (--process-memory)");
    // The others continue, and new ones are accepted.
    first.detach(&links[0]);
    let mut third = bus.client();
    third.send_to("q", &Message::new("small"));
    assert_eq!(memory(&bus.http)["closed_connections"], 1);
}

#[test]
fn the_largest_premium_message_passes_every_transport() {
    let _alone = alone_with_large_messages();
    let large = r#""MaxMessageSizeInKilobytes":102400"#;
    let bus = Bus::configured(&queues(r#""Tier":"premium""#, &[("q", large)]));
    let ca = bus.ca();
    let plain = || Stream::plain(bus.amqp);
    let secured = || Stream::secured(bus.amqp, "localhost", &ca).expect("TLS begins");
    let size = 100 * MIB - 1_000;
    // One after the other: the emulator does not wait for a client that is silent while others send.
    let streams: [&dyn Fn() -> Stream; 4] = [
        &plain,
        &secured,
        &|| plain().websocket(PATH, "amqp"),
        &|| secured().websocket(PATH, "amqp"),
    ];
    for stream in streams {
        let mut peer = Peer::open_over(stream(), &Open::default());
        peer.let_in();
        let sender = peer.sender("q");
        peer.send(&sender, &Message::new("large").body(vec![b'x'; size]));
        let delivery = peer.receive_from("q");
        assert_eq!(delivery.message.data().len(), size);
        peer.complete(&delivery);
        peer.close();
    }
    assert_eq!(memory(&bus.http)["closed_connections"], 0);
    // All frames in one message, as fe2o3-amqp writes them. `long_polls` checks the duration with a smaller one.
    let mut peer = Peer::open_over(plain().websocket(PATH, "amqp"), &Open::default());
    peer.let_in();
    let sender = peer.sender("q");
    let message = Message::new("large").body(vec![b'x'; size]).encode();
    let id = peer.next_delivery_id();
    let mut frames = Vec::with_capacity(size + MIB);
    let mut parts = message.chunks(60_000).peekable();
    while let Some(part) = parts.next() {
        let tag = binary(&id.to_be_bytes());
        let more = parts.peek().is_some().into();
        let fields = [
            uint(sender.handle),
            uint(id),
            tag,
            uint(0),
            false.into(),
            more,
        ];
        frames.extend(performative(0, TRANSFER, &fields, part));
    }
    peer.write(&frames);
    assert_eq!(peer.outcome(&sender, id), Ok(()));
    peer.close();
}

/// A request to make a namespace, of whose body `come` bytes of `size` come.
fn unfinished_body(bus: &Bus, size: usize, come: usize) -> TcpStream {
    let mut stream = TcpStream::connect(bus.http.0).expect("it listens");
    let head = format!(
        "PUT /$emulator/v1/namespaces/large HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    // It may be refused before all of this has come.
    let _ = stream.write_all(&vec![b' '; come]);
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    // The end may come as a reset, because not all of the body was read.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn incomplete_http_bodies_are_counted_as_memory() {
    let bus = Bus::with_queues(&["q"]);
    let unfinished = unfinished_body(&bus, 1_000_000, 900_000);
    held(&bus.http, "the body", |held| held >= 900_000);
    drop(unfinished);
    held(&bus.http, "nothing", |held| held == 0);
    assert_eq!(memory(&bus.http)["closed_connections"], 0);

    let bus = with_limits(500_000, 1 << 30);
    let refused = answer(unfinished_body(&bus, 600_000, 510_000));
    assert_starts_with(&refused, "HTTP/1.1 413 ");
    let limit = "the limit is 500000 (--connection-memory)";
    assert_contains(&refused, limit);
    held(&bus.http, "nothing", |held| held == 0);
    assert_eq!(memory(&bus.http)["closed_connections"], 1);

    let bus = with_limits(64 << 20, 1_000_000);
    let first = unfinished_body(&bus, 900_000, 800_000);
    held(&bus.http, "the first", |held| held >= 800_000);
    let refused = answer(unfinished_body(&bus, 900_000, 300_000));
    assert_starts_with(&refused, "HTTP/1.1 503 ");
    let limit = "the limit is 1000000 (--process-memory)";
    assert_contains(&refused, limit);
    drop(first);
    held(&bus.http, "nothing", |held| held == 0);
}

#[test]
fn an_unread_http_response_is_counted_as_memory() {
    let bus = Bus::configured(&queues(
        r#""Tier":"premium""#,
        &[("q", r#""MaxMessageSizeInKilobytes":102400"#)],
    ));
    let (mut peer, sender) = bus.sender("q");
    let size = 16 * MIB;
    peer.send(&sender, &Message::new("large").body(vec![b'x'; size]));
    let unread = bus.rest().begin("DELETE", "/q/messages/head", &[], b"");
    held(&bus.http, "the answer", |held| held >= size);
    drop(unread);
    held(&bus.http, "nothing", |held| held < MIB);
}

#[test]
fn settlements_in_a_transaction_are_counted_as_memory() {
    let bus = with_limits(1 << 20, 1 << 30);
    let mut peer = bus.client();
    let sender = peer.sender("q");
    for _ in 0..10 {
        peer.send(&sender, &Message::new("a"));
    }
    let receiver = peer.receiver("q");
    let (coordinator, transaction) = peer.transaction();
    let large = map([(symbol("large"), text(&"x".repeat(30_000)))]);
    let annotated = composite(0x27, [true.into(), false.into(), large]);
    for _ in 0..10 {
        let delivery = peer.receive_one(&receiver);
        let settled = peer.settle_in(&delivery, &transaction, annotated.clone());
        settled.expect("it is enlisted");
    }
    held(&bus.http, "ten outcomes", |held| held > 300_000);
    peer.roll_back(&coordinator, &transaction);
    held(&bus.http, "little", |held| held < 10_000);
}
