//! Behaviour of the service that differs from its documentation (spec/observed.md): what SDKs of other languages write and
//! read, frame by frame, by the numbers there. `tests/conformance/OBSERVED.md` has the table of all.

use serde_amqp::Value;

use crate::support::*;

const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
const LOST: &str = "com.microsoft:session-lock-lost";
const MINUTE: i64 = 60_000;

/// A queue `q` with these properties, a client, and its links there.
fn with_queue(properties: &str) -> (Bus, Peer, Link, Link) {
    let (bus, peer, sender, receiver) =
        Bus::configured(&queues("", &[("q", properties), ("other", "")])).with_links("q");
    (bus, peer, sender, receiver)
}

fn send_encoded(peer: &mut Peer, sender: &Link, payload: &[u8]) {
    assert_eq!(peer.post(sender, 0, payload), Ok(()));
}

#[test]
fn o1_sections_are_accepted_in_any_order_and_delivered_in_amqp_order() {
    let (_bus, mut peer, sender, receiver) = with_queue("");
    let annotations = map([(symbol("mine"), text("a"))]);
    let annotations = section(DELIVERY_ANNOTATIONS, &annotations);
    let footer = section(FOOTER, &map([(symbol("sum"), uint(7))]));
    let message = Message::new("m").application("k", text("v")).encode();
    // As pyamqp writes a message that was received, and as rhea writes a footer.
    for payload in [
        [&*message, &*annotations].concat(),
        [&*footer, &*message, &*annotations].concat(),
    ] {
        send_encoded(&mut peer, &sender, &payload);
        let delivery = peer.receive_one(&receiver);
        let message = &delivery.message;
        assert_eq!(message.delivery_annotation("mine"), text("a"));
        assert_eq!(message.application("k"), text("v"));
        assert_eq!(
            (message.id().as_str(), &*message.data()),
            ("m", &b"body"[..])
        );
        let codes = message.codes();
        assert!(codes.is_sorted(), "{codes:x?}");
        peer.complete(&delivery);
    }
    let twice = [&*annotations, &*message, &*annotations].concat();
    let refusal = peer.send_in_vain(&sender, &twice);
    assert_eq!(refusal.condition, "amqp:decode-error");
}

#[test]
fn o2_o69_header_and_annotations_are_delivered_as_sent() {
    let (_bus, mut peer, sender, receiver) = with_queue("");
    let header = |durable, first_acquirer| {
        let fields = [durable, Value::Null, Value::Null, first_acquirer];
        section(0x70, &list(fields))
    };
    let explicit = (Value::Bool(false), Value::Bool(true));
    for (durable, first_acquirer) in [(Value::Null, Value::Null), explicit] {
        let annotated = Message::new("m").annotation("mine", Value::Null).encode();
        let header = header(durable.clone(), first_acquirer.clone());
        send_encoded(&mut peer, &sender, &[header, annotated].concat());
        let message = peer.receive_one(&receiver).message;
        assert_eq!(
            (message.header(0), message.header(3)),
            (durable, first_acquirer)
        );
        let Some(Value::Map(annotations)) = message.section(MESSAGE_ANNOTATIONS) else {
            panic!("{message:?}");
        };
        assert_eq!(annotations.get(&symbol("mine")), Some(&Value::Null));
    }
}

#[test]
fn o5_expiry_minus_creation_time_is_the_time_to_live() {
    let (_bus, mut peer, sender, receiver) = with_queue(r#""DefaultMessageTimeToLive":"PT1H""#);
    let hour = 60 * MINUTE;
    let created = |id: &str, ttl: i64| {
        Message::new(id)
            .ttl(u32::try_from(ttl).expect("it fits"))
            .property(8, timestamp(5_000 + ttl))
            .property(9, timestamp(5_000))
    };
    for (sent, expiry, ttl) in [
        (created("own", MINUTE), timestamp(5_000 + MINUTE), MINUTE),
        (created("longer", 2 * hour), timestamp(5_000 + hour), hour),
        (
            Message::new("none").property(9, timestamp(5_000)),
            timestamp(5_000 + hour),
            hour,
        ),
        (
            Message::new("no creation time").ttl(2 * hour as u32),
            Value::Null,
            hour,
        ),
    ] {
        peer.send(&sender, &sent);
        let message = peer.receive_one(&receiver).message;
        assert_eq!(message.property(8), expiry, "{}", message.id());
        assert_eq!(message.header(2), uint(ttl as u32), "{}", message.id());
    }
}

#[test]
fn o6_an_activated_message_is_received_as_scheduled_peeked_as_active() {
    let (bus, mut peer, sender, receiver) = with_queue("");
    peer.send(
        &sender,
        &Message::new("m").scheduled_at(client_now() + MINUTE),
    );
    bus.http.advance(61.0);
    let node = peer.node("q/$management");
    let seen = peer.peek_all(&node);
    assert_eq!(seen[0].annotation("x-opt-message-state"), Value::Int(0));
    let message = peer.receive_one(&receiver).message;
    assert_eq!(message.annotation("x-opt-message-state"), Value::Int(2));
}

#[test]
fn o10_o53_a_deferral_counts_as_a_delivery() {
    let (bus, mut peer, sender, receiver) = with_queue("");
    peer.send(&sender, &Message::new("m"));
    let first = peer.receive_one(&receiver);
    assert_eq!(first.message.header(4), uint(0));
    peer.settle(&first, deferred());
    let node = peer.node("q/$management");
    for count in [1, 2] {
        let reply = peer.call(&node, "receive-by-sequence-number", receive_by(&[1], 1));
        let (token, message) = received(&reply).remove(0);
        assert_eq!(message.header(4), uint(count));
        peer.settle_by_token(&node, "defered", token);
    }
    bus.stop();
    let (bus, mut peer, sender, receiver) = with_queue(r#""MaxDeliveryCount":1"#);
    peer.send(&sender, &Message::new("m"));
    let only = peer.receive_one(&receiver);
    peer.settle(&only, deferred());
    assert_eq!(bus.http.held("q"), (0, 1));
    let dead = peer.receive_from("q/$DeadLetterQueue").message;
    assert_eq!(dead.dead_letter_reason(), text("MaxDeliveryCountExceeded"));
}

#[test]
fn o11_deliveries_of_dead_letters_are_not_counted() {
    let (bus, mut peer, sender, receiver) = with_queue("");
    peer.send(&sender, &Message::new("m"));
    let delivery = peer.receive_one(&receiver);
    peer.settle(&delivery, dead_lettered("why", ""));
    let dead = peer.receiver("q/$DeadLetterQueue");
    for _ in 0..3 {
        let delivery = peer.receive_one(&dead);
        assert_eq!(delivery.message.header(4), uint(0));
        peer.settle(&delivery, abandoned());
    }
    let delivery = peer.receive_one(&dead);
    bus.http.advance(61.0);
    peer.assert_lock_lost(&delivery);
    assert_eq!(peer.receive_one(&dead).message.header(4), uint(0));
}

#[test]
fn o14_the_empty_session_id_is_a_session() {
    let (_bus, mut peer, sender) = Bus::with_sessions().with_sender("q");
    peer.send(&sender, &Message::new("now").session(""));
    let node = peer.node("q/$management");
    let later = Message::new("later")
        .session("")
        .scheduled_at(client_now() + MINUTE);
    assert_eq!(scheduled(&peer.schedule(&node, &[later])), [2]);
    let link = peer.accept("q", "");
    assert_eq!(peer.receive_one(&link).id(), "now");
    let state = in_session("", [(text("session-state"), binary(b"s"))]);
    assert_eq!(peer.call(&node, "set-session-state", state).status(), 200);
    let reply = peer.call(&node, "get-session-state", in_session("", []));
    assert_eq!(reply.field("session-state"), &binary(b"s"));
    peer.detach(&link);
    let (next, link) = peer.accept_next("q");
    assert_eq!(next, "");
    peer.detach(&link);
    let refusal = peer.send_in_vain(&sender, &Message::new("none").encode());
    assert_eq!(refusal.condition, "amqp:not-allowed");
}

#[test]
fn o58_annotations_and_footers_have_symbols_as_keys() {
    let (_bus, mut peer, sender, receiver) = with_queue("");
    let named = |code, name: &str| section(code, &map([(text(name), text(name))]));
    let payload = [
        named(DELIVERY_ANNOTATIONS, "delivery"),
        named(MESSAGE_ANNOTATIONS, "message"),
        Message::new("m").encode(),
        named(FOOTER, "footer"),
    ];
    send_encoded(&mut peer, &sender, &payload.concat());
    let message = peer.receive_one(&receiver).message;
    for (code, name) in [
        (DELIVERY_ANNOTATIONS, "delivery"),
        (MESSAGE_ANNOTATIONS, "message"),
        (FOOTER, "footer"),
    ] {
        let Some(Value::Map(map)) = message.section(code) else {
            panic!("{message:?}");
        };
        assert_eq!(map.get(&symbol(name)), Some(&text(name)), "{name}");
        assert_eq!(map.get(&text(name)), None, "{name}");
    }
}

#[test]
fn o59_a_missing_time_to_live_is_not_shown_and_zero_is_refused() {
    let (bus, mut peer, sender, receiver) = with_queue("");
    peer.send(&sender, &Message::new("m"));
    assert_eq!(peer.receive_one(&receiver).message.header(2), Value::Null);
    let refusal = peer.send_in_vain(&sender, &Message::new("zero").ttl(0).encode());
    assert_eq!(refusal.condition, "amqp:internal-error");
    let timeline = bus.http.timeline("").to_string();
    assert_contains(&timeline, "time to live");
}

#[test]
fn o61_a_message_scheduled_via_an_entity_is_forwarded_when_due() {
    let (bus, mut peer, _, receiver) = with_queue("");
    let via = Attach::via("q/$management", "other");
    let node = peer.node("q/$management");
    let node = Node {
        requests: peer.attached(&via),
        ..node
    };
    let later = ["kept", "cancelled"].map(|id| {
        let later = Message::new(id).scheduled_at(client_now() + MINUTE);
        later.annotation("x-opt-via-partition-key", text("key"))
    });
    let reply = peer.schedule(&node, &later);
    assert_eq!(scheduled(&reply), [1, 2]);
    assert_eq!(bus.http.counts("q")["scheduled"], 2);
    let cancel = map([numbers(&[2])]);
    assert_eq!(
        peer.call(&node, "cancel-scheduled-message", cancel)
            .status(),
        200
    );
    bus.http.advance(61.0);
    assert!(peer.drain(&receiver, 10).is_empty());
    let other = peer.receiver("other");
    let kept = peer.receive_one(&other);
    assert_eq!(kept.id(), "kept");
    peer.complete(&kept);
    assert_eq!(bus.http.held("q"), (0, 0));

    let (coordinator, transaction) = peer.transaction();
    let request = |peer: &mut Peer, id: &str| {
        let later = Message::new(id).scheduled_at(client_now() + 3 * MINUTE);
        let reply_to = text(&node.reply_to);
        let request = Message::request(text("r"), reply_to, schedule(&[later]));
        let request = request.application("operation", text("com.microsoft:schedule-message"));
        peer.send_in(&node.requests, &transaction, &request)
            .unwrap();
        Reply::new(peer.receive(&node.replies)).status()
    };
    assert_eq!(request(&mut peer, "committed"), 200);
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
    bus.http.advance(181.0);
    let got: Vec<_> = peer.drain(&other, 10).iter().map(Delivery::id).collect();
    assert_eq!(got, ["committed"]);
    let refusal = peer.refused(&Attach::via("q/$management", "missing"));
    assert_eq!(refusal.condition, "amqp:not-found");
}

#[test]
fn o62_any_client_may_browse_a_session() {
    let (bus, mut holder) = Bus::with_sessions().with_client();
    send_all(&mut holder, "q", &[("1", "s"), ("2", "s")]);
    let held = holder.accept("q", "s");
    let node = holder.node("q/$management");
    let state = in_session("s", [(text("session-state"), binary(b"state"))]);
    assert_eq!(holder.call(&node, "set-session-state", state).status(), 200);

    let mut peer = bus.client();
    let browsing = |wanted: Value| Attach {
        properties: map([(symbol("com.microsoft:peek-mode"), Value::Bool(true))]),
        ..Attach::session("q", wanted).named("browser")
    };
    let browser = peer.attached(&browsing(text("s")));
    assert_eq!(granted(&browser), text("s"));
    assert!(
        peer.drain(&browser, 10).is_empty(),
        "it is shown nothing by itself"
    );
    let node = peer.node("q/$management");
    let peek = peek_in("s", 0, 10);
    assert_eq!(
        ids(&peeked(&peer.call(&node, "peek-message", peek))),
        ["1", "2"]
    );
    let ask = |peer: &mut Peer, operation: &str| {
        let request = Message::request(text("r"), text(&node.reply_to), in_session("s", []))
            .application("operation", text(&format!("com.microsoft:{operation}")))
            .application("associated-link-name", text("browser"));
        peer.ask(&node, &request)
    };
    let reply = ask(&mut peer, "get-session-state");
    assert_eq!(reply.field("session-state"), &binary(b"state"));
    for refused in [
        "renew-session-lock",
        "set-session-state",
        "receive-by-sequence-number",
        "batch-delete-messages",
    ] {
        assert_eq!(ask(&mut peer, refused).condition(), LOST, "{refused}");
    }
    assert_eq!(
        holder.receive_one(&held).id(),
        "1",
        "its holder is not disturbed"
    );
    peer.detach(&browser);
    let refusal = peer.refused(&browsing(Value::Null));
    assert_eq!(refusal.condition, "com.microsoft:argument-error");
}

#[test]
fn o63_a_link_without_its_session_lock_is_detached_after_a_second() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.accept("q", "s");
    let held = peer.receive_one(&link);
    bus.http.advance(61.0);
    let before = std::time::Instant::now();
    peer.assert_settle_refused(&held, accepted(), LOST);
    let detach = peer.detached(&link);
    assert_eq!(detach.refusal(2).condition, LOST);
    // The detach was due a second after the clock had moved; the answer was in flight meanwhile.
    let waited = before.elapsed();
    assert!(waited < std::time::Duration::from_secs(10), "{waited:?}");
}

fn copying(address: &str) -> Attach {
    let mut source = vec![text(address)];
    source.resize(6, Value::Null);
    source.push(symbol("copy"));
    Attach {
        source: composite(0x28, source),
        ..Attach::receiver(address)
    }
}

#[test]
fn o64_copy_distribution_needs_a_premium_namespace() {
    let (_bus, mut peer, ..) = with_queue("");
    let refusal = peer.refused(&copying("q"));
    assert_eq!(refusal.condition, NOT_IMPLEMENTED);

    let premium = queues(r#""Tier":"premium""#, &[("q", "")]);
    let (bus, mut peer, sender) = Bus::configured(&premium).with_sender("q");
    let names: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    names
        .iter()
        .for_each(|id| peer.send(&sender, &Message::new(id)));
    let later = Message::new("later").scheduled_at(client_now() + MINUTE);
    peer.send(&sender, &later);
    let locking = peer.attached(&Attach::receiver("q").named("locks"));
    let locked = peer.receive_one(&locking);
    let browser = peer.attached(&copying("q"));
    let first = peer.drain(&browser, 100);
    assert_eq!(first.len(), 100);
    assert!(first.iter().all(|copy| copy.message.lock_token().is_none()));
    let rest = peer.drain(&browser, 100);
    let seen = first.iter().chain(&rest).map(Delivery::id);
    assert_eq!(seen.collect::<Vec<_>>(), names);
    let answer = peer.settle(&rest[0], accepted());
    assert_eq!(described_list(&answer).0, 0x24, "it means nothing");
    assert!(peer.drain(&browser, 100).is_empty());
    assert_eq!(
        bus.http.counts("q")["active"],
        150,
        "all of them are still there"
    );
    peer.complete(&locked);
    peer.send(&sender, &Message::new("new"));
    let more: Vec<_> = peer.drain(&browser, 10).iter().map(Delivery::id).collect();
    assert_eq!(more, ["new"]);
}

#[test]
fn o9_a_batch_is_limited_to_4500_messages_only_if_configured() {
    let small = Message::default().body(*b"").encode();
    let long = batch(&vec![small; 4501]);
    let (bus, mut peer, sender, _) = with_queue("");
    assert_eq!(peer.post(&sender, 0x8001_3700, &long), Ok(()));
    assert_eq!(bus.http.held("q"), (4501, 0));

    let (bus, mut peer, sender) =
        Bus::configured(&queues(r#""BatchLimit":"messages""#, &[("q", "")])).with_sender("q");
    let refusal = peer
        .post(&sender, 0x8001_3700, &long)
        .expect_err("it is too long");
    assert_eq!(refusal.condition, "amqp:internal-error");
    assert_eq!(
        refusal.words(),
        "The service was unable to process the request; please retry the operation. For more information on exception \
         types and proper exception handling, please refer to http://go.microsoft.com/fwlink/?LinkId=761101"
    );
    assert_eq!(bus.http.held("q"), (0, 0), "nothing of it is kept");
}

#[test]
fn o29_a_disabled_entity_takes_forwarded_messages_only_if_configured() {
    for (setting, expected) in [
        ("", ((0, 1), (0, 0))),
        (r#""ForwardToDisabled":"deliver""#, ((0, 0), (1, 0))),
    ] {
        let (bus, mut peer) = Bus::configured(&queues(
            setting,
            &[
                ("q", r#""ForwardTo":"other""#),
                ("other", r#""Status":"SendDisabled""#),
            ],
        ))
        .with_client();
        peer.send_to("q", &Message::new("m"));
        let counts = bus.http.counts("q");
        let (other, transfer) = (bus.http.held("other"), &counts["transfer_dead_letter"]);
        assert_eq!(
            ((0, transfer.as_u64().unwrap_or(0)), other),
            expected,
            "{setting}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn o45_listeners_announce_tcp_segments_of_at_most_4096_bytes() {
    let bus = Bus::with_queues(&["q"]);
    let stream = std::net::TcpStream::connect(bus.amqp).expect("it listens");
    let segment = socket2::SockRef::from(&stream).tcp_mss().expect("a size");
    assert!(segment <= 4096, "{segment}");
}

#[test]
fn o68_arrays_of_zero_width_elements_are_delivered_as_sent() {
    let (_bus, mut peer, sender, _) = with_queue("");
    // Four times true, three times zero and twice an empty list, as proton-j writes them.
    for array in [[0xe0, 2, 4, 0x41], [0xe0, 2, 3, 0x43], [0xe0, 2, 2, 0x45]] {
        let value = [&[0, 0x53, 0x77][..], &array].concat();
        send_encoded(&mut peer, &sender, &value);
        let name = format!("{array:?}");
        let receiver = peer.attached(&Attach::deleting("q").named(&name));
        peer.credit(&receiver, 1);
        let frame = peer.take("a message", |frame| !frame.payload.is_empty());
        assert!(frame.payload.ends_with(&value), "{:x?}", frame.payload);
    }
}

#[test]
fn o72_jms_2_clients_need_a_premium_namespace() {
    let open = || {
        let provider = symbol("com.microsoft:is-client-provider");
        let properties = map([(provider, Value::Bool(true))]);
        let mut rest = vec![Value::Null; 7];
        rest.push(properties);
        Open {
            rest,
            ..Open::default()
        }
    };
    let bus = Bus::with_queues(&["q"]);
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
    peer.write(b"AMQP\x00\x01\x00\x00");
    peer.write(&open().frame());
    peer.read_header();
    peer.expect(OPEN);
    let refusal = peer.closed();
    assert_eq!(
        (refusal.condition.as_str(), refusal.words()),
        (
            NOT_IMPLEMENTED,
            "Full JMS 2.0 parity over AMQP is a feature supported only by a Premium Messaging namespace."
        )
    );
    let premium = queues(r#""Tier":"premium""#, &[("q", "")]);
    let bus = Bus::configured(&premium);
    bus.client_as(&open()).sender("q");
}
