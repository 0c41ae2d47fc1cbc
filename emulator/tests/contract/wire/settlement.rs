//! What becomes of a message under a lock, and what its receiver hears (wire.md §4.4).

use serde_amqp::Value;

use crate::support::*;

const LOCK_LOST: &str = "com.microsoft:message-lock-lost";

/// A queue with one message for each id, and a client that receives from it.
fn receiving(ids: &[&str]) -> (Bus, Peer, Link) {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    for id in ids {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("q");
    (bus, peer, receiver)
}

#[test]
fn each_settlement_is_answered_with_its_outcome() {
    let (bus, mut peer, receiver) = receiving(&["a", "b", "c", "d"]);
    let held = [1, 2, 3, 4].map(|_| peer.receive_one(&receiver));
    assert_eq!(peer.settle(&held[0], accepted()), accepted());
    assert_eq!(peer.settle(&held[1], released()), released());
    assert_eq!(described_list(&peer.settle(&held[2], abandoned())).0, 0x27);
    let answer = peer.settle(&held[3], dead_lettered("why", "because"));
    let (code, fields) = described_list(&answer);
    assert_eq!(code, 0x25);
    assert!(
        fields.iter().all(|field| field == &Value::Null),
        "no error is repeated: {fields:?}"
    );
    assert_eq!(bus.http.held("q"), (2, 1));
    // A release does not count, an abandon does.
    let again = [1, 2].map(|_| peer.receive_one(&receiver));
    assert_eq!(again.each_ref().map(Delivery::id), ["b", "c"]);
    assert_eq!(
        again.map(|delivery| delivery.message.header(4)),
        [uint(0), uint(1)]
    );
}

#[test]
fn every_encoding_of_modified_of_the_sdks_abandons() {
    let (_bus, mut peer, receiver) = receiving(&["a"]);
    let no = || Value::Bool(false);
    let forms = [
        composite(0x27, []),
        composite(0x27, [Value::Null, Value::Null, Value::Null]),
        composite(0x27, [no(), no()]),
        composite(0x27, [Value::Bool(true), no()]),
    ];
    for (count, form) in forms.into_iter().enumerate() {
        let delivery = peer.receive_one(&receiver);
        assert_eq!(delivery.message.header(4), uint(count as u32));
        assert_eq!(described_list(&peer.settle(&delivery, form)).0, 0x27);
    }
}

/// Go sends both empty where it was given none.
#[test]
fn an_empty_dead_letter_reason_is_omitted() {
    let (_bus, mut peer, receiver) = receiving(&["a"]);
    let delivery = peer.receive_one(&receiver);
    let info = map([
        (symbol("DeadLetterReason"), text("")),
        (symbol("DeadLetterErrorDescription"), text("")),
    ]);
    let dead_letter = symbol("com.microsoft:dead-letter");
    let error = composite(0x1d, [dead_letter, Value::Null, info]);
    peer.settle(&delivery, composite(0x25, [error]));
    let dead = peer.receive_from("q/$DeadLetterQueue").message;
    assert_eq!(dead.dead_letter_reason(), Value::Null);
    assert_eq!(dead.dead_letter_description(), Value::Null);
}

/// Clients read both as strings: Go panics on other types (wire.md §7.1).
#[test]
fn a_dead_letter_reason_that_is_not_a_string_is_omitted() {
    let types = [
        Value::Null,
        Value::Int(5),
        list([text("because")]),
        map([(text("because"), text("of it"))]),
    ];
    let (bus, mut peer, receiver) = receiving(&["0", "1", "2", "3", "4", "5", "6", "7"]);
    let node = peer.node("q/$management");
    for other in types {
        let delivery = peer.receive_one(&receiver);
        let info = map([
            (symbol("DeadLetterReason"), other.clone()),
            (symbol("DeadLetterErrorDescription"), other.clone()),
            (symbol("other"), Value::Int(5)),
        ]);
        let dead_letter = symbol("com.microsoft:dead-letter");
        let error = composite(0x1d, [dead_letter, Value::Null, info]);
        peer.settle(&delivery, composite(0x25, [error]));
        let by_token = map([
            (text("disposition-status"), text("suspended")),
            tokens(&[peer.receive_one(&receiver).token()]),
            (text("deadletter-reason"), other.clone()),
            (text("deadletter-description"), other),
            (
                text("properties-to-modify"),
                map([(text("other"), Value::Int(5))]),
            ),
        ]);
        let reply = peer.call(&node, "update-disposition", by_token);
        assert_eq!(reply.status(), 200);
    }
    assert_eq!(bus.http.held("q"), (0, 8));
    let dead_letters = peer.receiver_with_credit("q/$DeadLetterQueue", 8);
    for _ in 0..8 {
        let dead = peer.receive(&dead_letters).message;
        assert_eq!(dead.dead_letter_reason(), Value::Null);
        assert_eq!(dead.dead_letter_description(), Value::Null);
        assert_eq!(dead.application("other"), Value::Int(5));
    }
}

#[test]
fn a_property_of_a_compound_type_is_refused_by_name_and_the_lock_stays() {
    let (bus, mut peer, receiver) = receiving(&["a", "b", "c"]);
    let node = peer.node("q/$management");
    let compound = |name| map([(symbol(name), list([text("because")]))]);
    let modified = |is_deferred: bool| {
        let fields = [
            Value::Null,
            is_deferred.into(),
            compound("DeadLetterReason"),
        ];
        composite(0x27, fields)
    };
    let error = composite(0x1d, [symbol("failed"), Value::Null, compound("other")]);
    for (name, outcome) in [
        ("DeadLetterReason", modified(false)),
        ("DeadLetterReason", modified(true)),
        ("other", composite(0x25, [error])),
    ] {
        let delivery = peer.receive_one(&receiver);
        let refusal = peer.settle_in_vain(&delivery, outcome);
        assert_eq!(refusal.condition, "com.microsoft:argument-error");
        let expected = format!("'{name}' is not of a primitive type.");
        assert_contains(refusal.words(), &expected);
        peer.settle_by_token(&node, "completed", delivery.token());
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_rejection_without_an_error_dead_letters_without_a_reason() {
    let (bus, mut peer, receiver) = receiving(&["a"]);
    let delivery = peer.receive_one(&receiver);
    assert_eq!(
        described_list(&peer.settle(&delivery, composite(0x25, []))).0,
        0x25
    );
    assert_eq!(bus.http.held("q"), (0, 1));
    let dead = peer.receive_from("q/$DeadLetterQueue");
    assert_eq!(dead.message.dead_letter_reason(), Value::Null);
    let refusal = peer.settle_in_vain(&dead, dead_lettered("again", ""));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    refusal.tracking_id();
}

#[test]
fn a_disposition_range_settles_all_deliveries_in_it() {
    let ids: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (bus, mut peer, receiver) = receiving(&ids);
    peer.credit(&receiver, 50);
    let held: Vec<Delivery> = ids.iter().map(|_| peer.receive(&receiver)).collect();
    peer.dispose(0, held[0].id, held[49].id, false, accepted());
    for delivery in &held {
        assert_eq!(peer.settled(delivery), accepted());
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_settled_disposition_gets_no_answer() {
    let (bus, mut peer, receiver) = receiving(&["a", "b"]);
    let delivery = peer.receive_one(&receiver);
    peer.dispose(0, delivery.id, delivery.id, true, accepted());
    peer.assert_no_frame(|frame| frame.code == DISPOSITION);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn settling_a_delivery_without_a_lock_is_a_lost_lock() {
    let (bus, mut peer, receiver) = receiving(&["a"]);
    let delivery = peer.receive_one(&receiver);
    peer.complete(&delivery);
    let refusal = peer.settle_in_vain(&delivery, accepted());
    assert_eq!(refusal.condition, LOCK_LOST, "settled twice");
    let unknown = Delivery {
        id: delivery.id + 1000,
        ..delivery
    };
    peer.assert_settle_refused(&unknown, accepted(), LOCK_LOST);
    peer.dispose(0, unknown.id, unknown.id, true, accepted());
    peer.dispose(0, 0, i32::MAX as u32, true, accepted());
    peer.assert_no_frame(|frame| frame.code == DISPOSITION);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_settlement_on_a_link_that_was_stolen_has_no_effect_and_no_answer() {
    let (bus, mut peer, receiver) = receiving(&["a", "b", "c"]);
    let [plain, enlisted, forgotten] = [1, 2, 3].map(|_| peer.receive_one(&receiver));
    let (coordinator, transaction) = peer.transaction();
    peer.receiver("q");
    peer.detached(&receiver);
    peer.dispose(0, plain.id, plain.id, false, accepted());
    let state = in_transaction(&transaction, accepted());
    peer.dispose(0, enlisted.id, enlisted.id, false, state.clone());
    peer.dispose(0, forgotten.id, forgotten.id, true, state);
    peer.assert_no_frame(|frame| frame.code == DISPOSITION);
    let refusal = peer.commit(&coordinator, &transaction).unwrap_err();
    assert_eq!(refusal.condition, LOCK_LOST);
    assert_eq!(bus.http.counts("q")["locked"], 3, "they stay locked");
}

#[test]
fn an_expired_lock_is_lost_and_its_message_redelivered() {
    let (bus, mut peer, receiver) = receiving(&["a"]);
    bus.http.freeze();
    let first = peer.receive_one(&receiver);
    bus.http.advance(59.0);
    assert_eq!(bus.http.counts("q")["locked"], 1);
    bus.http.advance(1.5);
    for outcome in [accepted(), abandoned(), released(), dead_lettered("", "")] {
        peer.assert_settle_refused(&first, outcome, LOCK_LOST);
    }
    let second = peer.receive_one(&receiver);
    assert_eq!(
        (second.id().as_str(), second.message.header(4)),
        ("a", uint(1))
    );
    assert_ne!(second.token(), first.token());
    peer.complete(&second);
}
