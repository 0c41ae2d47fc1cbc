//! Stores of every released version can be read.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::*;

/// Writes that of this version: `UPDATE_DATA_FIXTURE=1 cargo test -p servicebus-emulator --test contract data::format`.
const UPDATE: &str = "UPDATE_DATA_FIXTURE";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/data")
}

fn exported(directory: &Directory) -> String {
    let output = run(&["data", directory.path(), "export"], &[]);
    assert_eq!(output.stderr, "");
    let exported: Json = serde_json::from_str(&output.stdout).expect("it is JSON");
    format!("{exported:#}\n")
}

/// One of each kind of stored item.
fn write() -> Directory {
    let directory = Directory::unused();
    let properties = [
        ("plain", r#""MaxDeliveryCount":3"#),
        ("once", r#""RequiresDuplicateDetection":true"#),
        ("sessions", r#""RequiresSession":true"#),
    ];
    let file = TemporaryFile::new(&queues("", &properties));
    let arguments = [
        "--data",
        directory.path(),
        "--config",
        file.path(),
        "--seed",
        "1",
    ];
    let process = Process::start(&arguments);
    process.http().advance(3600.0);
    let mut peer = process.client();
    let sender = peer.sender("plain");
    for id in ["failed", "deferred", "dead", "left"] {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("plain");
    let [failed, later, dead] = [(); 3].map(|()| peer.receive_one(&receiver));
    peer.settle(&failed, abandoned());
    peer.settle(&later, deferred());
    peer.settle(&dead, dead_lettered("bad", "it is"));
    let node = peer.node("plain/$management");
    // The last year that a timestamp of every SDK can represent.
    let scheduled_for = Message::new("scheduled").scheduled_at(253_370_764_800_000);
    peer.schedule(&node, &[scheduled_for]);
    peer.send_to("once", &Message::new("known"));
    send_all(&mut peer, "sessions", &[("a", "one")]);
    let link = peer.accept("sessions", "one");
    let node = peer.node("sessions/$management");
    let state = [(text("session-state"), binary(b"kept"))];
    peer.call(&node, "set-session-state", in_session("one", state));
    peer.detach(&link);
    let made = process
        .http()
        .request("PUT", "/$emulator/v1/namespaces/second", Some(""));
    assert_eq!(made.status, 201, "{made:?}");
    let topic = "/$emulator/v1/namespaces/second/topics/t";
    process.http().request("PUT", topic, Some("{}")).ok();
    assert_eq!(process.ended_by("TERM").code, Some(0));
    printed(&["data", directory.path(), "compact"]);
    directory
}

fn update() {
    let directory = write();
    let version = fixtures().join(env!("CARGO_PKG_VERSION"));
    fs::create_dir_all(&version).expect("it can be made");
    let store = fs::read(directory.file("store.redb")).expect("it is there");
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&store).expect("memory can be written");
    let packed = packed.finish().expect("memory can be written");
    let mark = fs::read(directory.file("FORMAT")).expect("it is there");
    for (name, bytes) in [
        ("store.redb.gz", packed),
        ("FORMAT", mark),
        ("export.json", exported(&directory).into_bytes()),
    ] {
        fs::write(version.join(name), bytes).expect("it can be written");
    }
}

#[test]
fn stores_of_all_format_versions_can_be_read() {
    if std::env::var_os(UPDATE).is_some() {
        update();
    }
    let mut versions = Vec::new();
    for entry in fs::read_dir(fixtures()).expect("the fixtures are there") {
        let version = entry.expect("it can be read").path();
        let directory = Directory::unused();
        fs::create_dir(&directory.0).expect("it can be made");
        fs::copy(version.join("FORMAT"), directory.file("FORMAT")).expect("it can be copied");
        let packed = fs::File::open(version.join("store.redb.gz")).expect("it is there");
        let mut store = Vec::new();
        GzDecoder::new(packed)
            .read_to_end(&mut store)
            .expect("it is packed");
        fs::write(directory.file("store.redb"), store).expect("it can be written");
        let expected = fs::read_to_string(version.join("export.json")).expect("it is there");
        assert_eq!(exported(&directory), expected, "{}", version.display());
        is_served(&directory);
        let name = version.file_name().unwrap_or_default();
        versions.push(name.to_string_lossy().into_owned());
    }
    let own = env!("CARGO_PKG_VERSION");
    assert!(
        versions.iter().any(|version| version == own),
        "{own} is not among {versions:?}"
    );
}

fn is_served(directory: &Directory) {
    let process = directory.start();
    let expected = [
        ("failed", "active", 1),
        ("deferred", "deferred", 1),
        ("left", "active", 0),
        ("scheduled", "scheduled", 0),
    ];
    assert_messages(&process, "plain", &expected);
    assert_messages(&process, "plain/$deadletterqueue", &[("dead", "active", 0)]);
    let mut peer = process.client();
    peer.accept("sessions", "one");
    let node = peer.node("sessions/$management");
    let answer = peer.call(&node, "get-session-state", in_session("one", []));
    assert_eq!(answer.field("session-state"), &binary(b"kept"));
    let topic = "/$emulator/v1/namespaces/second/topics/t";
    assert_eq!(process.http().get(topic).status, 200);
}
