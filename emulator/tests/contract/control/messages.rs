//! What a timeline tells beside events: the messages themselves, where they are kept, and sends that wait.

use serde_json::{Value, json};
use servicebus_emulator::Options;

use crate::support::*;

fn keeping(config: &str) -> Bus {
    Bus::started(Options {
        config: parse(config),
        record_messages: true,
        ..Options::default()
    })
}

/// Which message each event is about.
fn referred(timeline: &Value) -> Vec<(&str, Option<u64>)> {
    let events = timeline["events"].as_array().into_iter().flatten();
    let pairs = events.map(|event| {
        let kind = event["kind"].as_str().unwrap_or_default();
        (kind, event["message"].as_u64())
    });
    pairs.collect()
}

#[test]
fn messages_are_told_once_and_only_to_those_who_ask() {
    let (bus, mut peer, sender) = keeping(&queues("", &[("q", "")])).with_sender("q");
    peer.send(&sender, &Message::new("first"));
    peer.send(&sender, &Message::new("second"));
    let delivery = peer.receive_from("q");
    peer.complete(&delivery);

    let timeline = bus.http.timeline("?entity=q&messages=true");
    let expected = [
        ("sent", Some(0)),
        ("sent", Some(1)),
        ("delivered", Some(0)),
        ("completed", Some(0)),
    ];
    assert_eq!(referred(&timeline), expected);
    assert_eq!(timeline["messages"].as_array().map(Vec::len), Some(2));
    let plain = bus.http.timeline("?entity=q");
    assert_eq!(plain["messages"], Value::Null);
    assert!(
        referred(&plain)
            .iter()
            .all(|(_, message)| message.is_none())
    );
}

#[test]
fn a_message_is_the_same_wherever_it_moves_within_its_entity() {
    let (bus, mut peer) = keeping(&queues("", &[("q", r#""MaxDeliveryCount":1"#)])).with_client();
    peer.send_to("q", &Message::new("poison"));
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    peer.settle(&delivery, abandoned());
    let delivery = peer.receive_from("q/$DeadLetterQueue");
    peer.complete(&delivery);

    let timeline = bus.http.timeline("?entity=q&messages=true");
    let messages = referred(&timeline);
    assert_eq!(messages.len(), 6, "{messages:?}");
    assert!(messages.iter().all(|(_, message)| *message == Some(0)));
}

#[test]
fn a_reset_forgets_messages_and_without_the_option_none_are_kept() {
    let (bus, mut peer) = keeping(&queues("", &[("q", "")])).with_client();
    peer.send_to("q", &Message::new("m"));
    let reset = "/$emulator/v1/namespaces/sbemulatorns/reset";
    bus.http.post(reset, &json!({})).ok();
    let timeline = bus.http.timeline("?entity=q&messages=true");
    assert_eq!(timeline["messages"], json!([]));
    assert_eq!(timeline["sends_unsettled"], json!({"now": 0, "most": 0}));

    let bus = Bus::with_queues(&["q"]);
    let timeline = bus.http.timeline("?entity=q&messages=true");
    assert_eq!(timeline["messages"], Value::Null);
}

#[test]
fn sends_wait_from_their_arrival_until_their_outcome_is_written() {
    let bus = Bus::with_queues(&["q", "other"]);
    let sends =
        |queue: &str| bus.http.timeline(&format!("?entity={queue}"))["sends_unsettled"].clone();
    let mut peer = bus.client();
    let sender = peer.sender("q");
    for _ in 0..3 {
        peer.send(&sender, &Message::new("m"));
    }
    assert_eq!(sends("q"), json!({"now": 0, "most": 1}));

    // In one segment, and so in one turn of the emulator; what is sent settled waits for nothing.
    let payload = Message::new("m").encode();
    let before = peer.transfer(&sender, 0, false, &payload);
    peer.outcome(&sender, before).expect("it is accepted");
    let mut frames = Vec::new();
    for settled in [false, true, false, false] {
        frames.extend(peer.transfer_frame(&sender, settled, &payload));
    }
    peer.write(&frames);
    for after in [1, 3, 4] {
        peer.outcome(&sender, before + after)
            .expect("it is accepted");
    }
    peer.send(&sender, &Message::new("m"));
    assert_eq!(sends("q"), json!({"now": 0, "most": 3}));
    assert_eq!(sends("other"), json!({"now": 0, "most": 0}));
}
