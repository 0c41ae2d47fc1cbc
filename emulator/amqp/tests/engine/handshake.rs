//! Protocol headers, SASL and open.

use serde_amqp::Value;
use servicebus_amqp::{Config, Event, PeerOpen};

use crate::peer::*;

fn sasl_init(mechanism: &str) -> Vec<u8> {
    framed(
        1,
        0,
        &encoded_list(0x41, &[symbol(mechanism), binary(b"trace"), text("host")]),
    )
}

#[test]
fn a_sasl_exchange_is_followed_by_an_open() {
    let mut peer = Peer::silent(Config::default());
    peer.send(SASL_HEADER);
    let output = peer.output();
    assert_eq!(&output[..8], SASL_HEADER);
    assert_eq!(output[8..][5], 1, "a SASL frame");
    let mechanisms = split(&output);
    assert_eq!(mechanisms[0].code, 0x40);
    for name in [&b"MSSBCBS"[..], b"ANONYMOUS", b"PLAIN", b"EXTERNAL"] {
        assert!(output.windows(name.len()).any(|window| window == name));
    }
    // An array, whose elements are symbols.
    assert_eq!(mechanisms[0].body[12], 0xf0);

    peer.send(&sasl_init("ANONYMOUS"));
    let Event::Sasl {
        mechanism,
        response,
        hostname,
    } = peer.event()
    else {
        panic!("no SASL");
    };
    assert_eq!(mechanism, "ANONYMOUS");
    assert_eq!(*response, *b"trace");
    assert_eq!(format!("{response:?}"), "SaslResponse(5 bytes)");
    assert_eq!(hostname.as_deref(), Some("host"));
    assert!(peer.output().is_empty(), "the owner decides");

    peer.connection.sasl_outcome(true);
    let outcome = peer.only();
    assert_eq!(outcome.code, 0x44);
    assert_eq!(outcome.fields[0], Value::Ubyte(0));

    peer.send(AMQP_HEADER);
    assert_eq!(peer.output(), AMQP_HEADER);
    peer.frame(0, OPEN, &[text("client")]);
    let open = peer.opened();
    assert_eq!(open.container_id, "client");
    assert_eq!(open.hostname, None);
    assert_eq!(open.idle_timeout, None);
    assert_eq!(open.channel_max, u16::MAX);
    assert_eq!(open.max_frame_size, u32::MAX);
    assert!(!open.has_properties);
    assert_eq!(peer.only().code, OPEN);
}

#[test]
fn frames_pipelined_after_sasl_init_wait_for_the_sasl_outcome() {
    let mut peer = Peer::silent(Config::default());
    let mut all = SASL_HEADER.to_vec();
    all.extend(sasl_init("MSSBCBS"));
    all.extend(AMQP_HEADER);
    all.extend(performative(0, OPEN, &[text("client")], &[]));
    peer.send(&all);
    assert!(matches!(peer.event(), Event::Sasl { .. }));
    assert!(peer.connection.poll_event().is_none());
    peer.output();
    peer.connection.sasl_outcome(true);
    peer.send(&[]);
    assert!(matches!(peer.event(), Event::Opened(_)));
    assert!(peer.input.is_empty());
}

#[test]
fn refused_sasl_credentials_close_the_connection() {
    let mut peer = Peer::silent(Config::default());
    peer.send(SASL_HEADER);
    peer.send(&sasl_init("PLAIN"));
    peer.event();
    peer.output();
    peer.connection.sasl_outcome(false);
    assert_eq!(peer.only().fields[0], Value::Ubyte(1));
    assert!(matches!(peer.event(), Event::Closed { error: Some(_) }));
    assert!(peer.connection.is_closed());
    peer.connection.sasl_outcome(true);
    assert!(peer.output().is_empty());
}

#[test]
fn open_answers_with_every_field() {
    let mut peer = Peer::silent(Config::default());
    peer.send(AMQP_HEADER);
    let properties = map([(symbol("product"), text("x"))]);
    let mut fields = vec![
        text("c"),
        text("h:5671"),
        uint(1 << 20),
        Value::Ushort(7),
        uint(60_000),
    ];
    fields.resize(9, Value::Null);
    fields.push(properties);
    peer.frame(0, OPEN, &fields);
    let open = peer.opened();
    assert_eq!(open.hostname.as_deref(), Some("h:5671"));
    assert_eq!(open.idle_timeout.map(|t| t.as_secs()), Some(60));
    assert_eq!(open.channel_max, 7);
    assert!(open.has_properties);
    let output = peer.output();
    let ours = &split(&output)[0];
    assert_eq!(ours.fields.len(), 10);
    assert_eq!(ours.fields[2], uint(65_536));
    assert_eq!(ours.fields[3], Value::Ushort(4999));
    assert_eq!(ours.fields[4], uint(120_000));
}

#[test]
fn an_unsupported_protocol_header_is_answered_with_a_supported_one() {
    for (theirs, ours) in [
        (&b"GET / HT"[..], AMQP_HEADER),
        (b"AMQP\x02\x01\x00\x00", AMQP_HEADER),
        (b"AMQP\x00\x00\x09\x01", AMQP_HEADER),
        (b"AMQP\x03\x02\x00\x00", SASL_HEADER),
    ] {
        let mut peer = Peer::silent(Config::default());
        peer.send(theirs);
        assert_eq!(peer.output(), ours);
        assert!(peer.connection.is_closed());
        assert!(matches!(peer.event(), Event::Closed { error: Some(_) }));
        peer.send(&[1; 100]);
        assert!(peer.input.is_empty(), "what comes after is dropped");
    }
}

#[test]
fn a_second_sasl_header_closes_the_connection() {
    let mut peer = Peer::silent(Config::default());
    peer.send(SASL_HEADER);
    peer.send(&sasl_init("ANONYMOUS"));
    peer.connection.sasl_outcome(true);
    peer.output();
    peer.send(SASL_HEADER);
    assert_eq!(peer.output(), AMQP_HEADER);
    assert!(peer.connection.is_closed());
}

#[test]
fn an_unexpected_frame_in_the_sasl_layer_closes_the_connection() {
    for frame in [
        performative(0, OPEN, &[text("client")], &[]),
        framed(1, 0, &encoded_list(0x43, &[binary(b"response")])),
        framed(1, 0, &[0x00, 0x53, 0x41, 0xc0]),
    ] {
        let mut peer = Peer::silent(Config::default());
        peer.send(SASL_HEADER);
        peer.output();
        peer.send(&frame);
        assert_eq!(peer.only().code, 0x44);
        assert!(peer.connection.is_closed());
        assert!(matches!(peer.event(), Event::Closed { error: Some(_) }));
    }
}

#[test]
fn too_much_input_before_the_sasl_outcome_closes_the_connection() {
    let mut peer = Peer::silent(Config::default());
    peer.send(SASL_HEADER);
    peer.send(&sasl_init("ANONYMOUS"));
    peer.event();
    peer.send(&vec![0; 70_000]);
    assert!(peer.connection.is_closed());
    assert!(matches!(peer.event(), Event::Closed { error: Some(_) }));
}

#[test]
fn a_jms_2_client_is_recognised_by_a_property_of_its_open() {
    let provider = "com.microsoft:is-client-provider";
    let named = |name: &str, value: Value| {
        let mut fields = vec![Value::Null; 8];
        fields.push(Value::Map([(symbol(name), value)].into_iter().collect()));
        let mut peer = Peer::silent(Config::default());
        peer.send(AMQP_HEADER);
        peer.frame(
            0,
            OPEN,
            &[&[text("c"), text("host")], &fields[1..]].concat(),
        );
        peer
    };
    for (name, value, is_jms) in [
        (provider, Value::Bool(true), true),
        (provider, Value::Bool(false), false),
        ("product", Value::Bool(true), false),
    ] {
        assert_eq!(named(name, value).opened().is_jms, is_jms, "{name}");
    }
}

/// An open with these properties.
fn open_with(properties: Vec<(Value, Value)>) -> PeerOpen {
    let mut peer = Peer::silent(Config::default());
    peer.send(AMQP_HEADER);
    let mut fields = vec![text("client")];
    fields.resize(9, Value::Null);
    fields.push(map(properties));
    peer.frame(0, OPEN, &fields);
    peer.opened()
}

#[test]
fn idle_times_of_jms_are_whole_seconds() {
    let name = |kind| {
        symbol(&format!(
            "com.microsoft:{kind}-auto-delete-on-idle-duration-in-seconds"
        ))
    };
    let (queue, topic, subscriber) = (name("queue"), name("topic"), name("subscriber"));
    let seconds = |own: [Value; 3]| {
        let [first, second, third] = own;
        open_with(vec![
            (queue.clone(), first),
            (topic.clone(), second),
            (subscriber.clone(), third),
        ])
        .idle_seconds
    };
    let read = seconds([long(60), Value::Int(7), long(0)]);
    assert_eq!(read, [Some(60), Some(7), Some(0)]);
    let unread = seconds([long(-1), Value::Int(-1), text("60")]);
    assert_eq!(unread, [None; 3]);
    assert_eq!(open_with(vec![]).idle_seconds, [None; 3]);
}

#[test]
fn the_product_of_a_peer_is_cut_to_100_characters() {
    let product = |own| open_with(vec![(symbol("product"), own)]).product;
    assert_eq!(product(text("QpidJMS")), Some("QpidJMS".to_owned()));
    assert_eq!(product(symbol("net")), Some("net".to_owned()));
    assert_eq!(product(text(&"é".repeat(101))), Some("é".repeat(100)));
    assert_eq!(product(uint(1)), None);
    assert_eq!(open_with(vec![]).product, None);
    // As uamqp does in azure-servicebus 0.50 for Python: the standard asks for symbols.
    let open = open_with(vec![(text("product"), text("servicebus.python"))]);
    assert_eq!(open.product.as_deref(), Some("servicebus.python"));
}

#[test]
fn a_decode_error_names_the_performative() {
    let mut peer = Peer::silent(Config::default());
    peer.send(AMQP_HEADER);
    peer.frame(0, OPEN, &[uint(1)]);
    let output = peer.output();
    let frames = split(&output);
    let refusal = frames.last().expect("a close").refusal(0);
    assert_eq!(refusal.condition, "amqp:decode-error");
    assert!(
        refusal.text.starts_with("the open cannot be decoded: "),
        "{}",
        refusal.text
    );
}
