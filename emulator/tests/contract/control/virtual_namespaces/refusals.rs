//! Refused creations and removals, and their texts.

use serde_json::json;

use super::*;

/// The maximum number of namespaces.
const LIMIT: usize = 1_000;

#[test]
fn a_namespace_name_must_be_valid() {
    let bus = Bus::with_queues(&["q"]);
    let long = "a".repeat(64);
    for (written, name) in [
        ("-a", "-a"),
        ("a%20b", "a b"),
        ("a%2Fb", "a/b"),
        ("%24emulator", "$emulator"),
        ("%C3%BC", "ü"),
        (long.as_str(), long.as_str()),
    ] {
        let answer = put(&bus, written, "");
        assert_eq!(answer.error(400).0, "invalid-argument");
        let problem = &answer.body["error"]["problems"][0];
        assert_eq!(problem["path"], "namespace");
        assert_eq!(problem["value"], name);
        let allowed = problem["allowed"].as_str().expect("a text");
        assert_starts_with(allowed, "1 to 63 letters");
    }
    assert_eq!(names(&bus), ["sbemulatorns"]);
}

#[test]
fn a_namespace_name_is_unique() {
    let bus = Bus::with_queues(&["q"]);
    make(&bus, "Twin", "");
    for name in ["Twin", "twin", "SBEMULATORNS"] {
        let answer = put(&bus, name, "");
        let message = answer.error_with(409, "conflict");
        assert_contains(message, "already");
    }
    assert_eq!(names(&bus), ["sbemulatorns", "Twin"]);
}

#[test]
fn key_names_and_addresses_are_unique_among_namespaces() {
    let bus = Bus::with_queues(&["q"]);
    let key = r#""Keys":[{"Name":"mine","Key":"x"}]"#;
    make(
        &bus,
        "first",
        &declared(&[], &format!(r#"{key},"Address":"first.example""#)),
    );
    let taken = |emulator: &str, path: &str, value: &str| {
        let answer = put(&bus, "second", &declared(&[], emulator));
        let message = answer.error_with(409, "conflict");
        assert_contains(message, "belongs to the namespace \"first\"");
        let problem = &answer.body["error"]["problems"][0];
        assert_eq!(
            problem["path"],
            format!("UserConfig.Namespaces[0].Emulator.{path}")
        );
        assert_eq!(problem["value"], value);
    };
    taken(
        r#""Keys":[{"Name":"other","Key":"x"},{"Name":"mine","Key":"y"}]"#,
        "Keys[1].Name",
        "mine",
    );
    taken(r#""Address":"First.Example""#, "Address", "first.example");
    assert_eq!(names(&bus), ["sbemulatorns", "first"]);
    // A removed namespace keeps no selector.
    assert_eq!(remove(&bus, "first").status, 204);
    make(
        &bus,
        "second",
        &declared(&[], &format!(r#"{key},"Address":"first.example""#)),
    );
}

#[test]
fn a_body_must_declare_one_namespace_that_can_be_served() {
    let bus = Bus::with_queues(&["q"]);
    let problems = |body: &str| {
        let answer = put(&bus, "second", body);
        let (code, message) = answer.error(400);
        assert_eq!(
            (code, message),
            ("invalid-argument", "the topology cannot be served")
        );
        answer.body["error"]["problems"].clone()
    };
    let named = |name: &str| format!(r#"{{"Name":"{name}"}}"#);
    let several = [named("a"), named("b")].join(",");
    let several = problems(&format!(r#"{{"UserConfig":{{"Namespaces":[{several}]}}}}"#));
    assert_eq!(several[0]["path"], "UserConfig.Namespaces");
    assert_eq!(several[0]["allowed"], "one namespace");
    let none = problems(r#"{"UserConfig":{"Namespaces":[]}}"#);
    assert_eq!(none[0]["path"], "UserConfig.Namespaces");
    let unknown = problems(&declared(&[], r#""Expires":"eager""#));
    assert_eq!(
        unknown[0]["path"],
        "UserConfig.Namespaces[0].Emulator.Expires"
    );
    let address = problems(&declared(&[], r#""Address":"10.0.0.1""#));
    assert_eq!(
        address[0]["path"],
        "UserConfig.Namespaces[0].Emulator.Address"
    );
    assert_eq!(address[0]["value"], "\"10.0.0.1\"");
    let queue = problems(&declared(&["a b"], ""));
    assert_eq!(queue[0]["path"], "UserConfig.Namespaces[0].Queues[0].Name");
    assert_ne!(problems("not JSON"), json!([]));
    assert_eq!(names(&bus), ["sbemulatorns"]);
}

#[test]
fn a_namespace_body_has_the_maximum_size_of_a_configuration_file() {
    let bus = Bus::with_queues(&["q"]);
    let mebibytes = |count: usize| " ".repeat(count << 20);
    make(&bus, "large", &(declared(&["q"], "") + &mebibytes(2)));
    // One byte more, so that all of it is read before the response.
    let answer = put(&bus, "larger", &(mebibytes(16) + " "));
    assert_contains(answer.error_with(413, "invalid-body"), "16777216 bytes");
    let path = "/$emulator/v1/namespaces/latin";
    let latin = bus.http.send("PUT", path, &[], b"\xfc");
    assert_eq!(latin.error(400).0, "invalid-body");
    assert_eq!(names(&bus), ["sbemulatorns", "large"]);
}

#[test]
fn the_last_namespace_cannot_be_removed() {
    let bus = Bus::with_queues(&["q"]);
    let answer = remove(&bus, "SbEmulatorNs");
    let message = answer.error_with(409, "last-namespace");
    assert_contains(message, "\"sbemulatorns\" is the last namespace");
    let answer = remove(&bus, "nobody");
    let message = answer.error_with(404, "not-found");
    assert_contains(message, "\"nobody\"");
    assert_contains(message, "sbemulatorns");
    // The oldest may be removed if there is another, which is the first then.
    make(&bus, "second", "");
    bus.http
        .post(
            &format!("{}/clock/advance", path("second")),
            &json!({"seconds": 7}),
        )
        .ok();
    assert_eq!(remove(&bus, "sbemulatorns").status, 204);
    assert_eq!(
        bus.http.get("/$emulator/v1/clock").ok()["offset_seconds"],
        7.0
    );
    assert_eq!(remove(&bus, "second").error(409).0, "last-namespace");
}

#[test]
fn the_number_of_namespaces_is_limited() {
    let bus = Bus::with_queues(&["q"]);
    for number in 1..LIMIT {
        make(&bus, &format!("n{number}"), "");
    }
    let answer = put(&bus, "one-more", "");
    let message = answer.error_with(403, "limit-reached");
    assert_contains(message, "1000 namespaces");
    let answer = bus.http.get(&format!("{}/clock", path("one-more")));
    let (_, message) = answer.error(404);
    assert_ends_with(message, "and 980 more");
    assert_eq!(remove(&bus, "n1").status, 204);
    make(&bus, "one-more", "");
}
