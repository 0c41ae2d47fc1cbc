//! Stored messages: listed, searched, returned, sent, resubmitted and acted on.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::support::*;

const MESSAGES: &str = "~/messages";

fn list(bus: &Bus, query: &str) -> Value {
    bus.http.get(&format!("{MESSAGES}?{query}")).ok()
}

/// The ids of the messages that are listed.
fn ids(listed: &Value) -> Vec<&str> {
    let messages = listed["messages"].as_array().expect("a list").iter();
    let ids = messages.map(|message| message["message_id"].as_str());
    ids.flatten().collect()
}

fn show(bus: &Bus, number: u64, entity: &str) -> Value {
    bus.http
        .get(&format!("{MESSAGES}/{number}?entity={entity}"))
        .ok()
}

fn send(bus: &Bus, entity: &str, messages: &Value) -> Vec<Option<u64>> {
    let answer = bus
        .http
        .post(&format!("{MESSAGES}?entity={entity}"), messages);
    assert_eq!(answer.status, 201, "{answer:?}");
    let numbers = answer.body["sequence_numbers"].as_array().expect("a list");
    numbers.iter().map(Value::as_u64).collect()
}

/// A message with this id and property, in JSON.
fn message(id: &str, price: i64) -> Value {
    json!({
        "properties": {"message_id": id, "subject": "order"},
        "application_properties": {"price": {"int": price}},
        "body": {"text": format!("{{\"id\":\"{id}\"}}")},
    })
}

fn resubmit(bus: &Bus, body: &Value) -> Value {
    bus.http.post(&format!("{MESSAGES}/resubmit"), body).ok()
}

fn act(bus: &Bus, body: &Value) -> Value {
    bus.http.post(&format!("{MESSAGES}/act"), body).ok()
}

/// The numbers in the answer to an action on messages of an entity.
fn done(bus: &Bus, entity: &str, numbers: &[u64], act: &str) -> Value {
    let body = json!({"entity": entity, "numbers": numbers, "act": act});
    self::act(bus, &body)["done"].clone()
}

fn dead_letter_first(bus: &Bus, entity: &str) {
    let body = json!({"entity": entity, "where": "1=1", "act": "dead-letter", "reason": "broken", "description": "no price"});
    assert_eq!(act(bus, &body)["failed"], json!([]));
}

#[test]
fn the_message_list_shows_states_locks_and_holders() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.freeze();
    send(&bus, "q", &json!([message("a", 1), message("b", 2)]));
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let link = peer.receiver("q");
    peer.receive_one(&link);
    let listed = list(&bus, "entity=q");
    assert_eq!(members(&listed, ["total", "next"]), json!([2, null]));
    let [locked, active] = listed["messages"].as_array().expect("a list").as_slice() else {
        panic!("two messages: {listed}");
    };
    assert_eq!(locked["state"], "locked");
    assert_eq!(locked["locked_by"], "worker-1");
    let instant = |value: &Value| -> jiff::Timestamp {
        let at = value.as_str().and_then(|at| at.parse().ok());
        at.expect("a time")
    };
    let held = instant(&locked["locked_until"]).duration_since(instant(&locked["enqueued_at"]));
    assert_eq!(held.as_secs(), 60);
    assert_eq!(active["state"], "active");
    assert_eq!(active["sequence_number"], 2);
    assert_eq!(active["subject"], "order");
    assert_eq!(active["preview"], r#"{"id":"b"}"#);
    assert_eq!(active["delivery_count"], 0);
    assert_eq!(active.get("locked_until"), None);
}

#[test]
fn the_message_list_has_pages_in_both_directions() {
    let bus = Bus::with_queues(&["q"]);
    let all: Vec<Value> = (0..700).map(|n| message(&n.to_string(), n)).collect();
    send(&bus, "q", &json!(all));
    for (query, first, next) in [
        ("limit=3", ["0", "1", "2"], Some(4)),
        ("limit=3&from=4", ["3", "4", "5"], Some(7)),
        ("limit=3&order=newest", ["699", "698", "697"], Some(697)),
        ("limit=3&order=newest&from=3", ["2", "1", "0"], None),
        ("limit=3&skip=500", ["500", "501", "502"], Some(504)),
        ("limit=3&skip=697", ["697", "698", "699"], None),
    ] {
        let listed = list(&bus, &format!("entity=q&{query}"));
        assert_eq!(ids(&listed), first, "{query}");
        assert_eq!(listed["next"].as_u64(), next, "{query}");
        assert_eq!(listed["total"], 700);
    }
    assert_eq!(ids(&list(&bus, "entity=q&skip=700")), [""; 0]);
    assert_eq!(ids(&list(&bus, "entity=q")).len(), 50);
    let answer = bus.http.get(&format!("{MESSAGES}?entity=q&limit=201"));
    assert_eq!(answer.error(400).0, "invalid-argument");
}

#[test]
fn messages_are_found_by_filter_body_state_and_session() {
    let bus = Bus::with_sessions();
    let in_session = |id: &str, session: &str, price: i64| {
        let mut message = message(id, price);
        message["properties"]["group_id"] = session.into();
        message
    };
    let mut scheduled = in_session("later", "s", 30);
    let at = (client_now() + 600_000).to_string();
    scheduled["message_annotations"] = json!({"x-opt-scheduled-enqueue-time": {"timestamp": at}});
    let all = json!([
        in_session("a", "s", 10),
        in_session("b", "t", 20),
        scheduled
    ]);
    send(&bus, "q", &all);
    for (query, found) in [
        ("where=price%20%3E%2010", &["b", "later"][..]),
        ("where=sys.SequenceNumber%20=%201", &["a"]),
        ("where=price%20/%200%20=%201", &[]),
        ("body_contains=%22b%22", &["b"]),
        ("state=scheduled", &["later"]),
        ("state=active&session=s", &["a"]),
        ("session=s&where=price%20%3C%20100", &["a", "later"]),
    ] {
        let listed = list(&bus, &format!("entity=q&{query}"));
        assert_eq!(ids(&listed), found, "{query}");
    }
    assert_eq!(list(&bus, "entity=q&state=scheduled")["total"], 1);
    let answer = bus
        .http
        .get(&format!("{MESSAGES}?entity=q&where=price%20%3E"));
    assert_eq!(answer.error(400).0, "invalid-argument");
    let problem = &answer.body["error"]["problems"][0];
    assert_eq!(
        members(problem, ["path", "value"]),
        json!(["where", "price >"])
    );
}

#[test]
fn a_message_search_continues_at_its_next_number() {
    let bus = Bus::with_queues(&["q"]);
    for _ in 0..11 {
        send(&bus, "q", &json!(vec![message("x", 1); 1000]));
    }
    send(&bus, "q", &message("needle", 2));
    let query = "entity=q&where=price=2";
    let first = list(&bus, query);
    assert_eq!((ids(&first).len(), &first["next"]), (0, &json!(10_001)));
    let second = list(&bus, &format!("{query}&from=10001"));
    assert_eq!(
        (ids(&second), &second["next"]),
        (vec!["needle"], &Value::Null)
    );
}

#[test]
fn a_copied_message_has_the_bytes_of_the_original() {
    let bus = Bus::with_queues(&["q", "copy"]);
    let sent = Message::new("a")
        .property(4, text("reply"))
        .annotation("x-opt-mine", long(7))
        .application("count", uint(1))
        .body("body");
    let (mut peer, link) = bus.sender("q");
    peer.send(&link, &sent);
    let shown = show(&bus, 1, "q");
    assert_eq!(shown["summary"]["message_id"], "a");
    let message = &shown["message"];
    assert_eq!(message["amqp"], BASE64_STANDARD.encode(sent.encode()));
    assert_eq!(
        message["properties"],
        json!({"message_id": "a", "reply_to": "reply"})
    );
    assert_eq!(
        message["message_annotations"],
        json!({"x-opt-mine": {"long": 7}})
    );
    assert_eq!(send(&bus, "copy", message), [Some(1)]);
    assert_eq!(&show(&bus, 1, "copy")["message"], message);
    let received = ["q", "copy"].map(|queue| peer.receive_from(queue).message);
    for code in [0x73, 0x74, 0x75] {
        let sections = received.each_ref().map(|message| message.section(code));
        assert!(
            sections[0].is_some() && sections[0] == sections[1],
            "{code}"
        );
    }
}

#[test]
fn a_message_body_is_served_as_a_download() {
    let bus = Bus::with_queues(&["q"]);
    let html = "<img src=x onerror=alert(1)>";
    send(&bus, "q", &json!({"body": {"text": html}}));
    send(&bus, "q", &json!({"body": {"data": ["/wA="]}}));
    let request = "GET /$emulator/v1/namespaces/sbemulatorns/messages/1/body?entity=q HTTP/1.1\r\nHost: localhost\r\n\
                   Connection: close\r\n\r\n";
    let answer = bus.http.text(request.as_bytes());
    assert_ends_with(&answer, html);
    let head = answer.to_lowercase();
    for header in [
        "content-type: application/octet-stream",
        "content-disposition: attachment",
        "content-security-policy: sandbox",
        "x-content-type-options: nosniff",
    ] {
        assert_contains(&head, header);
    }
    assert_eq!(list(&bus, "entity=q")["messages"][1].get("preview"), None);
}

#[test]
fn a_large_message_is_listed_without_its_body() {
    let bus = Bus::configured(&queues(
        r#""Tier":"premium""#,
        &[("q", r#""MaxMessageSizeInKilobytes":2048"#)],
    ));
    let body = "x".repeat(1024 * 1024);
    let large = json!({"properties": {"message_id": "large"}, "body": {"text": body}});
    send(&bus, "q", &large);
    let shown = show(&bus, 1, "q");
    let size = shown["summary"]["size"].as_u64().expect("a size");
    assert!(size > 1024 * 1024, "{size}");
    assert_eq!(shown["message"]["body"], json!({"omitted": size}));
    assert_eq!(shown["message"].get("amqp"), None);
    assert_eq!(shown["message"]["properties"]["message_id"], "large");
}

#[test]
fn a_request_sends_all_messages_or_none() {
    let bus = Bus::with_queues(&["q"]);
    let path = format!("{MESSAGES}?entity=q");
    let bad = json!([message("a", 1), {"header": {"time_to_live": 0}}]);
    let answer = bus.http.post(&path, &bad);
    assert_eq!(answer.error(400).0, "invalid-argument");
    let answer = bus.http.post(&path, &json!([]));
    assert_eq!(answer.error(400).0, "invalid-argument");
    let large = json!({"body": {"text": "x".repeat(300_000)}});
    let answer = bus.http.post(&path, &large);
    let text = answer.error_with(409, "refused");
    assert_eq!(
        text,
        "a message has more than 262144 bytes, the most that the entity takes"
    );
    let answer = bus
        .http
        .post(&format!("{MESSAGES}?entity=q/$DeadLetterQueue"), &json!({}));
    assert_eq!(answer.error(400).0, "invalid-argument");
    assert_eq!(bus.http.counts("q")["active"], 0);
    let answer = send(&bus, "q", &json!({}));
    assert_eq!(answer, [Some(1)]);
    let id = list(&bus, "entity=q")["messages"][0]["message_id"].clone();
    assert_eq!(id.as_str().map(str::len), Some(32), "it got one");
}

/// As the inspector imports a file that it has exported.
#[test]
fn messages_may_have_more_bytes_together_than_one_may_have() {
    let bus = Bus::with_queues(&["q"]);
    let large = json!({"body": {"text": "x".repeat(200_000)}});
    let answer = send(&bus, "q", &json!([large.clone(), large]));
    assert_eq!(answer, [Some(1), Some(2)]);
}

#[test]
fn a_request_with_a_filter_continues_where_the_one_before_ended() {
    let bus = Bus::with_queues(&["a", "b"]);
    for count in [1000, 200] {
        send(&bus, "a", &json!(vec![json!({}); count]));
    }
    let mut request = json!({"entity": "a", "where": "1 = 1", "to": "b", "keep_original": true});
    let first = resubmit(&bus, &request);
    assert_eq!(first["done"].as_array().map(Vec::len), Some(1000));
    assert_eq!(
        (&first["more"], &first["next"]),
        (&json!(true), &json!(1001))
    );
    request["from"] = first["next"].clone();
    let second = resubmit(&bus, &request);
    assert_eq!(second["done"][0], 1001);
    assert_eq!((&second["more"], second.get("next")), (&json!(false), None));
    assert_eq!(bus.http.counts("b")["active"], 1200);
    let deleted = json!({"entity": "a", "where": "1 = 1", "from": 1101, "act": "delete"});
    let acted = act(&bus, &deleted);
    assert_eq!(acted["done"].as_array().map(Vec::len), Some(100));
    let both = json!({"entity": "a", "numbers": [1], "from": 1, "act": "delete"});
    let refused = bus.http.post(&format!("{MESSAGES}/act"), &both);
    assert_eq!(refused.error(400).0, "invalid-argument");
}

#[test]
fn a_dead_letter_can_be_edited_and_resubmitted() {
    let bus = Bus::with_queues(&["q"]);
    send(&bus, "q", &json!([message("a", 1), message("b", 2)]));
    dead_letter_first(&bus, "q");
    let dead = list(&bus, "entity=q/$DeadLetterQueue");
    assert_eq!(dead["messages"][0]["dead_letter_reason"], "broken");
    assert_eq!(dead["messages"][0]["dead_letter_description"], "no price");
    let body = json!({
        "entity": "q/$DeadLetterQueue",
        "numbers": [2, u64::MAX],
        "edit": {
            "application_properties": {"DeadLetterReason": null, "DeadLetterErrorDescription": null, "price": {"int": 9}},
            "body": {"text": "repaired"},
        },
    });
    let done = resubmit(&bus, &body);
    let failed = json!([{"sequence_number": u64::MAX, "message": "there is no message 18446744073709551615"}]);
    assert_eq!(done, json!({"done": [2], "failed": failed, "more": false}));
    let missing = bus.http.get(&format!("~/messages/{}?entity=q", u64::MAX));
    let text = missing.error_with(404, "not-found");
    assert_eq!(text, "there is no message 18446744073709551615 in 'q'");
    let sent = show(&bus, 3, "q");
    assert_eq!(
        sent["message"]["application_properties"],
        json!({"price": {"int": 9}})
    );
    assert_eq!(sent["summary"]["preview"], "repaired");
    assert_eq!(sent["summary"]["message_id"], "b");
    assert_eq!(ids(&list(&bus, "entity=q/$DeadLetterQueue")), ["a"]);
    let events = bus
        .http
        .events("?entity=q/$DeadLetterQueue&sequence_number=2");
    let deleted = events.iter().find(|event| event["kind"] == "deleted");
    assert_eq!(
        deleted.map(|event| &event["client"]),
        Some(&json!("inspector"))
    );
}

#[test]
fn a_subscriptions_dead_letter_is_resubmitted_to_it_or_its_topic() {
    let config = topic(
        &json!({}),
        &[("a", properties(&json!({}))), ("b", properties(&json!({})))],
    );
    let bus = Bus::configured(&config);
    let held = |entity: &str| ids(&list(&bus, &format!("entity={entity}"))).len();
    send(&bus, "t", &message("m", 1));
    dead_letter_first(&bus, "t/Subscriptions/a");
    let entity = "t/Subscriptions/a/$DeadLetterQueue";
    let done = resubmit(&bus, &json!({"entity": entity, "numbers": [1]}));
    assert_eq!(done["done"], json!([1]));
    assert_eq!(
        (held("t/Subscriptions/a"), held("t/Subscriptions/b")),
        (1, 1)
    );
    dead_letter_first(&bus, "t/Subscriptions/a");
    let body = json!({"entity": entity, "where": "1=1", "to": "t", "keep_original": true, "new_message_id": true});
    assert_eq!(resubmit(&bus, &body)["done"], json!([2]));
    assert_eq!(
        (held("t/Subscriptions/a"), held("t/Subscriptions/b")),
        (1, 2)
    );
    assert_eq!(held(entity), 1, "it is kept");
    let sent = list(&bus, "entity=t/Subscriptions/a");
    assert_ne!(ids(&sent), ["m"]);
}

#[test]
fn a_dead_letter_refused_on_resubmission_stays() {
    let duplicates = r#""RequiresDuplicateDetection":true"#;
    let bus = Bus::configured(&queues(
        "",
        &[("q", duplicates), ("off", r#""Status":"SendDisabled""#)],
    ));
    send(&bus, "q", &message("a", 1));
    dead_letter_first(&bus, "q");
    let entity = "q/$DeadLetterQueue";
    let again = resubmit(&bus, &json!({"entity": entity, "numbers": [1]}));
    let why = "the message is a duplicate there: it needs another message id";
    assert_eq!(again["failed"][0]["message"], why);
    let off = resubmit(
        &bus,
        &json!({"entity": entity, "numbers": [1], "to": "off"}),
    );
    let why = off["failed"][0]["message"].as_str().expect("a text");
    assert_starts_with(why, "Messaging entity 'off' is currently disabled.");
    assert_eq!(ids(&list(&bus, &format!("entity={entity}"))), ["a"]);
    let body = json!({"entity": entity, "numbers": [1], "new_message_id": true});
    assert_eq!(resubmit(&bus, &body)["done"], json!([1]));
    assert_eq!(bus.http.counts("q")["dead_letter"], 0);
}

#[test]
fn actions_apply_to_messages_by_number_or_filter() {
    let bus = Bus::with_queues(&["q"]);
    let all: Vec<Value> = (0..1200).map(|n| message(&n.to_string(), n)).collect();
    send(&bus, "q", &json!(all[..1000]));
    send(&bus, "q", &json!(all[1000..]));
    let (mut peer, link) = bus.receiver("q");
    let delivery = peer.receive_one(&link);
    let delete = json!({"entity": "q", "where": "price < 1100", "act": "delete"});
    let deleted = act(&bus, &delete);
    assert_eq!(deleted["done"].as_array().map(Vec::len), Some(999));
    let why = "message 1 is locked; it must be neither locked nor about to be forwarded";
    let failed = json!([{"sequence_number": 1, "message": why}]);
    assert_eq!(deleted["failed"], failed);
    assert_eq!(deleted["more"], true);
    assert_eq!(act(&bus, &delete)["more"], false);
    assert_eq!(bus.http.counts("q")["active"], 101);
    assert_eq!(done(&bus, "q", &[1], "lose-lock"), json!([1]));
    peer.assert_lock_lost(&delivery);
    for body in [
        json!({"entity": "q", "act": "delete"}),
        json!({"entity": "q", "act": "burn", "numbers": [1]}),
        json!({"entity": "q", "act": "delete", "numbers": vec![1; 1001]}),
    ] {
        let answer = bus.http.post(&format!("{MESSAGES}/act"), &body);
        assert_eq!(answer.error(400).0, "invalid-argument");
    }
}

#[test]
fn a_scheduled_message_can_be_activated_at_once() {
    let bus = Bus::with_queues(&["q"]);
    let at = (client_now() + 600_000).to_string();
    let scheduled =
        json!({"message_annotations": {"x-opt-scheduled-enqueue-time": {"timestamp": at}}});
    send(&bus, "q", &scheduled);
    let shown = &list(&bus, "entity=q")["messages"][0];
    assert_eq!(shown["state"], "scheduled");
    assert!(shown["activates_at"].is_string(), "{shown}");
    done(&bus, "q", &[1], "activate");
    assert_eq!(bus.http.counts("q")["scheduled"], 0);
    assert_eq!(list(&bus, "entity=q")["messages"][0]["state"], "active");
}

#[test]
fn entities_are_listed_with_their_counts() {
    let bus = Bus::configured(&queues(
        "",
        &[
            ("alpha", r#""ForwardDeadLetteredMessagesTo":"dead""#),
            ("beta", ""),
            ("dead", ""),
            ("gamma", r#""RequiresSession":true"#),
        ],
    ));
    send(&bus, "beta", &json!([message("a", 1), message("b", 2)]));
    done(&bus, "beta", &[1], "dead-letter");
    let (_peer, _link) = bus.receiver("beta");
    let entities = |query: &str| bus.http.get(&format!("~/entities{query}")).ok();
    let paths = |listed: &Value| -> Vec<String> {
        let all = listed["entities"].as_array().expect("a list").iter();
        all.map(|one| one["path"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let all = entities("");
    assert_eq!(paths(&all), ["alpha", "beta", "dead", "gamma"]);
    assert_eq!(all["entities"][0]["forward_dead_letters_to"], "dead");
    assert_eq!(all["entities"][3]["requires_session"], true);
    let beta = &all["entities"][1];
    assert_eq!(
        members(beta, ["kind", "status"]),
        json!(["queue", "Active"])
    );
    assert_eq!(beta["counts"]["dead_letter"], 1);
    let page = entities("?limit=2&order=dead-letter");
    assert_eq!(paths(&page), ["beta", "alpha"]);
    assert_eq!(members(&page, ["total", "next"]), json!([4, "0 alpha"]));
    // The last is an entity that was deleted since the last page.
    for after in ["0%20alpha", "alpha", "0%20alphb"] {
        let rest = entities(&format!("?order=dead-letter&after={after}"));
        assert_eq!(paths(&rest), ["dead", "gamma"], "{after}");
        assert_eq!(rest.get("next"), None);
    }
    assert_eq!(
        paths(&entities("?contains=A&after=alpha")),
        ["beta", "dead", "gamma"]
    );
    // A message that was removed since the last page keeps its position.
    assert_eq!(
        paths(&entities("?limit=1&after=alphb")),
        paths(&entities("?limit=1&after=alpha"))
    );
    let answer = bus.http.get("~/entities?order=dead-letter&after=nobody");
    assert_eq!(answer.error(404).0, "not-found");
}
