//! The six kinds of subscriptions of JMS 2.0, their clients, and their ends.

use serde_json::json;

use crate::support::*;

const LOCKED: &str = "amqp:resource-locked";

fn bus() -> Bus {
    let bus = Bus::premium(&[]);
    let mut peer = bus.client();
    peer.settle_down();
    let made = bus.http.request("PUT", "~/topics/t", Some("{}"));
    made.ok();
    bus
}

#[test]
fn each_kind_of_jms_subscription_has_its_entity_name() {
    let bus = bus();
    let mut peer = bus.jms("c");
    for (link, is_durable, capabilities, name) in [
        ("a", true, &[][..], "a$c$D"),
        ("b", true, &["shared"], "b$c$D"),
        ("d|global", true, &["shared", "global"], "d$$D"),
        ("e|volatile1", false, &["shared"], "e$c$ND"),
        ("f|global-volatile1", false, &["shared", "global"], "f$$ND"),
    ] {
        peer.attached(&Attach::subscriber(link, "t", is_durable, capabilities));
        let names = bus.subscriptions_of("t");
        assert!(names.iter().any(|own| own == name), "{name}: {names:?}");
    }
    peer.attached(&Attach::subscriber(
        "qpid-jms:receiver:ID:1",
        "t",
        false,
        &[],
    ));
    let names = bus.subscriptions_of("t");
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(
        names
            .iter()
            .any(|own| own.len() == 35 && own.ends_with("$ND"))
    );
}

#[test]
fn volatile_subscriptions_are_deleted_with_their_last_consumer() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let durable = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    let own = peer.attached(&Attach::subscriber(
        "qpid-jms:receiver:ID:1",
        "t",
        false,
        &[],
    ));
    let first = peer.attached(&Attach::subscriber("e|volatile1", "t", false, &["shared"]));
    let mut other = bus.jms("c");
    let second = other.attached(&Attach::subscriber("e|volatile1", "t", false, &["shared"]));
    assert_eq!(bus.subscriptions_of("t").len(), 3);
    peer.leave(&durable);
    peer.detach(&own);
    peer.detach(&first);
    assert_eq!(bus.subscriptions_of("t"), ["a$c$D", "e$c$ND"]);
    other.detach(&second);
    assert_eq!(bus.subscriptions_of("t"), ["a$c$D"]);
    // The end of a connection is one of its links.
    other.attached(&Attach::subscriber("e|volatile1", "t", false, &["shared"]));
    other.attached(&Attach::subscriber(
        "qpid-jms:receiver:ID:1",
        "t",
        false,
        &[],
    ));
    assert_eq!(bus.subscriptions_of("t").len(), 3);
    drop(other);
    until("the volatile ones go", || {
        bus.subscriptions_of("t") == ["a$c$D"]
    });
}

#[test]
fn consumers_of_a_shared_subscription_compete_for_messages() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let mut other = bus.jms("d");
    let shared = |peer: &mut Peer, link: &str| {
        peer.attached(&Attach::subscriber(link, "t", false, &["shared", "global"]))
    };
    let (first, second) = (
        shared(&mut peer, "s|global-volatile1"),
        shared(&mut other, "s|global-volatile1"),
    );
    let alone = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    let others = other.attached(&Attach::subscriber("a", "t", true, &[]));
    let mut sender = bus.client();
    for id in ["1", "2", "3", "4"] {
        sender.send_to("t", &Message::new(id));
    }
    assert_eq!(peer.drain_ids(&alone, 10).len(), 4);
    assert_eq!(other.drain_ids(&others, 10).len(), 4);
    let mut all = peer.drain_ids(&first, 2);
    all.extend(other.drain_ids(&second, 10));
    assert_eq!(all, ["1", "2", "3", "4"]);
}

#[test]
fn an_unshared_subscription_has_one_consumer() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let own = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    let mut second = bus.jms("c");
    let refusal = second.refused(&Attach::subscriber("a", "t", true, &[]));
    assert_eq!(refusal.condition, LOCKED);
    peer.leave(&own);
    second.attached(&Attach::subscriber("a", "t", true, &[]));
}

#[test]
fn a_subscription_name_belongs_to_one_kind() {
    let bus = bus();
    let mut peer = bus.jms("c");
    peer.attached(&Attach::subscriber("a", "t", true, &["shared"]));
    let refusal = bus
        .jms("c")
        .refused(&Attach::subscriber("a", "t", true, &[]));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    // The dollar of one name is not that between two.
    peer.attached(&Attach::subscriber("x$y", "t", true, &[]));
    let refusal = bus
        .jms("y$c")
        .refused(&Attach::subscriber("x", "t", true, &[]));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    assert_contains(&refusal.text, "another identifier");
    for name in ["a|b", "a/b", &"a".repeat(60)] {
        let refusal = peer.refused(&Attach::subscriber(name, "t", true, &[]));
        assert_eq!(refusal.condition, "com.microsoft:argument-error", "{name}");
    }
}

#[test]
fn another_topic_recreates_an_unused_subscription() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let own = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    bus.client().send_to("t", &Message::new("one"));
    let mut other = bus.jms("c");
    let refusal = other.refused(&Attach::subscriber("a", "u", true, &[]));
    assert_eq!(refusal.condition, LOCKED);
    peer.leave(&own);
    let again = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    assert_eq!(peer.drain_ids(&again, 10), ["one"]);
    peer.leave(&again);
    peer.attached(&Attach::subscriber("a", "u", true, &[]));
    assert_eq!(bus.subscriptions_of("t"), [""; 0]);
    assert_eq!(bus.subscriptions_of("u"), ["a$c$D"]);
}

#[test]
fn a_client_ends_its_durable_subscription_without_naming_the_topic() {
    let bus = bus();
    let mut peer = bus.jms("c");
    for (link, capabilities, ending, desired, offered) in [
        ("a", &[][..], "a", &[][..], &["topic"][..]),
        ("b", &["shared"], "b", &[], &["topic", "shared"]),
        (
            "d|global",
            &["shared", "global"],
            "d|global",
            &["shared", "global"],
            &["topic", "shared", "global"],
        ),
    ] {
        let own = peer.attached(&Attach::subscriber(link, "t", true, capabilities));
        let attach = Attach::unsubscriber(ending, desired);
        let mut other = bus.jms("c");
        assert_eq!(other.refused(&attach).condition, LOCKED);
        peer.leave(&own);
        // Without the end of the link it stays.
        let looked = other.attached(&attach);
        other.leave(&looked);
        assert_eq!(bus.subscriptions_of("t").len(), 1);
        let last = other.attached(&attach);
        let (_, source) = described_list(last.answer.field(5));
        assert_eq!(source[0], text("t"));
        assert_eq!(source[1..3], [uint(2), symbol("never")]);
        assert_eq!(source[10], symbols(offered));
        other.detach(&last);
        assert_eq!(bus.subscriptions_of("t"), [""; 0]);
        assert_eq!(other.refused(&attach).condition, "amqp:not-found");
    }
    // That of another client is not found.
    let own = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    peer.leave(&own);
    let refusal = bus.jms("d").refused(&Attach::unsubscriber("a", &[]));
    assert_eq!(refusal.condition, "amqp:not-found");
}

#[test]
fn other_clients_use_a_jms_subscription_like_any_subscription() {
    let bus = bus();
    let mut peer = bus.jms("c");
    peer.attached(&Attach::subscriber("a", "t", true, &[]));
    let mut plain = bus.client();
    plain.send_to("t", &Message::new("one"));
    let delivery = plain.receive_from("t/Subscriptions/a$c$D");
    plain.complete(&delivery);
    let shown = bus.http.get("~/subscriptions/t/Subscriptions/a$c$D").ok();
    let client = json!({"client_id": "c", "is_durable": true, "is_shared": false});
    assert_eq!(shown["client"], client);
    let events = bus.http.events("");
    assert!(
        events
            .iter()
            .any(|event| event.to_string().contains("a$c$D"))
    );
}

#[test]
fn a_reset_deletes_jms_subscriptions_and_detaches_their_links() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let link = peer.attached(&Attach::subscriber("e|volatile1", "t", false, &["shared"]));
    bus.http.reset();
    peer.detached(&link);
    peer.attached(&Attach::subscriber("e|volatile1", "t", false, &["shared"]).named("e|volatile2"));
    assert_eq!(bus.subscriptions_of("t"), ["e$c$ND"]);
}

#[test]
fn a_refused_attach_leaves_jms_subscriptions_unchanged() {
    let (bus, admin) = bus().with_admin();
    let mut peer = bus.jms("c");
    let with = |selector: &str| Attach::subscriber("a", "t", true, &[]).selecting(selector);
    let own = peer.attached(&with("n = 1"));
    peer.leave(&own);
    let message = Message::new("kept").application("n", long(1));
    bus.client().send_to("t", &message);
    // Transactions send to the topic via the queue, so that nothing of it can be received on their session.
    peer.attached(&Attach::coordinator());
    peer.attached(&Attach::producer("q", "queue").named("first"));
    peer.attached(&Attach::producer("t", "topic").named("second"));
    for attach in [with("n = 2"), Attach::subscriber("b", "t", true, &[])] {
        assert_eq!(peer.refused(&attach).condition, "amqp:not-allowed");
    }
    assert_eq!(bus.subscriptions_of("t"), ["a$c$D"]);
    let mut again = bus.jms("c");
    let own = again.attached(&with("n = 1"));
    assert_eq!(again.drain_ids(&own, 10), ["kept"]);
    // One that ends with its last consumer does not end with a consumer that it never had.
    let client = "<Status>ReceiveDisabled</Status><IsClientAffine>true</IsClientAffine><ClientAffineProperties>\
        <ClientId>c</ClientId><IsDurable>false</IsDurable><IsShared>true</IsShared></ClientAffineProperties>";
    let path = "/t/Subscriptions/s$c$ND?api-version=2021-05";
    admin.create(path, &subscription(client));
    again.refused(&Attach::subscriber("s|volatile1", "t", false, &["shared"]));
    admin.get(path).expect(200);
}

#[test]
fn a_subscription_of_another_topic_is_replaced_only_with_the_right_to_manage_it() {
    let bus = bus();
    let mut owner = bus.jms("c");
    let own = owner.attached(&Attach::subscriber("a", "t", true, &[]));
    owner.leave(&own);
    owner.attached(&Attach::producer("u", "topic"));
    bus.client().send_to("t", &Message::new("kept"));
    let mut other = Peer::open(bus.amqp, &Open::jms("c", &[]));
    let token = root_token("sb://localhost/u");
    assert_eq!(
        other.put_token("sb://localhost/u", &token).cbs_status(),
        202
    );
    let refusal = other.refused(&Attach::subscriber("a", "u", true, &[]));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
    assert_contains(&refusal.text, "'Manage' claim(s) are required");
    assert_eq!(bus.subscriptions_of("u"), [""; 0]);
    let own = owner.attached(&Attach::subscriber("a", "t", true, &[]));
    assert_eq!(owner.drain_ids(&own, 10), ["kept"]);
}

#[test]
fn a_subscription_without_a_jms_client_is_not_replaced_by_one_of_another_topic() {
    let (bus, admin) = bus().with_admin();
    let mut peer = bus.jms("c");
    peer.attached(&Attach::producer("u", "topic"));
    let path = "/u/Subscriptions/all$$D?api-version=2021-05";
    admin.create(path, &subscription(""));
    let shared = ["shared", "global"];
    let unsubscriber = Attach::unsubscriber("all|global", &shared);
    assert_eq!(peer.refused(&unsubscriber).condition, "amqp:not-found");
    let own = peer.attached(&Attach::subscriber("all|global", "t", true, &shared));
    peer.leave(&own);
    let ended = peer.attached(&unsubscriber);
    peer.detach(&ended);
    assert_eq!(bus.subscriptions_of("t"), [""; 0]);
    assert_eq!(bus.subscriptions_of("u"), ["all$$D"]);
}

#[test]
fn the_selector_of_a_consumer_applies_to_a_subscription_created_by_administration() {
    let (bus, admin) = bus().with_admin();
    let client = "<IsClientAffine>true</IsClientAffine><ClientAffineProperties><ClientId>c</ClientId>\
        <IsDurable>true</IsDurable><IsShared>false</IsShared></ClientAffineProperties>";
    for (name, properties) in [("a", client), ("b", "")] {
        let path = format!("/t/Subscriptions/{name}$c$D?api-version=2021-05");
        admin.create(&path, &subscription(properties));
        for (id, number) in [("low", 1), ("high", 7)] {
            let message = Message::new(id).application("n", long(number));
            bus.client().send_to("t", &message);
        }
        let mut peer = bus.jms("c");
        let attach = Attach::subscriber(name, "t", true, &[]).selecting("n > 5");
        let own = peer.attached(&attach);
        assert_eq!(peer.drain_ids(&own, 10), ["high"], "{name}");
    }
}

#[test]
fn a_subscription_from_which_another_client_receives_is_not_deleted() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let own = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    peer.leave(&own);
    let mut plain = bus.client();
    let receiver = plain.receiver("t/Subscriptions/a$c$D");
    let other_selector = Attach::subscriber("a", "t", true, &[]).selecting("n = 1");
    for attach in [&Attach::unsubscriber("a", &[]), &other_selector] {
        assert_eq!(peer.refused(attach).condition, LOCKED, "{attach:?}");
    }
    plain.detach(&receiver);
    let own = peer.attached(&other_selector);
    peer.leave(&own);
    let ended = peer.attached(&Attach::unsubscriber("a", &[]));
    peer.detach(&ended);
    assert_eq!(bus.subscriptions_of("t"), [""; 0]);
}
