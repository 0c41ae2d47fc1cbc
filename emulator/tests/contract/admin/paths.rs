//! Names in paths: every spelling of the clients, and invalid names.
//!
//! Responses for missing entities: seldom a plain 404 (admin-http.md §7).

use crate::support::*;

#[test]
fn every_spelling_of_a_path_names_the_same_entity() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let made = admin
        .put("/a%2FTxt.-_123?api-version=2024-05", &queue(""))
        .expect(201);
    assert_eq!(made.value("title"), "a/Txt.-_123");
    assert_eq!(
        made.value("id"),
        format!("https://{HOST}/a/Txt.-_123?api-version=2024-05")
    );
    for path in [
        "/a/Txt.-_123",
        "/A%2ftxt.-_123/",
        "/a/txt.-_123?&x",
        "//a/txt.-_123",
    ] {
        assert_eq!(
            admin.get(path).expect(200).value("title"),
            "a/Txt.-_123",
            "{path}"
        );
    }
    admin.create("/a%2Ft", &topic_entry(""));
    admin.create("/a%2Ft/subscriptions/s", &subscription(""));
    for path in [
        "/a/t/Subscriptions/s",
        "/A/T/SUBSCRIPTIONS/S/",
        "/a%2Ft%2Fsubscriptions%2Fs",
    ] {
        assert_eq!(admin.get(path).expect(200).value("title"), "s", "{path}");
    }
    for path in [
        "/a/t/Subscriptions/s/Rules/$Default",
        "/a%2Ft/subscriptions/s/rules/%24default/",
    ] {
        assert_eq!(
            admin.get(path).expect(200).value("title"),
            "$Default",
            "{path}"
        );
    }
    assert_eq!(
        admin.get("/%24NAMESPACEINFO").expect(200).value("title"),
        "sbemulatorns"
    );
}

#[test]
fn entity_names_have_legal_characters_and_a_maximum_length() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    let longest = "x".repeat(260);
    admin.create(&format!("/{longest}"), &queue(""));
    let name = "y".repeat(50);
    admin.create(&format!("/t/Subscriptions/{name}"), &subscription(""));
    for path in [
        "a%20b",
        "-a",
        "a%3Fb",
        "a%23b",
        "a*b",
        "a%40b",
        "a%5Cb",
        &"x".repeat(261),
    ] {
        let path = format!("/{path}");
        for reply in [
            admin.get(&path),
            admin.put(&path, &queue("")),
            admin.delete(&path),
        ] {
            let text = reply.refusal(400);
            assert_starts_with(text, "SubCode=40000. The name '");
        }
    }
    for name in ["a%20b", "a%3Fb", &"y".repeat(51)] {
        let reply = admin.put(&format!("/t/Subscriptions/{name}"), &subscription(""));
        assert_contains(reply.refusal(400), "of a subscription ");
    }
    admin.get("/%ff").refusal(400);
}

#[test]
fn a_sub_queue_cannot_be_administered() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    admin.create("/t/Subscriptions/s", &subscription(""));
    for path in [
        "/q/$DeadLetterQueue",
        "/q/%24deadletterqueue",
        "/q/$Transfer/$DeadLetterQueue",
        "/t/Subscriptions/s/$DeadLetterQueue",
    ] {
        for (method, body) in [("GET", None), ("PUT", Some(queue(""))), ("DELETE", None)] {
            let text = format!(
                "The specified HTTP verb ({method}) is not valid. To know more visit \
                 https://aka.ms/sbResourceMgrExceptions. ."
            );
            let reply = admin.send(method, path, &[], body.as_deref());
            assert_eq!(reply.refusal(400), text, "{path}");
        }
    }
    assert_starts_with(&admin.get("/q").expect(200).body, "<entry");
}

#[test]
fn an_unsupported_administration_method_is_refused() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    for (method, path) in [
        ("PATCH", "/q"),
        ("OPTIONS", "/$Resources/queues"),
        ("PUT", "/$namespaceinfo"),
        ("DELETE", "/$Resources/queues"),
        ("GET", "/$Resources/relays"),
        ("DELETE", "/q/Subscriptions"),
    ] {
        let reply = admin.send(method, path, &[], None);
        assert_contains(reply.refusal(400), &format!("({method})"));
    }
    let response = admin.send("HEAD", "/q", &[], None);
    assert_eq!((response.status, response.body.as_str()), (400, ""));
}

#[test]
fn a_namespace_describes_itself() {
    for (tier, units) in [("standard", None), ("premium", Some("1"))] {
        let bus = Bus::configured(&queues(&format!(r#""Tier":"{tier}""#), &[("q", "")]));
        let shown = bus
            .admin()
            .get("/$namespaceinfo?api-version=2021-05")
            .expect(200);
        let sku = shown.value("MessagingSKU").to_lowercase();
        assert_eq!((sku.as_str(), shown.text("MessagingUnits")), (tier, units));
        assert_eq!(
            shown.values(["Name", "NamespaceType"]),
            ["sbemulatorns", "Messaging"]
        );
        let premium = bus.admin().get("/q?api-version=2021-05").expect(200);
        let size = if units.is_some() { "1024" } else { "256" };
        assert_eq!(premium.value("MaxMessageSizeInKilobytes"), size);
    }
}

const MORE: &str = "To know more visit https://aka.ms/sbResourceMgrExceptions.";

#[test]
fn a_missing_queue_or_topic_reads_as_the_list_of_public_services() {
    let (_bus, admin) = Bus::administered();
    for path in [
        "/missing",
        "/",
        "/missing/Subscriptions/s",
        "/missing/Subscriptions/s/Rules/r",
        "/q/Subscriptions/s",
    ] {
        let reply = admin.get(path).expect(200);
        let type_ = Some("application/atom+xml;type=feed;charset=utf-8");
        assert_eq!(reply.header("content-type"), type_);
        assert!(
            reply.body.starts_with(
                "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title type=\"text\">Publicly Listed Services</title>\
                 <subtitle type=\"text\">This is the list of publicly-listed services currently available.</subtitle>\
                 <id>uuid:"
            ),
            "{path}: {reply:?}"
        );
        assert_ends_with(
            &reply.body,
            "Z</updated><generator>Service Bus 1.1</generator></feed>",
        );
        assert!(!reply.body.contains("<entry"));
    }
}

#[test]
fn a_missing_subscription_or_rule_is_named() {
    let (_bus, admin) = Bus::administered();
    let text = |name: &str| format!("Entity 'sbemulatorns:Topic:{name}' was not found. {MORE}");
    for (path, name) in [
        ("/t/Subscriptions/missing", "t|missing"),
        ("/T/subscriptions/missing/rules/r", "t|missing"),
        ("/t/Subscriptions/s/Rules/missing", "t|s|missing"),
        ("/t/Subscriptions/missing/Rules", "t|missing"),
        ("/missing/Subscriptions", "missing"),
        ("/missing/Subscriptions/s/Rules", "missing"),
    ] {
        let reply = admin.get(path);
        assert_eq!(reply.refusal(404), text(name), "{path}");
        assert_contains(&reply.body, "_B0, SystemTracker:NoSystemTracker, ");
        assert!(
            reply.body.contains(".  TrackingId:"),
            "two blanks: {reply:?}"
        );
    }
    let changed = admin.change("/t/Subscriptions/missing", &subscription(""));
    assert_eq!(changed.refusal(404), text("t|missing"));
    let body = rule(&sql_filter("a = 1"));
    let changed = admin.change("/t/Subscriptions/s/Rules/missing", &body);
    assert_eq!(changed.refusal(404), text("t|s|missing"));
    let made = admin.put("/t/Subscriptions/missing/Rules/r", &body);
    assert_eq!(made.refusal(404), text("t|missing"));
}

#[test]
fn a_missing_entity_cannot_be_updated_or_deleted() {
    let (_bus, admin) = Bus::administered();
    for body in [queue(""), topic_entry("")] {
        let text = format!("SubCode=40400. Not Found. The Operation doesn't exist. {MORE} .");
        assert_eq!(admin.change("/missing", &body).refusal(404), text);
    }
    let text = format!(
        "The incoming request is not recognized as a namespace policy put request. {MORE} ."
    );
    for topic in ["missing", "q"] {
        let path = format!("/{topic}/Subscriptions/s");
        assert_eq!(admin.put(&path, &subscription("")).refusal(404), text);
        assert_eq!(admin.change(&path, &subscription("")).refusal(404), text);
    }
    for path in [
        "/missing",
        "/t/Subscriptions/missing",
        "/missing/Subscriptions/s",
        "/t/Subscriptions/s/Rules/missing",
        "/missing/Subscriptions/s/Rules/r",
    ] {
        let text = "No service is hosted at the specified address.";
        assert_eq!(admin.delete(path).refusal(404), text, "{path}");
    }
}

#[test]
fn a_refused_administration_request_is_in_the_timeline() {
    let (bus, admin) = Bus::administered();
    let reply = admin.get("/t/Subscriptions/missing");
    let detail = reply.value("Detail").to_owned();
    let events = bus.http.events("");
    let event = events.iter().find(|event| event["kind"] == "refused");
    let event = event.expect("an event");
    assert_eq!(event["reason"], "http:404", "{event}");
    assert_eq!(event["detail"], detail, "{event}");
}

#[test]
fn an_entity_may_have_the_name_of_a_path_of_other_apis() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    for name in [
        "health",
        "metrics",
        "shop/messages",
        "shop/messages/head",
        "shop/messages/x/y",
    ] {
        let path = format!("/{name}?api-version=2021-05");
        admin.put(&path, &queue("")).expect(201);
        assert_eq!(admin.get(&path).expect(200).value("title"), name);
        admin.delete(&path).expect(200);
    }
    admin.create("/t", &topic_entry(""));
    for path in [
        "/t/Subscriptions/messages",
        "/t/Subscriptions/messages/Rules/messages",
    ] {
        let body = match path.contains("Rules") {
            true => rule(&sql_filter("1=1")),
            false => subscription(""),
        };
        admin.create(path, &body);
        assert_eq!(admin.get(path).expect(200).value("title"), "messages");
    }
    admin.get("/t/Subscriptions/messages/Rules").expect(200);
    admin
        .delete("/t/Subscriptions/messages/Rules/messages")
        .expect(200);
    admin.delete("/t/Subscriptions/messages").expect(200);
}

#[test]
fn names_of_subscriptions_and_rules_begin_and_end_with_a_letter_or_digit() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    admin.create("/t/Subscriptions/a-_.b", &subscription(""));
    for name in ["-a", "a-", "_", ".a", "$x"] {
        let path = format!("/t/Subscriptions/{name}");
        admin.put(&path, &subscription("")).refusal(400);
        let path = format!("/t/Subscriptions/a-_.b/Rules/{name}");
        admin.put(&path, &rule(&sql_filter("1=1"))).refusal(400);
    }
}
