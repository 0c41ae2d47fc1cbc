//! No number or size of messages blocks a thread for long: the watchdog (`emulator/src/watchdog.rs`), which test builds
//! have, reports a poll of more than 50 ms to `/health`.

use serde_json::json;

use crate::support::*;

const MANY: usize = 100_000;
const IN_A_BATCH: usize = 2_000;
const MIB: usize = 1024 * 1024;
/// A WebSocket message is unmasked in one step, which takes the library alone 45 ms for 100 MiB in an unoptimised build.
const LARGE: usize = 60 * MIB;

/// A queue with many messages that live for a second.
fn with_many() -> (Bus, Peer) {
    let properties = r#""DeadLetteringOnMessageExpiration":true,"LockDuration":"PT5S""#;
    let bus = Bus::with_queue(properties);
    bus.http.freeze();
    let (mut peer, sender) = bus.sender("q");
    let message = Message::new("m").ttl(10_000).encode();
    let messages = batch(&vec![message; IN_A_BATCH]);
    for _ in 0..MANY / IN_A_BATCH {
        peer.post(&sender, BATCH, &messages)
            .expect("it is accepted");
    }
    (bus, peer)
}

/// Fails where a poll took too long.
fn assert_healthy(http: &Http) {
    http.get("/health").ok();
}

#[test]
fn many_messages_expiring_together_block_no_thread() {
    let (bus, _peer) = with_many();
    bus.http.advance(11.0);
    assert_eq!(bus.http.held("q"), (0, MANY as u64));
    assert_healthy(&bus.http);
}

#[test]
fn deleting_a_queue_of_many_messages_blocks_no_thread() {
    let (bus, _peer) = with_many();
    bus.http.queue("DELETE", "q", None);
    assert_healthy(&bus.http);
}

#[test]
fn many_deliveries_and_lock_expiries_block_no_thread() {
    let (bus, mut peer) = with_many();
    let receiver = peer.receiver("q");
    peer.credit(&receiver, MANY as u32);
    for _ in 0..MANY {
        peer.receive(&receiver);
    }
    assert_eq!(bus.http.counts("q")["locked"], json!(MANY));
    bus.http.advance(6.0);
    assert_eq!(bus.http.counts("q")["locked"], json!(0));
    assert_healthy(&bus.http);
}

/// A queue of a Premium namespace that takes the largest messages, and a client over a WebSocket.
pub(super) fn with_large() -> (Bus, Peer) {
    let limit = r#""MaxMessageSizeInKilobytes":102400"#;
    let bus = Bus::configured(&queues(r#""Tier":"premium""#, &[("q", limit)]));
    let stream = Stream::plain(bus.http.0).websocket("/$servicebus/websocket", "AMQPWSB10");
    let mut peer = Peer::open_over(stream, &Open::default());
    peer.let_in();
    (bus, peer)
}

/// Sends a message in many frames, which are one message of the WebSocket.
pub(super) fn send_large(peer: &mut Peer, sender: &Link, format: u32, message: &[u8]) -> u32 {
    let id = peer.next_delivery_id();
    let pieces: Vec<_> = message.chunks(60_000).collect();
    let mut frames = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let fields = [
            uint(sender.handle),
            uint(id),
            binary(&id.to_be_bytes()),
            uint(format),
            false.into(),
            (index + 1 < pieces.len()).into(),
        ];
        frames.extend(performative(sender.channel, TRANSFER, &fields, piece));
    }
    peer.write(&frames);
    id
}

#[test]
fn a_large_websocket_message_blocks_no_thread() {
    let _alone = alone_with_large_messages();
    let (bus, mut peer) = with_large();
    let sender = peer.sender("q");
    let message = Message::new("m").body(vec![7; LARGE]).encode();
    let id = send_large(&mut peer, &sender, 0, &message);
    peer.outcome(&sender, id).expect("it is accepted");
    let delivery = peer.receive_from("q");
    assert_eq!(delivery.message.data().len(), LARGE);
    assert_healthy(&bus.http);
}

#[test]
fn a_message_with_too_many_list_elements_is_rejected() {
    let _alone = alone_with_large_messages();
    let (bus, mut peer) = with_large();
    let sender = peer.sender("q");
    // An AMQP value that is a list of nulls.
    let list = |count: u32| {
        let size = (count + 4).to_be_bytes();
        let head = [0x00, 0x53, 0x77, 0xd0];
        let nulls = vec![0x40; count as usize];
        [&head[..], &size, &count.to_be_bytes(), &nulls].concat()
    };
    let id = send_large(&mut peer, &sender, 0, &list(2 * MIB as u32 - 1));
    peer.outcome(&sender, id).expect("it is accepted");
    let id = send_large(&mut peer, &sender, 0, &list(LARGE as u32));
    let refused = peer.outcome(&sender, id).expect_err("it has too many");
    assert_contains(&refused.text, "at most 2097152 are allowed");
    assert_healthy(&bus.http);
}

#[test]
fn a_batch_over_the_size_limit_is_rejected_without_parsing() {
    let _alone = alone_with_large_messages();
    let (bus, mut peer) = with_large();
    let sender = peer.sender("q");
    let small = Message::new("m").encode();
    let messages = batch(&vec![small; LARGE / 100]);
    send_large(&mut peer, &sender, BATCH, &messages);
    let refused = peer.detached(&sender).refusal(2);
    assert_eq!(refused.condition, "amqp:not-allowed");
    assert_healthy(&bus.http);
}

#[test]
fn a_peek_in_a_session_does_not_read_other_sessions() {
    const REQUESTS: usize = 400;
    let (bus, mut peer, sender) = Bus::with_sessions().with_sender("q");
    for session in ["large", "small"] {
        let message = Message::new("m").session(session).encode();
        let count = if session == "large" { MANY } else { 1 };
        for messages in vec![message; count].chunks(IN_A_BATCH) {
            let id = peer.transfer(&sender, BATCH, false, &batch(messages));
            peer.outcome(&sender, id).expect("it is accepted");
        }
    }
    let node = peer.node("q/$management");
    let body = map([
        (text("from-sequence-number"), long(0)),
        (text("message-count"), serde_amqp::Value::Int(1)),
        (text("session-id"), text("small")),
    ]);
    let ask = Message::request(text("id"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:peek-message"))
        .encode();
    // In one write, so that one turn of the connection has many of them.
    let mut frames = Vec::new();
    for _ in 0..REQUESTS {
        frames.extend(peer.transfer_frame(&node.requests, true, &ask));
    }
    peer.write(&frames);
    for _ in 0..REQUESTS {
        let reply = Reply::new(peer.receive(&node.replies));
        assert_eq!(ids(&peeked(&reply)), ["m"]);
    }
    assert_healthy(&bus.http);
}

#[test]
fn many_session_locks_expiring_together_block_no_thread() {
    const SESSIONS: usize = 4_900;
    /// On each AMQP session.
    const LINKS: usize = 245;
    let (bus, mut peer) = Bus::with_sessions().with_client();
    bus.http.freeze();
    for channel in 1..=SESSIONS / LINKS {
        let channel = channel as u16;
        peer.begin(channel);
        peer.next_handle = 0;
        for number in 0..LINKS {
            let id = format!("{channel}-{number}");
            let attach = Attach::session("q", text(&id)).named(&id);
            peer.attached(&attach.on(channel));
        }
    }
    bus.http.advance(61.0);
    for _ in 0..SESSIONS {
        peer.take("a link is detached", |frame| frame.code == DETACH);
    }
    assert_healthy(&bus.http);
}
