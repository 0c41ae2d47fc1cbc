//! Invalid values are refused in the words of the service (admin-http.md §8.2, §11).

use serde_json::{Value, json};

use crate::support::*;

const MORE: &str = "To know more visit https://aka.ms/sbResourceMgrExceptions.";

/// The text of the refusal of a new entity of this kind with one setting.
fn refused(admin: &Admin, path: &str, kind: &str, name: &str, value: &str) -> String {
    let body = entry(
        &format!("{kind}Description"),
        &format!("<{name}>{value}</{name}>"),
    );
    let reply = admin.put(path, &body);
    let text = reply.refusal(400).replace("&#13;\n", "\n");
    assert!(
        !admin
            .get(path)
            .body
            .contains(&format!("<{kind}Description")),
        "it was made"
    );
    text
}

#[test]
fn out_of_range_values_are_reported_with_their_bounds() {
    let (_bus, admin) = Bus::with_queues(&["other"]).with_admin();
    admin.create("/t", &topic_entry(""));
    let lock = format!(
        "The supplied lock time exceeds the allowed maximum of '5' minutes. {MORE} .\nParameter name: LockDuration\n\
         Actual value was 25.00:00:00."
    );
    let queue_text = format!("SubCode=40000. {lock}");
    assert_eq!(
        refused(&admin, "/new", "Queue", "LockDuration", "P25D"),
        queue_text
    );
    assert_eq!(
        refused(
            &admin,
            "/t/Subscriptions/new",
            "Subscription",
            "LockDuration",
            "P25D"
        ),
        lock
    );
    let window = "SubCode=40000. The value supplied must be between 00:00:20 and 7.00:00:00.\n\
                  Parameter name: DuplicateDetectionHistoryTimeWindow\nActual value was ";
    for (given, shown) in [
        ("PT19S", "00:00:19."),
        ("P7DT1S", "7.00:00:01."),
        ("PT19.5S", "00:00:19.5000000."),
    ] {
        for kind in ["Queue", "Topic"] {
            let text = refused(
                &admin,
                "/new",
                kind,
                "DuplicateDetectionHistoryTimeWindow",
                given,
            );
            assert_eq!(text, format!("{window}{shown}"));
        }
    }
    let size = "SubCode=40000. The property value for 'MaxMessageSizeInKilobytes' must be 256 when the namespace \
                'sbemulatorns' is using 'Standard' tier.";
    assert_eq!(
        refused(&admin, "/new", "Queue", "MaxMessageSizeInKilobytes", "2048"),
        format!("{size} {MORE} .")
    );
}

/// A setting of a queue, an invalid value, and the error.
const ILLEGAL: &str = "\
    LockDuration | PT4S | less than the allowed minimum of '5' seconds
    LockDuration | PT0S | less than the allowed minimum
    LockDuration | 1 minute | allowed: an ISO 8601 duration
    LockDuration | -PT1M | allowed: an ISO 8601 duration
    DefaultMessageTimeToLive | PT0.5S | allowed: 1 s (PT1S) or longer
    AutoDeleteOnIdle | PT4M59S | allowed: 5 min (PT5M) or longer
    MaxDeliveryCount | 0 | allowed: 1 to 2147483647
    MaxDeliveryCount | -1 | allowed: 1 to 2147483647
    MaxDeliveryCount | 2147483648 | allowed: 1 to 2147483647
    MaxDeliveryCount | 99999999999 | allowed: 1 to 2147483647
    MaxDeliveryCount | many | allowed: a whole number
    MaxDeliveryCount | 1.5 | allowed: a whole number
    MaxSizeInMegabytes | 0 | one of the following values: 1024;2048;3072;4096;5120.
    MaxSizeInMegabytes | -1 | The specified value '-1' is invalid
    MaxSizeInMegabytes | 777 | one of the following values: 1024;2048;3072;4096;5120.
    MaxSizeInMegabytes | 10240 | one of the following values: 1024;2048;3072;4096;5120.
    MaxSizeInMegabytes | 99999999999999999999999 | one of the following values
    ForwardTo | sb://host/ | allowed: the name of a queue or topic
    ForwardTo | a b | allowed: the name of a queue or topic
    Status | Creating | allowed: Active, Disabled, SendDisabled, ReceiveDisabled
    Status | Asleep | allowed: Active
    EnablePartitioning | maybe | allowed: true or false
    IsAnonymousAccessible | true | not supported by the emulator; allowed: false";

#[test]
fn every_invalid_value_is_refused_with_the_allowed_values() {
    let (_bus, admin) = Bus::with_queues(&["other"]).with_admin();
    admin.create("/t", &topic_entry(""));
    for line in ILLEGAL.lines() {
        let [name, value, allowed] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let name = name.trim();
        let text = refused(&admin, "/new", "Queue", name, value);
        assert!(
            text.contains(allowed) && text.contains(name),
            "{line}: {text}"
        );
        if name.starts_with("Max") {
            assert_contains(&text, &format!("Actual value was {value}."));
        }
    }
    let long = "x".repeat(1025);
    let text = refused(&admin, "/new", "Queue", "UserMetadata", &long);
    assert!(
        text.contains("at most 1024 characters") && !text.contains(&long),
        "{text}"
    );
    let target = format!("sb://{}/other", "x".repeat(1025));
    let text = refused(&admin, "/new", "Queue", "ForwardTo", &target);
    assert!(
        text.contains("of at most 1024 bytes") && !text.contains(&target),
        "{text}"
    );
    for (name, value) in [
        ("Status", "ReceiveDisabled"),
        ("FilteringMessagesBeforePublishing", "true"),
    ] {
        refused(&admin, "/new", "Topic", name, value);
    }
    for (name, value) in [("Status", "SendDisabled"), ("IsClientAffine", "true")] {
        refused(&admin, "/t/Subscriptions/new", "Subscription", name, value);
    }
    // Properties that such an entity does not have are ignored.
    admin.create("/new", &topic_entry("<LockDuration>no</LockDuration>"));
}

#[test]
fn a_premium_namespace_allows_a_larger_maximum_message_size() {
    let (_bus, admin) = Bus::configured(&queues(r#""Tier":"premium""#, &[("q", "")])).with_admin();
    let set = |size: u64| {
        queue(&format!(
            "<MaxMessageSizeInKilobytes>{size}</MaxMessageSizeInKilobytes>"
        ))
    };
    let made = admin
        .put("/large?api-version=2021-05", &set(102_400))
        .expect(201);
    assert_eq!(made.value("MaxMessageSizeInKilobytes"), "102400");
    // A client of a version that does not know it changes another property.
    let changed = admin.change(
        "/large?api-version=2017-04",
        &queue("<MaxDeliveryCount>3</MaxDeliveryCount>"),
    );
    changed.expect(200);
    let shown = admin.get("/large?api-version=2021-05").expect(200);
    assert_eq!(shown.value("MaxMessageSizeInKilobytes"), "102400");
    let text = format!(
        "SubCode=40000. The property value for 'MaxMessageSizeInKilobytes' must be between 1024 and 102400 when the \
         namespace 'sbemulatorns' is using 'Premium' tier. {MORE} ."
    );
    assert_eq!(admin.put("/new", &set(102_401)).refusal(400), text);
}

#[test]
fn the_basic_tier_refuses_properties_of_higher_tiers() {
    let (_bus, admin) = Bus::configured(&queues(r#""Tier":"basic""#, &[("q", "")])).with_admin();
    for (kind, name, value) in [
        ("Queue", "RequiresDuplicateDetection", "true"),
        ("Queue", "RequiresSession", "true"),
        ("Queue", "ForwardTo", "q"),
    ] {
        let text = refused(&admin, "/new", kind, name, value);
        assert_contains(
            &text,
            "is using the 'Basic' Tier. This operation is only supported in 'Standard' or 'Premium' tier.",
        );
    }
    let text = refused(&admin, "/new", "Topic", "Status", "Active");
    assert_contains(
        &text,
        "Cannot operate on type Topic because the namespace 'sbemulatorns' is using 'Basic' tier.",
    );
    let forever = "P10675199DT2H48M5.4775807S";
    for long in ["P15D", forever] {
        let text = refused(&admin, "/new", "Queue", "DefaultMessageTimeToLive", long);
        assert_contains(&text, "allowed: 1 s (PT1S) to 14 days");
    }
    let made = admin.put("/new", &queue("")).expect(201);
    assert_eq!(made.value("DefaultMessageTimeToLive"), "P14D");
}

#[test]
fn a_forwarding_target_must_exist() {
    let (_bus, admin) = Bus::with_queues(&["other"]).with_admin();
    admin.create("/t", &topic_entry(""));
    for name in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
        let missing = format!("<{name}>sb://host/missing</{name}>");
        let text = format!(
            "SubCode=40400. The auto-forwarding destination entity 'missing' of 'q' doesn't exist. {MORE} .\n\
             Parameter name: {name}\nActual value was missing."
        );
        assert_eq!(
            refused(&admin, "/q", "Queue", name, "https://host:443/missing/"),
            text
        );
        admin.change("/other", &queue(&missing)).refusal(400);
        let path = "/t/Subscriptions/s";
        refused(&admin, path, "Subscription", name, "t/Subscriptions/other");
        let made = admin
            .put(
                &format!("/to-{name}"),
                &queue(&format!("<{name}>http://h/T</{name}>")),
            )
            .expect(201);
        assert_eq!(made.value(name), "http://h/T", "as it was given");
    }
}

#[test]
fn a_namespace_has_at_most_ten_thousand_queues_and_topics() {
    let names: Vec<String> = (0..9_999).map(|number| format!("q{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (bus, admin) = Bus::with_queues(&names).with_admin();
    admin.create("/t", &topic_entry(""));
    let reply = admin.put("/new", &queue(""));
    let text = format!(
        "SubCode=40300. The maximum number of resources of type 'Queue' has been reached or exceeded. The namespace \
         'sbemulatorns' has 10000 queues and topics. {MORE} ."
    );
    assert_eq!(reply.refusal(403), text);
    admin.put("/t2", &topic_entry("")).refusal(403);
    for (route, path) in [("queues", "new"), ("topics", "new")] {
        let path = format!("~/{route}/{path}");
        assert_eq!(
            bus.http.request("PUT", &path, None).error(403).0,
            "limit-reached"
        );
    }
    // Subscriptions do not count, changes add none, and removals make room.
    admin.create("/t/Subscriptions/s", &subscription(""));
    admin.update("/q1", &queue("<MaxDeliveryCount>3</MaxDeliveryCount>"));
    admin.delete("/q1").expect(200);
    admin.create("/new", &queue(""));
}

#[test]
fn a_topic_has_at_most_two_thousand_subscriptions() {
    let names = Vec::from_iter((0..2_000).map(|number| format!("s{number}")));
    let all = Vec::from_iter(names.iter().map(|name| (name.as_str(), json!({}))));
    let (_bus, admin) = Bus::configured(&topic(&json!({}), &all)).with_admin();
    let reply = admin.put("/t/Subscriptions/new", &subscription(""));
    let text = format!(
        "SubCode=40503. The topic 't' has 2000 subscriptions, which is the most that it may have. {MORE} ."
    );
    assert_eq!(reply.refusal(403), text);
    admin.delete("/t/Subscriptions/s1").expect(200);
    admin.create("/t/Subscriptions/new", &subscription(""));
}

#[test]
fn a_topic_has_at_most_two_thousand_sql_filters() {
    let rule_of = |number: u32| sql(&format!("r{number}"), &format!("a={number}"), "");
    let all = Vec::from_iter((0..2_000).map(rule_of));
    let mut config: Value =
        serde_json::from_str(&topic(&json!({}), &[("s", rules(&all))])).expect("it is JSON");
    config["UserConfig"]["Namespaces"][0]["Emulator"] = json!({"Tier": "premium"});
    let (bus, admin) = Bus::configured(&config.to_string()).with_admin();
    let first = format!(
        "<DefaultRuleDescription>{}</DefaultRuleDescription>",
        sql_filter("a = 1")
    );
    let reply = admin.put("/t/Subscriptions/new", &subscription(&first));
    let text = "The topic 't' has 2000 SQL filters, which is the most that it may have.";
    assert_eq!(
        reply.refusal(403),
        format!("SubCode=40501. {text} {MORE} .")
    );
    let mut peer = bus.jms("c");
    let own = Attach::subscriber("jms", "t", true, &[]);
    let link = peer.attached(&own);
    bus.client().send_to("t", &Message::new("kept"));
    peer.leave(&link);
    let refusal = peer.refused(&own.clone().selecting("n = 1"));
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    assert_contains(&refusal.text, "the topic 't' has 2000 SQL filters");
    let link = peer.attached(&own);
    assert_eq!(peer.drain_ids(&link, 1), ["kept"], "as it was");
    admin.delete("/t/Subscriptions/jms$c$D").expect(200);
    let reply = admin.put("/t/Subscriptions/s/Rules/new", &rule(&sql_filter("a = 1")));
    assert_starts_with(
        reply.refusal(403),
        "SubCode=40501. 't': The topic has 2000 filters of this kind",
    );
    admin.create(
        "/t/Subscriptions/s/Rules/true",
        &rule("<Filter i:type=\"TrueFilter\"/>"),
    );
    admin
        .change("/t/Subscriptions/s/Rules/true", &rule(&sql_filter("a = 1")))
        .refusal(403);
    assert_eq!(
        admin
            .get("/t/Subscriptions/s/Rules/true")
            .expect(200)
            .value("SqlExpression"),
        "1=1"
    );
    admin.update("/t/Subscriptions/s/Rules/r1", &rule(&sql_filter("a = 1")));
    let shown = admin.get("/t?api-version=2024-05").expect(200);
    assert_eq!(
        shown.values(["SqlFilterCount", "CorrelationFilterCount"]),
        ["2001", "0"]
    );
}

/// Clients send back what they read.
#[test]
fn a_declared_short_duplicate_window_can_be_sent_back() {
    let properties =
        r#""RequiresDuplicateDetection":true,"DuplicateDetectionHistoryTimeWindow":"PT5S""#;
    let (_bus, admin) = Bus::with_queue(properties).with_admin();
    let window = |seconds| {
        queue(&format!(
            "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>\
             <DuplicateDetectionHistoryTimeWindow>PT{seconds}S</DuplicateDetectionHistoryTimeWindow>\
             <MaxDeliveryCount>5</MaxDeliveryCount>"
        ))
    };
    let changed = admin.change("/q", &window(5)).expect(200);
    assert_eq!(changed.value("MaxDeliveryCount"), "5");
    assert_eq!(changed.value("DuplicateDetectionHistoryTimeWindow"), "PT5S");
    admin.change("/q", &window(6)).refusal(400);
}
