//! The commands of `data DIR` on a directory that is not served.

use super::*;

/// Runs a command; returns its exit code, its output and its errors.
fn verb(directory: &Directory, verb: &str) -> (Option<i32>, String, String) {
    let ran = run(&["data", directory.path(), verb], &[]);
    (ran.code, ran.stdout, ran.stderr)
}

/// A directory with a queue, a dead letter, a topic and a subscription.
fn written() -> Directory {
    let directory = Directory::unused();
    let low = rules(&[sql("low", "price < 10", "SET seen = 'yes'")]);
    let file = TemporaryFile::new(&topic(&json!({}), &[("low", low)]));
    let process = directory.start_with(&file);
    let body = json!([{
        "properties": {"message_id": "m"},
        "application_properties": {"price": {"int": 5}},
        "body": {"text": "x"},
    }]);
    assert_eq!(
        process.http().post("~/messages?entity=t", &body).status,
        201
    );
    process.http().put_queue("q", &json!({}));
    let mut peer = process.client();
    let sender = peer.sender("q");
    for id in ["dead", "left"] {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("q");
    let dead = peer.receive_one(&receiver);
    peer.settle(&dead, dead_lettered("bad", "it is"));
    assert_eq!(process.ended_by("TERM").code, Some(0));
    directory
}

#[test]
fn data_check_counts_messages_and_bodies() {
    let directory = written();
    let (code, printed, complaints) = verb(&directory, "check");
    assert_eq!((code, &*complaints), (Some(0), ""));
    for line in [
        "namespace sbemulatorns",
        "  q: 1 messages, 1 dead-lettered, 0 that could not be forwarded",
        "  t/Subscriptions/low: 1 messages, 0 dead-lettered, 0 that could not be forwarded",
        "  t: Topic",
    ] {
        assert!(printed.lines().any(|own| own == line), "{line}: {printed}");
    }
    assert_contains(&printed, "3 messages with 3 bodies of ");
    assert_contains(&printed, "store.redb: no damage found");
}

#[test]
fn data_check_reports_damage() {
    let directory = written();
    let file = directory.file("store.redb");
    let bytes = fs::read(&file).expect("it is there");
    let definition = br#""path":"q""#;
    let at = bytes.windows(definition.len());
    let at = Vec::from_iter(at.enumerate().filter(|(_, part)| part == definition));
    assert!(!at.is_empty(), "its properties are there");
    let mut flipped = bytes.clone();
    for (at, _) in at {
        flipped[at + 8] = b'/';
    }
    fs::write(&file, flipped).expect("it can be written");
    let (code, printed, complaints) = verb(&directory, "check");
    assert_eq!(code, Some(1), "{printed}");
    assert_contains(&complaints, "store.redb\" is damaged:");
    assert_contains(&complaints, "its properties: a row is damaged");
    assert_contains(&complaints, "the checksums of the file: ");
    assert_contains(&printed, "  t/Subscriptions/low: 1 messages");
    let (code, printed, complaints) = verb(&directory, "export");
    assert_eq!((code, &*printed), (Some(1), ""));
    assert_contains(&complaints, "run `data DIRECTORY check` for details");
    assert_contains(
        &directory.refusal(None),
        "`servicebus-emulator data DIR check`",
    );
}

#[test]
fn data_export_prints_every_message_byte_for_byte() {
    let directory = written();
    let (code, printed, complaints) = verb(&directory, "export");
    assert_eq!((code, &*complaints), (Some(0), ""));
    let exported: Json = serde_json::from_str(&printed).expect("it is JSON");
    let namespace = &exported["namespaces"][0];
    assert_eq!(namespace["name"], "sbemulatorns");
    let process = directory.start();
    let topology = process.http().get("~/topology").ok();
    let of = |topology: &Json, kind: &str| {
        let all = topology.pointer(&format!("/UserConfig/Namespaces/0/{kind}"));
        all.expect("it is there").clone()
    };
    let exported_topology = &namespace["topology"];
    assert_eq!(of(exported_topology, "Topics"), of(&topology, "Topics"));
    let queue = of(exported_topology, "Queues");
    let queues = of(&topology, "Queues");
    let queues = queues.as_array().expect("a list");
    assert!(queues.contains(&queue[0]), "{queue}");
    let entities = namespace["entities"].as_array().expect("a list");
    for (entity, id) in [
        ("q", "left"),
        ("q/$DeadLetterQueue", "dead"),
        ("t/Subscriptions/low", "m"),
    ] {
        let found = entities.iter().find(|own| own["entity"] == entity);
        let found = found.unwrap_or_else(|| panic!("{entity}: {exported}"));
        let message = &found["messages"][0];
        assert_eq!(message["summary"]["message_id"], id);
        let number = &message["summary"]["sequence_number"];
        let served = process
            .http()
            .get(&format!("~/messages/{number}?entity={entity}"));
        assert_eq!(*message, served.ok(), "{entity}");
    }
}

#[test]
fn data_compact_keeps_all_messages() {
    let directory = written();
    let before = fs::metadata(directory.file("store.redb"))
        .expect("it is there")
        .len();
    let (code, printed, complaints) = verb(&directory, "compact");
    assert_eq!((code, &*complaints), (Some(0), ""));
    let after = fs::metadata(directory.file("store.redb"))
        .expect("it is there")
        .len();
    assert_eq!(
        printed,
        format!("{before} bytes before, {after} bytes after\n")
    );
    assert!(after <= before, "{printed}");
    let process = directory.start();
    assert_messages(&process, "q/$deadletterqueue", &[("dead", "active", 0)]);
}

#[cfg(target_os = "linux")]
#[test]
fn data_commands_report_output_that_cannot_be_written() {
    let directory = written();
    for own in ["check", "export", "compact"] {
        let full = fs::File::options().write(true).open("/dev/full");
        let full = full.expect("it can be written");
        let ran = run_into(full, &["data", directory.path(), own]);
        assert_eq!(ran.code, Some(1), "{own}: {ran:?}");
        assert_starts_with(&ran.stderr, "cannot write to standard output: ");
        let (_, closed) = std::io::pipe().expect("a pipe");
        let ran = run_into(closed, &["data", directory.path(), own]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{own}");
    }
}

#[test]
fn data_commands_report_a_missing_or_used_directory() {
    let nowhere = Directory::unused();
    for own in ["check", "export", "compact"] {
        let (code, printed, complaints) = verb(&nowhere, own);
        assert_eq!((code, &*printed), (Some(1), ""), "{own}");
        assert_contains(&complaints, "it has no data of an emulator");
        assert_eq!(complaints.lines().count(), 1, "{complaints}");
    }
    assert!(!nowhere.0.exists(), "nothing is made");
    let file = TemporaryFile::new("a file");
    for own in ["check", "export", "compact"] {
        // As for a directory that may not be searched, what it has is unknown.
        let ran = run(&["data", file.path(), own], &[]);
        assert_eq!(ran.code, Some(1), "{own}");
        assert_contains(&ran.stderr, "Not a directory");
    }
    let directory = Directory::unused();
    let _process = directory.start();
    for own in ["check", "export", "compact"] {
        let (code, _, complaints) = verb(&directory, own);
        assert_eq!(code, Some(1));
        assert_contains(&complaints, "is in use by another emulator");
    }
}
