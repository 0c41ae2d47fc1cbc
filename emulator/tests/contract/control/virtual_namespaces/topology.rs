//! The contents of a namespace, in the format in which it can be declared again.

use serde_json::json;

use super::*;

/// Everything that a file can contain, as far as one namespace can combine it.
const EVERYTHING: &str = r#"{
  "UserConfig": { "Namespaces": [ {
    "Name": "any",
    "Queues": [
      { "Name": "plain" },
      { "Name": "deep/er", "Properties": {
        "LockDuration": "PT30S", "MaxDeliveryCount": 3, "DefaultMessageTimeToLive": "PT1H",
        "DeadLetteringOnMessageExpiration": true, "RequiresDuplicateDetection": true,
        "DuplicateDetectionHistoryTimeWindow": "PT5M", "ForwardDeadLetteredMessagesTo": "plain",
        "Status": "SendDisabled", "AutoDeleteOnIdle": "P1D", "MaxSizeInMegabytes": 2048,
        "EnablePartitioning": true } },
      { "Name": "sessions", "Properties": { "RequiresSession": true } },
      { "Name": "inbox", "Properties": { "ForwardTo": "prices" } }
    ],
    "Topics": [
      { "Name": "bare" },
      { "Name": "prices",
        "Properties": { "DefaultMessageTimeToLive": "PT2H", "RequiresDuplicateDetection": true },
        "Subscriptions": [
          { "Name": "all" },
          { "Name": "some",
            "Properties": { "LockDuration": "PT10S", "DeadLetteringOnFilterEvaluationExceptions": false,
                            "ForwardTo": "plain" },
            "Rules": [
              { "Name": "sql", "Properties": { "FilterType": "Sql",
                "SqlFilter": { "SqlExpression": "price < @most", "Parameters": { "@most": 10 } },
                "Action": { "SqlExpression": "SET tag = 'cheap'" } } },
              { "Name": "correlation", "Properties": { "FilterType": "Correlation",
                "CorrelationFilter": { "Label": "l", "Properties": { "n": 1.5, "s": "x", "t": true,
                                       "d": { "Amqp": "a3017a" } } } } },
              { "Name": "true", "Properties": { "FilterType": "True" } },
              { "Name": "false", "Properties": { "FilterType": "False" } }
            ] } ] }
    ],
    "Emulator": {
      "Expiry": "on-receive", "LocksOnDetach": "release", "FailedForwards": "dead-letter", "Tier": "standard",
      "Keys": [ { "Name": "full", "Key": "f" }, { "Name": "listen", "Key": "l", "Claims": ["Listen"] } ],
      "TokenCheck": "none", "Jwt": "refuse", "Address": "everything.test"
    }
  } ] } }"#;

fn topology(bus: &Bus, name: &str) -> Value {
    bus.http.get(&format!("{}/topology", path(name))).ok()
}

/// All that the control API returns of a namespace's entities.
fn entities(bus: &Bus, name: &str) -> [Value; 3] {
    ["queues", "topics", "subscriptions"]
        .map(|kind| bus.http.get(&format!("{}/{kind}", path(name))).ok())
}

#[test]
fn an_exported_topology_declares_an_equal_namespace() {
    let bus = Bus::with_queues(&["q"]);
    make(&bus, "everything", EVERYTHING);
    let exported = topology(&bus, "everything");
    let declared = &exported["UserConfig"]["Namespaces"][0];
    assert_eq!(declared["Name"], "everything");
    assert_eq!(declared["Emulator"]["Keys"][1]["Claims"], json!(["Listen"]));
    assert_eq!(exported["UserConfig"]["Logging"]["Type"], "Console");

    let started = Bus::configured(&exported.to_string());
    assert_eq!(topology(&started, "everything"), exported);
    assert_eq!(
        entities(&started, "everything"),
        entities(&bus, "everything")
    );

    // And so does what is made of it while others are served.
    let text = exported.to_string();
    assert_eq!(put(&bus, "everything", &text).status, 409);
    assert_eq!(remove(&bus, "everything").status, 204);
    make(&bus, "everything", &text);
    assert_eq!(topology(&bus, "everything"), exported);
}

#[test]
fn an_exported_topology_has_the_current_state() {
    let bus = Bus::with_queues(&["q", "gone"]);
    let subscription = "t/Subscriptions/s";
    bus.http.put_queue("q", &json!({"MaxDeliveryCount": 4}));
    bus.http.put_queue("new", &json!({}));
    bus.http.queue("DELETE", "gone", None);
    for (kind, name) in [("topics", "t"), ("subscriptions", subscription)] {
        let path = format!("{}/{kind}/{name}", path("sbemulatorns"));
        assert_eq!(bus.http.request("PUT", &path, None).status, 201);
    }
    let admin = bus.admin();
    let cheap = rule(&sql_filter("price &lt; 10"));
    admin.create("/t/subscriptions/s/rules/cheap", &cheap);
    admin
        .delete("/t/subscriptions/s/rules/$Default")
        .expect(200);
    let exported = topology(&bus, "sbemulatorns");
    let declared = &exported["UserConfig"]["Namespaces"][0];
    let names = |kind: &str| {
        let declared = declared[kind].as_array().expect("a list").iter();
        declared
            .map(|entity| entity["Name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names("Queues"), names("Topics")),
        (vec![json!("new"), json!("q")], vec![json!("t")])
    );
    assert_eq!(declared["Queues"][1]["Properties"]["MaxDeliveryCount"], 4);
    let rules = &declared["Topics"][0]["Subscriptions"][0]["Rules"];
    assert_eq!(rules[0]["Name"], "cheap");
    assert_eq!(rules.as_array().map(Vec::len), Some(1));

    // A subscription without rules gets nothing, and neither does its declared copy.
    admin.delete("/t/subscriptions/s/rules/cheap").expect(200);
    let exported = topology(&bus, "sbemulatorns");
    let started = Bus::configured(&exported.to_string());
    started.rest().send("t", &[], "anybody?");
    let path = format!("/counts?entity={subscription}");
    let counts = started
        .http
        .get(&format!("{}{path}", super::path("sbemulatorns")))
        .ok();
    assert_eq!(counts["active"], 0);
}

#[test]
fn an_exported_topology_contains_the_key_set() {
    let set: Value = serde_json::from_str(include_str!("../../../../../fixtures/tokens/jwks.json"))
        .expect("a key set");
    let bus = Bus::with_queues(&["q"]);
    let jwt = format!(r#""Jwt":{{"Keys":{set},"Audience":"me"}}"#);
    make(&bus, "second", &declared(&[], &jwt));
    let exported = topology(&bus, "second");
    let jwt = &exported["UserConfig"]["Namespaces"][0]["Emulator"]["Jwt"];
    assert_eq!(jwt["Audience"], "me");
    // The first key of the set is of a kind that is not checked here.
    let modulus = &set["keys"][1]["n"];
    assert!(modulus.is_string(), "{set}");
    assert_eq!(jwt["Keys"]["keys"][0]["n"], *modulus);
    assert_eq!(jwt["Keys"]["keys"].as_array().map(Vec::len), Some(1));
    let request = exported.to_string();
    assert_eq!(
        put(&bus, "third", &request.replace("second", "third")).status,
        201
    );
}

/// A request opens nothing: its response is the same for existing and missing files, and a pipe blocks no request.
#[test]
fn a_topology_request_cannot_name_files() {
    let bus = Bus::with_queues(&["q"]);
    let there = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/tokens/jwks.json");
    let answers = [there, "/nowhere.json", "/dev/zero", "/dev", "/dev/stdin"].map(|file| {
        let body = declared(&[], &format!(r#""Jwt":{{"Keys":"{file}"}}"#));
        let refused = put(&bus, "second", &body);
        assert_eq!(refused.status, 400, "{file}");
        let problem = &refused.body["error"]["problems"][0];
        assert_eq!(
            problem["path"],
            "UserConfig.Namespaces[0].Emulator.Jwt.Keys"
        );
        problem["allowed"].clone()
    });
    assert_eq!(answers[0], "a JSON web key set: {\"keys\": […]}");
    assert!(
        answers.windows(2).all(|pair| pair[0] == pair[1]),
        "{answers:?}"
    );
}

#[test]
fn an_export_is_declared_under_another_name_beside_its_original() {
    let bus = Bus::with_queues(&["q"]);
    let exported = bus.http.get("~/topology").ok();
    let copy = Made::of(&put(&bus, "copy", &exported.to_string()).body);
    assert_eq!(copy.key().name, "RootManageSharedAccessKey-copy");
    let copy = bus.http.get(&path("copy/queues/q"));
    assert_eq!(copy.status, 200, "{copy:?}");
}
