//! `messages/head` where there is no message yet.

use serde_json::json;
use servicebus_emulator::Options;

use crate::support::*;

/// An emulator that shows when a receiver waits at `q`: only then its expired message is dead-lettered (decision D1).
fn bus_with_a_canary() -> Bus {
    canary_with(Options::default())
}

/// The same with these options.
fn canary_with(options: Options) -> Bus {
    let settings = r#""DeadLetteringOnMessageExpiration":true"#;
    let config = queues(
        r#""Expiry":"on-receive""#,
        &[("q", settings), ("target", "")],
    );
    let bus = Bus::started(Options {
        config: parse(&config),
        ..options
    });
    bus.rest().send(
        "q",
        &[("BrokerProperties", r#"{"TimeToLive":1}"#)],
        "canary",
    );
    bus.http.advance(2.0);
    assert_eq!(bus.http.held("q"), (1, 0), "no receiver waits yet");
    bus
}

/// The ends of a wait, and their responses.
type End = (fn(&Bus), u16, &'static str);

fn until_somebody_waits(bus: &Bus) {
    until("a request that waits", || bus.http.held("q") == (0, 1));
}

#[test]
fn a_receive_request_waits_for_a_message() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let waiting = rest.begin("POST", "/q/messages/head?timeout=30", &[], b"");
    let default = rest.begin("DELETE", "/q/messages/head", &[], b"");
    rest.send("q", &[], "hello");
    rest.send("q", &[], "hello");
    let answers = [waiting.answer(), default.answer()];
    assert_eq!(
        answers.map(|answer| (answer.status, answer.text().to_owned())),
        [(201, "hello".to_owned()), (200, "hello".to_owned())]
    );
}

#[test]
fn a_receive_request_waits_for_its_timeout() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let begun = std::time::Instant::now();
    assert_eq!(rest.ask("POST", "/q/messages/head?timeout=1").status, 204);
    assert!(begun.elapsed().as_millis() >= 1000);
    assert_eq!(
        rest.ask("POST", "/q/messages/head?api-version=2017-04&Timeout=0")
            .status,
        204
    );
    let waiting = rest.begin(
        "POST",
        "/q/messages/head?timeout=99999999999999999999",
        &[],
        b"",
    );
    rest.send("q", &[], "hello");
    assert_eq!(waiting.answer().status, 201);
    for wrong in ["x", "", "-1", "1.5", "%31x"] {
        let refused = rest.ask("POST", &format!("/q/messages/head?timeout={wrong}"));
        assert_contains(refused.refusal(400), "'timeout'");
    }
}

#[test]
fn an_advance_of_the_clock_does_not_end_a_receive_request() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let waiting = rest.begin("POST", "/q/messages/head?timeout=30", &[], b"");
    bus.http.advance(3600.0);
    rest.send("q", &[], "hello");
    assert_eq!(waiting.answer().status, 201);
}

#[test]
fn disconnected_receive_requests_lose_no_message() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    for _ in 0..50 {
        drop(rest.begin("POST", "/q/messages/head?timeout=60", &[], b""));
    }
    let mut sent = 0;
    eventually("a message that no receiver takes", || {
        rest.send("q", &[], "hello");
        sent += 1;
        let counts = bus.http.counts("q");
        let number = |name: &str| counts[name].as_u64().expect("counts are numbers");
        (number("active") > number("locked")).then_some(())
    });
    // A dropped request may be read this late, and take a lock that ends like the others.
    eventually("every message", || {
        bus.http.advance(61.0);
        let counts = bus.http.counts("q");
        let free = (&counts["active"], &counts["locked"]) == (&json!(sent), &json!(0));
        free.then_some(())
    });
}

#[test]
fn a_receive_request_ends_with_its_client() {
    let (bus, rest) = bus_with_a_canary().with_rest();
    let waiting = rest.begin("DELETE", "/q/messages/head?timeout=60", &[], b"");
    until_somebody_waits(&bus);
    drop(waiting);
    eventually("a message that no receiver takes", || {
        rest.send("q", &[], "hello");
        (bus.http.held("q").0 > 0).then_some(())
    });
    assert_eq!(rest.take("q").text(), "hello");
}

#[test]
fn a_receive_request_ends_with_its_client_whatever_is_unread() {
    let next = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let many = next.repeat(500);
    for (headers, unread) in [
        ("", "\r\n"),
        ("", next),
        ("", &many),
        ("Content-Length: 2\r\n", "{}"),
        ("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n\r\n"),
    ] {
        let (bus, rest) = bus_with_a_canary().with_rest();
        let token = root_token("http://localhost");
        let waiting = rest.begin_raw(
            format!(
                "DELETE /q/messages/head?timeout=300 HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n\
                 {headers}\r\n{unread}"
            )
            .as_bytes(),
        );
        let receivers = || bus.http.get("~/receivers?entity=q").ok()["receivers"].clone();
        until("a request that waits", || receivers() != json!([]));
        drop(waiting);
        until("the end of the request", || receivers() == json!([]));
        rest.send("q", &[], "hello");
        assert_eq!(rest.take("q").text(), "hello", "{headers:?} {unread:?}");
    }
}

#[test]
fn a_waiting_receive_request_is_not_an_active_connection() {
    let (bus, rest) = bus_with_a_canary().with_rest();
    let waiting = rest.begin("DELETE", "/q/messages/head?timeout=60", &[], b"");
    until_somebody_waits(&bus);
    let metrics = bus
        .http
        .text(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let line = r#"servicebus_active_connections{namespace="sbemulatorns"} 0"#;
    assert_contains(&metrics, line);
    drop(waiting);
}

#[test]
fn a_pipelined_receive_request_is_answered_in_order() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let token = root_token("http://localhost");
    let request = |method: &str, path: &str, end: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n{end}\r\n"
        )
    };
    let first = request("DELETE", "/q/messages/head?timeout=30", "");
    let second = request("GET", "/health", "Connection: close\r\n");
    let mut waiting = rest.begin_raw((first + &second).as_bytes());
    rest.send("q", &[], "hello");
    let answers = waiting.until_closed();
    let (hello, healthy) = (answers.find("hello"), answers.rfind("HTTP/1.1 200"));
    assert!(hello.is_some() && hello < healthy, "{answers}");
}

#[test]
fn waiting_receivers_are_served_in_order_of_arrival() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let (mut peer, receiver) = bus.receiver("q");
    peer.credit(&receiver, 1);
    peer.settle_down();
    let waiting = rest.begin("DELETE", "/q/messages/head?timeout=30", &[], b"");
    rest.send("q", &[], "first");
    assert_eq!(peer.receive(&receiver).message.data(), b"first");
    rest.send("q", &[], "second");
    assert_eq!(waiting.answer().text(), "second");
}

#[test]
fn a_receive_request_ends_when_the_entity_is_deleted_or_disabled() {
    let ends: [End; 3] = [
        (
            |bus| drop(bus.http.queue("DELETE", "q", None)),
            410,
            "could not be found",
        ),
        (
            |bus| bus.http.set_status("q", "ReceiveDisabled"),
            400,
            "is currently disabled",
        ),
        (
            |bus| drop(bus.http.put_queue("q", &json!({"ForwardTo": "target"}))),
            400,
            "with auto-forwarding enabled",
        ),
    ];
    for (end, status, expected) in ends {
        let bus = bus_with_a_canary();
        let path = "/q/messages/head?timeout=60";
        let waiting = ["POST", "DELETE"].map(|method| bus.rest().begin(method, path, &[], b""));
        until_somebody_waits(&bus);
        end(&bus);
        for request in waiting {
            let answer = request.answer();
            assert_contains(answer.refusal(status), expected);
        }
    }
}

#[test]
fn a_receive_request_ends_with_the_emulator() {
    for method in ["POST", "DELETE"] {
        let bus = bus_with_a_canary();
        let path = "/q/messages/head?timeout=60";
        let waiting = bus.rest().begin(method, path, &[], b"");
        until_somebody_waits(&bus);
        let stopping = std::thread::spawn(move || bus.stop());
        let answer = waiting.answer();
        assert_eq!(answer.refusal(503), "The emulator is stopping.");
        stopping.join().expect("the emulator stops");
    }
}

#[test]
fn the_number_of_receive_requests_waiting_at_an_entity_is_limited() {
    let (bus, rest) = canary_with(Options {
        waiting_requests: 1,
        ..Options::default()
    })
    .with_rest();
    let waiting = rest.begin("POST", "/q/messages/head?timeout=60", &[], b"");
    until_somebody_waits(&bus);
    for method in ["POST", "DELETE"] {
        let refused = rest.ask(method, "/q/messages/head?timeout=60");
        let words = refused.refusal(503);
        assert_contains(
            words,
            "throttled: 1 receive requests wait at 'q' already. Error code: 50009.",
        );
    }
    assert_eq!(rest.peek_lock("target").status, 204, "another entity");
    rest.send("q", &[], "hello");
    assert_eq!(waiting.answer().text(), "hello");
    until("room for another", || rest.take("q").status == 204);
}

#[test]
fn a_receive_request_without_waiting_is_an_active_receiver() {
    let bus = bus_with_a_canary();
    assert_eq!(bus.rest().take("q").status, 204);
    assert_eq!(bus.http.held("q"), (0, 1));
}

#[test]
fn an_advance_does_not_wait_for_receive_requests() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let waiting: Vec<_> = (0..10)
        .map(|_| rest.begin("POST", "/q/messages/head?timeout=30", &[], b""))
        .collect();
    for _ in 0..10 {
        rest.send("q", &[], "x");
    }
    bus.http.advance(1.0);
    until("ten locks", || bus.http.counts("q")["locked"] == 10);
    let settled = bus.http.post("~/settled", &json!({"within": 0.1}));
    assert_eq!(settled.status, 408, "the locks of the ten: {settled:?}");
    for request in waiting {
        let lock = request.answer().lock();
        assert_eq!(rest.ask("DELETE", &lock).status, 200);
    }
    let within = json!({"within": 30});
    bus.http.post("~/settled", &within).ok();
}
