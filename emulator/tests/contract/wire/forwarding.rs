//! Queues that forward, and messages that cannot be forwarded (semantics §11, decisions D3, D22).

use serde_json::json;

use crate::support::*;

const TRANSFER_DEAD: &str = "/$Transfer/$DeadLetterQueue";

/// Queues each of which forwards to the next.
fn chain(emulator: &str, names: &[&str]) -> Bus {
    let to = |name: &str| format!(r#""ForwardTo":"{name}""#);
    let mut properties: Vec<String> = names[1..].iter().map(|name| to(name)).collect();
    properties.push(String::new());
    let all: Vec<(&str, &str)> = names
        .iter()
        .zip(&properties)
        .map(|(&name, properties)| (name, properties.as_str()))
        .collect();
    Bus::configured(&queues(emulator, &all))
}

fn send(bus: &Bus, queue: &str, message: &Message) {
    let mut peer = bus.client();
    peer.send_to(queue, message);
}

fn dead_letter(bus: &Bus, queue: &str, id: &str) {
    send(bus, queue, &Message::new(id));
    let mut peer = bus.client();
    let delivery = peer.receive_from(queue);
    peer.settle(&delivery, dead_lettered("why", "because"));
}

#[test]
fn a_forwarding_queue_refuses_receiver_links() {
    let (bus, mut peer) = chain("", &["a", "b"]).with_client();
    let refusal = peer.refused(&Attach::receiver("a"));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    // Row 37 of spec/observed.md.
    assert_eq!(
        refusal.words(),
        "Cannot create a message receiver on an entity with auto-forwarding enabled."
    );
    peer.receiver("a/$DeadLetterQueue");
    peer.receiver(&format!("a{TRANSFER_DEAD}"));
    // A queue that begins to forward loses its receivers, and forwards its messages.
    let receiver = peer.receiver("b");
    send(&bus, "b", &Message::new("m"));
    bus.http.put_queue("c", &json!({}));
    bus.http.put_queue("b", &json!({"ForwardTo": "c"}));
    let refusal = peer.detached(&receiver).refusal(2);
    assert_eq!(refusal.condition, "amqp:not-allowed");
    assert_eq!((bus.http.held("b"), bus.http.held("c")), ((0, 0), (1, 0)));
    bus.http.put_queue("b", &json!({"ForwardTo": ""}));
    peer.attached(&Attach::receiver("b").named("again"));
}

#[test]
fn the_fifth_forward_is_a_transfer_dead_letter() {
    let bus = chain("", &["q1", "q2", "q3", "q4", "q5", "q6"]);
    send(&bus, "q1", &Message::new("far"));
    send(&bus, "q2", &Message::new("near"));
    assert_eq!(bus.http.held("q6"), (1, 0));
    assert_eq!(
        bus.http
            .numbers("q5", ["transfer_dead_letter", "dead_letter"]),
        [1, 0]
    );
    let path = format!("q5{TRANSFER_DEAD}");
    let mut peer = bus.client();
    let node = peer.node(&format!("{path}/$management"));
    assert_eq!(ids(&peer.peek_all(&node)), ["far"]);
    let receiver = peer.receiver(&path);
    let delivery = peer.receive_one(&receiver);
    let application = |name| delivery.message.application(name);
    assert_eq!(
        application("DeadLetterReason"),
        text("MaxTransferHopCountExceeded")
    );
    let words =
        "The maximum number of allowed hops when forwarding between queues. Value is set to 4.";
    assert_eq!(application("DeadLetterErrorDescription"), text(words));
    peer.assert_settle_refused(&delivery, dead_lettered("why", ""), "amqp:not-allowed");
    // The lock is unchanged.
    peer.settle_by_token(&node, "completed", delivery.token());
    assert_eq!(bus.http.counts("q5")["transfer_dead_letter"], 0);
    assert_eq!(
        peer.refused(&Attach::sender(&path)).condition,
        "amqp:not-allowed"
    );
}

#[test]
fn a_forward_to_a_full_target_fails_with_the_quota_text() {
    let properties = [
        ("a", r#""ForwardTo":"b""#),
        ("b", r#""MaxSizeInMegabytes":1"#),
    ];
    let bus = Bus::configured(&queues("", &properties));
    for number in 0..6 {
        let message = Message::new(&number.to_string()).body(vec![0; 200_000]);
        send(&bus, "a", &message);
    }
    assert_eq!(bus.http.held("b"), (5, 0));
    let mut peer = bus.client();
    let receiver = peer.receiver(&format!("a{TRANSFER_DEAD}"));
    let message = peer.receive_one(&receiver).message;
    assert_eq!(message.dead_letter_reason(), text("QuotaExceededException"));
    let serde_amqp::Value::String(words) = message.dead_letter_description() else {
        panic!("no description: {message:?}");
    };
    assert_starts_with(
        &words,
        "The maximum entity size has been reached or exceeded for Queue: 'b'.",
    );
}

#[test]
fn dead_letters_wait_for_a_disabled_or_missing_target() {
    let to = r#""ForwardDeadLetteredMessagesTo":"failed""#;
    let bus = Bus::configured(&queues("", &[("q", to), ("failed", "")]));
    bus.http.set_status("failed", "Disabled");
    dead_letter(&bus, "q", "1");
    assert_eq!(bus.http.held("q"), (0, 1));
    bus.http.set_status("failed", "Active");
    bus.http.advance(30.0);
    assert_eq!(
        (bus.http.held("q"), bus.http.held("failed")),
        ((0, 0), (1, 0))
    );
    bus.http.queue("DELETE", "failed", None).ok();
    dead_letter(&bus, "q", "2");
    dead_letter(&bus, "q", "3");
    assert_eq!(bus.http.held("q"), (0, 2));
    bus.http.put_queue("failed", &json!({}));
    bus.http.advance(30.0);
    assert_eq!(
        (bus.http.held("q"), bus.http.held("failed")),
        ((0, 0), (2, 0))
    );
}
