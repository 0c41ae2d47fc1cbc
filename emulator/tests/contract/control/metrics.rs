//! Metrics for Prometheus.

use serde_json::json;

use crate::support::*;

/// The text at a path.
fn text(bus: &Bus, path: &str, headers: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    bus.http.text(request.as_bytes())
}

#[test]
fn messages_and_events_are_counted_by_entity_and_namespace() {
    let bus = Bus::with_queues(&["q", "other"]);
    let (mut peer, sender) = bus.sender("q");
    for id in ["a", "b", "c"] {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("q");
    peer.complete_one(&receiver);
    let second = peer.receive_one(&receiver);
    peer.settle(&second, dead_lettered("broken", ""));
    peer.settle_down();
    for path in ["/$emulator/v1/metrics", "/metrics"] {
        let metrics = text(&bus, path, "");
        assert_starts_with(&metrics, "HTTP/1.1 200 OK");
        assert_contains(&metrics, "content-type: text/plain; version=0.0.4");
        let q = r#"namespace="sbemulatorns",entity="q",kind="queue""#;
        let all = r#"namespace="sbemulatorns""#;
        for line in [
            "# TYPE servicebus_active_messages gauge".to_owned(),
            "# TYPE servicebus_incoming_messages_total counter".to_owned(),
            format!("servicebus_messages{{{q}}} 2"),
            format!("servicebus_active_messages{{{q}}} 1"),
            format!("servicebus_deadlettered_messages{{{q}}} 1"),
            format!("servicebus_incoming_messages_total{{{q}}} 3"),
            format!("servicebus_outgoing_messages_total{{{q}}} 2"),
            format!("servicebus_complete_message_total{{{q}}} 1"),
            format!(r#"servicebus_events_total{{{q},event="dead-lettered"}} 1"#),
            format!("servicebus_namespace_messages{{{all}}} 2"),
            format!("servicebus_namespace_incoming_messages_total{{{all}}} 3"),
            format!("servicebus_active_connections{{{all}}} 1"),
            "servicebus_entities_omitted 0".to_owned(),
        ] {
            assert!(
                metrics.lines().any(|found| found == line),
                "{line}\n{metrics}"
            );
        }
    }
}

#[test]
fn the_size_of_a_topic_includes_copies_that_count_once_in_its_namespace() {
    let config = topic(&json!({}), &[("one", json!({})), ("two", json!({}))]);
    let (bus, mut peer, sender) = Bus::configured(&config).with_sender("t");
    peer.send(&sender, &Message::new("a"));
    let size = |entity: &str| bus.http.counts(entity)["size_bytes"].as_u64().unwrap();
    let copies = size("t/Subscriptions/one") + size("t/Subscriptions/two");
    assert!(copies > 0);
    assert_eq!(size("t"), copies);
    let sum = format!("servicebus_namespace_size_bytes{{namespace=\"sbemulatorns\"}} {copies}\n");
    assert_contains(&text(&bus, "/metrics", ""), &sum);
}

#[test]
fn metrics_count_requests_by_result() {
    let bus = Bus::with_queues(&["q"]);
    let busy = json!({
        "operation": "send", "times": 1,
        "effect": {"reject": {"condition": "com.microsoft:server-busy"}},
    });
    assert_eq!(bus.http.post("~/faults", &busy).status, 201);
    let (mut peer, sender) = bus.sender("q");
    let first = peer.transfer(&sender, 0, false, &Message::new("a").encode());
    let refused = peer.outcome(&sender, first);
    assert!(refused.is_err_and(|refusal| refusal.condition == "com.microsoft:server-busy"));
    peer.send(&sender, &Message::new("b"));
    let receiver = peer.receiver("q");
    peer.complete_one(&receiver);
    peer.settle_down();
    let metrics = text(&bus, "/metrics", "");
    let q = r#"namespace="sbemulatorns",entity="q",kind="queue""#;
    let all = r#"namespace="sbemulatorns""#;
    for line in [
        // A send, a delivery, a completion.
        format!("servicebus_successful_requests_total{{{q}}} 3"),
        format!("servicebus_incoming_requests_total{{{q}}} 3"),
        format!("servicebus_throttled_requests_total{{{all}}} 1"),
        format!("servicebus_server_errors_total{{{all}}} 0"),
    ] {
        let mut lines = metrics.lines();
        assert!(lines.any(|found| found == line), "{line}\n{metrics}");
    }
}

#[test]
fn metrics_count_a_scheduled_message_once() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.freeze();
    let (mut peer, sender) = bus.sender("q");
    peer.send(
        &sender,
        &Message::new("later").scheduled_at(client_now() + 60_000),
    );
    bus.http.advance(120.0);
    let metrics = text(&bus, "/metrics", "");
    let line =
        r#"servicebus_incoming_messages_total{namespace="sbemulatorns",entity="q",kind="queue"} 1"#;
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
}

#[test]
fn an_entity_named_metrics_is_still_reachable() {
    let bus = Bus::with_queues(&["metrics"]);
    let versioned = text(&bus, "/metrics?api-version=2021-05", "");
    assert_starts_with(&versioned, "HTTP/1.1 401");
    let shown = text(&bus, "/metrics", "Authorization: nothing\r\n");
    assert_starts_with(&shown, "HTTP/1.1 401");
    let foreign = bus
        .http
        .raw(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(foreign.error(421).0, "unknown-host");
}

#[test]
fn a_head_request_for_metrics_is_answered() {
    let bus = Bus::with_queues(&["q"]);
    let head = |host: &str| {
        let request =
            format!("HEAD /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        bus.http.text(request.as_bytes())
    };
    let answer = head("localhost");
    assert_starts_with(&answer, "HTTP/1.1 200 OK");
    assert_ends_with(&answer, "\r\n\r\n");
    assert_starts_with(&head("evil.example"), "HTTP/1.1 421");
}

#[test]
fn metrics_list_a_thousand_entities_and_the_sum_of_all() {
    let names: Vec<String> = (0..1002).map(|n| format!("q{n:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bus = Bus::with_queues(&names);
    for queue in ["q0000", "q1001"] {
        let sent = bus
            .http
            .post(&format!("~/messages?entity={queue}"), &json!({}));
        assert_eq!(sent.status, 201);
    }
    let metrics = text(&bus, "/metrics", "");
    let exported = metrics
        .lines()
        .filter(|line| line.starts_with("servicebus_messages{"));
    assert_eq!(exported.count(), 1000);
    for line in [
        "servicebus_entities_omitted 2",
        r#"servicebus_namespace_messages{namespace="sbemulatorns"} 2"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
}
