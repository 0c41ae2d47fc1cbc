//! A link is granted a session, and answered in its client's own form; links that are refused a session, and the texts
//! (semantics §20.2).

use serde_amqp::Value;

use crate::support::*;

const MINUTE: i64 = 60_000;

/// Whether an instant is a minute after the client's now, give or take what a busy machine needs.
fn is_in_a_minute(instant: i64) -> bool {
    (instant - client_now() - MINUTE).abs() < 20_000
}

#[test]
fn the_granted_session_id_has_the_encoding_of_the_request() {
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
fn a_session_attach_answer_repeats_the_other_requested_fields() {
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
fn a_session_attach_answer_keeps_other_filters() {
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
fn the_end_of_a_session_lock_is_in_client_time() {
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
fn a_session_filter_on_other_links_is_ignored() {
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

const NOT_ALLOWED: &str = "amqp:not-allowed";
const ARGUMENT: &str = "com.microsoft:argument-error";

fn assert_refused(peer: &mut Peer, attach: &Attach, condition: &str, words: &str) {
    let refusal = peer.refused(attach);
    assert_eq!(refusal.condition, condition, "{attach:?}");
    assert_eq!(refusal.words(), words, "{attach:?}");
}

#[test]
fn a_session_entity_refuses_plain_receivers() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let words = "It is not possible for an entity that requires sessions to create a non-sessionful message \
                 receiver.";
    for attach in [Attach::receiver("q"), Attach::deleting("q")] {
        assert_refused(&mut peer, &attach, NOT_ALLOWED, words);
    }
}

#[test]
fn a_plain_entity_refuses_session_receivers() {
    let sessions = r#""RequiresSession":true"#;
    let (_bus, mut peer) =
        Bus::configured(&queues("", &[("plain", ""), ("q", sessions)])).with_client();
    let words = "A sessionful message receiver cannot be created on an entity that does not require sessions. \
                 Ensure RequiresSession is set to true when creating a Queue or Subscription to enable sessionful \
                 behavior.";
    for address in [
        "plain",
        "plain/$DeadLetterQueue",
        "q/$DeadLetterQueue",
        "q/$Transfer/$DeadLetterQueue",
    ] {
        for wanted in [text("s"), Value::Null, described(text("s")), uint(7)] {
            let attach = Attach::session(address, wanted);
            assert_refused(&mut peer, &attach, NOT_ALLOWED, words);
        }
    }
}

#[test]
fn a_locked_session_cannot_be_accepted() {
    let (bus, mut holder) = Bus::with_sessions().with_client();
    let held = holder.accept("q", "s");
    let mut peer = bus.client();
    let words =
        "The requested session 's' cannot be accepted. It may be locked by another receiver.";
    let condition = "com.microsoft:session-cannot-be-locked";
    for wanted in [text("s"), described(text("s"))] {
        // No receiver waits for a session by its id.
        let attach = Attach::session("q", wanted).waiting_for(uint(60_000));
        assert_refused(&mut peer, &attach, condition, words);
        assert_refused(&mut holder, &attach.named("other"), condition, words);
    }
    holder.detach(&held);
    peer.accept("q", "s");
}

#[test]
fn a_session_id_over_128_characters_is_refused() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    peer.accept("q", &"é".repeat(128));
    let id = "s".repeat(129);
    let words = "The session id for 'q' has 129 characters; it may have up to 128.";
    for wanted in [text(&id), described(text(&id))] {
        let attach = Attach::session("q", wanted);
        assert_refused(&mut peer, &attach, ARGUMENT, words);
    }
}

#[test]
fn a_session_filter_other_than_text_or_null_is_refused() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    for (wanted, shown) in [
        (uint(7), "7"),
        (Value::Bool(true), "true"),
        (described(binary(b"s")), "binary"),
        (list([]), "a list"),
    ] {
        let words = format!(
            "The session filter of a receiver of 'q' is {shown}; it must be a string, or null for the next available \
             session."
        );
        assert_refused(&mut peer, &Attach::session("q", wanted), ARGUMENT, &words);
    }
}

#[test]
fn the_timeout_of_a_session_attach_must_be_valid() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    for (time, shown) in [
        (text("60"), "'60'"),
        (Value::Int(-1), "-1"),
        (ulong(1 << 32), "4294967296"),
        (Value::Bool(true), "true"),
        (Value::Double(0.5.into()), "0.5"),
    ] {
        let words = format!(
            "The link property com.microsoft:timeout of a receiver of 'q' is {shown}; it must be a whole number of \
             milliseconds from 0 to 4294967295."
        );
        let attach = Attach::session("q", Value::Null).waiting_for(time);
        assert_refused(&mut peer, &attach, ARGUMENT, &words);
    }
    // A receiver that names a session does not wait.
    peer.attached(&Attach::session("q", text("s")).waiting_for(text("60")));
}

#[test]
fn a_session_queue_rejects_messages_without_a_session_id() {
    let (bus, mut peer, sender) = Bus::with_sessions().with_sender("q");
    let words = "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have \
                 session support enabled can only receive messages that have the SessionId set to a valid value.";
    let refusal = peer.send_in_vain(&sender, &Message::new("m").encode());
    assert_eq!(
        (refusal.condition.as_str(), refusal.words()),
        (NOT_ALLOWED, words)
    );
    let whole = [Message::new("a").session("s"), Message::new("b")].map(|m| m.encode());
    let refusal = peer
        .post(&sender, BATCH, &batch(&whole))
        .expect_err("one of them has none");
    assert_eq!(refusal.words(), words);
    let node = peer.node("q/$management");
    let later = Message::new("m").scheduled_at(client_now() + 60_000);
    let reply = peer.schedule(&node, &[later]);
    assert_eq!(refused_with(&reply, 400, NOT_ALLOWED), words);
    assert_eq!(bus.http.held("q"), (0, 0));
}
