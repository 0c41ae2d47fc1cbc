//! How replies are routed to links, and wait for them to open (wire.md §10a.10).

use serde_amqp::Value;

use super::long_polls::{send_large, with_large};
use crate::support::*;

fn request(reply_to: Value) -> Message {
    let body = peek_from(1, Value::Int(1));
    Message::request(text("id"), reply_to, body)
        .application("operation", text("com.microsoft:peek-message"))
}

/// A receiver of replies with this name and this target.
fn replies(name: &str, target: &str, channel: u16) -> Attach {
    let target = match target {
        "" => composite(0x29, []),
        address => composite(0x29, [text(address)]),
    };
    Attach {
        target,
        ..Attach::receiver("q/$management")
    }
    .named(name)
    .on(channel)
}

#[test]
fn a_drain_of_replies_is_answered() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let cbs = peer.node_without_credit("$cbs", "c");
    assert!(peer.drain(&cbs.replies, 5).is_empty());
    let node = peer.node_without_credit("q/$management", "r");
    assert!(peer.drain(&node.replies, 5).is_empty());
    for _ in 0..4 {
        peer.send(&node.requests, &request(text("r")));
    }
    for count in [2, 1] {
        assert_eq!(peer.drain(&node.replies, count).len() as u32, count);
    }
    // After the reply to a token and three others. While the session's window delays the rest, the link is not drained.
    peer.flow_within(&node.replies, (4, 0), 5, true);
    peer.send(&node.requests, &request(text("r")));
    peer.flow_within(&node.replies, (4, 100), 5, true);
    for _ in 0..2 {
        peer.receive(&node.replies);
    }
    let end = peer.take("the end of a drain", |frame| {
        frame.code == FLOW && frame.field(4) == &uint(node.replies.handle) && frame.flag(8)
    });
    assert_eq!((end.number(5), end.number(6)), (13, 0));
}

#[test]
fn a_reply_is_routed_by_target_address_link_name_then_session() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.begin(1);
    let requests =
        [0, 1].map(|channel| peer.attached(&Attach::sender("q/$management").on(channel)));
    // The name of one is the target of another, as no SDK has it.
    let other = peer.attached(&replies("other", "elsewhere", 1));
    let named = peer.attached(&replies("address", "unused", 0));
    let addressed = peer.attached(&replies("plain", "address", 0));
    let nameless = peer.attached(&replies("javascript", "", 1));
    for link in [&other, &named, &addressed, &nameless] {
        peer.credit(link, 100);
    }
    for (reply_to, channel, expected) in [
        (text("address"), 0, &addressed),
        (text("address"), 1, &addressed),
        (text("elsewhere"), 0, &other),
        (text("plain"), 1, &addressed),
        (text("javascript"), 0, &nameless),
        (Value::Null, 1, &other),
        (Value::Null, 0, &named),
        (text("q/$management"), 1, &other),
    ] {
        peer.send(&requests[channel], &request(reply_to.clone()));
        let delivery = peer.receive(expected);
        assert_eq!(
            Reply::new(delivery).status(),
            204,
            "{reply_to:?} on {channel}"
        );
    }
    peer.assert_no_frame(|frame| frame.code == TRANSFER);
}

/// Python names the node as the target of replies, in each of its sessions; other clients name none.
#[test]
fn a_reply_without_an_address_is_routed_to_the_link_attached_with_that_of_the_request() {
    for (target, reply_to) in [("", Value::Null), ("q/$management", text("q/$management"))] {
        let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
        peer.begin(1);
        let pairs = [("a", 0), ("b", 0), ("c", 1), ("d", 1)].map(|(name, channel)| {
            let requests = Attach::sender("q/$management").on(channel);
            let requests = peer.attached(&requests.named(&format!("{name}-requests")));
            let replies = peer.attached(&replies(name, target, channel));
            peer.credit(&replies, 100);
            (requests, replies)
        });
        for (requests, replies) in pairs.iter().rev().chain(&pairs) {
            peer.send(requests, &request(reply_to.clone()));
            assert_eq!(Reply::new(peer.receive(replies)).status(), 204);
        }
        let [(first, replies), (second, own), ..] = &pairs;
        peer.detach(first);
        peer.detach(replies);
        peer.send(second, &request(reply_to.clone()));
        assert_eq!(Reply::new(peer.receive(own)).status(), 204);
    }
}

#[test]
fn a_reply_goes_to_no_other_pair() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let pairs = ["a", "b"].map(|name| {
        let requests = Attach::sender("q/$management").named(&format!("{name}-requests"));
        let requests = peer.attached(&requests);
        let replies = peer.attached(&replies(name, "q/$management", 0));
        peer.credit(&replies, 100);
        (requests, replies)
    });
    let [(first, replies_a), (second, replies_b)] = &pairs;
    let own = || request(text("q/$management"));
    // To a link that is not there.
    let refusal = peer.send_in_vain(first, &request(text("elsewhere")).encode());
    assert_eq!(refusal.condition, "amqp:not-allowed");
    // Half a pair is gone.
    peer.detach(replies_b);
    let refusal = peer.send_in_vain(second, &own().encode());
    assert_eq!(refusal.condition, "amqp:not-allowed");
    peer.send(first, &own());
    assert_eq!(Reply::new(peer.receive(replies_a)).status(), 204);
    // Another link takes its place, and the other half of the first pair goes.
    let again = peer.attached(&replies("again", "q/$management", 0));
    peer.credit(&again, 100);
    peer.detach(first);
    peer.send(second, &own());
    assert_eq!(Reply::new(peer.receive(&again)).status(), 204);
}

#[test]
fn a_management_request_without_a_reply_link_is_rejected() {
    let (_bus, mut peer, requests) = Bus::with_queues(&["q", "other"]).with_sender("q/$management");
    let other = peer.node("other/$management");
    for reply_to in [
        Value::Null,
        text(&other.reply_to),
        text(&"long".repeat(50_000)),
    ] {
        let refusal = peer.send_in_vain(&requests, &request(reply_to).encode());
        assert_eq!(refusal.condition, "amqp:not-allowed");
        assert_starts_with(refusal.words(), "No receiver for the reply is attached");
        assert!(refusal.text.len() < 4096);
    }
    assert_eq!(peer.call(&other, "nonsense", Value::Null).status(), 501);
}

#[test]
fn the_outcome_of_a_management_request_precedes_its_reply() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let node = peer.node("q/$management");
    for _ in 0..20 {
        peer.transfer(
            &node.requests,
            0,
            false,
            &request(text(&node.reply_to)).encode(),
        );
    }
    let (mut outcomes, mut replies) = (0, 0);
    while replies < 20 {
        let frame = peer.take("an answer", |frame| {
            matches!(frame.code, DISPOSITION | TRANSFER)
        });
        match frame.code {
            DISPOSITION => outcomes += frame.number(2) - frame.number(1) + 1,
            _ => replies += 1,
        }
        assert!(
            outcomes >= replies,
            "{replies} replies after {outcomes} outcomes"
        );
    }
}

#[test]
fn replies_are_settled_if_the_link_requested_it() {
    let (_bus, mut peer, requests) = Bus::with_queues(&["q"]).with_sender("q/$management");
    for (mode, settled) in [(0, false), (1, true)] {
        let reply_to = format!("mode {mode}");
        let attach = Attach {
            snd_settle_mode: mode,
            rcv_settle_mode: 0,
            ..replies(&reply_to, &reply_to, 0)
        };
        let link = peer.attached(&attach);
        peer.credit(&link, 1);
        peer.send(&requests, &request(text(&reply_to)));
        let delivery = peer.receive(&link);
        assert_eq!(delivery.settled, settled);
        assert_eq!(delivery.tag.len(), 16);
        if !settled {
            peer.complete(&delivery);
        }
    }
}

#[test]
fn replies_wait_for_credit_and_keep_their_order() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let node = peer.node_without_credit("q/$management", "java");
    let ids: Vec<Value> = (0..5).map(ulong).collect();
    for id in &ids {
        peer.send(
            &node.requests,
            &request(text("java")).property(0, id.clone()),
        );
    }
    peer.assert_no_frame(|frame| frame.code == TRANSFER);
    for id in &ids {
        let reply = Reply::new(peer.receive_one(&node.replies));
        assert_eq!(&reply.correlation_id, id);
    }
}

#[test]
fn a_reply_link_without_credit_is_detached_at_1024_replies() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let node = peer.node_without_credit("q/$management", "never");
    for _ in 0..1025 {
        peer.transfer(&node.requests, 0, true, &request(text("never")).encode());
    }
    let refusal = peer.detached(&node.replies).refusal(2);
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    refusal.tracking_id();
    let node = peer.node("q/$management");
    assert_eq!(peer.call(&node, "nonsense", Value::Null).status(), 501);
}

#[test]
fn a_peek_reply_may_hold_one_message_over_the_size_limit() {
    let _alone = alone_with_large_messages();
    let (_bus, mut peer) = with_large();
    let sender = peer.sender("q");
    let message = Message::new("m").body(vec![7; 17 << 20]).encode();
    let id = send_large(&mut peer, &sender, 0, &message);
    peer.outcome(&sender, id).expect("it is accepted");
    let node = peer.node("q/$management");
    peer.send(&node.requests, &request(text(&node.reply_to)));
    let reply = Reply::new(peer.receive(&node.replies));
    assert_eq!(ids(&peeked(&reply)), ["m"]);
    let node = peer.node_without_credit("q/$management", "late");
    peer.send(&node.requests, &request(text("late")));
    peer.settle_down();
    let reply = Reply::new(peer.receive_one(&node.replies));
    assert_eq!(ids(&peeked(&reply)), ["m"]);
}
