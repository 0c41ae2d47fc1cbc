//! Subscriptions with forwarding, idle deletion, tokens and changes (semantics §5, §11, §14).

use serde_amqp::Value;
use serde_json::json;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

const PATH: &str = "t/Subscriptions/s";

fn subscribed(settings: &serde_json::Value) -> Bus {
    Bus::configured(&topic(&json!({}), &[("s", properties(settings))]))
}

fn send(bus: &Bus, address: &str, id: &str) {
    let mut peer = bus.client();
    peer.send_to(address, &Message::new(id));
}

fn change(bus: &Bus, path: &str, settings: &serde_json::Value) {
    let answer = bus.http.put(path, settings);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn arriving_messages_do_not_keep_an_idle_subscription_and_rules_do() {
    let (bus, mut peer) = subscribed(&json!({"AutoDeleteOnIdle": "PT5M"})).with_client();
    let node = peer.node(&format!("{PATH}/$management"));
    bus.http.advance(200.0);
    let rule = map([
        (text("rule-name"), text("more")),
        (
            text("rule-description"),
            map([(text("sql-filter"), map([(text("expression"), text("1=1"))]))]),
        ),
    ]);
    assert_eq!(peer.call(&node, "add-rule", rule).status(), 200);
    bus.http.advance(200.0);
    send(&bus, "t", "a");
    assert_eq!(bus.http.held(PATH), (1, 0), "it is still there");
    bus.http.advance(200.0);
    let refusal = peer.refused(&Attach::receiver(PATH));
    assert_eq!(refusal.condition, "amqp:not-found");
    send(&bus, "t", "b");
}

#[test]
fn links_of_a_subscription_follow_its_properties() {
    let bus = subscribed(&json!({}));
    let route = format!("~/subscriptions/{PATH}");
    let (mut peer, receiver) = bus.receiver(PATH);
    change(&bus, &route, &json!({"Status": "ReceiveDisabled"}));
    let refusal = peer.detached(&receiver).refusal(2);
    assert_eq!(refusal.condition, "com.microsoft:entity-disabled");
    send(&bus, "t", "m");
    change(&bus, &route, &json!({"Status": "Active", "ForwardTo": "q"}));
    assert_eq!((bus.http.held(PATH), bus.http.held("q")), ((0, 0), (1, 0)));
    change(&bus, &route, &json!({"ForwardTo": ""}));
    send(&bus, "t", "n");
    assert_eq!((bus.http.held(PATH), bus.http.held("q")), ((1, 0), (1, 0)));
}

#[test]
fn a_token_covers_the_subscriptions_of_its_topic() {
    let bus = subscribed(&json!({}));
    let allowed = |audience: &str, attach: &Attach| {
        let mut peer = bus.unauthenticated_client();
        let audience = format!("sb://localhost/{audience}");
        let token = sas::sign(&audience, &Key::well_known(), in_an_hour());
        // Row 13 of spec/observed.md: a token for a missing entity is refused, and gives no right.
        let there = !audience.ends_with("other");
        let status = if there { 202 } else { 404 };
        assert_eq!(peer.put_token(&audience, &token).cbs_status(), status);
        match peer.attach(attach) {
            Ok(_) => true,
            Err(refusal) => {
                assert_eq!(refusal.condition, "amqp:unauthorized-access", "{refusal:?}");
                false
            }
        }
    };
    let receiver = Attach::receiver(PATH);
    let dead = Attach::receiver(&format!("{PATH}/$DeadLetterQueue"));
    let node = Attach::sender(&format!("{PATH}/$management"));
    for audience in ["t", "T/", PATH, "T/subscriptions/S"] {
        for attach in [&receiver, &dead, &node] {
            assert!(allowed(audience, attach), "{audience} {attach:?}");
        }
    }
    assert!(allowed("t", &Attach::sender("t")));
    for audience in [PATH, "t/Subscriptions/other", "q"] {
        assert!(!allowed(audience, &Attach::sender("t")), "{audience}");
    }
    assert!(!allowed("t/Subscriptions/other", &receiver));
    // A client without a token does not learn which names exist.
    assert!(!allowed("q", &Attach::receiver("t/Subscriptions/none")));
}

#[test]
fn the_default_configuration_of_the_official_emulator_is_served() {
    let (_bus, mut peer, sender) =
        Bus::configured(include_str!("../../../../fixtures/config/topics.json"))
            .with_sender("topic.1");
    for message in [
        Message::new("json").property(6, symbol("application/json")),
        Message::new("prop").application("prop1", text("value1")),
        Message::new("123456").application("userProp1", text("value1")),
        Message::new("other").application("prop1", Value::Int(1)),
    ] {
        peer.send(&sender, &message);
    }
    for (number, expected) in [
        (1, &["json"][..]),
        (2, &["prop"]),
        (3, &["json", "prop", "123456", "other"]),
        (4, &["123456"]),
    ] {
        let receiver = peer.receiver(&format!("topic.1/Subscriptions/subscription.{number}"));
        let all = peer.drain(&receiver, 10);
        let ids: Vec<_> = all.iter().map(Delivery::id).collect();
        assert_eq!(ids, expected, "subscription.{number}");
        if number == 4 {
            assert_eq!(all[0].message.property(2), text("Entity"));
            let rule = all[0].message.application("RuleName");
            assert_eq!(rule, text("by-expression"));
        }
    }
}

/// A topic schedules; what a subscription took would pass by every rule.
#[test]
fn a_subscription_refuses_scheduling() {
    let bus = subscribed(&json!({}));
    let mut peer = bus.client();
    let later = [Message::new("m").scheduled_at(client_now() + 60_000)];
    for address in [PATH, "t/Subscriptions/s/$DeadLetterQueue"] {
        let node = peer.node(&format!("{address}/$management"));
        for reply in [
            peer.schedule(&node, &later),
            peer.cancel_scheduled(&node, &[1]),
        ] {
            let words = refused_with(&reply, 400, "amqp:not-allowed");
            assert_starts_with(&words, &format!("Messages cannot be sent to '{address}'"));
        }
    }
    let node = peer.node("t/$management");
    assert_eq!(peer.schedule(&node, &later).status(), 200);
}
