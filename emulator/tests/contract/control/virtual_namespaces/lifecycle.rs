//! Creating, listing and removing namespaces, which are independent.

use serde_json::json;

use super::*;

#[test]
fn a_created_namespace_is_served_beside_the_others() {
    let bus = Bus::with_queues(&["q"]);
    let made = make(&bus, "second", &declared(&["q", "other"], ""));
    assert_eq!(made.name, "second");
    assert_eq!(made.entry.host, "127.0.0.1");
    assert_eq!(made.admin.port, Some(bus.http.0.port()));
    assert_eq!(names(&bus), ["sbemulatorns", "second"]);
    let mut peer = made.client(bus.amqp);
    peer.send_to("q", &Message::new("m"));
    assert_eq!(active(&bus, "second", "q"), 1);
    assert_eq!(active(&bus, "SECOND", "q"), 1, "case makes no difference");
    assert_eq!(active(&bus, "sbemulatorns", "q"), 0);
}

#[test]
fn a_namespace_created_without_a_body_is_empty_with_its_own_key() {
    let bus = Bus::with_queues(&["q"]);
    for body in [None, Some(""), Some("  \n")] {
        let answer = bus.http.request("PUT", &path("empty"), body);
        assert_eq!(answer.status, 201, "{answer:?}");
        let made = Made::of(&answer.body);
        assert_eq!(made.key().name, "RootManageSharedAccessKey-empty");
        let queues = bus.http.get(&format!("{}/queues", path("empty"))).ok();
        assert_eq!(queues, json!({"queues": []}));
        assert_eq!(remove(&bus, "empty").status, 204);
    }
}

#[test]
fn the_namespace_of_a_test_has_a_name_never_used_before() {
    let bus = Bus::with_queues(&["q"]);
    let begin = |body| {
        let answer = bus.http.request("POST", "/$emulator/v1/namespaces", body);
        assert_eq!(answer.status, 201, "{answer:?}");
        Made::of(&answer.body).name
    };
    let queue = |name: &str| {
        let queues = bus.http.get(&format!("{}/queues", path(name))).ok();
        queues["queues"][0]["name"].clone()
    };
    assert_eq!(begin(None), "test-1");
    assert_eq!(queue("test-1"), "queue.1");
    make(&bus, "TEST-2", "");
    assert_eq!(begin(Some(r#"{"queues":["orders"]}"#)), "test-3");
    assert_eq!(queue("test-3"), "orders");
    assert_eq!(remove(&bus, "test-3").status, 204);
    assert_eq!(begin(None), "test-4");
    make(&bus, "Test-6", "");
    assert_eq!(remove(&bus, "test-6").status, 204);
    let later = [begin(None), begin(None)];
    assert_eq!(later, ["test-7", "test-8"], "test-6 was a client's own");
}

#[test]
fn two_namespaces_share_neither_messages_time_faults_nor_events() {
    let bus = Bus::with_queues(&["q"]);
    let [one, two] = ["one", "two"].map(|name| make(&bus, name, &declared(&["q"], "")));
    let mut peer = two.client(bus.amqp);
    peer.send_to("q", &Message::new("short").ttl(10_000));
    let post = |name: &str, rest: &str, body| {
        let answer = bus.http.post(&format!("{}/{rest}", path(name)), &body);
        answer.ok()
    };
    let get = |name: &str, rest: &str| bus.http.get(&format!("{}/{rest}", path(name))).ok();
    post(&one.name, "clock/advance", json!({"seconds": 3600}));
    let fault = json!({"operation": "discharge", "effect": "lose-reply"});
    post(&one.name, "faults", fault);
    assert_eq!(active(&bus, "two", "q"), 1);
    assert_eq!(get("two", "clock")["offset_seconds"], 0.0);
    assert_eq!(get("two", "faults"), json!({"faults": []}));
    let counters = get("one", "timeline?entity=q");
    assert_eq!(counters["counters"]["sent"], 0);
    post(&one.name, "reset", json!(null));
    assert_eq!(active(&bus, "two", "q"), 1);
    assert_eq!(get("two", "timeline?entity=q")["counters"]["sent"], 1);
    post(&two.name, "clock/advance", json!({"seconds": 11}));
    assert_eq!(active(&bus, "two", "q"), 0);
}

#[test]
fn two_hundred_namespaces_are_served_concurrently() {
    let bus = Bus::with_queues(&["q"]);
    let made: Vec<Made> = (0..200)
        .map(|number| make(&bus, &format!("n{number}"), &declared(&["q"], "")))
        .collect();
    let mut peers: Vec<Peer> = made.iter().map(|made| made.client(bus.amqp)).collect();
    for (number, peer) in peers.iter_mut().enumerate() {
        let sender = peer.sender("q");
        for _ in 0..=number % 3 {
            peer.send(&sender, &Message::new("m"));
        }
    }
    for (number, made) in made.iter().enumerate() {
        let held = active(&bus, &made.name, "q");
        assert_eq!(held as usize, number % 3 + 1, "{}", made.name);
    }
    for made in &made {
        assert_eq!(remove(&bus, &made.name).status, 204);
    }
    assert_eq!(names(&bus), ["sbemulatorns"]);
    for peer in &mut peers {
        assert_eq!(peer.closed().condition, "amqp:connection:forced");
    }
}

#[test]
fn removing_a_namespace_closes_only_its_connections() {
    let bus = Bus::with_queues(&["q"]);
    let [one, two] = ["one", "two"].map(|name| make(&bus, name, &declared(&["q"], "")));
    let mut gone = one.client(bus.amqp);
    let _receiver = gone.receiver("q");
    let mut stays = two.client(bus.amqp);
    let sender = stays.sender("q");
    assert_eq!(remove(&bus, "ONE").status, 204);
    let refusal = gone.closed();
    assert_eq!(refusal.condition, "amqp:connection:forced");
    let text = "The namespace 'one' was removed.";
    assert_starts_with(&refusal.text, text);
    stays.send(&sender, &Message::new("m"));
    assert_eq!(active(&bus, "two", "q"), 1);

    let answer = bus.http.get(&format!("{}/clock", path("one")));
    let message = answer.error_with(404, "not-found");
    assert_contains(message, "sbemulatorns, two");
    let mut late = bus.unauthenticated_client();
    let reply = late.put_token("sb://localhost/", &one.token());
    assert_eq!(reply.cbs_status(), 404, "{}", reply.text());
}

#[test]
fn a_removed_namespace_can_be_created_again_empty() {
    let bus = Bus::with_queues(&["q"]);
    let body = declared(&["q"], r#""Keys":[{"Name":"k","Key":"secret"}]"#);
    for _ in 0..3 {
        let made = make(&bus, "again", &body);
        assert_eq!(active(&bus, "again", "q"), 0);
        let mut peer = made.client(bus.amqp);
        peer.send_to("q", &Message::new("m"));
        assert_eq!(remove(&bus, "again").status, 204);
        assert_eq!(peer.closed().condition, "amqp:connection:forced");
    }
}

#[test]
fn a_reset_restores_the_entities_declared_at_creation() {
    let bus = Bus::with_queues(&["q"]);
    make(&bus, "second", &declared(&["declared"], ""));
    let queue = |method: &str, name: &str| {
        let path = format!("{}/queues/{name}", path("second"));
        bus.http.request(method, &path, None).status
    };
    assert_eq!(queue("PUT", "added"), 201);
    assert_eq!(queue("DELETE", "declared"), 204);
    let reset = format!("{}/reset", path("second"));
    assert_eq!(bus.http.post(&reset, &json!(null)).status, 204);
    assert_eq!(
        (queue("GET", "added"), queue("GET", "declared")),
        (404, 200)
    );
}

#[test]
fn a_waiting_request_ends_with_its_namespace() {
    let bus = Bus::with_queues(&["q"]);
    // The expired message leaves only when a receiver waits (decision D1), which makes this visible.
    let made = make(
        &bus,
        "second",
        &declared(&["q"], r#""Expiry":"on-receive""#),
    );
    let mut peer = made.client(bus.amqp);
    peer.send_to("q", &Message::new("canary").ttl(1_000));
    let advance = format!("{}/clock/advance", path("second"));
    bus.http.post(&advance, &json!({"seconds": 2})).ok();
    assert_eq!(active(&bus, "second", "q"), 1, "no receiver waits yet");
    let rest = bus.rest_with(Some(&made.token()));
    let waiting = rest.begin("DELETE", "/q/messages/head?timeout=60", &[], b"");
    until("a request that waits", || active(&bus, "second", "q") == 0);
    assert_eq!(remove(&bus, "second").status, 204);
    waiting.answer().refusal(410);
}

/// Locks that end every five seconds, for a hundred years: without its end the advance would take the maximum of steps.
#[test]
fn an_advance_ends_with_its_namespace() {
    let bus = Bus::with_queues(&["other"]);
    let queue = r#"{"Name":"q","Properties":{"MaxDeliveryCount":2147483647,"LockDuration":"PT5S","DefaultMessageTimeToLive":"P10675199DT2H48M5.4775807S"}}"#;
    let body =
        format!(r#"{{"UserConfig":{{"Namespaces":[{{"Name":"any","Queues":[{queue}]}}]}}}}"#);
    let made = make(&bus, "short", &body);
    let mut peer = made.client(bus.amqp);
    peer.send_to("q", &Message::new("m"));
    peer.receiver_with_credit("q", 1_000_000_000);
    // It keeps reading: without deliveries no lock would end.
    let reader = std::thread::spawn(move || peer.read_to_end());
    let (http, clock) = (bus.http, format!("{}/clock", path("short")));
    let advance = format!("{clock}/advance");
    let walk =
        std::thread::spawn(move || http.post(&advance, &json!({"seconds": 3_000_000_000_u64})));
    eventually("the advance to begin", || {
        let offset = bus.http.get(&clock).ok()["offset_seconds"].as_f64();
        offset.filter(|&offset| offset > 0.0)
    });
    assert_eq!(remove(&bus, "short").status, 204);
    let answer = walk.join().expect("it is answered");
    reader.join().expect("the connection ends");
    assert_eq!(answer.status, 200, "not by its steps: {answer:?}");
}
