//! Links and tokens that are refused in the service's words: rows 13, 50, 60, 66 and 67 of spec/observed.md.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

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
        assert!(words.starts_with("A link to connection '"), "{words}");
        assert_ends_with(words, "' $cbs node has already been opened.");
        peer.detach(attached);
        peer.attached(&again);
    }
    peer.end(1);
    peer.node("$cbs");
}

/// Row 13: Go and .NET learn of a missing entity when they put their token.
#[test]
fn a_token_for_what_is_not_there_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.stranger();
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
            assert_starts_with(&text, "The messaging entity 'sb://localhost/");
            assert!(text.contains("' could not be found."), "{text}");
        }
    }
}

/// Row 67.
#[test]
fn an_expired_token_is_refused_with_the_instant_of_its_end() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.stranger();
    let audience = "sb://localhost/q";
    let token = sas::sign(audience, &Key::well_known(), 1_555_017_176);
    let reply = peer.put_token(audience, &token);
    assert_eq!(reply.cbs_status(), 401);
    let said = "ExpiredToken: The token is expired. Expiration time: '2019-04-11 21:12:56Z'";
    assert!(reply.text().starts_with(said), "{}", reply.text());
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
fn a_filter_that_is_not_evaluated_is_refused() {
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
    let said =
        " contains invalid filter type. System only support Jms or Apache selector filter type.";
    assert!(behind.starts_with(said), "{}", refusal.text);
}
