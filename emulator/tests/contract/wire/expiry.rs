//! When an expired message leaves (decision D1).

use serde_amqp::Value;

use crate::support::*;

/// A queue that dead-letters what expires, with a message that has.
fn expired(expiry: &str) -> (Bus, Peer) {
    let setting = format!(r#""Expiry":"{expiry}""#);
    let properties = r#""DeadLetteringOnMessageExpiration":true"#;
    let bus = Bus::configured(&queues(&setting, &[("q", properties)]));
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("m").ttl(1000));
    bus.http.advance(5.0);
    (bus, peer)
}

#[test]
fn by_default_it_leaves_at_its_instant() {
    let (bus, mut peer) = expired("eager");
    assert_eq!(bus.http.held("q"), (0, 1));
    let dead = peer.receiver("q/$DeadLetterQueue");
    let dead = peer.receive_one(&dead).message;
    assert_eq!(
        dead.application("DeadLetterReason"),
        text("TTLExpiredException")
    );
    let description = text("The message expired and was dead lettered.");
    assert_eq!(dead.application("DeadLetterErrorDescription"), description);
}

#[test]
fn as_documented_it_waits_for_somebody_who_would_receive_it() {
    let (bus, mut peer) = expired("on-receive");
    assert_eq!(bus.http.held("q"), (1, 0));
    let node = peer.node("q/$management");
    let body = map([
        (text("from-sequence-number"), long(1)),
        (text("message-count"), Value::Int(1)),
    ]);
    assert_eq!(
        peer.call(&node, "peek-message", body).status(),
        200,
        "it can be peeked"
    );
    let receiver = peer.receiver("q");
    peer.settle_down();
    assert_eq!(
        bus.http.held("q"),
        (1, 0),
        "a link without credit wants nothing"
    );
    let path = "/$emulator/v1/namespaces/sbemulatorns/settled";
    let rest = bus.http.post(path, &serde_json::json!({"within": 30}));
    assert_eq!(rest.status, 200, "what waits is at rest: {rest:?}");
    peer.credit(&receiver, 1);
    let left = peer
        .settle_down()
        .into_iter()
        .filter(|frame| frame.code == TRANSFER);
    assert_eq!(left.count(), 0, "nobody gets it");
    assert_eq!(bus.http.held("q"), (0, 1));
}
