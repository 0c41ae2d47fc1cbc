//! Nothing that many or large messages bring about keeps a thread for long: the watchdog (`emulator/src/watchdog.rs`),
//! with which tests are built, tells `/health` of a poll that takes much more than 50 ms.

use serde_json::json;

use crate::support::*;

const MANY: usize = 100_000;
const IN_A_BATCH: usize = 2_000;
const MIB: usize = 1024 * 1024;

/// A queue with many messages that live for a second.
fn with_many() -> (Bus, Peer) {
    let properties = r#""DeadLetteringOnMessageExpiration":true,"LockDuration":"PT5S""#;
    let bus = Bus::configured(&queues("", &[("q", properties)]));
    bus.http.freeze();
    let mut peer = bus.client();
    let sender = peer.sender("q");
    let message = Message::new("m").ttl(10_000).encode();
    let messages = batch(&vec![message; IN_A_BATCH]);
    for _ in 0..MANY / IN_A_BATCH {
        let id = peer.transfer(&sender, BATCH, false, &messages);
        peer.outcome(&sender, id).expect("it is accepted");
    }
    (bus, peer)
}

/// Fails where a poll took too long.
fn assert_healthy(http: &Http) {
    http.get("/health").ok();
}

#[test]
fn messages_that_expire_together() {
    let (bus, _peer) = with_many();
    bus.http.advance(11.0);
    assert_eq!(bus.http.held("q"), (0, MANY as u64));
    assert_healthy(&bus.http);
}

#[test]
fn a_queue_that_is_deleted() {
    let (bus, _peer) = with_many();
    bus.http.queue("DELETE", "q", None);
    assert_healthy(&bus.http);
}

#[test]
fn credit_for_everything_and_locks_that_end_together() {
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

#[test]
fn a_message_of_100_mib_in_one_of_a_websocket() {
    let limit = r#""MaxMessageSizeInKilobytes":102400"#;
    let bus = Bus::configured(&queues(r#""Tier":"premium""#, &[("q", limit)]));
    let stream = Stream::plain(bus.http.0).websocket("/$servicebus/websocket", "AMQPWSB10");
    let mut peer = Peer::open_over(stream, &Open::default());
    peer.let_in();
    let sender = peer.sender("q");
    let message = Message::new("m").body(vec![7; 100 * MIB - 1000]).encode();
    let id = peer.next_delivery_id();
    let pieces: Vec<_> = message.chunks(60_000).collect();
    let mut frames = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let fields = [
            uint(sender.handle),
            uint(id),
            binary(&id.to_be_bytes()),
            uint(0),
            false.into(),
            (index + 1 < pieces.len()).into(),
        ];
        frames.extend(performative(sender.channel, TRANSFER, &fields, piece));
    }
    peer.write(&frames);
    peer.outcome(&sender, id).expect("it is accepted");
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    assert_eq!(delivery.message.data().len(), 100 * MIB - 1000);
    assert_healthy(&bus.http);
}
