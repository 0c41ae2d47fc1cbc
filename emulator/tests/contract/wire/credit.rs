//! Credit, windows and drain: never more messages than credit, and all that the credit allows.

use serde_amqp::Value;

use crate::support::*;

/// A queue with this many messages of this size, their ids their numbers from 0.
fn filled(count: usize, size: usize) -> Bus {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let message = |number: usize| Message::new(&number.to_string()).body(vec![b'x'; size]);
    peer.send_without_waiting(&sender, (0..count).map(message));
    bus
}

fn transfers(peer: &mut Peer) -> usize {
    let frames = peer.settle_down();
    frames.iter().filter(|frame| frame.code == TRANSFER).count()
}

/// The emulator's flow for a link, as the answer to a drain.
fn drained(peer: &mut Peer, link: &Link) -> Frame {
    peer.take("the end of a drain", |frame| {
        frame.code == FLOW && frame.field(4) == &uint(link.handle) && frame.flag(8)
    })
}

#[test]
fn a_receiver_link_gets_no_more_than_its_credit() {
    let (_bus, mut peer) = filled(10, 10).with_client();
    let receiver = peer.receiver("q");
    assert_eq!(transfers(&mut peer), 0, "without credit");
    peer.credit(&receiver, 3);
    assert_eq!(transfers(&mut peer), 3);
    // Credit is absolute, counted from the received deliveries: a flow that crossed three deliveries adds none.
    let window = i32::MAX as u32;
    let mut stale = vec![uint(0), uint(window), uint(0), uint(window)];
    stale.extend([uint(receiver.handle), uint(0), uint(3)]);
    peer.frame(0, FLOW, &stale);
    assert_eq!(transfers(&mut peer), 0);
    peer.credit(&receiver, 2);
    peer.credit(&receiver, 2);
    assert_eq!(transfers(&mut peer), 2);
    peer.credit(&receiver, 2);
    assert_eq!(transfers(&mut peer), 2);
}

#[test]
fn withdrawn_credit_is_not_used() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let receiver = peer.receiver_with_credit("q", 5);
    peer.settle_down();
    peer.credit(&receiver, 0);
    peer.send_to("q", &Message::new("m"));
    assert_eq!(transfers(&mut peer), 0);
    assert_eq!(bus.http.counts("q")["locked"], 0);
    assert_eq!(peer.receive_one(&receiver).id(), "m");
}

#[test]
fn a_drain_is_answered_after_the_available_messages() {
    let (_bus, mut peer) = filled(3, 10).with_client();
    let receiver = peer.receiver("q");
    peer.flow(&receiver, 10, true);
    for number in 0..3 {
        assert_eq!(peer.receive(&receiver).id(), number.to_string());
    }
    let flow = drained(&mut peer, &receiver);
    assert_eq!(
        (flow.number(5), flow.number(6)),
        (10, 0),
        "delivery-count and link-credit"
    );
    assert_eq!(flow.field(9), &Value::Bool(false), "echo");
    // No credit was left: answered all the same.
    let count = uint(10);
    let window = i32::MAX as u32;
    let mut fields = vec![uint(0), uint(window), uint(0), uint(window)];
    fields.extend([
        uint(receiver.handle),
        count.clone(),
        uint(0),
        Value::Null,
        Value::Bool(true),
    ]);
    peer.frame(0, FLOW, &fields);
    let flow = drained(&mut peer, &receiver);
    assert_eq!((flow.field(5), flow.number(6)), (&count, 0));
    // And the link continues.
    peer.send_to("q", &Message::new("late"));
    assert_eq!(transfers(&mut peer), 0);
    fields[6] = uint(1);
    fields[8] = Value::Bool(false);
    peer.frame(0, FLOW, &fields);
    assert_eq!(peer.receive(&receiver).id(), "late");
}

#[test]
fn a_reader_with_enough_credit_gets_every_message() {
    // More than the output may hold at a time, whether the socket accepts it at once or not.
    for (count, size) in [(3000, 500), (40, 200_000)] {
        let (bus, mut peer) = filled(count, size).with_client();
        let receiver = peer.attached(&Attach::deleting("q"));
        peer.credit(&receiver, count as u32);
        for number in 0..count {
            assert_eq!(peer.receive(&receiver).id(), number.to_string());
        }
        assert_eq!(bus.http.held("q"), (0, 0));
    }
}

#[test]
fn deliveries_wait_for_the_session_window() {
    let bus = filled(5, 70_000);
    let mut peer = bus.client_as(&Open {
        window: 5,
        ..Open::default()
    });
    // The reply of $cbs was the first of the five; each message needs two frames.
    let receiver = peer.receiver("q");
    peer.flow_within(&receiver, (0, 5), 5, false);
    assert_eq!(peer.receive(&receiver).id(), "0");
    assert_eq!(peer.receive(&receiver).id(), "1");
    for (next, id, locked) in [(5, "2", 2), (7, "3", 3), (9, "4", 4)] {
        assert_eq!(bus.http.counts("q")["locked"], locked);
        let flow = [uint(next), uint(2), uint(0), uint(100)];
        peer.frame(0, FLOW, &flow);
        assert_eq!(peer.receive(&receiver).id(), id);
    }
}

#[test]
fn other_receivers_get_messages_that_a_closed_window_delays() {
    let (bus, mut narrow) = filled(50, 10).with_client();
    let delayed = narrow.receiver("q");
    // The reply of $cbs was the first transfer.
    narrow.flow_within(&delayed, (1, 10), 100, false);
    let ids = |peer: &mut Peer, link: &Link, count| {
        Vec::from_iter((0..count).map(|_| peer.receive(link).id()))
    };
    let numbers = |range: std::ops::Range<u32>| Vec::from_iter(range.map(|n| n.to_string()));
    assert_eq!(ids(&mut narrow, &delayed, 10), numbers(0..10));
    let (mut other, receiver) = bus.receiver("q");
    other.credit(&receiver, 30);
    assert_eq!(ids(&mut other, &receiver, 30), numbers(10..40));
    let open = |next, window| [uint(next), uint(window), uint(0), uint(100)];
    narrow.frame(0, FLOW, &open(11, 5));
    assert_eq!(ids(&mut narrow, &delayed, 5), numbers(40..45));
    // A drain is not answered while the window delays messages.
    narrow.flow_within(&delayed, (16, 0), 20, true);
    narrow.send_to("q", &Message::new("50"));
    narrow.frame(0, FLOW, &open(16, 100));
    assert_eq!(ids(&mut narrow, &delayed, 6), numbers(45..51));
    assert_eq!(drained(&mut narrow, &delayed).number(5), 35);
}

#[test]
fn a_browser_is_drained_when_its_credit_is_used_up() {
    let premium = queues(r#""Tier":"premium""#, &[("q", "")]);
    let (_bus, mut peer, sender) = Bus::configured(&premium).with_sender("q");
    for number in 0..10 {
        peer.send(&sender, &Message::new(&number.to_string()));
    }
    let browser = peer.attached(&Attach::queue_browser("q"));
    assert_eq!(peer.drain_ids(&browser, 5), ["0", "1", "2", "3", "4"]);
    // After the reply of $cbs and five copies. While the window delays copies, it is not drained.
    peer.flow_within(&browser, (6, 0), 7, true);
    peer.send(&sender, &Message::new("10"));
    peer.flow_within(&browser, (6, 100), 7, true);
    for number in 5..=10 {
        assert_eq!(peer.receive(&browser).id(), number.to_string());
    }
    assert_eq!(drained(&mut peer, &browser).number(5), 12);
}

#[test]
fn a_browser_gets_every_message_when_a_large_one_closes_the_session_window() {
    let premium = queues(r#""Tier":"premium""#, &[("q", "")]);
    let (_bus, mut peer, sender) = Bus::configured(&premium).with_sender("q");
    for number in 0..4 {
        peer.send(
            &sender,
            &Message::new(&number.to_string()).body(vec![0; 200_000]),
        );
    }
    let browser = peer.attached(&Attach::queue_browser("q"));
    // After the reply of $cbs: the first message and a part of the second.
    peer.flow_within(&browser, (1, 6), 4, false);
    assert_eq!(peer.receive(&browser).id(), "0");
    peer.flow_within(&browser, (7, 100), 3, false);
    for number in 1..4 {
        assert_eq!(peer.receive(&browser).id(), number.to_string());
    }
}

#[test]
fn waiting_receivers_are_served_in_order_of_arrival() {
    let bus = Bus::with_queues(&["q"]);
    let mut peers = [1, 2, 3].map(|_| bus.client());
    let receivers = peers.each_mut().map(|peer| peer.receiver("q"));
    for index in [2, 0, 1] {
        peers[index].credit(&receivers[index], 1);
        peers[index].settle_down();
    }
    let (mut sender, link) = bus.sender("q");
    for (id, index) in [("first", 2), ("second", 0), ("third", 1)] {
        sender.send(&link, &Message::new(id));
        assert_eq!(peers[index].receive(&receivers[index]).id(), id);
    }
}
