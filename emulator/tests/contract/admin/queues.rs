//! Queues are created, returned, changed and removed.

use crate::support::*;

const FOREVER: &str = "P10675199DT2H48M5.4775807S";

#[test]
fn a_new_queue_has_all_elements_in_the_order_of_the_service() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let made = admin
        .put("/new?api-version=2021-05", &queue(""))
        .expect(201);
    let type_ = Some("application/atom+xml;type=entry;charset=utf-8");
    assert_eq!(made.header("content-type"), type_);
    assert_eq!(made.header("etag"), None);
    let shown = admin.get("/new?api-version=2021-05").expect(200);
    assert_eq!(shown.body, made.body);
    let expected = [
        ("LockDuration", "PT1M"),
        ("MaxSizeInMegabytes", "1024"),
        ("RequiresDuplicateDetection", "false"),
        ("RequiresSession", "false"),
        ("DefaultMessageTimeToLive", FOREVER),
        ("DeadLetteringOnMessageExpiration", "false"),
        ("DuplicateDetectionHistoryTimeWindow", "PT10M"),
        ("MaxDeliveryCount", "10"),
        ("EnableBatchedOperations", "true"),
        ("SizeInBytes", "0"),
        ("MessageCount", "0"),
        ("IsAnonymousAccessible", "false"),
        ("AuthorizationRules", ""),
        ("Status", "Active"),
        ("AccessedAt", "0001-01-01T00:00:00Z"),
        ("SupportOrdering", "true"),
        ("ActiveMessageCount", "0"),
        ("AutoDeleteOnIdle", FOREVER),
        ("EnablePartitioning", "false"),
        ("EntityAvailabilityStatus", "Available"),
        ("EnableExpress", "false"),
        ("MaxMessageSizeInKilobytes", "256"),
    ];
    let mut rest = shown.body.as_str();
    for (name, value) in expected {
        assert_eq!(shown.value(name), value, "{name}");
        let at = rest
            .find(&format!("{name}>"))
            .unwrap_or_else(|| panic!("{name} too early"));
        rest = &rest[at + name.len() + 1..];
    }
    for absent in ["ForwardTo", "ForwardDeadLetteredMessagesTo", "UserMetadata"] {
        assert_eq!(shown.text(absent), None);
    }
    assert!(
        shown.value("CreatedAt") < shown.value("UpdatedAt"),
        "{shown:?}"
    );
    assert_eq!(shown.value("title"), "new");
    assert_eq!(shown.value("name"), "sbemulatorns");
    assert_eq!(
        shown.value("id"),
        format!("https://{HOST}/new?api-version=2021-05")
    );
    let tag = shown.header("etag").expect("a tag");
    assert!(
        tag.parse::<u64>()
            .is_ok_and(|ticks| ticks > 638_000_000_000_000_000),
        "{tag}"
    );
}

/// `properties.rs` shows how each setting is returned.
#[test]
fn properties_may_have_any_order_and_unknown_elements() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let settings = [
        ("MaxDeliveryCount", "2147483647"),
        ("UserMetadata", "a &lt; b &amp; c"),
        ("LockDuration", "PT1M30S"),
        ("ForwardDeadLetteredMessagesTo", "sb://some.where:5300/Q"),
    ];
    let settings_given = settings.map(|(name, value)| {
        format!("<{name}>{value}</{name}>\n  <Unknown{name} a=\"b\"><c/></Unknown{name}>")
    });
    let inner = settings_given.concat() + "<ForwardTo i:nil=\"true\"/>";
    let made = admin.put("/new", &queue(&inner)).expect(201);
    for (name, value) in settings {
        assert_eq!(made.value(name), value, "{name}");
    }
}

#[test]
fn durations_are_normalized_and_the_maximum_has_many_spellings() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    for (number, (given, shown)) in [
        ("PT604800S", "P7D"),
        ("P0Y0M7DT0H0M0S", "P7D"),
        ("PT168H", "P7D"),
        ("PT90.5S", "PT1M30.5S"),
        ("P10675199DT2H48M5.477539S", FOREVER),
        ("P10675199DT2H48M5.477S", FOREVER),
        (FOREVER, FOREVER),
    ]
    .into_iter()
    .enumerate()
    {
        let setting = format!("<DefaultMessageTimeToLive>{given}</DefaultMessageTimeToLive>");
        let made = admin
            .put(&format!("/q{number}"), &queue(&setting))
            .expect(201);
        assert_eq!(made.value("DefaultMessageTimeToLive"), shown, "{given}");
    }
}

#[test]
fn an_update_replaces_the_changeable_properties() {
    let (bus, admin) = Bus::with_queues(&["other"]).with_admin();
    let fixed = "<RequiresDuplicateDetection>true</RequiresDuplicateDetection><EnablePartitioning>true</EnablePartitioning>";
    let inner = format!(
        "{fixed}<LockDuration>PT30S</LockDuration><UserMetadata>m</UserMetadata><SupportOrdering>false</SupportOrdering>\
         <ForwardTo>other</ForwardTo>"
    );
    admin.create("/q", &queue(&inner));
    let tag = admin.get("/q").header("etag").map(str::to_owned);
    bus.http.advance(10.0);
    let changed = admin
        .change("/Q", &queue("<MaxDeliveryCount>3</MaxDeliveryCount>"))
        .expect(200);
    assert_eq!(changed.value("title"), "q");
    for (name, value) in [
        ("MaxDeliveryCount", "3"),
        ("LockDuration", "PT1M"),
        ("RequiresDuplicateDetection", "true"),
        ("EnablePartitioning", "true"),
        ("SupportOrdering", "false"),
    ] {
        assert_eq!(changed.value(name), value, "{name}");
    }
    assert_eq!(
        (changed.text("ForwardTo"), changed.text("UserMetadata")),
        (None, None)
    );
    assert_ne!(tag.as_deref(), changed.header("etag"));
    assert_eq!(changed.text("published"), None);
    let refused = admin.change("/q", &queue("<MaxDeliveryCount>0</MaxDeliveryCount>"));
    assert_eq!(refused.status, 400);
    assert_eq!(refused.header("etag"), changed.header("etag"));
    // The full description that a client of the service sends back, including values that it cannot set.
    let again = queue(&format!(
        "{fixed}<LockDuration>PT30S</LockDuration><SizeInBytes>99</SizeInBytes><MessageCount>7</MessageCount>\
         <CountDetails xmlns:d2p1=\"http://schemas.microsoft.com/netservices/2011/06/servicebus\">\
         <d2p1:ActiveMessageCount>7</d2p1:ActiveMessageCount></CountDetails>\
         <AccessedAt>0001-01-01T00:00:00.000Z</AccessedAt><CreatedAt>2020-01-01T00:00:00Z</CreatedAt>\
         <MaxMessageSizeInKilobytes>256</MaxMessageSizeInKilobytes>"
    ));
    let changed = admin.change("/q", &again).expect(200);
    assert_eq!(
        changed.values(["SizeInBytes", "ActiveMessageCount"]),
        ["0", "0"]
    );
    assert_eq!(changed.value("LockDuration"), "PT30S");
}

#[test]
fn an_update_of_fixed_properties_is_refused() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    admin.create("/t/Subscriptions/s", &subscription(""));
    let table = [
        ("/q", "Queue", "RequiresSession"),
        ("/q", "Queue", "RequiresDuplicateDetection"),
        ("/q", "Queue", "EnablePartitioning"),
        ("/t", "Topic", "RequiresDuplicateDetection"),
        ("/t", "Topic", "EnablePartitioning"),
        ("/t/Subscriptions/s", "Subscription", "RequiresSession"),
    ];
    for (path, kind, name) in table {
        let body = entry(
            &format!("{kind}Description"),
            &format!("<{name}>true</{name}>"),
        );
        let what = match name {
            "EnablePartitioning" => format!("Partitioning cannot be changed for {kind}."),
            _ => format!(
                "The value for the {name} property of an existing {kind} cannot be changed."
            ),
        };
        let text = format!(
            "SubCode=40000. {what} To know more visit https://aka.ms/sbResourceMgrExceptions. ."
        );
        assert_eq!(admin.change(path, &body).refusal(400), text);
    }
}

#[test]
fn a_name_belongs_to_one_entity_of_any_kind() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let text = "SubCode=40900. Conflict. You're requesting an operation that isn't allowed in the resource's current \
                state. To know more visit https://aka.ms/sbResourceMgrExceptions. .";
    for body in [queue(""), topic_entry("")] {
        assert_eq!(admin.put("/Q", &body).refusal(409), text);
    }
    let refused = admin.change("/q", &topic_entry(""));
    assert_contains(
        refused.refusal(400),
        "'q' is a Queue, which has no TopicDescription.",
    );
}

#[test]
fn if_match_must_be_a_star_or_the_current_etag() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let tag = admin.get("/q").header("etag").expect("a tag").to_owned();
    for wrong in ["\"1\"", "1", "W/\"*\"", ""] {
        for (method, body) in [("PUT", Some(queue(""))), ("DELETE", None)] {
            let refused = admin.send(method, "/q", &[("If-Match", wrong)], body.as_deref());
            assert_contains(refused.refusal(412), "allowed: *, or the entity's");
        }
    }
    bus.http.advance(1.0);
    let body = queue("<MaxDeliveryCount>3</MaxDeliveryCount>");
    for right in [&format!("\"{tag}\""), "\"*\""] {
        admin
            .send("PUT", "/q", &[("If-Match", right)], Some(&body))
            .expect(200);
    }
    let stale = admin.send("PUT", "/q", &[("If-Match", &tag)], Some(&queue("")));
    stale.refusal(412);
}

#[test]
fn a_deleted_queue_is_missing_and_can_be_created_again() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let removed = admin.delete("/q").expect(200);
    assert_eq!(
        (removed.body.as_str(), removed.header("content-length")),
        ("", Some("0"))
    );
    assert!(removed.header("etag").is_some());
    assert_starts_with(&admin.get("/q").expect(200).body, "<feed");
    admin.create("/q", &queue(""));
}

#[test]
fn administration_and_control_api_show_each_others_changes() {
    let (bus, admin) = Bus::with_queues(&["other"]).with_admin();
    admin.create(
        "/q",
        &queue("<ForwardTo>sb://h/other</ForwardTo><UserMetadata>m</UserMetadata>"),
    );
    let properties = bus.http.queue("GET", "q", None).ok();
    assert_eq!(properties["properties"]["ForwardTo"], "other");
    bus.http.put_queue("q", &serde_json::json!({"ForwardTo": "", "ForwardDeadLetteredMessagesTo": "other", "MaxDeliveryCount": 4}));
    let shown = admin.get("/q").expect(200);
    assert_eq!(shown.text("ForwardTo"), None);
    assert_eq!(shown.value("ForwardDeadLetteredMessagesTo"), "other");
    assert_eq!(
        shown.values(["MaxDeliveryCount", "UserMetadata"]),
        ["4", "m"]
    );
    bus.http.reset();
    assert!(
        admin.get("/q").expect(200).body.starts_with("<feed"),
        "not declared"
    );
}

#[test]
fn administration_times_are_in_client_time() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.advance(86_400.0);
    let admin = bus.admin();
    let made = admin.put("/new", &queue("")).expect(201);
    for name in ["CreatedAt", "UpdatedAt", "published", "updated"] {
        let shown: jiff::Timestamp = made.value(name).parse().expect("an instant");
        let off = (shown.as_second() - now()).abs();
        assert!(off < 3600, "{name} is {shown}");
    }
}
