//! Topics and their subscriptions: messages sent to a topic are received from its subscriptions (semantics §13, decision
//! D25).

use serde_amqp::Value;
use serde_json::json;

use crate::support::*;

/// The topic `t` with subscriptions that get everything.
fn subscribed(names: &[&str]) -> Bus {
    let all: Vec<_> = names.iter().map(|&name| (name, json!({}))).collect();
    Bus::configured(&topic(&json!({}), &all))
}

fn publish(bus: &Bus, messages: &[Message]) {
    let (mut peer, sender) = bus.sender("t");
    for message in messages {
        peer.send(&sender, message);
    }
}

#[test]
fn every_spelling_of_a_topic_address_is_accepted() {
    let (_bus, mut peer) = subscribed(&["s"]).with_client();
    for (to, from) in [
        ("t", "t/Subscriptions/s"),
        ("T", "T/subscriptions/S"),
        ("/t", "/t/SUBSCRIPTIONS/s"),
        ("%74", "t%2FSubscriptions%2fs"),
        (
            "amqps://localhost:5671/t",
            "amqps://localhost:5671/t/Subscriptions/s",
        ),
        ("sb://localhost/T", "sb://localhost/T/Subscriptions/S"),
    ] {
        peer.send_to(to, &Message::new(to));
        let receiver = peer.receiver(from);
        let delivery = peer.receive_one(&receiver);
        assert_eq!(delivery.id(), to);
        peer.complete(&delivery);
        peer.detach(&receiver);
        peer.receiver(&format!("{from}/$DeadLetterQueue"));
        let node = peer.node(&format!("{from}/$management"));
        assert!(peer.peek_all(&node).is_empty());
    }
}

/// A link, its address, and the condition of its refusal with some of the words.
const REFUSED: &str = "\
    send | t/Subscriptions/s | amqp:not-allowed | send to its topic
    receive | t | amqp:not-allowed | receive from its subscriptions
    receive | t/$DeadLetterQueue | amqp:not-allowed | receive from its subscriptions
    send | t/$DeadLetterQueue/$management | amqp:not-allowed | receive from its subscriptions
    receive | t/$DeadLetterQueue/$management | amqp:not-allowed | receive from its subscriptions
    send | t/Subscriptions/s/$DeadLetterQueue | amqp:not-allowed | $DeadLetterQueue
    receive | t/Subscriptions/none | amqp:not-found | none
    receive | none/Subscriptions/s | amqp:not-found | none
    receive | q/Subscriptions/s | amqp:not-found | q/Subscriptions/s
    send | t/Subscriptions | amqp:not-found | t/Subscriptions";

#[test]
fn topics_accept_senders_and_subscriptions_receivers_only() {
    let (_bus, mut peer) = subscribed(&["s"]).with_client();
    for line in REFUSED.lines() {
        let [what, address, condition, words] = line.trim().split(" | ").collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let attach = match what {
            "send" => Attach::sender(address),
            _ => Attach::receiver(address),
        };
        let refusal = peer.refused(&attach);
        assert_eq!(refusal.condition, condition, "{line}: {refusal:?}");
        assert!(refusal.words().contains(words), "{line}: {refusal:?}");
    }
    peer.receiver("t/$Transfer/$DeadLetterQueue");
    peer.receiver("t/Subscriptions/s/$Transfer/$DeadLetterQueue");
    peer.node("t/$Transfer/$DeadLetterQueue/$management");
}

#[test]
fn a_subscription_settles_as_a_queue_does() {
    let bus = subscribed(&["s", "other"]);
    publish(&bus, &["a", "b", "c", "d"].map(Message::new));
    let mut peer = bus.client();
    let path = "t/Subscriptions/s";
    let node = peer.node(&format!("{path}/$management"));
    assert_eq!(ids(&peer.peek_all(&node)), ["a", "b", "c", "d"]);
    let receiver = peer.receiver(path);
    let [a, b, c, d] = [1, 2, 3, 4].map(|_| peer.receive_one(&receiver));
    peer.complete(&a);
    peer.settle(&b, dead_lettered("why", "because"));
    peer.settle(&c, deferred());
    let renewed = peer.call(&node, "renew-lock", map([tokens(&[d.token()])]));
    assert_eq!(renewed.status(), 200, "{}", renewed.text());
    peer.settle_by_token(&node, "completed", d.token());
    let number = c.message.annotation("x-opt-sequence-number");
    assert_eq!(number, long(3));
    let found = peer.call(&node, "receive-by-sequence-number", receive_by(&[3], 1));
    let [(token, message)] = received(&found).try_into().expect("one message");
    assert_eq!(message.id(), "c");
    peer.settle_by_token(&node, "completed", token);
    assert_eq!(bus.http.held(path), (0, 1));
    assert_eq!(bus.http.held("t/Subscriptions/other"), (4, 0));
    let dead = peer.receiver(&format!("{path}/$DeadLetterQueue"));
    let dead = peer.receive_one(&dead);
    assert_eq!(dead.id(), "b");
    assert_eq!(dead.message.dead_letter_reason(), text("why"));
    // A token is valid at its own subscription only.
    let other = peer.node("t/Subscriptions/other/$management");
    let body = disposition("completed", &[dead.token()]);
    assert_lock_lost(&peer.call(&other, "update-disposition", body));
}

#[test]
fn scheduled_messages_wait_at_the_topic() {
    let bus = subscribed(&["s"]);
    let at = client_now() + 60_000;
    publish(&bus, &[Message::new("sent").scheduled_at(at)]);
    let (mut peer, node) = bus.node("t/$management");
    let messages = ["called", "cancelled"].map(|id| Message::new(id).scheduled_at(at));
    let reply = peer.schedule(&node, &messages);
    let [_, cancelled] = scheduled(&reply).try_into().expect("two numbers");
    let count = |entity: &str| bus.http.counts(entity)["scheduled"].clone();
    assert_eq!(
        (count("t"), count("t/Subscriptions/s")),
        (3.into(), 0.into())
    );
    let reply = peer.cancel_scheduled(&node, &[cancelled]);
    assert_eq!(reply.status(), 200, "{}", reply.text());
    assert_eq!(ids(&peer.peek_all(&node)), ["sent", "called"]);
    let receiver = peer.receiver_with_credit("t/Subscriptions/s", 10);
    assert_eq!(bus.http.held("t/Subscriptions/s"), (0, 0));
    bus.http.advance(61.0);
    assert_eq!(peer.receive(&receiver).id(), "sent");
    assert_eq!(peer.receive(&receiver).id(), "called");
    assert_eq!(count("t"), 0);
}

#[test]
fn a_disabled_subscription_gets_messages() {
    for status in ["Disabled", "ReceiveDisabled"] {
        let disabled = properties(&json!({ "Status": status }));
        let bus = Bus::configured(&topic(&json!({}), &[("s", disabled)]));
        publish(&bus, &[Message::new("m")]);
        assert_eq!(bus.http.held("t/Subscriptions/s"), (1, 0), "{status}");
        let refusal = bus.client().refused(&Attach::receiver("t/Subscriptions/s"));
        assert_eq!(refusal.condition, "com.microsoft:entity-disabled");
    }
    for status in ["Disabled", "SendDisabled"] {
        let (_bus, mut peer) =
            Bus::configured(&topic(&json!({ "Status": status }), &[("s", json!({}))]))
                .with_client();
        let refusal = peer.refused(&Attach::sender("t"));
        assert_eq!(
            refusal.condition, "com.microsoft:entity-disabled",
            "{status}"
        );
        peer.receiver("t/Subscriptions/s");
    }
}

#[test]
fn links_of_a_subscription_outlive_a_reset() {
    let (bus, mut peer) = subscribed(&["s", "other"]).with_client();
    let receiver = peer.receiver("t/Subscriptions/s");
    bus.http.reset();
    publish(&bus, &[Message::new("m")]);
    assert_eq!(
        peer.receive_one(&receiver).id(),
        "m",
        "reset keeps consumers"
    );
}

/// Instants in messages are in the client's time, and so are those that rules see and set (decision D20).
#[test]
fn rules_see_and_set_instants_in_the_time_of_clients() {
    let soon = rules(&[sql("soon", "deadline > sys.EnqueuedTimeUtc", "")]);
    let noted = rules(&[sql("noted", "1=1", "SET at = sys.EnqueuedTimeUtc")]);
    let put_off = "SET sys.ScheduledEnqueueTimeUtc = deadline";
    let mut later = rules(&[sql("later", "1=1", put_off)]);
    later["Properties"] = json!({"ForwardTo": "q"});
    let subscriptions = [("soon", soon), ("noted", noted), ("later", later)];
    let mut config: serde_json::Value =
        serde_json::from_str(&topic(&json!({}), &subscriptions)).expect("it is JSON");
    config["UserConfig"]["Namespaces"][0]["Queues"] = json!([{"Name": "q"}]);
    let bus = Bus::configured(&config.to_string());
    bus.http.advance(3600.0);
    let deadline = client_now() + 600_000;
    publish(
        &bus,
        &[Message::new("m").application("deadline", timestamp(deadline))],
    );
    let mut peer = bus.client();
    peer.receive_from("t/Subscriptions/soon");
    let noted = peer.receive_from("t/Subscriptions/noted").message;
    let Value::Timestamp(at) = noted.application("at") else {
        panic!("{noted:?}");
    };
    // The copy reached the subscription after the rules were evaluated at the topic.
    let between = noted.instant("x-opt-enqueued-time") - at.milliseconds();
    assert!((0..60_000).contains(&between), "{between} ms");
    assert_eq!(bus.http.counts("q")["scheduled"], 1);
    bus.http.advance(601.0);
    peer.receive_from("q");
}

#[test]
fn rules_see_the_time_to_live_under_that_of_the_topic() {
    let brief = rules(&[sql(
        "brief",
        "sys.ExpiresAtUtc < limit",
        "SET life = sys.TimeToLive",
    )]);
    let config = topic(
        &json!({"DefaultMessageTimeToLive": "PT30S"}),
        &[("s", brief)],
    );
    let bus = Bus::configured(&config);
    let limit = timestamp(client_now() + 45_000);
    let message = |id| Message::new(id).application("limit", limit.clone());
    publish(&bus, &[message("none"), message("own").ttl(60_000)]);
    let mut peer = bus.client();
    let receiver = peer.receiver("t/Subscriptions/s");
    for _ in 0..2 {
        let received = peer.receive_one(&receiver).message;
        assert_eq!(received.header(2), uint(30_000), "{received:?}");
    }
}
