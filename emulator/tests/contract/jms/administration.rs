//! The administration API returns the client of a JMS subscription.

use serde_json::json;

use crate::support::*;

const PATH: &str = "/t/Subscriptions/a$c$D?api-version=2021-05";

#[test]
fn the_administration_api_shows_and_keeps_the_jms_client() {
    let (bus, admin) = Bus::premium(&[]).with_admin();
    let mut peer = bus.jms("c");
    let own = peer.attached(&Attach::subscriber("a", "t", true, &["shared"]));
    peer.leave(&own);
    let shown = admin.get(PATH).expect(200);
    for (name, value) in [
        ("IsClientAffine", "true"),
        ("ClientId", "c"),
        ("IsDurable", "true"),
        ("IsShared", "true"),
    ] {
        assert_eq!(shown.value(name), value, "{name}");
    }
    // What a client that does not know of it sends back.
    let changed = subscription("<MaxDeliveryCount>3</MaxDeliveryCount>");
    let changed = admin.change(PATH, &changed).expect(200);
    assert_eq!(changed.value("ClientId"), "c");
    assert_eq!(changed.value("MaxDeliveryCount"), "3");
    let again = peer.attached(&Attach::subscriber("a", "t", true, &["shared"]));
    peer.leave(&again);
    admin.delete(PATH).expect(200);
    let refusal = peer.refused(&Attach::unsubscriber("a", &[]));
    assert_eq!(refusal.condition, "amqp:not-found");
}

#[test]
fn a_jms_subscription_can_be_created_for_a_client_with_listen_only() {
    let (bus, admin) = Bus::premium(&[]).with_admin();
    admin.create("/t", &topic_entry(""));
    let client = "<IsClientAffine>true</IsClientAffine><ClientAffineProperties><ClientId>c</ClientId>\
        <IsDurable>true</IsDurable><IsShared>false</IsShared></ClientAffineProperties>";
    admin.create(PATH, &subscription(client));
    assert_eq!(admin.get(PATH).expect(200).value("ClientId"), "c");
    let mut peer = bus.jms("c");
    peer.attached(&Attach::subscriber("a", "t", true, &[]));
    assert_eq!(bus.subscriptions_of("t"), ["a$c$D"]);
    let refusal = admin.put(
        "/t/Subscriptions/other",
        &subscription("<IsClientAffine>true</IsClientAffine>"),
    );
    assert_contains(refusal.refusal(400), "needs 'ClientAffineProperties'");
}

#[test]
fn an_export_with_jms_subscriptions_declares_an_equal_namespace() {
    let bus = Bus::premium(&[]);
    let mut peer = bus.jms("c");
    let own = Attach::subscriber("a", "t", true, &["shared"]).selecting("n > 1");
    peer.attached(&own);
    let exported = bus.http.get("~/topology").ok();
    let declared = &exported["UserConfig"]["Namespaces"][0]["Topics"][0]["Subscriptions"][0];
    assert_eq!(declared["Properties"]["IsClientAffine"], true);
    assert_eq!(
        declared["Properties"]["ClientAffineProperties"],
        json!({"ClientId": "c", "IsDurable": true, "IsShared": true})
    );

    let started = Bus::configured(&exported.to_string());
    assert_eq!(started.http.get("~/topology").ok(), exported);
    let shown = |bus: &Bus| bus.http.get("~/subscriptions/t/Subscriptions/a$c$D").ok();
    assert_eq!(shown(&started), shown(&bus));
    // The client that it was exported from finds it as it was.
    let sent = Message::new("kept").application("n", long(2));
    started.client().send_to("t", &sent);
    let mut again = started.jms("c");
    let receiver = again.attached(&own);
    assert_eq!(again.receive_one(&receiver).id(), "kept");
    let unshared = Attach::subscriber("a", "t", true, &[]);
    let refusal = started.jms("c").refused(&unshared);
    assert_eq!(refusal.condition, "amqp:not-allowed");
}

#[test]
fn an_export_has_the_selector_as_written_by_the_client() {
    let bus = Bus::premium(&[]);
    let mut peer = bus.jms("c");
    let terms = vec!["JMSPriority = 4"; 50].join(" OR ");
    let others = "NOT (color = 1)";
    for (name, selector) in [("long", terms.as_str()), ("other", others)] {
        let own = Attach::subscriber(name, "t", true, &[]).selecting(selector);
        let own = peer.attached(&own);
        peer.leave(&own);
    }
    let exported = bus.http.get("~/topology").ok();
    let started = Bus::configured(&exported.to_string());
    assert_eq!(started.http.get("~/topology").ok(), exported);
    // In the language of the service this is unknown.
    let sent = Message::new("kept").application("color", text("red"));
    started.client().send_to("t", &sent);
    let mut peer = started.jms("c");
    let other = Attach::subscriber("other", "t", true, &[]);
    let own = peer.attached(&other.clone().selecting(others));
    assert_eq!(peer.receive_one(&own).id(), "kept");
    peer.leave(&own);
    peer.attached(&other.selecting("color = 'blue'"));
    let shown = started
        .http
        .get("~/subscriptions/t/Subscriptions/other$c$D");
    let filter = &shown.ok()["rules"][0]["Properties"]["SqlFilter"];
    assert_eq!(
        *filter,
        json!({"Selector": "color = 'blue'"}),
        "it is made anew"
    );
}
