//! Selectors of subscriptions, of consumers of queues, and of browsers.

use serde_json::json;

use crate::support::*;

const ARGUMENT: &str = "com.microsoft:argument-error";

fn bus() -> Bus {
    let bus = Bus::premium(&["q"]);
    bus.http.request("PUT", "~/topics/t", Some("{}")).ok();
    bus
}

/// Sends messages whose ids are also their subjects and their property `n`.
fn send_all(peer: &mut Peer, address: &str, numbers: &[i64]) {
    let sender = peer
        .attached(&Attach::sender(address).named(&format!("to-{address}-{}", peer.next_handle)));
    for number in numbers {
        let message = Message::new(&number.to_string())
            .application("n", long(*number))
            .property(3, text(&number.to_string()));
        peer.send(&sender, &message);
    }
}

#[test]
fn a_jms_subscription_gets_messages_matching_its_selector() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let own =
        Attach::subscriber("a", "t", true, &[]).selecting("n BETWEEN 2 AND 3 OR JMSType = '5'");
    let own = peer.attached(&own);
    send_all(&mut bus.client(), "t", &[1, 2, 3, 4, 5]);
    assert_eq!(peer.drain_ids(&own, 10), ["2", "3", "5"]);
    let shown = bus.http.get("~/subscriptions/t/Subscriptions/a$c$D").ok();
    let filter = &shown["rules"][0]["Properties"]["SqlFilter"]["Selector"];
    assert_eq!(filter, "n BETWEEN 2 AND 3 OR JMSType = '5'");
}

/// Valid as a selector, but longer than allowed in the language of the service.
fn long_selector() -> String {
    let terms = [0, 1, 2, 3, 4].repeat(12);
    let terms = terms.iter().map(|number| format!("JMSPriority={number}"));
    terms.collect::<Vec<_>>().join(" OR ")
}

#[test]
fn a_selector_rule_sent_back_by_a_client_stays_a_selector() {
    let (bus, admin) = Bus::premium(&[]).with_admin();
    let mut peer = bus.jms("c");
    let large = long_selector();
    for (name, selector, written) in [("a", "NOT (n = 'x')", "NOT n = 'x'"), ("b", &large, &large)]
    {
        let own = Attach::subscriber(name, "t", true, &[]).selecting(selector);
        let own = peer.attached(&own);
        let rule_path = format!("/t/Subscriptions/{name}$c$D/Rules/$Default?api-version=2021-05");
        let shown = admin.get(&rule_path).expect(200);
        assert_eq!(shown.value("SqlExpression"), written);
        let again = rule(&sql_filter(shown.value("SqlExpression")));
        admin.update(&rule_path, &again);
        let id = format!("to-{name}");
        bus.client()
            .send_to("t", &Message::new(&id).application("n", long(1)));
        assert_eq!(peer.receive_one(&own).id(), id);
        // What a client writes itself is the language of the service, in which this is unknown.
        let other = rule(&sql_filter("NOT (n = 'y')"));
        admin.update(&rule_path, &other);
        send_all(&mut bus.client(), "t", &[1]);
        assert_eq!(peer.drain_ids(&own, 10), [""; 0]);
        peer.leave(&own);
    }
}

#[test]
fn another_selector_recreates_an_unused_subscription() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let with = |selector: &str| Attach::subscriber("a", "t", true, &[]).selecting(selector);
    let first = peer.attached(&with("n = 1"));
    send_all(&mut bus.client(), "t", &[1, 2]);
    let mut other = bus.jms("c");
    assert_eq!(
        other.refused(&with("n = 2")).condition,
        "amqp:resource-locked"
    );
    peer.leave(&first);
    let again = peer.attached(&with("n = 1"));
    assert_eq!(peer.drain_ids(&again, 10), ["1"]);
    peer.leave(&again);
    let second = peer.attached(&with("n = 2"));
    assert_eq!(peer.drain_ids(&second, 10), [""; 0]);
    send_all(&mut bus.client(), "t", &[1, 2, 3]);
    assert_eq!(peer.drain_ids(&second, 10), ["2"]);
    // Consumers that share a volatile one must have the same selector.
    let shared = Attach::subscriber("s|volatile1", "t", false, &["shared"]);
    peer.attached(&shared.clone().selecting("n = 1"));
    let refusal = other.refused(&shared.selecting("n = 2"));
    assert_eq!(refusal.condition, "amqp:resource-locked");
}

#[test]
fn a_queue_consumer_leaves_messages_not_matching_its_selector() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let odd = peer.attached(
        &Attach::consumer("q")
            .selecting("n - n / 2 * 2 = 1")
            .named("odd"),
    );
    peer.credit(&odd, 10);
    send_all(&mut peer, "q", &[1, 2, 3, 4, 5]);
    for id in ["1", "3", "5"] {
        let delivery = peer.receive(&odd);
        assert_eq!(delivery.id(), id);
        peer.complete(&delivery);
    }
    let all = peer.attached(&Attach::consumer("q").named("all"));
    assert_eq!(peer.drain_ids(&all, 10), ["2", "4"]);
}

#[test]
fn a_drain_with_a_selector_is_answered_after_the_whole_queue() {
    let bus = bus();
    look_at_a_long_queue(&bus);
    let bus = self::bus();
    // With a fault deliveries are looked at one by one.
    let fault = json!({"operation": "send", "entity": "t", "effect": {"reject": {"condition": "amqp:internal-error"}}});
    assert_eq!(bus.http.post("~/faults", &fault).status, 201);
    look_at_a_long_queue(&bus);
}

fn look_at_a_long_queue(bus: &Bus) {
    let mut peer = bus.jms("c");
    let numbers: Vec<i64> = (0..3000).collect();
    send_all(&mut peer, "q", &numbers);
    let last = peer.attached(&Attach::consumer("q").selecting("n = 2999").named("last"));
    assert_eq!(peer.drain_ids(&last, 5), ["2999"]);
    let none = peer.attached(&Attach::consumer("q").selecting("n = -1").named("none"));
    assert_eq!(peer.drain_ids(&none, 5), [""; 0]);
    assert_eq!(bus.http.counts("q")["active"], 3000);
}

#[test]
fn a_queue_browser_shows_messages_matching_its_selector() {
    let bus = bus();
    let mut peer = bus.jms("c");
    send_all(&mut peer, "q", &(0..200).collect::<Vec<_>>());
    let some = peer.attached(
        &Attach::queue_browser("q")
            .selecting("n >= 195")
            .named("some"),
    );
    assert_eq!(peer.drain_ids(&some, 3), ["195", "196", "197"]);
    assert_eq!(peer.drain_ids(&some, 10), ["198", "199"]);
    let all = peer.attached(&Attach::queue_browser("q").named("all"));
    assert_eq!(peer.drain_ids(&all, 1000).len(), 200);
    assert_eq!(bus.http.held("q"), (200, 0));
}

/// It grants credit for everything and reads nothing: only what the system buffers is written.
#[test]
fn a_queue_browser_that_never_reads_holds_little_memory() {
    let bus = bus();
    let mut peer = bus.jms("c");
    let sender = peer.sender("q");
    let (count, size) = (300, 200_000);
    for number in 0..count {
        let message = Message::new(&number.to_string()).body(vec![b'x'; size]);
        peer.send(&sender, &message);
    }
    let mut idle = bus.jms("idle");
    for name in ["one", "two", "three"] {
        let browser = idle.attached(&Attach::queue_browser("q").named(name));
        idle.credit(&browser, 2_000);
    }
    // Others are served meanwhile.
    for number in 0..100 {
        let other = peer.attached(&Attach::queue_browser("q").named("other"));
        peer.credit(&other, 1);
        peer.receive(&other);
        peer.detach(&other);
        let held = bus.http.get("/health").ok()["memory"]["held_bytes"].clone();
        let held = held.as_u64().expect("a number");
        assert!(held < 2_000_000, "{held} bytes after {number} others");
    }
    drop(idle);
    assert_eq!(bus.http.held("q"), (count, 0));
}

#[test]
fn a_queue_with_sessions_refuses_selectors() {
    let bus = bus();
    bus.http
        .put_queue("s", &serde_json::json!({"RequiresSession": true}));
    let mut peer = bus.jms("c");
    for attach in [
        Attach::consumer("s"),
        Attach::consumer("s").selecting("n = 1"),
    ] {
        assert_eq!(peer.refused(&attach).condition, "amqp:not-allowed");
    }
}

#[test]
fn an_invalid_selector_is_refused_with_the_position() {
    let bus = bus();
    let mut peer = bus.jms("c");
    for (selector, words) in [
        ("n >", "column 4: expected a value"),
        ("unknown(n) = 1", "found 'unknown'"),
        ("n BETWEEN 1", "expected AND and the upper bound of BETWEEN"),
        ("n = 'x", "expected a closing '"),
        (&"(".repeat(100), "levels of nesting"),
        (
            &format!("n = '{}'", "x".repeat(2000)),
            "at most 1024 characters",
        ),
    ] {
        for attach in [
            Attach::consumer("q"),
            Attach::queue_browser("q").named("browser"),
            Attach::subscriber("a", "t", true, &[]),
        ] {
            let refusal = peer.refused(&attach.selecting(selector));
            assert_eq!(refusal.condition, ARGUMENT, "{selector}");
            assert_contains(&refusal.text, words);
        }
    }
    assert_eq!(bus.subscriptions_of("t"), [""; 0]);
    let all = peer.attached(&Attach::consumer("q").selecting("  "));
    send_all(&mut peer, "q", &[1]);
    assert_eq!(peer.drain_ids(&all, 10), ["1"]);
}
