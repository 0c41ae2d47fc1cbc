//! The list of connections: their transports, their links, and what these hold.

use std::thread;

use serde_json::{Value, json};

use crate::support::*;

fn connections(http: Http) -> Vec<Value> {
    let answer = http.get("~/connections").ok();
    answer["connections"].as_array().expect("a list").clone()
}

#[test]
fn concurrent_requests_list_all_connections() {
    let bus = Bus::with_queues(&["q"]);
    let mut peers = [(); 3].map(|()| bus.client());
    for peer in &mut peers {
        peer.settle_down();
    }
    let http = bus.http;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..25 {
                    assert_eq!(connections(http).len(), 3);
                }
            });
        }
    });
}

#[test]
fn a_connection_lists_its_links() {
    let config = queues("", &[("q", ""), ("s", r#""RequiresSession":true"#)]);
    let bus = Bus::configured(&config);
    assert!(connections(bus.http).is_empty());
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("a"));
    send_all(&mut peer, "s", &[("b", "cart")]);
    let receiver = peer.receiver("q");
    peer.receive_one(&receiver);
    peer.credit(&receiver, 7);
    peer.accept("s", "cart");
    peer.node("q/$management");
    peer.settle_down();
    let [connection] = connections(bus.http).try_into().expect("one connection");
    assert_eq!(connection["client"], "worker-1");
    assert_eq!(connection["transport"], "tcp");
    let links = connection["links"].as_array().expect("a list");
    let of = |role: &str, entity: &str| -> &Value {
        let is_it = |link: &&Value| link["role"] == role && link["entity"] == entity;
        let found = links.iter().find(is_it);
        found.unwrap_or_else(|| panic!("no {role} of {entity}: {links:#?}"))
    };
    assert_eq!(of("sender", "q").get("credit"), None);
    let receiver = of("receiver", "q");
    assert_eq!(members(receiver, ["credit", "locks"]), json!([7, 1]));
    assert_eq!(of("receiver", "s")["session"], "cart");
    assert_eq!(of("requests", "q")["node"], "$management");
    peer.close();
    until("no connection is listed", || {
        connections(bus.http).is_empty()
    });
}
