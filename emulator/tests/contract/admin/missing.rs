//! What is answered where something is missing: seldom a plain 404 (admin-http.md §7).

use crate::support::*;

const MORE: &str = "To know more visit https://aka.ms/sbResourceMgrExceptions.";

fn started() -> (Bus, Admin) {
    let bus = Bus::with_queues(&["q"]);
    let admin = bus.admin();
    admin.put("/t", &topic_entry("")).expect(201);
    admin
        .put("/t/Subscriptions/s", &subscription(""))
        .expect(201);
    (bus, admin)
}

#[test]
fn a_missing_queue_or_topic_reads_as_the_list_of_public_services() {
    let (_bus, admin) = started();
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
        assert!(
            reply
                .body
                .ends_with("Z</updated><generator>Service Bus 1.1</generator></feed>")
        );
        assert!(!reply.body.contains("<entry"));
    }
}

#[test]
fn a_missing_subscription_or_rule_is_named() {
    let (_bus, admin) = started();
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
        assert!(
            reply.body.contains("_B0, SystemTracker:NoSystemTracker, "),
            "{reply:?}"
        );
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
fn what_is_missing_cannot_be_changed_or_removed() {
    let (_bus, admin) = started();
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
fn a_refusal_is_in_the_timeline_with_its_tracking_id() {
    let (bus, admin) = started();
    let reply = admin.get("/t/Subscriptions/missing");
    let detail = reply.value("Detail").to_owned();
    let events = bus.http.events("");
    let event = events.iter().find(|event| event["kind"] == "refused");
    let event = event.expect("an event");
    assert_eq!(event["reason"], "http:404", "{event}");
    assert_eq!(event["detail"], detail, "{event}");
}
