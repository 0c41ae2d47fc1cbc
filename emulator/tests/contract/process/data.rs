//! A data directory: accepted messages survive a kill of the process, and a directory that cannot be used is reported.

mod damage;
mod format;
mod kept;
mod verbs;

use std::fs;
use std::path::{Path, PathBuf};

use serde_amqp::Value;
use serde_json::{Value as Json, json};

use crate::support::*;

pub(super) use crate::support::TemporaryDirectory as Directory;

/// The use of a data directory.
pub(super) trait DataDirectory {
    fn file(&self, name: &str) -> PathBuf;

    fn start(&self) -> Process;

    fn start_with(&self, config: &TemporaryFile) -> Process;

    /// What is said where the directory cannot be served.
    fn refusal(&self, config: Option<&TemporaryFile>) -> String;
}

impl DataDirectory for Directory {
    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn start(&self) -> Process {
        Process::start(&["--data", self.path()])
    }

    fn start_with(&self, config: &TemporaryFile) -> Process {
        Process::start(&["--data", self.path(), "--config", config.path()])
    }

    fn refusal(&self, config: Option<&TemporaryFile>) -> String {
        let mut arguments = [&FREE_PORTS[..], &["--data", self.path()]].concat();
        if let Some(config) = config {
            arguments.extend(["--config", config.path()]);
        }
        failure(1, &arguments)
    }
}

const NAMESPACES: &str = "/$emulator/v1/namespaces";

/// A file with one namespace and its `Emulator` block.
fn namespace(name: &str, emulator: &Json) -> String {
    json!({"UserConfig": {"Namespaces": [{"Name": name, "Emulator": emulator}]}}).to_string()
}

/// Kills a process, the closest to a power failure that a process allows.
pub(super) fn kill(process: Process) {
    assert_eq!(process.ended_by("KILL").code, None);
}

fn messages(process: &Process, entity: &str) -> Vec<(String, String, u64)> {
    let listed = process
        .http()
        .get(&format!("~/messages?entity={entity}"))
        .ok();
    let all = listed["messages"].as_array().expect("a list").clone();
    let summary = |message: Json| {
        let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
        let count = message["delivery_count"].as_u64().unwrap_or_default();
        (text("message_id"), text("state"), count)
    };
    all.into_iter().map(summary).collect()
}

/// Asserts which messages an entity has, each with its state and the number of its deliveries.
#[track_caller]
fn assert_messages(process: &Process, entity: &str, expected: &[(&str, &str, u64)]) {
    let found = messages(process, entity);
    let found = found
        .iter()
        .map(|(id, state, count)| (&**id, &**state, *count));
    assert_eq!(Vec::from_iter(found), expected, "{entity}");
}

#[test]
fn messages_survive_a_kill_and_locked_ones_count_a_delivery() {
    let directory = Directory::unused();
    let process = directory.start();
    let mut peer = process.client();
    let sender = peer.sender("queue.1");
    for id in ["locked", "deferred", "dead", "done", "left"] {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("queue.1");
    let [_, later, dead, done] = [(); 4].map(|()| peer.receive_one(&receiver));
    peer.settle(&later, deferred());
    peer.settle(&dead, dead_lettered("bad", "it is"));
    peer.settle(&done, accepted());
    let node = peer.node("queue.1/$management");
    let scheduled_for = Message::new("scheduled").scheduled_at(client_now() + 3_600_000);
    peer.schedule(&node, &[scheduled_for]);
    kill(process);

    let process = directory.start();
    let expected = [
        ("locked", "active", 1),
        ("deferred", "deferred", 1),
        ("left", "active", 0),
        ("scheduled", "scheduled", 0),
    ];
    assert_messages(&process, "queue.1", &expected);
    assert_messages(
        &process,
        "queue.1/$deadletterqueue",
        &[("dead", "active", 0)],
    );
    let mut peer = process.client();
    let receiver = peer.receiver("queue.1");
    let first = peer.receive_one(&receiver);
    assert_eq!(first.id(), "locked");
    assert_eq!(
        first.message.annotation("x-opt-sequence-number"),
        Value::Long(1)
    );
    peer.settle(&first, accepted());
    let sender = peer.sender("queue.1");
    peer.send(&sender, &Message::new("new"));
    let listed = process.http().get("~/messages?entity=queue.1").ok();
    let last = listed["messages"].as_array().and_then(|all| all.last());
    let last = last.map(|last| &last["sequence_number"]);
    assert_eq!(last, Some(&json!(7)), "no number is used twice");
}

#[test]
fn messages_survive_a_regular_stop() {
    let directory = Directory::unused();
    let process = Process::start(&["--data", directory.path(), "--sync", "process"]);
    assert_eq!(process.http().get("/health").ok()["disk"], "available");
    let mut peer = process.client();
    peer.send_to("queue.1", &Message::new("a"));
    assert_eq!(process.ended_by("TERM").code, Some(0));
    let process = directory.start();
    assert_messages(&process, "queue.1", &[("a", "active", 0)]);
}

/// Bytes that neither memory nor the database has are in the journal.
#[test]
fn messages_not_in_memory_are_received_completely() {
    const SENT: u16 = 280;
    let body = |number: u16| [&number.to_be_bytes()[..], &[7; 250_000]].concat();
    let directory = Directory::unused();
    let process = Process::start(&["--data", directory.path(), "--sync", "process"]);
    let mut peer = process.client();
    let sender = peer.sender("queue.1");
    for number in 0..SENT {
        peer.send(&sender, &Message::new("m").body(body(number)));
    }
    let receive = |process: &Process, numbers: std::ops::Range<u16>| {
        let mut peer = process.client();
        let receiver = peer.receiver("queue.1");
        for number in numbers {
            let received = peer.receive_one(&receiver);
            assert!(received.message.data() == body(number), "number {number}");
            peer.settle(&received, accepted());
        }
    };
    receive(&process, 0..10);
    kill(process);
    receive(&directory.start(), 10..20);
}

#[test]
fn rules_of_subscriptions_survive_a_kill() {
    let directory = Directory::unused();
    let high = rules(&[sql("high", "price > 10", "SET seen = 'yes'")]);
    let all = properties(&json!({"RequiresSession": true}));
    let file = TemporaryFile::new(&topic(&json!({}), &[("high", high), ("all", all)]));
    let process = directory.start_with(&file);
    let body = json!([{
        "properties": {"message_id": "m", "group_id": "s"},
        "application_properties": {"price": {"int": 20}},
        "body": {"text": "x"},
    }]);
    let path = "~/messages?entity=t";
    assert_eq!(process.http().post(path, &body).status, 201);
    kill(process);

    let process = directory.start_with(&file);
    for subscription in ["high", "all"] {
        let address = format!("t/Subscriptions/{subscription}");
        assert_messages(&process, &address, &[("m", "active", 0)]);
    }
    assert_eq!(process.http().post(path, &body).status, 201);
    let held = messages(&process, "t/Subscriptions/high");
    assert_eq!(held.len(), 2);
    let mut peer = process.client();
    let link = peer.accept("t/Subscriptions/all", "s");
    assert_eq!(peer.drain_ids(&link, 10), ["m", "m"]);
}

#[test]
fn duplicate_windows_sessions_and_clock_survive_a_kill() {
    let directory = Directory::unused();
    let duplicates = r#""RequiresDuplicateDetection":true"#;
    let with_sessions = r#""RequiresSession":true"#;
    let file = TemporaryFile::new(&queues("", &[("d", duplicates), ("s", with_sessions)]));
    let process = directory.start_with(&file);
    let mut peer = process.client();
    peer.send_to("d", &Message::new("once"));
    send_all(&mut peer, "s", &[("a", "one")]);
    let link = peer.accept("s", "one");
    let node = peer.node("s/$management");
    let state = [(text("session-state"), binary(b"kept"))];
    let answer = peer.call(&node, "set-session-state", in_session("one", state));
    assert_eq!(answer.status(), 200);
    peer.detach(&link);
    process.http().advance(3600.0);
    kill(process);

    let process = directory.start_with(&file);
    let clock = process.http().get("~/clock").ok();
    let ahead = clock["offset_seconds"].as_f64().expect("a number");
    assert!(ahead >= 3600.0, "{clock}");
    let mut peer = process.client();
    peer.accept("s", "one");
    let node = peer.node("s/$management");
    let answer = peer.call(&node, "get-session-state", in_session("one", []));
    assert_eq!(answer.field("session-state"), &binary(b"kept"));
    // The window of ten minutes passed while the clock was moved.
    peer.send_to("d", &Message::new("once"));
    peer.send_to("d", &Message::new("once"));
    assert_eq!(process.http().held("d"), (2, 0));
    kill(process);
    let process = directory.start_with(&file);
    process.client().send_to("d", &Message::new("once"));
    assert_eq!(process.http().held("d"), (2, 0), "it is known still");
}

#[test]
fn created_entities_and_namespaces_survive_until_pruned() {
    let directory = Directory::unused();
    let process = directory.start();
    let http = process.http();
    http.put_queue("made", &json!({"LockDuration": "PT2M"}));
    let made = http.request("PUT", "/$emulator/v1/namespaces/second", Some(""));
    assert_eq!(made.status, 201, "{made:?}");
    let in_second = "/$emulator/v1/namespaces/second/queues/q";
    http.request("PUT", in_second, Some("{}")).ok();
    let declared = r#"{"queues":["kept","deleted"]}"#;
    let third = "/$emulator/v1/namespaces/third";
    let made = http.request("PUT", third, Some(declared));
    assert_eq!(made.status, 201, "{made:?}");
    let [of_third, deleted] = ["kept", "deleted"].map(|name| format!("{third}/queues/{name}"));
    assert_eq!(http.delete(&deleted).status, 204);
    kill(process);

    let process = directory.start();
    let http = process.http();
    let made = http.queue("GET", "made", None).ok();
    assert_eq!(made["properties"]["LockDuration"], "PT2M", "{made}");
    assert_eq!(http.get(in_second).status, 200);
    assert_eq!(
        [&of_third, &deleted].map(|path| http.get(path).status),
        [200, 404]
    );
    assert_eq!(http.post(&format!("{third}/reset"), &json!({})).status, 204);
    assert_eq!(
        [&of_third, &deleted].map(|path| http.get(path).status),
        [200, 200]
    );
    kill(process);

    let process = Process::start(&["--data", directory.path(), "--prune"]);
    let http = process.http();
    assert_eq!(http.queue("GET", "made", None).status, 404);
    assert_eq!(http.get(in_second).status, 404);
}

#[test]
fn a_changed_declaration_updates_entities_or_is_refused() {
    let directory = Directory::unused();
    let with = |properties| TemporaryFile::new(&queues("", &[("q", properties)]));
    let process = directory.start_with(&with(r#""MaxDeliveryCount":3"#));
    process.client().send_to("q", &Message::new("a"));
    kill(process);
    let process = directory.start_with(&with(r#""MaxDeliveryCount":5"#));
    let queue = process.http().queue("GET", "q", None).ok();
    assert_eq!(queue["properties"]["MaxDeliveryCount"], 5, "{queue}");
    assert_messages(&process, "q", &[("a", "active", 0)]);
    kill(process);
    let text = directory.refusal(Some(&with(r#""RequiresSession":true"#)));
    assert_contains(
        &text,
        r#"namespace "sbemulatorns": "q" is stored with settings that differ"#,
    );
    assert_contains(
        &text,
        "RequiresSession is true; allowed: false, as it was created",
    );
    // Deleting it needs no running emulator.
    assert_contains(&text, "start once with `--prune`");
}

#[test]
fn a_stored_entity_that_a_lower_tier_does_not_allow_is_reported_or_changed() {
    let directory = Directory::unused();
    let with = |tier: &str, queue| {
        let tier = format!(r#""Tier":"{tier}""#);
        TemporaryFile::new(&queues(&tier, &[queue]))
    };
    let large = r#""MaxMessageSizeInKilobytes":2048"#;
    let process = directory.start_with(&with("premium", ("q", large)));
    process.client().send_to("q", &Message::new("a"));
    kill(process);
    let text = directory.refusal(Some(&with("standard", ("other", ""))));
    assert_contains(
        &text,
        r#"namespace "sbemulatorns": "q" is stored with settings that the Standard tier does not allow"#,
    );
    assert_contains(&text, "MaxMessageSizeInKilobytes is 2048; allowed: none");
    let process = directory.start_with(&with("standard", ("q", "")));
    assert_messages(&process, "q", &[("a", "active", 0)]);
}

#[test]
fn a_stored_namespace_that_conflicts_with_a_declared_one_is_named_as_stored() {
    let directory = Directory::unused();
    let with_key = |name| {
        TemporaryFile::new(&namespace(
            name,
            &json!({"Keys": [{"Name": "mine", "Key": "k"}]}),
        ))
    };
    let process = directory.start_with(&with_key("sbemulatorns"));
    assert_eq!(process.ended_by("TERM").code, Some(0));
    let file = with_key("orders");
    let text = directory.refusal(Some(&file));
    assert_contains(&text, r#"belongs to the namespace "orders""#);
    assert_contains(
        &text,
        r#"The configuration does not declare "sbemulatorns", it is in the data directory, in ""#,
    );
    let arguments = [
        "--data",
        directory.path(),
        "--config",
        file.path(),
        "--prune",
    ];
    Process::start(&arguments);
}

#[test]
fn a_stored_namespace_gets_another_default_key_where_its_own_is_taken() {
    let directory = Directory::unused();
    let process = directory.start();
    process.client().send_to("queue.1", &Message::new("a"));
    kill(process);
    let file = TemporaryFile::new(&namespace("orders", &json!({})));
    let process = directory.start_with(&file);
    let all = process.http().get(NAMESPACES).ok();
    let names = [&all[0]["name"], &all[1]["name"]];
    assert_eq!(names, ["orders", "sbemulatorns"]);
    let string = all[1]["connection_string"].as_str();
    let key = "SharedAccessKeyName=RootManageSharedAccessKey-sbemulatorns;";
    assert_contains(string.expect("a text"), key);
    let path = format!("{NAMESPACES}/sbemulatorns/messages?entity=queue.1");
    let held = process.http().get(&path).ok();
    assert_eq!(held["messages"].as_array().map(Vec::len), Some(1), "{held}");
}

#[test]
fn a_declared_namespace_that_is_removed_keeps_its_selectors_for_the_next_start() {
    let directory = Directory::unused();
    let emulator = json!({"Keys": [{"Name": "mine", "Key": "k"}], "Address": "one.example"});
    let file = TemporaryFile::new(&namespace("one", &emulator));
    let process = directory.start_with(&file);
    let put = |name: &str, emulator: &Json| {
        let path = format!("{NAMESPACES}/{name}");
        let body = namespace(name, emulator);
        process.http().request("PUT", &path, Some(&body))
    };
    assert_eq!(put("second", &json!({})).status, 201);
    let path = format!("{NAMESPACES}/one");
    assert_eq!(process.http().delete(&path).status, 204);
    for taken in ["Keys", "Address"] {
        let refused = put("third", &json!({taken: emulator[taken]}));
        let text = r#"belongs to the namespace "one", which the configuration declares"#;
        assert_contains(refused.error_with(409, "conflict"), text);
    }
    assert_eq!(put("third", &json!({})).status, 201);
    kill(process);
    let all = directory.start_with(&file).http().get(NAMESPACES).ok();
    let names = all.as_array().expect("a list").iter();
    let names = Vec::from_iter(names.map(|own| own["name"].clone()));
    assert_eq!(names, ["one", "second", "third"]);
}

#[test]
fn an_undeclared_default_rule_is_removed_and_other_rules_when_pruning() {
    let directory = Directory::unused();
    let with = |rules: Json| TemporaryFile::new(&topic(&json!({}), &[("s", rules)]));
    let process = directory.start_with(&with(properties(&json!({}))));
    assert_eq!(process.ended_by("TERM").code, Some(0));
    let rule = |name| rules(&[sql(name, "a = 1", "SET seen = 'yes'")]);
    let pruned = ["--prune"];
    for (declared, more, expected) in [
        ("one", &[][..], &["one"][..]),
        ("two", &[], &["one", "two"]),
        ("two", &pruned, &["two"]),
    ] {
        let file = with(rule(declared));
        let own = ["--data", directory.path(), "--config", file.path()];
        let process = Process::start(&[&own, more].concat());
        let exported = process.http().get("~/topology").ok();
        let topic = &exported["UserConfig"]["Namespaces"][0]["Topics"][0];
        let all = topic["Subscriptions"][0]["Rules"].as_array();
        let names = all.expect("a list").iter();
        let names = Vec::from_iter(names.map(|rule| rule["Name"].clone()));
        assert_eq!(names, expected);
        assert_eq!(process.ended_by("TERM").code, Some(0));
    }
}

#[test]
fn an_unusable_data_directory_is_reported() {
    let directory = Directory::unused();
    let process = directory.start();
    assert_contains(&directory.refusal(None), "is in use by another emulator");
    process.client().send_to("queue.1", &Message::new("a"));
    assert_eq!(process.ended_by("TERM").code, Some(0));

    let mark = directory.file("FORMAT");
    let written = fs::read_to_string(&mark).expect("it is there");
    fs::write(&mark, "servicebus-emulator data 99\n").expect("it can be written");
    assert_contains(
        &directory.refusal(None),
        "has format 99 of a newer emulator",
    );
    fs::write(&mark, written).expect("it can be written");

    let file = directory.file("store.redb");
    let bytes = fs::read(&file).expect("it is there");
    let at = bytes
        .windows(7)
        .position(|part| part == b"queue.1")
        .expect("its name is there");
    let mut flipped = bytes.clone();
    flipped[at] ^= 1;
    fs::write(&file, flipped).expect("it can be written");
    assert_contains(&directory.refusal(None), "store.redb\" is damaged");
    fs::write(&file, &bytes[..bytes.len() / 2]).expect("it can be written");
    assert_contains(&directory.refusal(None), "store.redb\" is damaged");
    fs::remove_file(&file).expect("it can be removed");
    assert_contains(&directory.refusal(None), "store.redb\" is missing");

    let file = Directory(mark.clone());
    assert_contains(&file.refusal(None), "it is a file, not a directory");
    let below_a_file = Directory(mark.join("data"));
    assert_contains(&below_a_file.refusal(None), "cannot use the data directory");
}
