//! Topics and subscriptions, and their counts.

use crate::support::*;

/// What a topic is shown with, in this order.
const TOPIC: &str = "\
    DefaultMessageTimeToLive MaxSizeInMegabytes RequiresDuplicateDetection \
    DuplicateDetectionHistoryTimeWindow EnableBatchedOperations SizeInBytes \
    FilteringMessagesBeforePublishing IsAnonymousAccessible AuthorizationRules Status CreatedAt \
    UpdatedAt AccessedAt SupportOrdering CountDetails SubscriptionCount SqlFilterCount \
    CorrelationFilterCount AutoDeleteOnIdle EnablePartitioning EntityAvailabilityStatus \
    EnableSubscriptionPartitioning EnableExpress MaxMessageSizeInKilobytes";

/// The same of a subscription.
const SUBSCRIPTION: &str = "\
    LockDuration RequiresSession DefaultMessageTimeToLive DeadLetteringOnMessageExpiration \
    DeadLetteringOnFilterEvaluationExceptions MessageCount MaxDeliveryCount EnableBatchedOperations \
    Status CreatedAt UpdatedAt AccessedAt CountDetails UserMetadata AutoDeleteOnIdle \
    EntityAvailabilityStatus IsClientAffine";

fn assert_order(reply: &AtomReply, names: &str) {
    let (_, description) = reply.body.split_once("<content").expect("a content");
    let place = |name: &str| description.find(&format!("<{name}>"));
    let prefixed = |name: &str| description.find(&format!("<{name} "));
    let places: Vec<_> = names
        .split(' ')
        .map(|name| place(name).or_else(|| prefixed(name)))
        .collect();
    assert!(
        places.iter().all(Option::is_some),
        "{places:?}: {description}"
    );
    assert!(places.is_sorted(), "{places:?}: {description}");
}

#[test]
fn a_topic_has_the_elements_of_each_api_version() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let made = admin.put(
        "/t?api-version=2024-05",
        &topic_entry("<SupportOrdering>false</SupportOrdering>"),
    );
    let made = made.expect(201);
    assert_order(&made, TOPIC);
    assert_eq!(made.value("SupportOrdering"), "false");
    let shows = |version: &str, name: &str| {
        admin
            .get(&format!("/t{version}"))
            .expect(200)
            .text(name)
            .is_some()
    };
    for (version, size, filters) in [
        ("", false, false),
        ("?api-version=2017-04", false, false),
        ("?api-version=2013-10&timeout=60", false, false),
        ("?api-version=2021-05", true, false),
        ("?api-version=2024-05", true, true),
        ("?api-version=2099-01", true, true),
    ] {
        assert_eq!(
            shows(version, "MaxMessageSizeInKilobytes"),
            size,
            "{version}"
        );
        assert_eq!(shows(version, "SqlFilterCount"), filters, "{version}");
    }
}

#[test]
fn a_new_subscription_has_all_elements_and_a_default_rule() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/Orders/t", &topic_entry(""));
    let inner = "<LockDuration>PT30S</LockDuration><RequiresSession>true</RequiresSession>\
                 <DeadLetteringOnFilterEvaluationExceptions>false</DeadLetteringOnFilterEvaluationExceptions>\
                 <MaxDeliveryCount>4</MaxDeliveryCount><Status>ReceiveDisabled</Status><UserMetadata>m</UserMetadata>\
                 <MaxSizeInMegabytes>of other entities</MaxSizeInMegabytes>";
    let made = admin
        .put(
            "/orders/T/subscriptions/New?api-version=2021-05",
            &subscription(inner),
        )
        .expect(201);
    assert_order(&made, SUBSCRIPTION);
    for (name, value) in [
        ("title", "New"),
        ("RequiresSession", "true"),
        ("DeadLetteringOnFilterEvaluationExceptions", "false"),
        ("MaxDeliveryCount", "4"),
        ("Status", "ReceiveDisabled"),
        ("IsClientAffine", "false"),
    ] {
        assert_eq!(made.value(name), value);
    }
    let id = "/orders/T/subscriptions/New?api-version=2021-05";
    assert_eq!(made.value("id"), format!("https://{HOST}{id}"));
    let read = admin.get(id).expect(200);
    assert_eq!(read.value("id"), format!("sb://{HOST}{id}"));
    assert_eq!(made.text("author"), None);
    let tag = |path: &str| {
        admin
            .get(path)
            .expect(200)
            .header("etag")
            .map(str::to_owned)
    };
    assert_eq!(
        tag("/Orders/t/Subscriptions/new"),
        tag("/Orders/t"),
        "the topic's"
    );
    let rules = admin.get("/Orders/t/Subscriptions/New/Rules").expect(200);
    assert_eq!(rules.texts("Name"), ["$Default"]);
    assert_eq!(rules.texts("SqlExpression"), ["1=1"]);
    let topic = admin.get("/orders/t?api-version=2024-05").expect(200);
    assert_eq!(topic.value("SubscriptionCount"), "1");
}

#[test]
fn a_subscription_can_be_created_with_its_own_first_rule() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    let inner = format!(
        "<DefaultRuleDescription i:type=\"RuleDescription\">{}<Action i:type=\"SqlRuleAction\">\
         <SqlExpression>SET a = 1</SqlExpression></Action><Name>dear</Name></DefaultRuleDescription>",
        sql_filter("price &gt; 10")
    );
    admin.create("/t/Subscriptions/s", &subscription(&inner));
    let rules = admin.get("/t/Subscriptions/s/Rules").expect(200);
    assert_eq!(rules.texts("Name"), ["dear"]);
    assert_eq!(rules.texts("SqlExpression"), ["price &gt; 10", "SET a = 1"]);
    let nameless = format!(
        "<DefaultRuleDescription>{}</DefaultRuleDescription>",
        sql_filter("a = 1")
    );
    admin.create("/t/Subscriptions/u", &subscription(&nameless));
    let rules = admin.get("/t/Subscriptions/u/Rules").expect(200);
    assert_eq!(
        (rules.texts("Name"), rules.texts("SqlExpression")),
        (vec!["$Default"], vec!["a = 1"])
    );
    let wrong = format!(
        "<DefaultRuleDescription>{}</DefaultRuleDescription>",
        sql_filter("a =")
    );
    admin
        .put("/t/Subscriptions/v", &subscription(&wrong))
        .refusal(400);
    admin.get("/t/Subscriptions/v").expect(404);
}

#[test]
fn a_deleted_topic_deletes_its_subscriptions() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    for name in ["a", "b"] {
        admin.create(&format!("/t/Subscriptions/{name}"), &subscription(""));
    }
    admin.delete("/t/Subscriptions/a").expect(200);
    assert_eq!(admin.get("/t").expect(200).value("SubscriptionCount"), "1");
    admin.delete("/t").expect(200);
    admin.create("/t", &topic_entry(""));
    assert_eq!(admin.get("/t").expect(200).value("SubscriptionCount"), "0");
    admin.get("/t/Subscriptions/b").expect(404);
}

#[test]
fn dead_letters_are_counted_at_the_subscription_and_never_at_the_topic() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/topic", &topic_entry(""));
    let inner = "<DefaultMessageTimeToLive>PT1M</DefaultMessageTimeToLive>\
                 <DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration>";
    admin.create("/topic/Subscriptions/test1", &subscription(inner));
    let (mut peer, sender) = bus.sender("topic");
    for number in 0..62 {
        peer.send(&sender, &Message::new(&number.to_string()));
    }
    bus.http.advance(61.0);
    peer.send(&sender, &Message::new("active"));
    peer.send(
        &sender,
        &Message::new("later").scheduled_at(client_now() + 3_600_000),
    );
    for version in [
        "?api-version=2017-04&timeout=60",
        "?api-version=2021-05",
        "?api-version=2024-05",
    ] {
        let counts = |path: &str| {
            let shown = admin.get(&format!("{path}{version}")).expect(200);
            [
                "ActiveMessageCount",
                "DeadLetterMessageCount",
                "ScheduledMessageCount",
            ]
            .map(|name| shown.value(name).to_owned())
        };
        assert_eq!(
            counts("/topic/Subscriptions/test1"),
            ["1", "62", "0"],
            "{version}"
        );
        assert_eq!(counts("/topic"), ["0", "0", "1"], "{version}");
        let listed = admin
            .get(&format!("/topic/Subscriptions{version}"))
            .expect(200);
        assert_eq!(listed.texts("DeadLetterMessageCount"), ["62"]);
        assert_eq!(listed.texts("MessageCount"), ["63"]);
    }
    let size = |path: &str| {
        admin
            .get(path)
            .expect(200)
            .value("SizeInBytes")
            .parse::<u64>()
            .expect("a number")
    };
    assert!(size("/topic") > 0, "what its subscriptions hold counts");
}

#[test]
fn a_use_updates_the_accessed_time_of_a_new_entity() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/new", &queue(""));
    bus.http.advance(5.0);
    let mut peer = bus.client();
    peer.send_to("new", &Message::new("m"));
    let shown = admin.get("/new").expect(200);
    let [created, updated, accessed] =
        ["CreatedAt", "UpdatedAt", "AccessedAt"].map(|name| shown.value(name).to_owned());
    assert!(
        created < updated && updated < accessed,
        "{created} {updated} {accessed}"
    );
    let changed = admin
        .change("/new", &queue("<MaxDeliveryCount>3</MaxDeliveryCount>"))
        .expect(200);
    assert_eq!(
        changed.value("AccessedAt")[..16],
        accessed[..16],
        "a change does not count as a use"
    );
    assert_ne!(changed.value("UpdatedAt"), updated);
}
