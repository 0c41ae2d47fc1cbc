//! How clients reach a namespace that was created at run time: by host name or address, and by key name as one of the start
//! (`wire/namespaces.rs`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::*;

/// An address that no other test has: tests run in one process, or several at a time.
fn address() -> IpAddr {
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    Ipv4Addr::new(127, 201, high, low.clamp(1, 254)).into()
}

fn at(address: IpAddr, listener: SocketAddr) -> SocketAddr {
    SocketAddr::new(address, listener.port())
}

fn send_one(peer: &mut Peer) {
    peer.send_to("q", &Message::new("m"));
}

#[test]
fn a_host_name_selects_the_namespace_even_with_dots() {
    let bus = Bus::with_queues(&["q"]);
    for (name, hosts) in [
        (
            "second",
            [
                "second",
                "Second.servicebus.windows.net:5672",
                "second.example",
            ],
        ),
        (
            "with.dots",
            [
                "with.dots",
                "with.dots.servicebus.windows.net",
                "with.dots.localhost",
            ],
        ),
    ] {
        let made = make(&bus, name, &declared(&["q"], ""));
        for (sent, host) in (1..).zip(hosts) {
            let mut peer = Peer::open(bus.amqp, &Open::to(host));
            let reply = peer.put_token("sb://localhost/", &made.token());
            assert_eq!(reply.cbs_status(), 202, "{host}: {}", reply.text());
            send_one(&mut peer);
            assert_eq!(active(&bus, name, "q"), sent, "{host}");
            // The key of the other namespace would select it, were it not for the host.
            let mut peer = Peer::open(bus.amqp, &Open::to(host));
            let reply = peer.put_token("sb://localhost/", &root_token("sb://localhost/"));
            assert_eq!(reply.cbs_status(), 401, "{host}: {}", reply.text());
        }
    }
}

#[test]
fn a_declared_host_name_selects_the_namespace() {
    let bus = Bus::with_queues(&["q"]);
    let emulator = r#""Address":"Orders.Example.test""#;
    let made = make(&bus, "second", &declared(&["q"], emulator));
    assert_eq!(made.entry.host, "orders.example.test");
    assert_eq!(made.admin.host, "orders.example.test");
    let mut peer = Peer::open(bus.amqp, &Open::to("orders.example.test"));
    let reply = peer.put_token("sb://localhost/", &root_token("sb://localhost/"));
    assert_eq!(reply.cbs_status(), 401, "{}", reply.text());
    let reply = peer.put_token("sb://localhost/", &made.token());
    assert_eq!(reply.cbs_status(), 202, "{}", reply.text());
    send_one(&mut peer);
    assert_eq!(active(&bus, "second", "q"), 1);
}

#[test]
fn the_own_address_of_a_namespace_has_a_listener_until_removed() {
    let bus = Bus::with_queues(&["q"]);
    let address = address();
    let emulator = format!(r#""Address":"{address}","TokenCheck":"none""#);
    let made = make(&bus, "second", &declared(&["q"], &emulator));
    assert_eq!(made.entry.host, address.to_string());
    let listener = at(address, bus.amqp);
    // Clients name only the address: no host name, no key.
    let mut peer = Peer::open(listener, &Open::default());
    send_one(&mut peer);
    assert_eq!(active(&bus, "second", "q"), 1);
    let http = Http(at(address, bus.http.0));
    assert_eq!(http.get("/health").ok()["status"], "healthy");
    let rest = Rest::at(http.0);
    assert_eq!(rest.ask("DELETE", "/q/messages/head?timeout=0").status, 200);

    assert_eq!(remove(&bus, "second").status, 204);
    assert_eq!(peer.closed().condition, "amqp:connection:forced");
    assert!(
        std::net::TcpStream::connect(listener).is_err(),
        "it listens there"
    );
    make(&bus, "again", &declared(&["q"], &emulator));
    send_one(&mut Peer::open(listener, &Open::default()));
    assert_eq!(active(&bus, "again", "q"), 1);
}

#[test]
fn a_shared_address_can_be_declared_for_one_namespace() {
    let bus = Bus::with_queues(&["q"]);
    let emulator = r#""Address":"127.0.0.1","TokenCheck":"none""#;
    make(&bus, "second", &declared(&["q"], emulator));
    send_one(&mut Peer::open(bus.amqp, &Open::to("sbemulatorns")));
    assert_eq!(
        (
            active(&bus, "second", "q"),
            active(&bus, "sbemulatorns", "q")
        ),
        (1, 0)
    );
}

#[test]
fn an_address_in_use_by_another_process_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    let address = IpAddr::from([127, 202, 0, 1]);
    let _taken = std::net::TcpListener::bind(at(address, bus.amqp)).expect("it is free");
    let emulator = format!(r#""Address":"{address}""#);
    let answer = put(&bus, "second", &declared(&["q"], &emulator));
    let message = answer.error_with(409, "cannot-listen");
    assert_contains(message, &address.to_string());
    assert_eq!(names(&bus), ["sbemulatorns"]);
}

#[test]
fn administration_and_rest_requests_select_the_namespace_alike() {
    let bus = Bus::with_queues(&["q"]);
    let made = make(&bus, "second", &declared(&["q"], r#""Address":"own.test""#));
    let token = made.token();
    for host in [
        "localhost",
        "second.servicebus.windows.net",
        "own.test:5300",
    ] {
        let rest = bus.rest_with(Some(&token));
        let sent = rest.send("q", &[("Host", host), ("Content-Type", "text/plain")], "m");
        assert_eq!(sent.status, 201, "{host}: {sent:?}");
        let (made_here, body) = (format!("for-{}", host.len()), queue(""));
        let request = format!(
            "PUT /{made_here}?api-version=2021-05 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Authorization: {token}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        bus.admin().raw(request.as_bytes()).expect(201);
        let found = bus
            .http
            .get(&format!("{}/queues/{made_here}", path("second")));
        assert_eq!(found.status, 200, "{host}: {found:?}");
    }
    assert_eq!(
        (
            active(&bus, "second", "q"),
            active(&bus, "sbemulatorns", "q")
        ),
        (3, 0)
    );
    // A host takes precedence over a key.
    let rest = bus.rest_with(Some(&root_token("http://localhost")));
    let elsewhere = rest.send("q", &[("Host", "second")], "m");
    assert_contains(elsewhere.refusal(401), "this namespace has no key named");
    let unknown = Key {
        name: "unknown".into(),
        ..made.key()
    };
    let token = sas::sign("http://localhost/q", &unknown, in_an_hour());
    let nowhere = bus.rest_with(Some(&token)).take("q");
    assert_contains(nowhere.refusal(401), "The namespace cannot be determined");
}

#[test]
fn certificates_include_names_of_later_namespaces() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    let stream = |name: &str| Stream::secured(bus.amqp, name, &ca);
    // The first one is created before the others are known.
    assert!(stream("localhost").is_ok());
    let known = ["later", "later.localhost", "own.test"];
    for name in known {
        assert!(stream(name).is_err(), "{name}");
    }
    let emulator = r#""Address":"own.test","TokenCheck":"none""#;
    make(&bus, "later", &declared(&["q"], emulator));
    for (sent, name) in (1..).zip(known) {
        let secured = stream(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        // TLS has said the name; AMQP need not.
        send_one(&mut Peer::open_over(secured, &Open::default()));
        assert_eq!(active(&bus, "later", "q"), sent, "{name}");
    }
    assert_eq!(remove(&bus, "later").status, 204);
    assert!(stream("own.test").is_err());
}
