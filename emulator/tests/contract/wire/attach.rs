//! Answers to attaches.
//!
//! Links and tokens that are refused in the service's words: rows 13, 50, 60, 66 and 67 of spec/observed.md.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

#[test]
fn an_attach_answer_repeats_the_requested_fields() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    for attach in [
        Attach {
            snd_settle_mode: 2,
            rcv_settle_mode: 0,
            ..Attach::sender("amqps://localhost:5671/q")
        },
        Attach {
            snd_settle_mode: 0,
            rcv_settle_mode: 1,
            ..Attach::sender("/q")
        },
        Attach {
            snd_settle_mode: 2,
            rcv_settle_mode: 1,
            ..Attach::receiver("Q")
        },
        Attach::deleting("amqp://localhost/q/$deadletterqueue"),
    ] {
        let link = peer.attached(&attach);
        let answer = link.answer;
        assert_eq!(answer.field(2), &Value::Bool(!attach.receives));
        assert_eq!(answer.field(3), &Value::Ubyte(attach.snd_settle_mode));
        assert_eq!(answer.field(4), &Value::Ubyte(attach.rcv_settle_mode));
        assert_eq!(
            (answer.field(5), answer.field(6)),
            (&attach.source, &attach.target)
        );
        let properties = match attach.receives {
            true => {
                assert_eq!(answer.field(9), &uint(0), "initial-delivery-count");
                map([])
            }
            false => {
                assert_eq!(answer.field(10), &ulong(262_144), "max-message-size");
                batch_limit(262_144)
            }
        };
        assert_eq!(answer.field(13), &properties, "properties");
    }
}

#[test]
fn a_sender_link_gets_credit_and_the_message_limit_of_its_tier() {
    for (tier, limit) in [
        ("basic", 262_144),
        ("standard", 262_144),
        ("premium", 1_048_576),
    ] {
        let setting = format!(r#""Tier":"{tier}""#);
        let (_bus, mut peer, sender) =
            Bus::configured(&queues(&setting, &[("q", "")])).with_sender("q");
        assert_eq!(sender.answer.field(10), &ulong(limit));
        let flow = peer.take("credit", |frame| {
            frame.code == FLOW && frame.field(4) == &uint(sender.handle)
        });
        assert_eq!((flow.number(5), flow.number(6)), (0, 1000));
    }
}

#[test]
fn an_attach_to_a_missing_entity_has_the_text_sdks_search_for() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    for address in [
        "x",
        "amqps://localhost/x",
        "x/$DeadLetterQueue",
        "q/$DeadLetterQueue/$DeadLetterQueue",
        "x/$management",
        "q/x",
        "$x",
        "",
    ] {
        for attach in [Attach::sender(address), Attach::receiver(address)] {
            let refusal = peer.refused(&attach);
            assert_eq!(
                refusal.condition, "amqp:not-found",
                "{address:?}: {refusal:?}"
            );
            assert!(
                is_not_found(refusal.words()),
                "{address:?}: {}",
                refusal.text
            );
        }
    }
    // The connection stays open.
    peer.sender("q");
}

/// JavaScript and Java: /The messaging entity '(.*)' could not be found(.*)/ (wire.md §2.3).
fn is_not_found(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("The messaging entity 'sb://localhost/") else {
        return false;
    };
    rest.contains("' could not be found.")
}

#[test]
fn a_dead_letter_queue_refuses_senders() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    for path in ["q/$DeadLetterQueue", "q/$Transfer/$DeadLetterQueue"] {
        let refusal = peer.refused(&Attach::sender(path));
        assert_eq!(refusal.condition, "amqp:not-allowed");
        assert_contains(refusal.words(), &format!("'{path}'"));
    }
}

/// .NET sends one on every receiver.
#[test]
fn an_empty_filter_map_is_ignored() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let mut source = vec![text("q")];
    source.resize(7, Value::Null);
    source.push(map([]));
    peer.attached(&Attach {
        source: composite(0x28, source),
        ..Attach::receiver("q")
    });
}

#[test]
fn long_link_and_entity_names_are_accepted_or_refused_in_one_frame() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    // Rust's link names exceed 255 bytes.
    peer.attached(&Attach::sender("q").named(&"n".repeat(1000)));
    let refusal = peer.refused(&Attach::sender("q").named(&"n".repeat(5000)));
    assert_eq!(refusal.condition, "amqp:invalid-field");
    for length in [261, 10_000, 65_000] {
        let address = "a".repeat(length);
        let refusal = peer.refused(&Attach::receiver(&address).named("long"));
        assert_eq!(refusal.condition, "amqp:not-found");
        assert!(
            refusal.text.len() < 2000,
            "a text of {} bytes",
            refusal.text.len()
        );
        assert!(is_not_found(refusal.words()), "{}", refusal.text);
    }
    peer.sender("q");
}

#[test]
fn an_attach_of_the_same_name_steals_the_link() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    peer.send(&sender, &Message::new("m"));
    let first = peer.receiver_with_credit("q", 10);
    peer.receive(&first);
    let second = peer.receiver("q");
    assert_eq!(
        peer.detached(&first).refusal(2).condition,
        "amqp:link:stolen"
    );
    peer.send(&sender, &Message::new("n"));
    assert_eq!(peer.receive_one(&second).id(), "n");
}

#[test]
fn links_and_sessions_end_on_detach_and_end_frames() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.begin(3);
    let sender = peer.attached(&Attach::sender("q").on(3));
    peer.send(&sender, &Message::new("m"));
    peer.detach(&sender);
    for _ in 0..3 {
        peer.frame(3, END, &[]);
        assert_eq!(peer.expect(END).field(0), &Value::Null);
        peer.begin(3);
    }
    let receiver = peer.attached(&Attach::receiver("q").on(3));
    assert_eq!(peer.receive_one(&receiver).id(), "m");
    peer.close();
}

const NOT_ALLOWED: &str = "amqp:not-allowed";

/// Row 66: go-azservicebus opens a pair for each token, and closes it.
#[test]
fn a_connection_has_one_link_to_cbs_in_each_direction() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let cbs = peer.node("$cbs");
    peer.begin(1);
    for (attach, attached) in [
        (Attach::sender("$cbs"), &cbs.requests),
        (Attach::receiver("$cbs"), &cbs.replies),
    ] {
        let again = attach.named("again").on(1);
        let refusal = peer.refused(&again);
        assert_eq!(refusal.condition, NOT_ALLOWED);
        let words = refusal.words();
        assert_starts_with(words, "A link to connection '");
        assert_ends_with(words, "' $cbs node has already been opened.");
        peer.detach(attached);
        peer.attached(&again);
    }
    peer.end(1);
    peer.node("$cbs");
}

/// Row 13: Go and .NET learn of a missing entity when they put their token.
#[test]
fn a_token_for_a_missing_entity_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.unauthenticated_client();
    for (audience, status) in [
        ("sb://localhost/none", 404),
        ("sb://localhost/none/$management", 404),
        ("sb://localhost/q/Subscriptions/s", 404),
        ("sb://localhost/Q/$management", 202),
        ("sb://localhost/q/$DeadLetterQueue", 202),
        ("sb://localhost/", 202),
    ] {
        let token = sas::sign(audience, &Key::well_known(), in_an_hour());
        let reply = peer.put_token(audience, &token);
        assert_eq!(reply.cbs_status(), status, "{audience}");
        if status == 404 {
            let text = reply.text();
            let entity = audience.trim_end_matches("/$management");
            assert_starts_with(
                &text,
                &format!("The messaging entity '{entity}' could not be found."),
            );
        }
    }
}

/// Row 67.
#[test]
fn an_expired_token_is_refused_with_its_expiry_instant() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.unauthenticated_client();
    let audience = "sb://localhost/q";
    let token = sas::sign(audience, &Key::well_known(), 1_555_017_176);
    let reply = peer.put_token(audience, &token);
    assert_eq!(reply.cbs_status(), 401);
    let expected = "ExpiredToken: The token is expired. Expiration time: '2019-04-11 21:12:56Z'";
    assert_starts_with(&reply.text(), expected);
}

/// Row 60: only an int counts.
#[test]
fn a_client_for_another_type_of_entity_is_refused() {
    let (_bus, mut peer) = Bus::configured(&topic(
        &serde_json::json!({}),
        &[("s", serde_json::json!({}))],
    ))
    .with_client();
    let of_type = |attach: Attach, value| Attach {
        properties: map([(symbol("com.microsoft:entity-type"), value)]),
        ..attach
    };
    let subscription = || Attach::receiver("t/Subscriptions/s");
    let refusal = peer.refused(&of_type(subscription(), Value::Int(1)));
    assert_eq!(refusal.condition, NOT_ALLOWED);
    assert_eq!(
        refusal.words(),
        "Cannot open a Topic client for entity type Subscriber."
    );
    for value in [
        Value::Int(2),
        Value::Int(77),
        Value::Uint(1),
        text("entity-mgmt"),
    ] {
        let link = peer.attached(&of_type(subscription(), value));
        peer.detach(&link);
    }
    peer.attached(&of_type(Attach::sender("t"), Value::Int(1)));
}

/// Row 50: .NET looks for the words behind the last apostrophe, so none follows the name of the link.
#[test]
fn an_unsupported_filter_is_refused() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let selector = Value::Described(Box::new(Described {
        descriptor: Descriptor::Code(0x0000_468C_0000_0004),
        value: text("colour = 'red'"),
    }));
    let filter = map([(symbol("apache.org:selector-filter:string"), selector)]);
    let mut source = vec![text("q")];
    source.resize(7, Value::Null);
    source.push(filter);
    let attach = Attach {
        source: composite(0x28, source),
        ..Attach::receiver("q")
    };
    let refusal = peer.refused(&attach);
    assert_eq!(refusal.condition, NOT_ALLOWED);
    let (_, behind) = refusal.text.rsplit_once('\'').expect("the link is named");
    let expected =
        " contains invalid filter type. System only support Jms or Apache selector filter type.";
    assert_starts_with(behind, expected);
}
