//! Tests control time (decisions D19, D20; harness.md §7); the automatic clock steps to the next deadline when nothing
//! moves.

use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

const CLOCK: &str = "/$emulator/v1/clock";

fn now_of(clock: &Value) -> Timestamp {
    let now = clock["now"]
        .as_str()
        .unwrap_or_else(|| panic!("no time: {clock}"));
    assert!(now.ends_with('Z'), "{now} is not in UTC");
    now.parse().unwrap_or_else(|error| panic!("{error}: {now}"))
}

fn show(bus: &Bus) -> Value {
    bus.http.get(CLOCK).ok()
}

fn advance(bus: &Bus, seconds: f64) -> Value {
    bus.http
        .post(&format!("{CLOCK}/advance"), &json!({ "seconds": seconds }))
        .ok()
}

fn freeze(bus: &Bus) -> Value {
    bus.http.post(&format!("{CLOCK}/freeze"), &Value::Null).ok()
}

fn resume(bus: &Bus) -> Value {
    bus.http.post(&format!("{CLOCK}/resume"), &Value::Null).ok()
}

/// Milliseconds from `start` to each event of a kind of a queue.
fn instants(bus: &Bus, start: Timestamp, kind: &str) -> Vec<i64> {
    let events = history(bus, start).into_iter();
    let of_kind = events.filter(|event| event.0 == kind);
    of_kind.map(|event| event.2).collect()
}

/// Kind, message and milliseconds since `start` of every event of a queue.
fn history(bus: &Bus, start: Timestamp) -> Vec<(String, String, i64)> {
    let event = |event: &Value| {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let at: Timestamp = text("at").parse().expect("events have a time");
        (
            text("kind"),
            text("message_id"),
            at.as_millisecond() - start.as_millisecond(),
        )
    };
    bus.http.events("?entity=q").iter().map(event).collect()
}

#[test]
fn the_clock_shows_real_time_until_it_is_advanced() {
    let bus = Bus::with_queues(&["q"]);
    let before = Timestamp::now().as_millisecond();
    let clock = show(&bus);
    let shown = now_of(&clock).as_millisecond();
    let after = Timestamp::now().as_millisecond();
    // Both clocks are read in milliseconds, each once.
    assert!((before - 1..=after + 1).contains(&shown), "{clock}");
    assert_eq!(
        members(&clock, ["offset_seconds", "frozen"]),
        json!([0.0, false])
    );
    let clock = advance(&bus, 61.5);
    assert_eq!(
        members(&clock, ["offset_seconds", "frozen"]),
        json!([61.5, false])
    );
    assert!(now_of(&clock).as_millisecond() >= shown + 61_500);
    assert_eq!(advance(&bus, 0.0)["offset_seconds"], 61.5);
    let named = bus
        .http
        .get("/$emulator/v1/namespaces/SBEmulatorNS/clock")
        .ok();
    assert_eq!(
        named["offset_seconds"], 61.5,
        "the first namespace by its name"
    );
}

#[test]
fn a_frozen_clock_stands_still_and_advances_exactly() {
    let bus = Bus::with_queues(&["q"]);
    let clock = freeze(&bus);
    assert_eq!(clock["frozen"], true);
    let start = now_of(&clock);
    assert_eq!(now_of(&freeze(&bus)), start);
    let clock = advance(&bus, 3600.25);
    assert_eq!(clock["frozen"], true);
    assert_eq!(
        now_of(&clock).as_millisecond(),
        start.as_millisecond() + 3_600_250
    );
    let clock = resume(&bus);
    assert_eq!(clock["frozen"], false);
    let offset = clock["offset_seconds"]
        .as_f64()
        .expect("the offset is a number");
    assert!(
        (3_000.0..=3_600.25).contains(&offset),
        "time stood still meanwhile: {clock}"
    );
    assert!(now_of(&show(&bus)) >= now_of(&clock));
}

#[test]
fn an_advance_processes_every_deadline_in_order_at_its_instant() {
    let properties =
        r#""LockDuration":"PT10S","MaxDeliveryCount":2,"DeadLetteringOnMessageExpiration":true"#;
    let bus = Bus::with_queue(properties);
    let start = now_of(&freeze(&bus));
    let (mut peer, sender) = bus.sender("q");
    let receiver = peer.receiver("q");
    peer.send(&sender, &Message::new("poison"));
    peer.credit(&receiver, 2);
    peer.receive(&receiver);
    peer.send(&sender, &Message::new("short").ttl(25_000));
    peer.send(&sender, &Message::new("shorter").ttl(15_000));
    peer.receive(&receiver);
    advance(&bus, 60.0);
    let happened = |kind: &str, id: &str, at: i64| (kind.to_owned(), id.to_owned(), at);
    let expected = [
        happened("sent", "poison", 0),
        happened("delivered", "poison", 0),
        happened("sent", "short", 0),
        happened("delivered", "short", 0),
        happened("sent", "shorter", 0),
        happened("clock-advanced", "", 0),
        happened("lock-expired", "poison", 10_000),
        happened("lock-expired", "short", 10_000),
        happened("dead-lettered", "shorter", 15_000),
        happened("dead-lettered", "short", 25_000),
    ];
    let mut found = history(&bus, start);
    // The order of two deadlines at the same instant is not guaranteed.
    found[2..5].sort_by(|a, b| (a.1.cmp(&b.1)).then(b.0.cmp(&a.0)));
    assert_eq!(found, expected);
    assert_eq!(bus.http.held("q"), (1, 2));
}

#[test]
fn an_advance_serves_waiting_receivers_between_two_deadlines() {
    let bus = Bus::with_queue(r#""LockDuration":"PT10S","MaxDeliveryCount":3"#);
    let start = now_of(&freeze(&bus));
    let (mut peer, sender) = bus.sender("q");
    let receiver = peer.receiver_with_credit("q", 100);
    peer.send(&sender, &Message::new("m"));
    peer.receive(&receiver);
    advance(&bus, 60.0);
    assert_eq!(instants(&bus, start, "delivered"), [0, 10_000, 20_000]);
    assert_eq!(bus.http.held("q"), (0, 1));
    // Messages that were delivered on the way are in the client's socket when the advance returns.
    let tokens = [1, 2].map(|_| peer.receive(&receiver).token());
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn an_advance_waits_for_the_effects_of_a_deadline() {
    let properties = r#""DeadLetteringOnMessageExpiration":true,"LockDuration":"PT30S""#;
    let bus = Bus::with_queue(properties);
    freeze(&bus);
    let (mut peer, dead) = bus.receiver("q/$DeadLetterQueue");
    peer.credit(&dead, 5);
    peer.send_to("q", &Message::new("m").ttl(1000));
    advance(&bus, 10.0);
    assert_eq!(bus.http.counts("q/$DeadLetterQueue")["locked"], 1);
    assert_eq!(peer.receive(&dead).id(), "m");
    advance(&bus, 21.0);
    assert_eq!(
        bus.http.timeline("?entity=q/$DeadLetterQueue")["counters"]["lock-expired"],
        1
    );
}

#[test]
fn concurrent_advances_are_serialized() {
    let bus = Bus::with_queues(&["q"]);
    let start = now_of(&freeze(&bus));
    let (mut peer, sender) = bus.sender("q");
    for second in 1..50 {
        peer.send(&sender, &Message::new("m").ttl(second * 1000));
    }
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| advance(&bus, 10.0));
        }
    });
    assert_eq!(
        now_of(&show(&bus)).as_millisecond(),
        start.as_millisecond() + 50_000
    );
    assert_eq!(bus.http.held("q"), (0, 0));
    let moves = instants(&bus, start, "clock-advanced");
    assert_eq!(moves, [0, 10_000, 20_000, 30_000, 40_000]);
}

#[test]
fn a_freeze_during_an_advance_waits_for_it() {
    let bus = Bus::with_queues(&["q"]);
    // A client that does not read delays an advance, long enough to see it in progress.
    let (mut slow, sender) = bus.sender("q");
    let message = Message::new("large").body(vec![b'x'; 200_000]);
    slow.send_without_waiting(&sender, (0..150).map(|_| message.clone()));
    slow.receiver_with_credit("q", 150);
    eventually("a reader that is too slow", || {
        let answer = bus.http.post("~/settled", &json!({"within": 0.0}));
        let problems = answer.body.to_string();
        problems.contains("output is not written").then_some(())
    });
    thread::scope(|scope| {
        let begin = || scope.spawn(|| advance(&bus, 30.0));
        let mut advancing = begin();
        let mut advances = 1.0;
        eventually("time that stands still for the walk", || {
            // If one was not seen in progress, another follows.
            if advancing.is_finished() {
                advancing = begin();
                advances += 1.0;
            }
            (show(&bus)["frozen"] == true).then_some(())
        });
        assert_eq!(freeze(&bus)["frozen"], true);
        // The response has the clock after the advance, which may stand still again by then.
        let offset = &advancing.join().expect("it advances")["offset_seconds"];
        let offset = offset.as_f64().expect("a number");
        let whole = advances * 30.0;
        assert!((whole - 25.0..=whole).contains(&offset), "{offset}");
    });
    assert_eq!(show(&bus)["frozen"], true);
}

#[test]
fn deadlines_in_real_time_need_no_advance() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let start = Instant::now();
    peer.send(&sender, &Message::new("m").ttl(50));
    until("the end of a short life", || bus.http.held("q") == (0, 0));
    // Both ends of the life are whole milliseconds.
    assert!(start.elapsed().as_millis() >= 49);
    freeze(&bus);
    peer.send(&sender, &Message::new("m").ttl(1));
    let late = Instant::now();
    while late.elapsed().as_millis() < 20 {
        assert_eq!(bus.http.held("q"), (1, 0), "time stands still");
    }
    resume(&bus);
    until("time that flows again", || bus.http.held("q") == (0, 0));
}

#[test]
fn the_clock_cannot_advance_beyond_the_calendar() {
    const MOST: f64 = 100.0 * 366.0 * 24.0 * 3600.0;
    let bus = Bus::with_queues(&["q"]);
    freeze(&bus);
    let body = json!({ "seconds": MOST });
    let refusal = loop {
        let answer = bus.http.post(&format!("{CLOCK}/advance"), &body);
        if answer.status != 200 {
            break answer;
        }
        assert!(now_of(&answer.body).as_second() > 0);
    };
    refusal.error_with(400, "invalid-argument");
    let allowed = refusal.body["error"]["problems"][0]["allowed"].as_str();
    let left = allowed.and_then(|allowed| allowed.strip_prefix("seconds from 0 to "));
    let left: f64 = left.and_then(|left| left.parse().ok()).expect("a bound");
    assert!(left < MOST, "{left}");
    let last = now_of(&advance(&bus, left));
    assert_eq!(last.to_string().get(..4), Some("9999"));
    // A lock that ends beyond is shown with the last date.
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("late"));
    peer.receive_one(&receiver);
    let events = bus.http.events("?entity=q");
    let mut ends = events.iter().map(|event| &event["locked_until"]);
    let until = ends.find_map(Value::as_str);
    let until: Timestamp = until.expect("it is locked").parse().expect("a date");
    assert!(until >= last, "{until}");
}

const FAULTS: &str = "~/faults";

fn automate(bus: &Bus) {
    let clock = bus.http.post("~/clock/auto", &Value::Null).ok();
    assert_eq!(members(&clock, ["auto", "frozen"]), json!([true, true]));
}

fn offset(bus: &Bus) -> f64 {
    let clock = bus.http.get("~/clock").ok();
    clock["offset_seconds"].as_f64().expect("a number")
}

#[test]
fn the_automatic_clock_expires_locks_of_detached_receivers_at_once() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("a"));
    peer.receive_one(&receiver);
    peer.detach(&receiver);
    automate(&bus);
    let again = peer.receiver("q");
    assert_eq!(peer.receive_one(&again).id(), "a");
    assert!((50.0..=60.0).contains(&offset(&bus)), "{}", offset(&bus));
    let events = bus.http.events("?lines=true");
    let mut steps = events
        .iter()
        .filter(|event| event["kind"] == "clock-advanced");
    let line = steps.next().expect("a step")["line"]
        .as_str()
        .expect("a text");
    assert_contains(line, "clock advanced  by the automatic clock, ");
}

#[test]
fn the_automatic_clock_waits_a_second_for_an_attached_lock_holder() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("a"));
    automate(&bus);
    peer.receive_one(&receiver);
    let begun = Instant::now();
    assert_eq!(peer.receive_one(&receiver).id(), "a");
    assert!(
        begun.elapsed() > Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_hold_stops_the_automatic_clock_until_it_ends() {
    let bus = Bus::with_queues(&["q"]);
    automate(&bus);
    let hold = bus.http.post("~/clock/hold", &json!({"seconds": 60})).ok();
    let path = format!("~/clock/hold/{}", hold["id"]);
    let fault = json!({"operation": "send", "effect": {"delay": {"seconds": 3600}}});
    bus.http.post(FAULTS, &fault).ok();
    let (mut peer, sender) = bus.sender("q");
    let late = peer.transfer(&sender, 0, false, &Message::new("a").encode());
    peer.settle_down();
    assert!(offset(&bus) < 1.0, "it stood");
    assert_eq!(bus.http.delete(&path).status, 204);
    peer.outcome(&sender, late).expect("it is accepted");
    assert!(offset(&bus) > 3500.0);
    // A postponed operation is released when nothing else can happen.
    bus.http
        .post(FAULTS, &json!({"operation": "send", "effect": "postpone"}))
        .ok();
    peer.send(&sender, &Message::new("b"));
}

#[test]
fn a_connection_is_dropped_a_minute_after_a_lost_reply() {
    let bus = Bus::with_queues(&["q"]);
    automate(&bus);
    let lose = |operation| {
        let fault = json!({"operation": operation, "effect": "lose-reply"});
        bus.http.post(FAULTS, &fault).ok();
        offset(&bus)
    };
    let mut peer = bus.client();
    let before = lose("attach");
    peer.ask_to_attach(&Attach::sender("q"));
    peer.read_to_end();
    let passed = offset(&bus) - before;
    assert!((59.0..61.0).contains(&passed), "{passed} s");

    let mut peer = bus.unauthenticated_client();
    let before = lose("token");
    let cbs = peer.node("$cbs");
    let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
    let request = token_request(&cbs, "sb://localhost/", &token);
    peer.transfer(&cbs.requests, 0, false, &request.encode());
    peer.read_to_end();
    let passed = offset(&bus) - before;
    assert!((59.0..61.0).contains(&passed), "{passed} s");

    // A lost answer does not matter when the client has disconnected before.
    let mut peer = bus.client();
    let hold = bus.http.post("~/clock/hold", &json!({"seconds": 60})).ok();
    let before = lose("attach");
    peer.ask_to_attach(&Attach::sender("q"));
    peer.settle_down();
    let due = || bus.http.get("~/due").ok()["due"].clone();
    assert_ne!(due(), json!([]), "the connection is to drop");
    peer.close();
    until("nothing is due", || due() == json!([]));
    let hold = format!("~/clock/hold/{}", hold["id"]);
    assert_eq!(bus.http.delete(&hold).status, 204);
    let (mut peer, sender) = bus.sender("q");
    peer.send(&sender, &Message::new("a"));
    assert!(offset(&bus) - before < 1.0);
}

#[test]
fn the_automatic_clock_does_not_expire_messages() {
    let bus = Bus::with_queue(r#""DefaultMessageTimeToLive":"PT1M""#);
    automate(&bus);
    let (mut peer, sender) = bus.sender("q");
    peer.send(&sender, &Message::new("a"));
    let fault = json!({"operation": "send", "effect": {"delay": {"seconds": 30}}});
    bus.http.post(FAULTS, &fault).ok();
    // It has stepped to the delay, and not to the expiry behind it.
    peer.send(&sender, &Message::new("b"));
    peer.settle_down();
    assert_eq!(bus.http.counts("q")["active"], 2);
    bus.http.freeze();
    let clock = bus.http.get("~/clock").ok();
    assert_eq!(members(&clock, ["auto", "frozen"]), json!([false, true]));
}

#[test]
fn the_clock_shows_the_next_deadline_and_advances_to_it() {
    let settings = r#""LockDuration":"PT30S","DeadLetteringOnMessageExpiration":true"#;
    let bus = Bus::configured(&queues(
        "",
        &[("q", settings), ("s", r#""RequiresSession":true"#)],
    ));
    bus.http.freeze();
    let due = || -> Vec<(u64, String, String, Value)> {
        let due = bus.http.get("~/due").ok();
        let due = due["due"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        due.map(|event| {
            let seconds = event["in_seconds"].as_f64().expect("a number") as u64;
            let which = match &event["session"] {
                Value::Null => event["sequence_number"].clone(),
                session => session.clone(),
            };
            (seconds, text(&event["kind"]), text(&event["entity"]), which)
        })
        .collect()
    };
    assert_eq!(due(), []);
    let next = || bus.http.post("~/clock/advance", &json!({"to": "next"}));
    assert_eq!(
        next().error_with(409, "refused"),
        "nothing is due at any time"
    );
    let (mut peer, sender) = bus.sender("q");
    peer.send(&sender, &Message::new("locked"));
    peer.send(&sender, &Message::new("expires").ttl(90_000));
    peer.send(
        &sender,
        &Message::new("later").scheduled_at(client_now() + 3_600_000),
    );
    let link = peer.receiver("q");
    peer.receive_one(&link);
    send_all(&mut peer, "s", &[("a", "cart")]);
    peer.accept("s", "cart");
    let seen = due();
    let expected = [
        (30, "lock-end", "q", json!(1)),
        (60, "session-lock-end", "s", json!("cart")),
        (90, "expiry", "q", json!(2)),
    ];
    let expected =
        expected.map(|(at, what, entity, which)| (at, what.to_owned(), entity.to_owned(), which));
    assert_eq!(seen[..3], expected);
    let (_, what, entity, which) = &seen[3];
    assert_eq!(
        (what.as_str(), entity.as_str(), which),
        ("activation", "q", &json!(3))
    );
    let first = bus.http.get("~/due?limit=1").ok();
    assert_eq!(first["due"].as_array().map(Vec::len), Some(1));
    let before = now_of(&bus.http.get("~/clock").ok());
    let after = now_of(&next().ok());
    assert_eq!(after.duration_since(before).as_secs(), 30);
    assert_eq!(bus.http.counts("q")["locked"], 0);
    assert_eq!(due()[0].1, "session-lock-end");
}

#[test]
fn an_advance_takes_either_seconds_or_next() {
    let bus = Bus::with_queues(&["q"]);
    for body in [
        json!({}),
        json!({"seconds": 1, "to": "next"}),
        json!({"to": "monday"}),
    ] {
        let answer = bus.http.post("~/clock/advance", &body);
        assert_eq!(answer.error(422).0, "invalid-body");
    }
}
