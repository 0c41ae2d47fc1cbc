//! Names in paths: every spelling that clients use, and none that is not a name.

use crate::support::*;

#[test]
fn every_spelling_means_the_same_entity() {
    let bus = Bus::with_queues(&["q"]);
    let admin = bus.admin();
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
    admin.put("/a%2Ft", &topic_entry("")).expect(201);
    admin
        .put("/a%2Ft/subscriptions/s", &subscription(""))
        .expect(201);
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
fn names_have_their_letters_and_their_length() {
    let bus = Bus::with_queues(&["q"]);
    let admin = bus.admin();
    admin.put("/t", &topic_entry("")).expect(201);
    let longest = "x".repeat(260);
    admin.put(&format!("/{longest}"), &queue("")).expect(201);
    let name = "y".repeat(50);
    admin
        .put(&format!("/t/Subscriptions/{name}"), &subscription(""))
        .expect(201);
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
            assert!(text.starts_with("SubCode=40000. The name '"), "{text}");
        }
    }
    for name in ["a%20b", "a%3Fb", &"y".repeat(51)] {
        let reply = admin.put(&format!("/t/Subscriptions/{name}"), &subscription(""));
        assert!(
            reply.refusal(400).contains("of a subscription "),
            "{reply:?}"
        );
    }
    admin.get("/%ff").refusal(400);
}

#[test]
fn a_sub_queue_has_no_administration_of_its_own() {
    let bus = Bus::with_queues(&["q"]);
    let admin = bus.admin();
    admin.put("/t", &topic_entry("")).expect(201);
    admin
        .put("/t/Subscriptions/s", &subscription(""))
        .expect(201);
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
    assert!(admin.get("/q").expect(200).body.starts_with("<entry"));
}

#[test]
fn only_three_verbs_are_known() {
    let bus = Bus::with_queues(&["q"]);
    let admin = bus.admin();
    for (method, path) in [
        ("PATCH", "/q"),
        ("OPTIONS", "/$Resources/queues"),
        ("PUT", "/$namespaceinfo"),
        ("DELETE", "/$Resources/queues"),
        ("GET", "/$Resources/relays"),
        ("DELETE", "/q/Subscriptions"),
    ] {
        let reply = admin.send(method, path, &[], None);
        assert!(
            reply.refusal(400).contains(&format!("({method})")),
            "{reply:?}"
        );
    }
    let told = admin.send("HEAD", "/q", &[], None);
    assert_eq!((told.status, told.body.as_str()), (400, ""));
}

#[test]
fn a_namespace_tells_what_it_is() {
    for (tier, units) in [("standard", None), ("premium", Some("1"))] {
        let bus = Bus::configured(&queues(&format!(r#""Tier":"{tier}""#), &[("q", "")]));
        let shown = bus
            .admin()
            .get("/$namespaceinfo?api-version=2021-05")
            .expect(200);
        let sku = shown.value("MessagingSKU").to_lowercase();
        assert_eq!((sku.as_str(), shown.text("MessagingUnits")), (tier, units));
        assert_eq!(
            (shown.value("Name"), shown.value("NamespaceType")),
            ("sbemulatorns", "Messaging")
        );
        let premium = bus.admin().get("/q?api-version=2021-05").expect(200);
        let size = if units.is_some() { "1024" } else { "256" };
        assert_eq!(premium.value("MaxMessageSizeInKilobytes"), size);
    }
}
