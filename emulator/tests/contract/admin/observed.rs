//! Behaviour of the service that differs from its documentation (spec/observed.md): the part of the administration, by the
//! numbers there. `tests/conformance/OBSERVED.md` has the table of all.

use servicebus_emulator::auth::{Claim, Key, sas};

use crate::support::*;

#[test]
fn o20_o46_a_date_in_a_rule_keeps_its_ticks_and_its_zone() {
    let (_bus, admin) = Bus::administered();
    let value = |text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>@d</Key><Value p:type=\"x:dateTime\" \
             xmlns:p=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:x=\"http://www.w3.org/2001/XMLSchema\">{text}\
             </Value></KeyValueOfstringanyType>"
        )
    };
    for (at, given) in [
        "2021-07-05T11:12:13.1234567Z",
        "2021-07-05T11:12:13.1234567",
        "2021-07-05T11:12:13",
        "2021-07-05T11:12:13Z",
    ]
    .into_iter()
    .enumerate()
    {
        let sql = format!(
            "<Filter i:type=\"SqlFilter\"><SqlExpression>at = @d</SqlExpression><Parameters>{}</Parameters></Filter>",
            value(given)
        );
        let correlation = format!(
            "<Filter i:type=\"CorrelationFilter\"><Properties>{}</Properties></Filter>",
            value(given)
        );
        for (kind, filter) in [("sql", sql), ("correlation", correlation)] {
            let path = format!("/t/Subscriptions/s/Rules/{kind}{at}");
            admin.create(&path, &rule(&filter));
            assert_eq!(admin.get(&path).expect(200).value("Value"), given, "{kind}");
        }
    }
}

#[test]
fn o22_the_default_rule_counts_as_an_sql_filter() {
    let (_bus, admin) = Bus::administered();
    let shown = admin.get("/t?api-version=2024-05").expect(200);
    assert_eq!(shown.value("SqlFilterCount"), "1");
    assert_eq!(shown.value("CorrelationFilterCount"), "0");
    assert_eq!(
        admin.get("/t?api-version=2021-05").text("SqlFilterCount"),
        None
    );
}

#[test]
fn o25_o26_o27_forwarding_is_allowed_with_sessions_and_to_itself() {
    let (bus, admin) = Bus::administered();
    let both = "<RequiresSession>true</RequiresSession><ForwardTo>q</ForwardTo>";
    admin.create("/sessions", &queue(both));
    let made = admin.put("/t/Subscriptions/sessions", &subscription(both));
    made.expect(201);
    let idle = "<AutoDeleteOnIdle>PT5M</AutoDeleteOnIdle>";
    for name in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
        let body = queue(&format!("<{name}>itself</{name}>{idle}"));
        let made = admin.put("/itself", &body).expect(201);
        assert_eq!(
            (made.value(name), made.value("AutoDeleteOnIdle")),
            ("itself", "PT5M")
        );
        let changed = admin.change("/itself", &body).expect(200);
        assert_eq!(changed.value("AutoDeleteOnIdle"), "PT5M");
        bus.http.advance(3600.0);
        admin.get("/itself").expect(200).value("LockDuration");
        admin.delete("/itself").expect(200);
    }
}

#[test]
fn o28_scheme_and_host_of_a_forwarding_target_become_lower_case() {
    let (_bus, admin) = Bus::administered();
    let target = "<ForwardTo>SB://Some.Host:5300/Q</ForwardTo>";
    let made = admin.put("/new", &queue(target)).expect(201);
    assert_eq!(made.value("ForwardTo"), "sb://some.host:5300/Q");
}

#[test]
fn o30_a_partitioned_entity_shows_sixteen_times_the_requested_size() {
    let (_bus, admin) = Bus::administered();
    let body = |size: u32| {
        queue(&format!(
            "<MaxSizeInMegabytes>{size}</MaxSizeInMegabytes><EnablePartitioning>true</EnablePartitioning>"
        ))
    };
    let made = admin.put("/new", &body(3072)).expect(201);
    assert_eq!(made.value("MaxSizeInMegabytes"), "49152");
    // Clients send back what they read.
    let kept = admin.change("/new", &body(49_152)).expect(200);
    assert_eq!(kept.value("MaxSizeInMegabytes"), "49152");
    let larger = admin.change("/new", &body(4096)).expect(200);
    assert_eq!(larger.value("MaxSizeInMegabytes"), "65536");
    let partitioned = topic_entry("<EnablePartitioning>true</EnablePartitioning>");
    let made = admin.put("/large", &partitioned).expect(201);
    assert_eq!(made.value("MaxSizeInMegabytes"), "16384");
}

#[test]
fn o30_a_partitioned_entity_has_at_most_81920_megabytes_in_premium_too() {
    let (_bus, admin) = Bus::configured(&queues(r#""Tier":"premium""#, &[])).with_admin();
    let body = |size: u32| {
        queue(&format!(
            "<MaxSizeInMegabytes>{size}</MaxSizeInMegabytes><EnablePartitioning>true</EnablePartitioning>"
        ))
    };
    for size in [5120, 81_920] {
        let made = admin.put(&format!("/of-{size}"), &body(size)).expect(201);
        assert_eq!(made.value("MaxSizeInMegabytes"), "81920");
    }
    let refused = admin.put("/new", &body(10_240));
    assert_contains(refused.refusal(400), "1024;2048;3072;4096;5120");
}

#[test]
fn o31_o35_an_authorization_rule_has_any_key_and_the_given_times() {
    let (_bus, admin) = Bus::administered();
    let key = " not base64, but forty-four characters long ";
    assert_eq!(key.len(), 44);
    let body = |times: &str| {
        queue(&format!(
            "<AuthorizationRules><AuthorizationRule i:type=\"SharedAccessAuthorizationRule\"><Rights><AccessRights>Send\
             </AccessRights></Rights>{times}<KeyName>k</KeyName><PrimaryKey>{key}</PrimaryKey></AuthorizationRule>\
             </AuthorizationRules>"
        ))
    };
    let made = admin.put("/new", &body("")).expect(201);
    assert_eq!(made.value("PrimaryKey"), key);
    assert_eq!(
        (made.text("CreatedTime"), made.text("ModifiedTime")),
        (None, None)
    );
    let given = "<CreatedTime>2021-10-01T00:00:00.1234567Z</CreatedTime>";
    let changed = admin.change("/new", &body(given)).expect(200);
    assert_eq!(changed.value("CreatedTime"), "2021-10-01T00:00:00.1234567Z");
    let wrong = admin.change("/new", &body("<CreatedTime>now</CreatedTime>"));
    assert_contains(wrong.refusal(400), "allowed: a dateTime");
}

#[test]
fn o32_o33_a_client_without_manage_gets_the_text_of_the_service() {
    let keys = r#""Keys":[{"Name":"RootManageSharedAccessKey","Key":"SAS_KEY_VALUE","Claims":["Send","Listen","Manage"]},
                  {"Name":"reader","Key":"secret","Claims":["Listen"]}]"#;
    let (bus, admin) = Bus::configured(&queues(keys, &[("q", "")])).with_admin();
    admin.create("/t", &topic_entry(""));
    let key = Key {
        name: "reader".into(),
        key: "secret".into(),
        claims: [Claim::Listen].into_iter().collect(),
    };
    let reader = bus.admin_as(Some(sas::sign("sb://localhost/", &key, in_an_hour())));
    let missing = reader.get("/missing").expect(200);
    assert_eq!(missing.value("title"), "Publicly Listed Services");
    let read = "Manage,EntityRead claims required for this operation";
    let write = "Authorization failed for specified action: Manage,EntityWrite";
    let back_end = |what: &str| {
        format!("SubCode=40100: Unauthorized : Unauthorized access for '{what}' operation")
    };
    let (q, t, s) = (queue(""), topic_entry(""), subscription(""));
    for (reply, text) in [
        (reader.get("/q"), read.to_owned()),
        (reader.get("/$Resources/queues"), read.to_owned()),
        (reader.get("/$Resources/topics"), read.to_owned()),
        (reader.put("/new", &q), write.to_owned()),
        (reader.change("/new", &q), write.to_owned()),
        (reader.change("/t", &t), write.to_owned()),
        (
            reader.delete("/q"),
            "Authorization failed for specified action: Manage,EntityDelete.".to_owned(),
        ),
        (
            reader.get("/t/Subscriptions/s"),
            back_end("GetSubscription"),
        ),
        (
            reader.get("/t/Subscriptions/"),
            back_end("EnumerateSubscriptions"),
        ),
        (
            reader.put("/t/Subscriptions/s", &s),
            back_end("CreateOrUpdateSubscription"),
        ),
        (
            reader.delete("/t/Subscriptions/s"),
            back_end("DeleteSubscription"),
        ),
    ] {
        let found = reply.refusal(401);
        assert_starts_with(found, &text);
    }
    let flipped = topic_entry("<EnablePartitioning>true</EnablePartitioning>");
    let refused = admin.change("/t", &flipped);
    let text = refused.refusal(400);
    assert_contains(text, "Partitioning cannot be changed for Topic. ");
}

#[test]
fn o34_a_new_subscription_has_an_accessed_time_and_a_new_queue_none() {
    let (_bus, admin) = Bus::administered();
    let never = "0001-01-01T00:00:00Z";
    assert_eq!(admin.get("/q").expect(200).value("AccessedAt"), never);
    let shown = admin.get("/t/Subscriptions/s").expect(200);
    assert_ne!(shown.value("AccessedAt"), never);
}

#[test]
fn o38_an_update_of_user_metadata_ends_locks() {
    let (bus, admin) = Bus::administered();
    let mut peer = bus.client();
    peer.send_to("q", &Message::new("m"));
    let held = peer.receive_from("q");
    assert_eq!(bus.http.counts("q")["locked"], 1);
    admin.update("/q", &queue("<UserMetadata>m</UserMetadata>"));
    assert_eq!(bus.http.counts("q")["locked"], 0, "{held:?}");
}

#[test]
fn o40_errors_for_any_path_are_well_formed_xml() {
    let (_bus, admin) = Bus::administered();
    for path in [
        "/%00%01%1b",
        "/a%ef%bf%bf",
        "/t/Subscriptions/s/Rules/%02",
        "/%3Cb%3E%26",
    ] {
        for reply in [
            admin.get(path),
            admin.put(path, &queue("")),
            admin.delete(path),
        ] {
            let is_legal = |c: char| c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}') || c == '\n';
            assert!(reply.body.chars().all(is_legal), "{path}: {reply:?}");
            assert!(!reply.body.contains("<b>"), "{reply:?}");
        }
    }
}

#[test]
fn o48_a_maximum_size_unknown_to_the_tier_is_refused() {
    let (_bus, admin) = Bus::administered();
    let body = |size: u32| queue(&format!("<MaxSizeInMegabytes>{size}</MaxSizeInMegabytes>"));
    let refused = admin.put("/new", &body(777));
    let text = refused.refusal(400);
    assert_contains(text, "1024;2048;3072;4096;5120");
    // What a configuration declared smaller is kept when it is sent back.
    let small = Bus::configured(&queues("", &[("small", r#""MaxSizeInMegabytes":1"#)]));
    small.admin().change("/small", &body(1)).expect(200);
}

#[test]
fn o65_the_basic_tier_refuses_auto_delete_on_idle() {
    let (_bus, admin) = Bus::configured(&queues(r#""Tier":"basic""#, &[("q", "")])).with_admin();
    let body = queue("<AutoDeleteOnIdle>PT10M</AutoDeleteOnIdle>");
    let text = "SubCode=40000. The property 'AutoDeleteOnIdle' cannot be set when creating a Queue because the \
                namespace 'sbemulatorns' is using 'Basic' tier.";
    for reply in [admin.put("/new", &body), admin.change("/q", &body)] {
        let found = reply.refusal(400);
        assert_starts_with(found, text);
    }
}
