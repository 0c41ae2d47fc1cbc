//! Messages as qpid-jms sends, selects and settles them.

use serde_amqp::Value;

use crate::support::*;

#[test]
fn a_delivery_delay_schedules_the_message() {
    let bus = Bus::premium(&["q"]);
    bus.http.freeze();
    let mut peer = bus.jms("c");
    let sender = peer.attached(&Attach::producer("q", "queue"));
    let receiver = peer.attached(&Attach::consumer("q"));
    let due = client_now() + 60_000;
    let delayed = Message::new("later").annotation("x-opt-delivery-time", long(due));
    peer.send(&sender, &delayed);
    let past = Message::new("now").annotation("x-opt-delivery-time", long(1_000_000_000_000));
    peer.send(&sender, &past);
    let delivery = peer.receive_one(&receiver);
    assert_eq!(delivery.id(), "now");
    peer.complete(&delivery);
    assert_eq!(bus.http.counts("q")["scheduled"], 1);
    bus.http.advance(120.0);
    let delivery = peer.receive_one(&receiver);
    assert_eq!(delivery.id(), "later");
    // In the client's time, like any instant: the clock of the namespace is two minutes ahead by now (decision D20).
    let Value::Long(shown) = delivery.message.annotation("x-opt-delivery-time") else {
        panic!("{:?}", delivery.message);
    };
    assert!((shown - (due - 120_000)).abs() < 60_000, "{shown}, {due}");
}

#[test]
fn selectors_see_header_and_properties() {
    let bus = Bus::premium(&["q"]);
    let mut peer = bus.jms("c");
    let sender = peer.attached(&Attach::producer("q", "queue"));
    let header = |durable: bool, priority: u8| {
        section(0x70, &list([Value::Bool(durable), Value::Ubyte(priority)]))
    };
    for (id, durable, priority) in [("a", true, 9), ("b", false, 1)] {
        let message = [header(durable, priority), Message::new(id).encode()].concat();
        let sent = peer.transfer(&sender, 0, false, &message);
        assert_eq!(peer.outcome(&sender, sent), Ok(()));
    }
    for (name, selector, expected) in [
        ("1", "JMSPriority > 4", "a"),
        ("2", "JMSPriority <= 4", "b"),
        ("3", "JMSDeliveryMode = 'PERSISTENT'", "a"),
        ("4", "JMSDeliveryMode = 'NON_PERSISTENT'", "b"),
        ("5", "JMSMessageID = 'b'", "b"),
    ] {
        let browser = Attach::queue_browser("q").selecting(selector).named(name);
        let browser = peer.attached(&browser);
        assert_eq!(peer.drain_ids(&browser, 10), [expected], "{selector}");
    }
}

#[test]
fn a_rollback_returns_received_and_discards_sent_messages() {
    let bus = Bus::premium(&["q", "r"]);
    let mut peer = bus.jms("c");
    bus.client().send_to("q", &Message::new("one"));
    let coordinator = peer.attached(&Attach::coordinator());
    let receiver = peer.attached(&Attach::consumer("q"));
    let sender = peer.attached(&Attach::producer("r", "queue"));
    for round in 0..3 {
        let transaction = peer.declare(&coordinator);
        let delivery = peer.receive_one(&receiver);
        assert_eq!(delivery.id(), "one");
        let state = in_transaction(&transaction, accepted());
        peer.dispose(delivery.channel, delivery.id, delivery.id, true, state);
        let sent = Message::new(&round.to_string());
        peer.send_in(&sender, &transaction, &sent)
            .expect("it is sent");
        match round {
            2 => peer
                .commit(&coordinator, &transaction)
                .expect("it is committed"),
            _ => peer.roll_back(&coordinator, &transaction),
        }
    }
    assert_eq!(bus.http.counts("q")["active"], 0);
    let last = peer.attached(&Attach::consumer("r"));
    assert_eq!(peer.drain_ids(&last, 10), ["2"]);
}

/// Clients of JMS send in transactions without waiting for outcomes.
#[test]
fn a_refused_message_fails_the_commit_of_its_transaction() {
    let bus = Bus::premium(&["q"]);
    let mut peer = bus.jms("c");
    let coordinator = peer.attached(&Attach::coordinator());
    let sender = peer.attached(&Attach::producer("q", "queue"));
    let transaction = peer.declare(&coordinator);
    for number in 0..100 {
        peer.enlist(&sender, &transaction, &number.to_string());
    }
    peer.send_in(&sender, &transaction, &Message::new("one too many"))
        .expect_err("a transaction may hold 100 messages");
    let refusal = peer.commit_in_vain(&coordinator, &transaction);
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    assert_contains(
        refusal.words(),
        "a message that was sent or settled in it was refused: ",
    );
    assert_eq!(bus.http.counts("q")["active"], 0);
}

/// The limit of a namespace of the Premium tier is 1 MiB, unless its queue has another.
#[test]
fn a_message_above_the_limit_fails_the_commit_of_its_transaction() {
    let bus = Bus::premium(&["q"]);
    let mut peer = bus.jms("c");
    let coordinator = peer.attached(&Attach::coordinator());
    let sender = peer.attached(&Attach::producer("q", "queue"));
    let transaction = peer.declare(&coordinator);
    peer.enlist(&sender, &transaction, "small");
    let large = Message::new("large").body(vec![b'x'; 2 * 1024 * 1024]);
    peer.send_in(&sender, &transaction, &large)
        .expect_err("it is too large");
    let refusal = peer.commit_in_vain(&coordinator, &transaction);
    assert_eq!(refusal.condition, "amqp:link:message-size-exceeded");
    assert_eq!(bus.http.counts("q")["active"], 0);
}

/// The emulator drops it, as AMQP 1.0 requires, and has nothing to answer it with.
#[test]
fn a_message_on_a_link_that_was_detached_meanwhile_fails_the_commit_of_its_transaction() {
    let bus = Bus::premium(&["q", "r"]);
    let mut peer = bus.jms("c");
    let coordinator = peer.attached(&Attach::coordinator());
    let [kept, lost] = ["q", "r"].map(|queue| peer.attached(&Attach::producer(queue, "queue")));
    let transaction = peer.declare(&coordinator);
    peer.enlist(&kept, &transaction, "kept");
    bus.http.queue("DELETE", "r", None).ok();
    peer.detached(&lost);
    peer.transfer_in(&lost, &transaction, 0, &Message::new("lost").encode());
    let refusal = peer.commit_in_vain(&coordinator, &transaction);
    assert_eq!(refusal.condition, "amqp:not-found");
    assert_eq!(bus.http.counts("q")["active"], 0);
}

/// They forget a delivery with its disposition: if that is refused, here because a transaction has one queue or topic
/// (semantics §12), only the commit can report it.
#[test]
fn a_commit_fails_after_settlements_in_two_queues() {
    let bus = Bus::premium(&["q", "r"]);
    let mut peer = bus.jms("c");
    let coordinator = peer.attached(&Attach::coordinator());
    let receivers = ["q", "r"].map(|queue| {
        bus.client().send_to(queue, &Message::new(queue));
        peer.attached(&Attach::consumer(queue))
    });
    for round in 0..4 {
        let transaction = peer.declare(&coordinator);
        for receiver in &receivers {
            let delivery = peer.receive_one(receiver);
            assert_eq!(delivery.message.header(4), uint(round));
            let state = in_transaction(&transaction, accepted());
            peer.dispose(delivery.channel, delivery.id, delivery.id, true, state);
        }
        if round % 2 == 0 {
            peer.roll_back(&coordinator, &transaction);
            continue;
        }
        let refusal = peer.commit_in_vain(&coordinator, &transaction);
        assert_eq!(refusal.condition, "amqp:not-allowed");
        assert_contains(
            refusal.words(),
            "Local transactions cannot span multiple top-level entities",
        );
    }
    for queue in ["q", "r"] {
        assert_eq!(bus.http.held(queue), (1, 0));
    }
}

#[test]
fn a_durable_consumer_can_continue_on_another_connection() {
    let bus = Bus::premium(&[]);
    let mut peer = bus.jms("c");
    let own = peer.attached(&Attach::subscriber("a", "t", true, &[]));
    bus.client().send_to("t", &Message::new("one"));
    assert_eq!(peer.receive_one(&own).id(), "one");
    drop(peer);
    let mut again = bus.jms("c");
    // The socket of the first may not be closed yet.
    let own = eventually("the first consumer goes", || {
        again.attach(&Attach::subscriber("a", "t", true, &[])).ok()
    });
    // Its lock is not released with its link (decision D2).
    bus.http.advance(61.0);
    let delivery = again.receive_one(&own);
    assert_eq!(delivery.id(), "one");
    again.complete(&delivery);
}
