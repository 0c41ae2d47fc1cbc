//! A batch is in the queue as a whole or not at all, whatever is wrong with one of its messages (semantics §17.1).

use crate::support::*;

fn full(bus: &Bus) -> (Peer, Link) {
    let mut peer = bus.client();
    let sender = peer.sender("q");
    for number in 0..5 {
        let message = Message::new(&format!("filler-{number}")).body(vec![0; 200_000]);
        peer.send(&sender, &message);
    }
    (peer, sender)
}

fn send_batch(peer: &mut Peer, sender: &Link, messages: &[Message]) -> Result<(), ServiceError> {
    let encoded: Vec<Vec<u8>> = messages.iter().map(Message::encode).collect();
    let id = peer.transfer(sender, BATCH, false, &batch(&encoded));
    peer.outcome(sender, id)
}

#[test]
fn one_message_beyond_the_limits_takes_the_others_with_it() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let good = || Message::new("good");
    for (bad, condition) in [
        (
            Message::new(&"x".repeat(129)),
            "com.microsoft:argument-error",
        ),
        (
            good().application("long", text(&"x".repeat(40_000))),
            "amqp:internal-error",
        ),
        (
            good().application("list", list([])),
            "com.microsoft:argument-error",
        ),
        (good().ttl(0), "amqp:internal-error"),
    ] {
        let refusal = send_batch(&mut peer, &sender, &[good(), bad, good()]);
        assert_eq!(refusal.expect_err("one is bad").condition, condition);
        assert_eq!(bus.http.held("q"), (0, 0));
    }
    assert_eq!(send_batch(&mut peer, &sender, &[good(), good()]), Ok(()));
    assert_eq!(bus.http.held("q"), (2, 0));
}

#[test]
fn a_batch_that_does_not_fit_the_queue_is_refused_whole() {
    let bus = Bus::configured(&queues("", &[("q", r#""MaxSizeInMegabytes":1"#)]));
    let (mut peer, sender) = full(&bus);
    let message = |id: &str| Message::new(id).body(vec![0; 40_000]);
    let refusal = send_batch(&mut peer, &sender, &[message("a"), message("b")]);
    let refusal = refusal.expect_err("the queue is full");
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    let words = "The maximum entity size has been reached or exceeded for Queue: 'q'. Size of entity in bytes:";
    assert!(refusal.words().starts_with(words), "{}", refusal.text);
    assert_eq!(bus.http.held("q"), (5, 0));
    assert_eq!(send_batch(&mut peer, &sender, &[message("a")]), Ok(()));
    let refusal = peer.send_in_vain(&sender, &message("b").encode());
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    // Whoever takes something out makes room.
    let receiver = peer.attached(&Attach::deleting("q"));
    peer.receive_one(&receiver);
    peer.send(&sender, &message("b"));
}

#[test]
fn what_was_sent_settled_and_is_refused_is_dropped_and_recorded() {
    let bus = Bus::configured(&queues("", &[("q", r#""MaxSizeInMegabytes":1"#)]));
    let (mut peer, sender) = full(&bus);
    let large = Message::new("large").body(vec![0; 100_000]);
    peer.transfer(&sender, 0, true, &large.encode());
    peer.transfer(
        &sender,
        BATCH,
        true,
        &batch(&[large.encode(), large.encode()]),
    );
    peer.settle_down();
    bus.http.set_status("q", "SendDisabled");
    peer.transfer(&sender, 0, true, &Message::new("small").encode());
    let answers = peer.settle_down();
    assert!(
        answers
            .iter()
            .all(|frame| frame.code != DISPOSITION && frame.code != DETACH),
        "{answers:?}"
    );
    assert_eq!(bus.http.held("q"), (5, 0));
    let mut events = bus.http.events("?entity=q");
    events.retain(|event| event["kind"] == "refused");
    let reasons: Vec<&str> = events
        .iter()
        .filter_map(|event| event["reason"].as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "amqp:resource-limit-exceeded",
            "amqp:resource-limit-exceeded",
            "com.microsoft:entity-disabled",
        ]
    );
    for event in events {
        untracked(event["detail"].as_str().expect("the words"));
    }
}

#[test]
fn a_disabled_queue_refuses_the_whole_batch_once() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    bus.http.set_status("q", "Disabled");
    let refusal = send_batch(&mut peer, &sender, &[Message::new("a"), Message::new("b")]);
    let refusal = refusal.expect_err("nothing is sent");
    assert_eq!(refusal.condition, "com.microsoft:entity-disabled");
    bus.http.set_status("q", "Active");
    assert_eq!(send_batch(&mut peer, &sender, &[Message::new("a")]), Ok(()));
    assert_eq!(bus.http.held("q"), (1, 0));
}
