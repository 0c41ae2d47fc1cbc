//! Namespaces are created and removed at run time, and are separate. Also the list of namespaces, and reset.

mod choosing;
mod lifecycle;
mod refusals;
mod short;
mod topology;

use std::net::SocketAddr;

use serde_json::{Value, json};
use servicebus_emulator::auth::{Claims, ConnectionString, Key, sas};

use crate::support::*;

/// A file with one namespace: its queues, and the contents of its `Emulator` block.
fn declared(queues: &[&str], emulator: &str) -> String {
    let queues: Vec<String> = queues
        .iter()
        .map(|name| format!(r#"{{"Name":"{name}"}}"#))
        .collect();
    let queues = queues.join(",");
    format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Name":"any","Queues":[{queues}],"Emulator":{{{emulator}}}}}]}}}}"#
    )
}

/// A namespace in the control API's responses.
#[derive(Debug)]
struct Made {
    name: String,
    entry: ConnectionString,
    admin: ConnectionString,
}

impl Made {
    fn of(info: &Value) -> Self {
        let text = |field: &str| info[field].as_str().expect("a text").to_owned();
        let string = |field: &str| text(field).parse().expect("a connection string");
        Self {
            name: text("name"),
            entry: string("connection_string"),
            admin: string("admin_connection_string"),
        }
    }

    fn key(&self) -> Key {
        Key {
            name: self.entry.key_name.clone().expect("a key name"),
            key: self.entry.key.clone().expect("a key"),
            claims: Claims::ALL,
        }
    }

    fn token(&self) -> String {
        sas::sign("sb://localhost/", &self.key(), in_an_hour())
    }

    /// A client that has shown its token.
    fn client(&self, address: SocketAddr) -> Peer {
        let mut peer = Peer::open(address, &Open::default());
        let reply = peer.put_token("sb://localhost/", &self.token());
        assert_eq!(reply.cbs_status(), 202, "{}", reply.text());
        peer
    }
}

fn path(name: &str) -> String {
    format!("/$emulator/v1/namespaces/{name}")
}

fn put(bus: &Bus, name: &str, body: &str) -> Answer {
    bus.http.request("PUT", &path(name), Some(body))
}

fn make(bus: &Bus, name: &str, body: &str) -> Made {
    let answer = put(bus, name, body);
    assert_eq!(answer.status, 201, "{answer:?}");
    Made::of(&answer.body)
}

fn remove(bus: &Bus, name: &str) -> Answer {
    bus.http.delete(&path(name))
}

fn names(bus: &Bus) -> Vec<String> {
    let list = bus.http.get("/$emulator/v1/namespaces").ok();
    let list = list.as_array().expect("a list");
    let names = list.iter().filter_map(|info| info["name"].as_str());
    names.map(str::to_owned).collect()
}

/// How many messages an entity of a namespace holds.
fn active(bus: &Bus, namespace: &str, entity: &str) -> u64 {
    let counts = bus
        .http
        .get(&format!("{}/counts?entity={entity}", path(namespace)));
    counts.ok()["active"].as_u64().expect("a number")
}

#[test]
fn the_list_of_namespaces_equals_the_ready_line() {
    let process = Process::start(&[]);
    let list = process.http().get("/$emulator/v1/namespaces").ok();
    assert_eq!(list, process.ready["namespaces"]);
}

#[test]
fn a_reset_restores_declared_entities_without_messages() {
    let (bus, mut peer, sender, receiver) = Bus::with_queues(&["q"]).with_links("q");
    for id in ["dead", "locked", "ready"] {
        peer.send(&sender, &Message::new(id));
    }
    let dead = peer.receive_one(&receiver);
    peer.settle(&dead, dead_lettered("why", ""));
    let locked = peer.receive_one(&receiver);
    bus.http.advance(1.0);
    let answer = bus.http.post("~/reset", &Value::Null);
    assert_eq!((answer.status, &answer.body), (204, &Value::Null));
    assert_eq!(bus.http.held("q"), (0, 0));
    let timeline = bus.http.timeline("");
    assert_eq!(timeline["events"], json!([]));
    assert_eq!(timeline["counters"]["sent"], 0);
    let answer = peer.settle(&locked, accepted());
    assert_eq!(described_list(&answer).0, 0x25, "the lock is gone");
    // Links and clocks continue.
    peer.send(&sender, &Message::new("new"));
    assert_eq!(peer.receive_one(&receiver).id(), "new");
    assert_eq!(
        bus.http.get("/$emulator/v1/clock").ok()["offset_seconds"],
        1.0
    );
}

#[test]
fn a_reset_restores_properties_that_cannot_change() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    assert_eq!(bus.http.delete("~/queues/q").status, 204);
    assert_eq!(bus.http.put("~/queues/q", &json!({})).status, 201);
    bus.http.reset();
    send_all(&mut peer, "q", &[("1", "s")]);
    let link = peer.accept("q", "s");
    assert_eq!(peer.receive_one(&link).id(), "1");
}
