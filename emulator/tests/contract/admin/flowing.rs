//! Entities are created, changed and removed while messages flow.

use crate::support::*;

#[test]
fn a_created_queue_can_be_used_at_once() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let mut peer = bus.client();
    admin.create("/new", &queue(""));
    peer.send_to("NEW", &Message::new("m"));
    let shown = admin.get("/new").expect(200);
    assert_eq!(
        shown.values(["ActiveMessageCount", "MessageCount"]),
        ["1", "1"]
    );
    assert_ne!(shown.value("SizeInBytes"), "0");
    let receiver = peer.receiver_with_credit("new", 1);
    let delivery = peer.receive(&receiver);
    let shown = admin.get("/new").expect(200);
    assert_eq!(
        shown.value("ActiveMessageCount"),
        "1",
        "a locked one is active"
    );
    peer.settle(&delivery, accepted());
    assert_eq!(admin.get("/new").expect(200).value("MessageCount"), "0");
}

#[test]
fn a_changed_status_and_a_deletion_apply_to_open_links() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let (mut peer, receiver) = bus.receiver("q");
    peer.credit(&receiver, 1);
    let sender = peer.sender("q");
    admin.update("/q", &queue("<Status>ReceiveDisabled</Status>"));
    let refusal = peer.detached(&receiver).refusal(2);
    assert_eq!(refusal.condition, "com.microsoft:entity-disabled");
    assert_eq!(admin.get("/q").value("Status"), "ReceiveDisabled");
    admin.delete("/q").expect(200);
    let refusal = peer.detached(&sender).refusal(2);
    assert_eq!(refusal.condition, "amqp:not-found");
}

#[test]
fn a_new_subscription_gets_later_messages() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    let (mut peer, sender) = bus.sender("t");
    peer.send(&sender, &Message::new("before"));
    admin.create("/t/Subscriptions/s", &subscription(""));
    peer.send(&sender, &Message::new("after"));
    assert_eq!(bus.http.held("t/Subscriptions/s"), (1, 0));
    admin.delete("/t/Subscriptions/s").expect(200);
    peer.send(&sender, &Message::new("nobody's"));
    let shown = admin.get("/t").expect(200);
    assert_eq!(
        shown.values(["ActiveMessageCount", "SizeInBytes"]),
        ["0", "0"]
    );
}

#[test]
fn adding_a_rule_restarts_the_idle_time_of_a_subscription() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    let idle = subscription("<AutoDeleteOnIdle>PT5M</AutoDeleteOnIdle>");
    admin.create("/t/Subscriptions/s", &idle);
    let rules = "/t/Subscriptions/s/Rules";
    bus.http.advance(200.0);
    admin.create(&format!("{rules}/r"), &rule(&sql_filter("a = 1")));
    bus.http.advance(200.0);
    admin.update(&format!("{rules}/r"), &rule(&sql_filter("a = 2")));
    bus.http.advance(200.0);
    // A client that only peeks keeps nothing.
    admin.get(rules).expect(200);
    bus.http.advance(101.0);
    admin.get("/t/Subscriptions/s").expect(404);
}

#[test]
fn administration_requests_may_be_concurrent() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let made: Vec<u16> = std::thread::scope(|scope| {
        let all = (0..8).map(|_| scope.spawn(|| admin.put("/same", &queue("")).status));
        let all: Vec<_> = all.collect();
        all.into_iter()
            .map(|one| one.join().expect("it ends"))
            .collect()
    });
    assert_eq!(
        made.iter().filter(|&&status| status == 201).count(),
        1,
        "{made:?}"
    );
    assert!(
        made.iter().all(|status| [201, 409].contains(status)),
        "{made:?}"
    );
    std::thread::scope(|scope| {
        for client in 0..4 {
            let admin = &admin;
            scope.spawn(move || {
                for number in 0..10 {
                    let path = format!("/own-{client}-{number}");
                    admin.create(&path, &queue(""));
                    admin.update(&path, &queue("<MaxDeliveryCount>3</MaxDeliveryCount>"));
                    admin.get("/$Resources/queues").expect(200);
                    admin.delete(&path).expect(200);
                }
            });
        }
    });
    let left = admin.get("/$Resources/queues").expect(200);
    assert_eq!(left.texts("title"), ["Queues", "q", "same"]);
}

#[test]
fn an_update_is_answered_once_links_are_notified_or_stalled() {
    let (bus, mut stalled) = Bus::with_queues(&["q"]).with_client();
    let receiver = stalled.receiver_with_credit("q", 5000);
    stalled.settle_down();
    let (mut peer, sender) = bus.sender("q");
    let message = Message::new("large").body(vec![b'x'; 100_000]).encode();
    // More than sockets hold.
    for _ in 0..300 {
        assert_eq!(peer.post(&sender, 0, &message), Ok(()));
    }
    // Its connection has got as far as it can once the emulator answers others and delivers nothing to it.
    let delivered = || bus.http.counts("q")["locked"].as_u64();
    let (mut last, mut same) = (delivered(), 0);
    while same < 200 {
        let now = delivered();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    assert!(last < Some(300), "sockets hold more than this test sends");
    let change = queue("<Status>ReceiveDisabled</Status>");
    let begun = std::time::Instant::now();
    bus.admin().change("/q", &change).expect(200);
    assert!(
        begun.elapsed().as_millis() >= 2000,
        "the detach cannot have been written"
    );
    stalled.detached(&receiver);
}
