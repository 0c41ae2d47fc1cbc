//! The stream of changes, which reports the current state after each change.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::*;

const CHANGES: &str = "/$emulator/v1/namespaces/sbemulatorns/changes";

/// A client that reads changes.
struct Reader(BufReader<TcpStream>);

impl Reader {
    fn open(bus: &Bus, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(bus.http.0).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        Self(BufReader::new(stream))
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).expect("in time");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The status, when the head has been read.
    fn status(&mut self) -> String {
        let status = self.line().expect("a status");
        while !self.line().expect("a head").is_empty() {}
        status
    }

    /// The id and the data of the next event.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut id = None;
        loop {
            let line = self.line()?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.to_owned());
            }
            if let Some(text) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(text).expect("JSON");
                return Some((id?, data));
            }
        }
    }

    /// The first event that matches.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (_, data) = self.next().expect("the stream goes on");
            if is(&data) {
                return data;
            }
        }
    }
}

/// The first event that a client gets which knows the event with this id.
fn event_after(bus: &Bus, id: &str) -> (String, Value) {
    loop {
        let mut reader = Reader::open(bus, CHANGES, &format!("Last-Event-ID: {id}\r\n"));
        // Until the ends of earlier clients are noticed, there may be too many.
        if reader.status() == "HTTP/1.1 200 OK" {
            return reader.next().expect("an event");
        }
    }
}

fn send(bus: &Bus, entity: &str) {
    let answer = bus
        .http
        .post(&format!("~/messages?entity={entity}"), &json!({}));
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[test]
fn a_changed_entity_is_shown_in_its_current_state() {
    let bus = Bus::with_queues(&["a", "b"]);
    let mut reader = Reader::open(&bus, CHANGES, "");
    assert_eq!(reader.status(), "HTTP/1.1 200 OK");
    let (_, first) = reader.next().expect("an event");
    assert_eq!(members(&first, ["position", "many"]), json!([0, true]));
    assert_eq!(
        (&first["entities"], &first["clock"]["frozen"]),
        (&json!(2), &json!(false))
    );
    send(&bus, "b");
    let change = reader.until(|data| data["position"] == 1);
    assert_eq!(change["many"], false);
    assert_eq!(change["counts"][0]["path"], "b");
    assert_eq!(change["counts"][0]["counts"]["active"], 1);
    assert_eq!(change["counts"].as_array().map(Vec::len), Some(1));
    bus.http.freeze();
    reader.until(|data| data["clock"]["frozen"] == true);
    bus.http.post("~/clock/auto", &Value::Null).ok();
    reader.until(|data| data["clock"]["auto"] == true);
    bus.http.freeze();
    reader.until(|data| data["clock"]["auto"] == false);
    let (mut peer, link) = bus.receiver("b");
    peer.receive_one(&link);
    let due = reader.until(|data| data["due"] != Value::Null);
    assert_eq!(
        (&due["due"]["kind"], &due["due"]["entity"]),
        (&json!("lock-end"), &json!("b"))
    );
    assert_eq!(bus.http.queue("PUT", "c", None).status, 201);
    reader.until(|data| data["entities"] == 3);
}

#[test]
fn a_reader_that_reconnects_gets_missed_changes() {
    let bus = Bus::with_queues(&["a", "b"]);
    send(&bus, "a");
    let (id, _) = event_after(&bus, "");
    send(&bus, "b");
    let (_, change) = event_after(&bus, &id);
    assert_eq!(members(&change, ["position", "many"]), json!([2, false]));
    assert_eq!(change["counts"][0]["path"], "b");
    assert_eq!(change["counts"].as_array().map(Vec::len), Some(1));
    let elsewhere = Bus::with_queues(&["a"]);
    send(&elsewhere, "a");
    let (elsewhere, _) = event_after(&elsewhere, "");
    for foreign in ["1", "x", elsewhere.as_str()] {
        let (_, change) = event_after(&bus, foreign);
        assert_eq!(members(&change, ["many", "counts"]), json!([true, []]));
    }
}

#[test]
fn a_change_that_no_event_shows_is_reported() {
    let bus = Bus::with_queues(&["a"]);
    let limit = r#"{"MaxDeliveryCount":3}"#;
    let fault = r#"{"operation":"send","effect":"lose-reply"}"#;
    for (method, path, body) in [
        ("POST", "~/reset", None),
        ("PUT", "~/queues/b", None),
        ("PUT", "~/queues/b", Some(limit)),
        ("DELETE", "~/queues/b", None),
        ("POST", "~/faults", Some(fault)),
        ("DELETE", "~/faults/1", None),
        ("DELETE", "~/faults", None),
    ] {
        send(&bus, "a");
        let (id, known) = event_after(&bus, "");
        assert_eq!(event_after(&bus, &id).1["many"], false);
        let answer = bus.http.request(method, path, body);
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        // At the same position as before the reset.
        if path == "~/reset" {
            send(&bus, "a");
            assert_eq!(event_after(&bus, "").1["position"], known["position"]);
        }
        assert_eq!(event_after(&bus, &id).1["many"], true, "{method} {path}");
    }
    let mut reader = Reader::open(&bus, CHANGES, "");
    reader.next().expect("an event");
    let added = bus.http.request("POST", "~/faults", Some(fault));
    assert_eq!(added.status, 201, "{added:?}");
    reader.until(|data| data["many"] == true);
}

#[test]
fn a_change_event_of_more_than_200_entities_is_abbreviated() {
    let names: Vec<String> = (0..201).map(|n| format!("q{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bus = Bus::with_queues(&names);
    let (id, _) = event_after(&bus, "");
    let (_, first) = event_after(&bus, &id);
    assert_eq!(members(&first, ["many", "counts"]), json!([false, []]));
    names.iter().for_each(|name| send(&bus, name));
    let (_, change) = event_after(&bus, &id);
    assert_eq!(members(&change, ["many", "counts"]), json!([true, []]));
}

#[test]
fn a_slow_reader_of_changes_gets_merged_events() {
    let bus = Bus::with_queues(&["q"]);
    let began = Instant::now();
    let mut reader = Reader::open(&bus, CHANGES, "");
    assert_eq!(reader.status(), "HTTP/1.1 200 OK");
    let messages = json!([{}, {}, {}, {}]);
    for _ in 0..500 {
        let answer = bus.http.post("~/messages?entity=q", &messages);
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let mut events = 1;
    let mut last = reader.next().expect("an event").1;
    while last["position"] != 2000 {
        last = reader.next().expect("an event").1;
        events += 1;
    }
    assert_eq!(last["counts"][0]["counts"]["active"], 2000);
    // At most five per second, however much has happened.
    let most = began.elapsed().as_secs_f64() * 5.0 + 2.0;
    assert!(f64::from(events) <= most, "{events} of at most {most}");
}

#[test]
fn a_seventeenth_reader_of_changes_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    // A pipelined request stays unread, and must not hide the end of the connection.
    let pipelined = "\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n";
    let mut readers: Vec<Reader> = (0..16)
        .map(|_| {
            let mut reader = Reader::open(&bus, CHANGES, pipelined);
            assert_eq!(reader.status(), "HTTP/1.1 200 OK");
            reader
        })
        .collect();
    let refused = bus.http.get(CHANGES);
    let text = refused.error_with(503, "too-many");
    assert_eq!(text, "16 clients follow changes already, as many as may");
    readers.pop();
    // Sooner than by the next heartbeat, which fails.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut next = Reader::open(&bus, CHANGES, "");
        if next.status() == "HTTP/1.1 200 OK" {
            return;
        }
        assert!(Instant::now() < deadline, "its place stays taken");
    }
}

#[test]
fn a_stream_of_changes_ends_with_its_namespace() {
    let bus = Bus::with_queues(&["q"]);
    let second = "/$emulator/v1/namespaces/second";
    assert_eq!(bus.http.request("PUT", second, None).status, 201);
    let mut reader = Reader::open(&bus, &format!("{second}/changes"), "Connection: close\r\n");
    assert_eq!(reader.status(), "HTTP/1.1 200 OK");
    reader.next().expect("an event");
    assert_eq!(bus.http.delete(second).status, 204);
    while reader.line().is_some() {}
}
