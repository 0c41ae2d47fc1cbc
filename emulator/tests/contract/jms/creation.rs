//! Queues and topics are created when a client of JMS 2.0 first attaches to them.

use serde_json::json;

use crate::support::*;

#[test]
fn an_attach_by_a_jms_client_creates_the_entity() {
    let bus = Bus::premium(&[]);
    let mut peer = bus.jms("c");
    peer.attached(&Attach::producer("q1", "queue"));
    let receiver = peer.attached(&Attach::consumer("q2"));
    peer.attached(&Attach::producer("t1", "topic"));
    peer.attached(&Attach::subscriber("qpid-jms:receiver:1", "t2", false, &[]));
    for queue in ["q1", "q2"] {
        bus.http.get(&format!("~/queues/{queue}")).ok();
    }
    for topic in ["t1", "t2"] {
        bus.http.get(&format!("~/topics/{topic}")).ok();
    }
    let sender = peer.attached(&Attach::producer("q2", "queue").named("second"));
    peer.send(&sender, &Message::new("one"));
    assert_eq!(peer.drain_ids(&receiver, 10), ["one"]);
}

#[test]
fn entities_created_on_attach_have_the_idle_time_of_the_connection() {
    let bus = Bus::premium(&[]);
    let name = |kind: &str| format!("com.microsoft:{kind}-auto-delete-on-idle-duration-in-seconds");
    let open = Open::jms(
        "c",
        &[
            (&name("queue"), long(300)),
            (&name("topic"), long(600)),
            (&name("subscriber"), long(900)),
        ],
    );
    let mut peer = bus.client_as(&open);
    peer.attached(&Attach::producer("q", "queue"));
    peer.attached(&Attach::subscriber("s", "t", true, &[]));
    for (path, idle) in [
        ("queues/q", "PT5M"),
        ("topics/t", "PT10M"),
        ("subscriptions/t/Subscriptions/s$c$D", "PT15M"),
    ] {
        let shown = bus.http.get(&format!("~/{path}")).ok();
        assert_eq!(
            shown["properties"]["AutoDeleteOnIdle"],
            json!(idle),
            "{path}"
        );
    }
    // Less than the service's minimum.
    let open = Open::jms("d", &[(&name("queue"), long(5))]);
    let mut hasty = bus.client_as(&open);
    let refusal = hasty.refused(&Attach::producer("short", "queue"));
    assert_eq!(refusal.condition, "com.microsoft:argument-error");
    assert_contains(&refusal.text, "AutoDeleteOnIdle");
}

#[test]
fn names_of_entities_created_on_attach_are_validated() {
    let bus = Bus::premium(&["q"]);
    let mut peer = bus.jms("c");
    for name in ["a$b", "-a", "a b"] {
        let refusal = peer.refused(&Attach::producer(name, "queue"));
        assert_eq!(refusal.condition, "com.microsoft:argument-error", "{name}");
    }
    peer.attached(&Attach::producer("topic", "topic"));
    let refusal = peer.refused(&Attach::consumer("topic/Subscriptions/nope"));
    assert_eq!(refusal.condition, "amqp:not-found");
    // Without a kind nothing is created.
    assert_eq!(
        peer.refused(&Attach::sender("new")).condition,
        "amqp:not-found"
    );
    let refusal = peer.refused(&Attach::producer("q", "topic"));
    assert_eq!(
        (refusal.condition.as_str(), refusal.words()),
        (
            "amqp:not-allowed",
            "Cannot open a Topic client for entity type Queue."
        )
    );
    peer.attached(&Attach::producer("t", "topic"));
    let refusal = peer.refused(&Attach::producer("t", "queue").named("wrong"));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    assert_eq!(
        peer.refused(&Attach::consumer("t")).condition,
        "amqp:not-allowed"
    );
}

#[test]
fn only_a_client_with_manage_creates_entities() {
    let limited = r#""Tier":"premium","Keys":[{"Name":"all","Key":"a","Claims":["Manage","Send","Listen"]},
        {"Name":"some","Key":"b","Claims":["Send","Listen"]}]"#;
    let bus = Bus::configured(&queues(limited, &[("q", "")]));
    let client = |response: &[u8]| {
        let mut peer = Peer::connect(bus.amqp);
        assert_eq!(peer.sasl("PLAIN", response), 0);
        peer.introduce(&Open::jms("c", &[]));
        peer
    };
    let mut some = client(b"\0some\0b");
    some.attached(&Attach::producer("q", "queue"));
    for attach in [
        Attach::producer("new", "queue"),
        Attach::subscriber("s", "new", true, &[]),
        Attach::temporary("1", "temporary-queue", 0x2b),
    ] {
        let refusal = some.refused(&attach);
        assert_eq!(refusal.condition, "amqp:unauthorized-access", "{attach:?}");
        assert_contains(&refusal.text, "'Manage' claim(s) are required");
    }
    let mut all = client(b"\0all\0a");
    let first = all.attached(&Attach::subscriber("s", "t", true, &[]));
    all.leave(&first);
    // An existing one needs Listen to consume, and Manage to end.
    let own = some.attached(&Attach::subscriber("s", "t", true, &[]));
    some.leave(&own);
    let refusal = some.refused(&Attach::unsubscriber("s", &[]));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
    let refusal = some.refused(&Attach::subscriber("other", "t", true, &[]));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
}

#[test]
fn a_full_namespace_refuses_entities_created_on_attach() {
    let names: Vec<String> = (0..10_000).map(|at| format!("q{at}")).collect();
    let bus = Bus::premium(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut peer = bus.jms("c");
    for attach in [
        Attach::producer("new", "queue"),
        Attach::consumer("new"),
        Attach::temporary("1", "temporary-topic", 0x2b),
    ] {
        let refusal = peer.refused(&attach);
        assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
        assert_contains(&refusal.text, "10000 queues and topics");
    }
    peer.attached(&Attach::producer("q1", "queue"));
}

#[test]
fn a_refused_attach_creates_no_entity() {
    let bus = Bus::premium(&[]);
    let hasty = "com.microsoft:subscriber-auto-delete-on-idle-duration-in-seconds";
    let mut peer = bus.client_as(&Open::jms("c", &[(hasty, long(5))]));
    for attach in [
        Attach::consumer("q").selecting("n >"),
        Attach::queue_browser("q").selecting("n >"),
        Attach::subscriber("s", "t", true, &[]).selecting("n >"),
        Attach::subscriber("a b", "t", true, &[]),
        // An idle time below the service's minimum.
        Attach::subscriber("s", "t", true, &[]),
        Attach::subscriber("qpid-jms:receiver:1", "t", false, &[]),
    ] {
        let refusal = peer.refused(&attach);
        assert_eq!(
            refusal.condition, "com.microsoft:argument-error",
            "{attach:?}"
        );
    }
    for path in ["~/queues/q", "~/topics/t"] {
        assert_eq!(bus.http.get(path).status, 404, "{path}");
    }
}
