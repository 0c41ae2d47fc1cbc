//! Several namespaces in one process: how a connection finds its own, and that they share nothing.

use serde_json::json;
use servicebus_emulator::auth::{Claims, ConnectionString, Key, sas};

use crate::support::*;

const UNAUTHORIZED: &str = "amqp:unauthorized-access";

/// Two namespaces with a queue of the same name, a key each, and a key name that differs in case alone.
fn two() -> Bus {
    let namespace = |name: &str, keys: &str| {
        format!(r#"{{"Name":"{name}","Queues":[{{"Name":"q"}}],"Emulator":{{"Keys":[{keys}]}}}}"#)
    };
    let alpha = namespace(
        "alpha",
        r#"{"Name":"a","Key":"ka"},{"Name":"Both","Key":"kb"}"#,
    );
    let beta = namespace(
        "beta",
        r#"{"Name":"b","Key":"kb"},{"Name":"both","Key":"kb"}"#,
    );
    Bus::configured(&format!(
        r#"{{"UserConfig":{{"Namespaces":[{alpha},{beta}]}}}}"#
    ))
}

fn token(name: &str, secret: &str) -> String {
    let key = Key {
        name: name.into(),
        key: secret.into(),
        claims: Claims::ALL,
    };
    sas::sign("sb://localhost/", &key, in_an_hour())
}

fn show(peer: &mut Peer, name: &str, secret: &str) -> i32 {
    peer.put_token("sb://localhost/", &token(name, secret))
        .cbs_status()
}

/// How many messages the queue of a namespace holds.
fn held(bus: &Bus, namespace: &str) -> u64 {
    let path = format!("/$emulator/v1/namespaces/{namespace}/counts?entity=q");
    bus.http.get(&path).ok()["active"]
        .as_u64()
        .expect("counts are numbers")
}

#[test]
fn a_key_name_selects_the_namespace_of_an_unknown_host() {
    let bus = two();
    let mut alpha = bus.unauthenticated_client();
    let refusal = alpha.refused(&Attach::sender("q"));
    assert_eq!(refusal.condition, UNAUTHORIZED, "before anything is chosen");
    assert_eq!(show(&mut alpha, "a", "ka"), 202);
    let sender = alpha.sender("q");
    alpha.send(&sender, &Message::new("m"));
    assert_eq!((held(&bus, "alpha"), held(&bus, "beta")), (1, 0));
    // Determined once.
    assert_eq!(show(&mut alpha, "b", "kb"), 401);

    let mut beta = Peer::connect(bus.amqp);
    assert_eq!(beta.sasl("PLAIN", b"\0b\0kb"), 0);
    beta.introduce(&Open::default());
    beta.send_to("q", &Message::new("m"));
    assert_eq!((held(&bus, "alpha"), held(&bus, "beta")), (1, 1));

    let mut unknown = bus.unauthenticated_client();
    let reply = unknown.put_token("sb://localhost/", &token("nobody", "x"));
    assert_eq!(reply.cbs_status(), 404, "{}", reply.text());
    let reply = unknown.put_token("sb://localhost/", "e30.eyJleHAiOjQwMDAwMDAwMDB9.c2ln");
    assert_eq!(reply.cbs_status(), 404, "no key is named: {}", reply.text());
}

#[test]
fn each_namespace_is_reached_by_its_connection_string() {
    let namespace = |name: &str| format!(r#"{{"Name":"{name}","Queues":[{{"Name":"q"}}]}}"#);
    let namespaces = ["alpha", "beta", "gamma"].map(namespace).join(",");
    let bus = Bus::configured(&format!(
        r#"{{"UserConfig":{{"Namespaces":[{namespaces}]}}}}"#
    ));
    let list = bus.http.get("/$emulator/v1/namespaces").ok();
    for (index, name) in ["alpha", "beta", "gamma"].into_iter().enumerate() {
        assert_eq!(list[index]["name"], name);
        let string = list[index]["connection_string"]
            .as_str()
            .unwrap_or_default();
        let string: ConnectionString = string.parse().expect("it can be read");
        let key = (
            string.key_name.unwrap_or_default(),
            string.key.unwrap_or_default(),
        );
        let mut peer = bus.unauthenticated_client();
        assert_eq!(show(&mut peer, &key.0, &key.1), 202, "{key:?}");
        peer.send_to("q", &Message::new("m"));
        assert_eq!(held(&bus, name), 1);
    }
}

#[test]
fn faults_of_a_namespace_apply_to_the_token_that_selects_it() {
    let bus = two();
    let of = |namespace: &str, rest: &str| format!("/$emulator/v1/namespaces/{namespace}/{rest}");
    for (namespace, status) in [("alpha", 503), ("beta", 429)] {
        let effect = json!({"answer": {"status": status}});
        let fault = json!({"operation": "token", "effect": effect});
        assert_eq!(bus.http.post(&of(namespace, "faults"), &fault).status, 201);
        let record = r#"{"recording":true}"#;
        let recorded = bus
            .http
            .request("PUT", &of(namespace, "operations"), Some(record));
        assert_eq!(recorded.status, 200, "{recorded:?}");
    }
    let mut peer = bus.unauthenticated_client();
    assert_eq!(show(&mut peer, "a", "wrong"), 401, "it has not chosen");
    assert_eq!(show(&mut peer, "b", "kb"), 429);
    assert_eq!(show(&mut peer, "b", "kb"), 202);
    peer.send_to("q", &Message::new("m"));
    assert_eq!((held(&bus, "alpha"), held(&bus, "beta")), (0, 1));
    let operations = |namespace| {
        let log = bus.http.get(&of(namespace, "operations")).ok();
        let log = log["operations"].as_array().expect("a list").clone();
        let names = log.iter().map(|one| one["operation"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(operations("alpha"), Vec::<serde_json::Value>::new());
    let beta = ["connect", "token", "token", "attach", "send"];
    assert_eq!(operations("beta"), beta.map(|name| json!(name)));
}

#[test]
fn key_names_are_case_sensitive() {
    let bus = two();
    for (name, secret, counts) in [("Both", "kb", (1, 0)), ("both", "kb", (1, 1))] {
        let mut peer = bus.unauthenticated_client();
        assert_eq!(show(&mut peer, name, secret), 202, "{name}");
        peer.send_to("q", &Message::new("m"));
        assert_eq!((held(&bus, "alpha"), held(&bus, "beta")), counts);
    }
}

#[test]
fn a_timeline_names_clients_selected_by_host_and_by_token() {
    let bus = two();
    let mut by_host = Peer::open(
        bus.amqp,
        &Open {
            hostname: "alpha".into(),
            ..Open::named("by-host")
        },
    );
    assert_eq!(show(&mut by_host, "a", "ka"), 202);
    let mut by_token = Peer::open(bus.amqp, &Open::named("by-token"));
    assert_eq!(show(&mut by_token, "a", "ka"), 202);
    for peer in [&mut by_host, &mut by_token] {
        peer.send_to("q", &Message::new("m"));
    }
    let timeline = bus.http.get("/$emulator/v1/namespaces/alpha/timeline").ok();
    let events = timeline["events"].as_array().expect("events are an array");
    let sent = events.iter().filter(|event| event["kind"] == "sent");
    let clients: Vec<_> = sent.map(|event| event["client"].clone()).collect();
    assert_eq!(clients, [json!("by-host"), json!("by-token")]);
}

#[test]
fn a_slow_reader_in_one_namespace_does_not_delay_advances_of_another() {
    let bus = two();
    let mut slow = Peer::open(bus.amqp, &Open::to("beta"));
    show(&mut slow, "b", "kb");
    let sender = slow.sender("q");
    let message = Message::new("large").body(vec![b'x'; 100_000]);
    slow.send_without_waiting(&sender, (0..300).map(|_| message.clone()));
    slow.receiver_with_credit("q", 300);
    let settled = |namespace: &str| {
        let path = format!("/$emulator/v1/namespaces/{namespace}/settled");
        bus.http.post(&path, &json!({"within": 0.01}))
    };
    eventually("a reader that is too slow", || {
        let answer = settled("beta").body.to_string();
        answer.contains("output is not written").then_some(())
    });
    assert_eq!(settled("alpha").status, 200);
    // An advance that waits for a slow reader takes two seconds.
    let start = std::time::Instant::now();
    for _ in 0..20 {
        bus.http.advance(1.0);
    }
    assert!(
        start.elapsed().as_secs() < 30,
        "advances waited for the other namespace"
    );
}
