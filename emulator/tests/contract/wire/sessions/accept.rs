//! A link is granted a session, and told so in its client's own shape.

use serde_amqp::Value;

use crate::support::*;

const MINUTE: i64 = 60_000;

/// Whether an instant is a minute after the client's now, give or take what a busy machine needs.
fn is_in_a_minute(instant: i64) -> bool {
    (instant - client_now() - MINUTE).abs() < 20_000
}

#[test]
fn the_granted_id_comes_in_the_shape_of_the_request() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    for (session, wanted, answer) in [
        ("a", text("a"), text("a")),
        ("b", described(text("b")), described(text("b"))),
        ("c", Value::Null, text("c")),
        ("d", described(Value::Null), described(text("d"))),
    ] {
        send_all(&mut peer, "q", &[("m", session)]);
        let attach = Attach::session("q", wanted).named(session);
        let link = peer.attached(&attach);
        assert_eq!(granted(&link), answer);
        assert_eq!(peer.receive_one(&link).id(), "m");
    }
}

#[test]
fn everything_else_is_repeated_as_it_was_asked_for() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    for (index, (address, snd, rcv)) in [
        ("q", 0, 1),
        ("amqps://localhost:5671/Q", 2, 0),
        ("/q", 1, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let session = format!("s{index}");
        let attach = Attach {
            snd_settle_mode: snd,
            rcv_settle_mode: rcv,
            ..Attach::session(address, text(&session))
        };
        let link = peer.attached(&attach);
        let answer = &link.answer;
        assert_eq!(answer.field(2), &Value::Bool(false), "the role");
        assert_eq!(answer.field(3), &Value::Ubyte(snd));
        assert_eq!(answer.field(4), &Value::Ubyte(rcv));
        let (code, source) = described_list(answer.field(5));
        assert_eq!((code, &source[0]), (0x28, &text(address)));
        assert_eq!(answer.field(6), &attach.target);
        assert_eq!(answer.field(9), &uint(0), "initial-delivery-count");
        assert!(is_in_a_minute(locked_until(&link)), "{link:?}");
    }
}

#[test]
fn other_filters_of_the_source_stay() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let mut source = vec![text("q")];
    source.resize(7, Value::Null);
    source.push(map([
        (symbol("other"), uint(7)),
        (symbol("com.microsoft:session-filter"), text("s")),
    ]));
    let link = peer.attached(&Attach {
        source: composite(0x28, source),
        ..Attach::receiver("q")
    });
    let (_, source) = described_list(link.answer.field(5));
    let Value::Map(filter) = &source[7] else {
        panic!("{source:?}");
    };
    assert_eq!(filter.get(&symbol("other")), Some(&uint(7)));
    assert_eq!(granted(&link), text("s"));
}

#[test]
fn the_lock_is_told_in_the_time_of_the_client() {
    let bus = Bus::with_sessions();
    bus.http.advance(86_400.0);
    let mut peer = bus.client();
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.accept("q", "s");
    assert!(is_in_a_minute(locked_until(&link)), "{link:?}");
    let held = peer.receive_one(&link);
    let until = held.message.instant("x-opt-locked-until");
    assert!((until - locked_until(&link)).abs() < 2, "{until}");
}

#[test]
fn a_session_may_be_accepted_before_there_is_a_message() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let link = peer.accept("q", "later");
    peer.credit(&link, 1);
    send_all(&mut peer, "q", &[("x", "other"), ("m", "later")]);
    let held = peer.receive(&link);
    assert_eq!(held.id(), "m");
    peer.complete(&held);
}

#[test]
fn a_session_receiver_may_receive_and_delete() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("a", "s"), ("x", "t"), ("b", "s")]);
    let link = peer.attached(&Attach {
        snd_settle_mode: 1,
        rcv_settle_mode: 0,
        ..Attach::session("q", text("s"))
    });
    let got: Vec<String> = peer.drain(&link, 10).iter().map(Delivery::id).collect();
    assert_eq!(got, ["a", "b"]);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn the_next_available_is_the_one_whose_oldest_message_has_waited_longest() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let sent = [("1", "b"), ("2", "a"), ("3", "b"), ("4", "c")];
    send_all(&mut peer, "q", &sent);
    let granted = [0, 1, 2].map(|_| peer.accept_next("q"));
    assert_eq!(
        granted.each_ref().map(|(id, _)| id.as_str()),
        ["b", "a", "c"]
    );
    // A session that is closed is next again if it has the oldest.
    peer.detach(&granted[0].1);
    assert_eq!(peer.accept_next("q").0, "b");
}

#[test]
fn a_subscription_has_sessions_of_its_own() {
    let with_sessions = serde_json::json!({"RequiresSession": true});
    let subscriptions = [
        ("s", properties(&with_sessions)),
        ("plain", properties(&serde_json::json!({}))),
    ];
    let (_bus, mut peer) =
        Bus::configured(&topic(&serde_json::json!({}), &subscriptions)).with_client();
    send_all(&mut peer, "t", &[("1", "b"), ("2", "a"), ("3", "b")]);
    let link = peer.accept("t/Subscriptions/s", "b");
    let got: Vec<String> = peer.drain(&link, 10).iter().map(Delivery::id).collect();
    assert_eq!(got, ["1", "3"]);
    let plain = peer.receiver("t/Subscriptions/plain");
    assert_eq!(peer.drain(&plain, 10).len(), 3);
}

#[test]
fn a_filter_means_nothing_to_other_links() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    for address in ["q/$management", "$cbs"] {
        peer.attached(&Attach::session(address, text("s")));
    }
    let filtered = Attach::session("q", text("s")).source;
    peer.attached(&Attach {
        source: filtered,
        ..Attach::sender("q")
    });
}
