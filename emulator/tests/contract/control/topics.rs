//! Topics in the control API: the clock, the wait for idleness, and the record.

use serde_json::{Value, json};

use crate::support::*;

/// The topic `t` with one subscription for everything and one for what is red.
fn coloured() -> Bus {
    let red = rules(&[sql("red", "colour = 'red'", "")]);
    Bus::configured(&topic(&json!({}), &[("all", json!({})), ("red", red)]))
}

fn publish(bus: &Bus, id: &str, colour: &str) {
    let mut peer = bus.client_as(&Open::named("publisher"));
    let sender = peer.sender("t");
    let message = Message::new(id).application("colour", text(colour));
    peer.send(&sender, &message);
}

fn kinds(events: &[Value]) -> String {
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|event| event["kind"].as_str())
        .collect();
    kinds.join(" ")
}

#[test]
fn a_timeline_shows_the_receiver_and_the_rule_of_a_message() {
    let bus = coloured();
    publish(&bus, "1", "blue");
    publish(&bus, "2", "red");
    let topic = bus.http.events("?entity=t");
    assert_eq!(kinds(&topic), "sent published sent published");
    for event in &topic {
        assert_eq!(event["entity"], "t");
    }
    let all = bus.http.events("?entity=T/subscriptions/ALL");
    assert_eq!(kinds(&all), "matched sent matched sent");
    assert_eq!(
        (&all[0]["detail"], &all[0]["message_id"]),
        (&"$Default".into(), &"1".into())
    );
    let red = bus.http.events("?entity=t/Subscriptions/red");
    assert_eq!(kinds(&red), "matched sent");
    assert_eq!(
        (&red[0]["detail"], &red[0]["sequence_number"]),
        (&"red".into(), &1.into())
    );
    assert_eq!(red[0]["entity"], "t/Subscriptions/red");
    let of = |id| bus.http.events(&format!("?message_id={id}"));
    assert_eq!(kinds(&of("1")), "sent matched sent published");
    assert_eq!(kinds(&of("2")), "sent matched sent matched sent published");
    let counters = &bus.http.timeline("?entity=t")["counters"];
    assert_eq!(members(counters, ["sent", "published"]), json!([2, 2]));
    let counters = &bus.http.timeline("?entity=t/Subscriptions/red")["counters"];
    assert_eq!(members(counters, ["matched", "sent"]), json!([1, 1]));
}

#[test]
fn an_advance_processes_all_effects_of_scheduled_publications() {
    let (bus, mut peer, sender) = coloured().with_sender("t");
    let at = |seconds: i64| client_now() + seconds * 1000;
    for (id, seconds) in [("late", 120), ("soon", 60)] {
        peer.send(
            &sender,
            &Message::new(id).ttl(30_000).scheduled_at(at(seconds)),
        );
    }
    let receiver = peer.receiver_with_credit("t/Subscriptions/all", 1);
    bus.http.advance(61.0);
    assert_eq!(bus.http.held("t/Subscriptions/all"), (1, 0));
    assert_eq!(peer.receive(&receiver).id(), "soon");
    bus.http.advance(200.0);
    assert_eq!(
        bus.http.held("t/Subscriptions/all"),
        (0, 0),
        "activated and expired"
    );
    assert_eq!(bus.http.counts("t")["scheduled"], 0);
    let activated = bus.http.events("?entity=t");
    assert_contains(&kinds(&activated), "activated");
}

#[test]
fn a_subscription_with_a_lock_is_busy() {
    let bus = coloured();
    publish(&bus, "1", "red");
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let delivery = peer.receive_from("t/Subscriptions/red");
    let settled = |body: Value| bus.http.post("~/settled", &body);
    // A client may read a message before the emulator has recorded that it is written.
    let problem = eventually("nothing but a lock", || {
        let answer = settled(json!({"within": 0}));
        answer.error(408);
        let problem = answer.body["error"]["problems"][0].clone();
        (problem["value"] != "its output is not written").then_some(problem)
    });
    assert_eq!(problem["path"], "t/Subscriptions/red");
    assert_eq!(problem["value"], "1 locked by worker-1");
    for entity in ["t/Subscriptions/all", "t"] {
        assert_eq!(settled(json!({"within": 30, "entity": entity})).status, 200);
    }
    peer.complete(&delivery);
    assert_eq!(settled(json!({"within": 30})).status, 200);
}

#[test]
fn a_reset_removes_messages_of_subscriptions_and_schedules() {
    let bus = coloured();
    publish(&bus, "1", "red");
    let (mut peer, sender) = bus.sender("t");
    let later = client_now() + 60_000;
    peer.send(&sender, &Message::new("later").scheduled_at(later));
    bus.http.reset();
    for name in ["all", "red"] {
        assert_eq!(bus.http.held(&format!("t/Subscriptions/{name}")), (0, 0));
    }
    assert_eq!(bus.http.counts("t")["scheduled"], 0);
    assert!(bus.http.events("?entity=t").is_empty());
    publish(&bus, "2", "red");
    for name in ["all", "red"] {
        assert_eq!(bus.http.held(&format!("t/Subscriptions/{name}")), (1, 0));
    }
}

#[test]
fn the_list_of_queues_contains_only_queues() {
    let bus = coloured();
    let list = bus.http.get("~/queues").ok();
    let names: Vec<_> = list["queues"].as_array().into_iter().flatten().collect();
    let names: Vec<_> = names.iter().map(|queue| queue["name"].clone()).collect();
    assert_eq!(names, ["q"]);
    for method in ["GET", "DELETE"] {
        bus.http.queue(method, "t", None).error(404);
        bus.http
            .queue(method, "t/Subscriptions/all", None)
            .error(400);
    }
    let answer = bus.http.queue("PUT", "T", Some("{}"));
    let message = answer.error_with(409, "conflict");
    assert_contains(message, "topic");
    publish(&bus, "1", "red");
    assert_eq!(bus.http.held("t/Subscriptions/red"), (1, 0));
}

#[test]
fn topics_and_subscriptions_can_be_created_and_deleted_in_use() {
    let bus = coloured();
    assert_eq!(bus.http.put("~/topics/new", &json!({})).status, 201);
    assert_eq!(bus.http.put("~/topics/new", &json!({})).status, 200);
    let path = "~/subscriptions/new/Subscriptions/s";
    let made = bus.http.put(path, &json!({"MaxDeliveryCount": 3}));
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["properties"]["MaxDeliveryCount"], 3);
    bus.http
        .put("~/subscriptions/none/Subscriptions/s", &json!({}))
        .error(404);
    bus.http.put("~/topics/q", &json!({})).error(409);
    let (mut peer, sender) = bus.sender("new");
    let receiver = peer.receiver("new/Subscriptions/s");
    peer.send(&sender, &Message::new("m"));
    peer.complete_one(&receiver);
    assert_eq!(bus.http.delete(path).status, 204);
    assert_eq!(
        peer.detached(&receiver).refusal(2).condition,
        "amqp:not-found"
    );
    peer.send(&sender, &Message::new("nobody's"));
    assert_eq!(bus.http.delete("~/topics/new").status, 204);
    assert_eq!(
        peer.detached(&sender).refusal(2).condition,
        "amqp:not-found"
    );
    bus.http.delete("~/topics/new").error(404);
}

#[test]
fn a_topic_is_deleted_with_its_subscriptions() {
    let bus = coloured();
    publish(&bus, "1", "red");
    let (mut peer, receiver) = bus.receiver("t/Subscriptions/red");
    let node = peer.node("t/Subscriptions/all/$management");
    assert_eq!(bus.http.delete("~/topics/t").status, 204);
    assert_eq!(
        peer.detached(&receiver).refusal(2).condition,
        "amqp:not-found"
    );
    for operation in ["peek-message", "enumerate-rules"] {
        let body = peek_from(0, serde_amqp::Value::Int(1));
        refused_with(&peer.call(&node, operation, body), 404, "amqp:not-found");
    }
    bus.http.reset();
    publish(&bus, "2", "red");
    for name in ["all", "red"] {
        assert_eq!(bus.http.held(&format!("t/Subscriptions/{name}")), (1, 0));
    }
    peer.attached(&Attach::receiver("t/Subscriptions/red").named("again"));
}

#[test]
fn an_update_of_a_topic_other_than_its_status_ends_locks() {
    let bus = coloured();
    publish(&bus, "1", "red");
    let mut peer = bus.client();
    let held = ["all", "red"].map(|name| peer.receive_from(&format!("t/Subscriptions/{name}")));
    let change = |changed: Value| bus.http.put("~/topics/t", &changed).ok();
    change(json!({"Status": "SendDisabled"}));
    assert_eq!(bus.http.counts("t/Subscriptions/red")["locked"], 1);
    change(json!({"MaxSizeInMegabytes": 2048}));
    for delivery in &held {
        peer.assert_lock_lost(delivery);
    }
}

#[test]
fn a_reset_restores_properties_of_every_kind_of_entity() {
    let failing = rules(&[sql("divide", "1 / n = 1", "")]);
    let bus = Bus::configured(&topic(&json!({}), &[("s", failing)]));
    let route = "~/subscriptions/t/Subscriptions/s";
    let name = "DeadLetteringOnFilterEvaluationExceptions";
    assert_eq!(
        bus.http.put(route, &json!({ name: false })).body["properties"][name],
        false
    );
    assert_eq!(bus.http.delete("~/queues/q").status, 204);
    assert_eq!(bus.http.put("~/topics/q", &json!({})).status, 201);
    let reset = || bus.http.reset();
    reset();
    let (mut peer, sender) = bus.sender("t");
    let message = Message::new("m").application("n", serde_amqp::Value::Int(0));
    peer.send(&sender, &message);
    assert_eq!(bus.http.held("t/Subscriptions/s"), (0, 1));
    peer.receiver("q");
    // The other way round: a queue where a topic was declared.
    assert_eq!(bus.http.delete("~/topics/t").status, 204);
    assert_eq!(bus.http.put("~/queues/t", &json!({})).status, 201);
    reset();
    let sender = peer.attached(&Attach::sender("t").named("again"));
    peer.send(&sender, &message);
    assert_eq!(bus.http.held("t/Subscriptions/s"), (0, 1));
}

#[test]
fn a_reset_restores_sessions_of_a_subscription() {
    let sessions = json!({"Properties": {"RequiresSession": true}});
    let bus = Bus::configured(&topic(&json!({}), &[("s", sessions)]));
    let route = "~/subscriptions/t/Subscriptions/s";
    assert_eq!(bus.http.delete(route).status, 204);
    assert_eq!(bus.http.put(route, &json!({})).status, 201);
    bus.http.reset();
    let mut peer = bus.client();
    send_all(&mut peer, "t", &[("1", "s")]);
    let link = peer.accept("t/Subscriptions/s", "s");
    assert_eq!(peer.receive_one(&link).id(), "1");
}
