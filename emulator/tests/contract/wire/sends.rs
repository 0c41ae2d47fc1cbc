//! Sent messages: accepted ones, and the errors for the others (semantics §2.1, §4).

use serde_amqp::Value;

use crate::support::*;

fn sending() -> (Bus, Peer, Link) {
    let (bus, peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    (bus, peer, sender)
}

/// Payloads that are not messages.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let good = Message::new("m").encode();
    let deep = Message::request(text("m"), Value::Null, nested(40)).encode();
    let twice = [good.as_slice(), b"\x00\x53\x73\x45"].concat();
    vec![
        ("no section", b"just text".to_vec()),
        ("an unknown section", b"\x00\x53\x60\x45".to_vec()),
        ("a section twice", twice),
        (
            "two kinds of body",
            b"\x00\x53\x75\xa0\x01x\x00\x53\x77\x45".to_vec(),
        ),
        (
            "properties that are not a list",
            b"\x00\x53\x73\xa1\x01x\x00\x53\x75\xa0\x00".to_vec(),
        ),
        ("a length past the end", b"\x00\x53\x75\xa0\xff.".to_vec()),
        ("cut off", good[..good.len() - 2].to_vec()),
        (
            "a count past the size",
            b"\x00\x53\x77\xd0\x00\x00\x00\x08\xff\xff\xff\xff\x40\x40\x40\x40".to_vec(),
        ),
        ("nested too deep", deep),
        (
            "bytes that are not text",
            b"\x00\x53\x73\xc0\x05\x01\xa1\x02\xff\xfe".to_vec(),
        ),
    ]
}

#[test]
fn a_malformed_message_is_rejected_and_keeps_the_link() {
    let (bus, mut peer, sender) = sending();
    let (mut other_client, theirs) = bus.sender("q");
    let mut sent = 0;
    for (what, payload) in malformed() {
        let id = peer.transfer(&sender, 0, false, &payload);
        other_client.send(&theirs, &Message::new("meanwhile"));
        sent += 1;
        let refusal = peer.outcome(&sender, id).expect_err(what);
        assert_eq!(refusal.condition, "amqp:decode-error", "{what}");
        let words = refusal.words();
        assert!(
            words.starts_with("The message was refused: "),
            "{what}: {words}"
        );
    }
    peer.send(&sender, &Message::new("good"));
    assert_eq!(bus.http.held("q"), (sent + 1, 0));
}

#[test]
fn a_batch_is_accepted_or_rejected_as_a_whole() {
    let (bus, mut peer, sender) = sending();
    let [first, second] = ["a", "b"].map(|id| Message::new(id).encode());
    for (_, bad) in malformed() {
        assert_eq!(
            peer.post(&sender, BATCH, &batch(&[&first, &bad, &second]))
                .expect_err("one is bad")
                .condition,
            "amqp:decode-error"
        );
    }
    let value = Message::request(text("x"), Value::Null, text("no data")).encode();
    assert!(
        peer.post(&sender, BATCH, &value).is_err(),
        "a batch is made of data"
    );
    assert_eq!(bus.http.held("q"), (0, 0));
    // The envelope repeats the first message's properties and is not a message itself.
    let envelope = [
        b"\x00\x53\x73\xc0\x04\x01\xa1\x01a".as_slice(),
        &batch(&[&first, &second]),
    ]
    .concat();
    assert_eq!(peer.post(&sender, BATCH, &envelope), Ok(()));
    let receiver = peer.receiver("q");
    assert_eq!([1, 2].map(|_| peer.receive_one(&receiver).id()), ["a", "b"]);
}

/// Newest §4: the service's text for a batch without data.
#[test]
fn a_batch_without_messages_is_refused_and_detaches_its_link() {
    const NO_DATA: &str = "received a batch message with no data in it. Detach origin: Publisher.";
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let header: &[u8] = b"\x00\x53\x70\x45";
    for payload in [b"".as_slice(), header] {
        let sender = peer.sender("q");
        let outcome = peer.post(&sender, BATCH, payload).unwrap_err();
        assert_eq!(outcome.condition, "amqp:not-allowed");
        assert_contains(outcome.words(), NO_DATA);
        let refusal = peer.detached(&sender).refusal(2);
        assert_eq!(refusal.words(), outcome.words());
    }
    let sender = peer.sender("q");
    let (coordinator, transaction) = peer.transaction();
    let outcome = peer.post_in(&sender, &transaction, BATCH, b"").unwrap_err();
    assert_contains(outcome.words(), NO_DATA);
    peer.send_in(&sender, &transaction, &Message::new("m"))
        .expect("the link stays");
    peer.commit(&coordinator, &transaction)
        .expect("nothing was refused");
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn a_refused_presettled_message_is_dropped_and_recorded() {
    let (bus, mut peer, sender) = sending();
    peer.transfer(&sender, 0, true, b"no message");
    peer.transfer(&sender, 0, true, &Message::new("zero").ttl(0).encode());
    peer.transfer(&sender, 0, true, &vec![0; 300_000]);
    peer.transfer(&sender, 0, true, &Message::new("good").encode());
    peer.assert_no_frame(|frame| [DISPOSITION, DETACH].contains(&frame.code));
    assert_eq!(bus.http.held("q"), (1, 0));
    let events = bus.http.events("?entity=q");
    let refusals = events.iter().filter(|event| event["kind"] == "refused");
    let reasons: Vec<_> = refusals
        .map(|event| event["reason"].as_str().unwrap_or(""))
        .collect();
    let expected = [
        "amqp:decode-error",
        "amqp:internal-error",
        "amqp:link:message-size-exceeded",
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn a_message_over_the_size_limit_is_rejected_with_the_service_text() {
    let (bus, mut peer, sender) = sending();
    let at_the_limit = |size: usize| {
        let overhead = Message::new("m").body(vec![0; 100_000]).encode().len() - 100_000;
        Message::new("m").body(vec![0; size - overhead]).encode()
    };
    let fits = at_the_limit(262_144);
    assert_eq!(fits.len(), 262_144);
    assert_eq!(peer.post(&sender, 0, &fits), Ok(()));
    for size in [262_145, 289_349, 1_000_000] {
        let id = peer.transfer(&sender, 0, false, &at_the_limit(size));
        let refusal = peer.outcome(&sender, id).expect_err("it is too large");
        assert_eq!(refusal.condition, "amqp:link:message-size-exceeded");
        let text = format!(
            "The received message (delivery-id:{id}, size:{size} bytes) exceeds the limit \
             (262144 bytes) currently allowed on the link."
        );
        assert_eq!(refusal.words(), text);
    }
    peer.send(&sender, &Message::new("small"));
    assert_eq!(bus.http.held("q"), (2, 0));
}

#[test]
fn a_message_in_many_transfer_frames_is_reassembled() {
    let (_bus, mut peer, sender) = sending();
    let message = Message::new("m").body(vec![7; 1000]).encode();
    let id = peer.next_delivery_id();
    for (index, piece) in message.chunks(100).enumerate() {
        let last = Value::Bool(index != message.chunks(100).count() - 1);
        // Python repeats id, tag and format on every frame, others write them once.
        let (number, tag) = match index % 2 {
            0 => (uint(id), binary(b"t")),
            _ => (Value::Null, Value::Null),
        };
        let fields = [
            uint(sender.handle),
            number,
            tag,
            uint(0),
            Value::Bool(false),
            last,
        ];
        peer.write(&performative(0, TRANSFER, &fields, piece));
    }
    assert_eq!(peer.outcome(&sender, id), Ok(()));
    let aborted = peer.next_delivery_id();
    let mut fields = vec![uint(sender.handle), uint(aborted), binary(b"t"), uint(0)];
    fields.extend([Value::Bool(false), Value::Bool(true)]);
    peer.write(&performative(0, TRANSFER, &fields, b"half a mess"));
    fields[5] = Value::Bool(false);
    fields.extend([Value::Null, Value::Null, Value::Null, Value::Bool(true)]);
    peer.write(&performative(0, TRANSFER, &fields, b""));
    peer.send(&sender, &Message::new("after"));
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    assert_eq!(delivery.message.data(), vec![7; 1000]);
    assert_eq!(peer.receive_one(&receiver).id(), "after");
}

#[test]
fn a_thousand_sends_without_waiting_are_all_accepted() {
    let (bus, mut peer, sender) = sending();
    let message = |number: u32| Message::new(&number.to_string());
    peer.send_without_waiting(&sender, (0..3000).map(message));
    assert_eq!(bus.http.held("q"), (3000, 0));
}
