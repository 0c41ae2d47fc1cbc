//! A connection whose client does not read.

use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use serde_amqp::Value;
use servicebus_broker::{EntityDescription, Message, Tier};
use servicebus_test_support::frame::{
    AMQP_HEADER, ATTACH, BEGIN, FLOW, Frame, OPEN, SASL_HEADER, performative, sasl_init, split,
};
use servicebus_test_support::message::Message as Sent;
use servicebus_test_support::value::{composite, map, symbol, text, uint};

use super::*;
use crate::access::{Access, AccessOptions};
use crate::auth::Key;
use crate::clock::tests::put_by_hand;
use crate::connection_limit::ConnectionLimit;
use crate::listeners::Listeners;
use crate::memory::Memory;
use crate::namespace::tests::{path, with_queues};
use crate::namespace::{Ids, Namespace};
use crate::namespaces::{ConnectionOrigin, Namespaces, ServerAddress};
use crate::options::Endpoints;
use crate::shared::{ConnectionCounts, ConnectionOptions, Shared};
use crate::tls::{Tls, TlsOptions};
use crate::traces::Traces;

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Longer than the lock of a session.
const LOCK: Duration = Duration::from_secs(61);

/// A namespace without a task that watches its deadlines, with the queue `q` and a session `s` that exceeds the output's limit.
fn namespace() -> Arc<Namespace> {
    let description = EntityDescription {
        requires_session: true,
        ..EntityDescription::default()
    };
    let namespace = with_queues(["q"], &description);
    let entity = namespace.entity(&path("q")).expect("it is there");
    let bytes = Sent::new("m").session("s").body(vec![0; OUTPUT_HIGH / 4]);
    for _ in 0..8 {
        let message = Message::parse(bytes.encode().into(), &mut Ids::new(Some(1), 1));
        let message = message.expect("it is legal");
        let sent = namespace.operate_as_broker(&entity, |entity, cx| entity.send(cx, message));
        sent.expect("there is room");
    }
    Arc::new(namespace)
}

fn shared() -> Arc<Shared> {
    let (_, real) = put_by_hand();
    let options = ConnectionOptions {
        seed: Some(1),
        outcome_delay: false,
        waiting_requests: 1,
        step_timeout: LOCK,
        tier: Tier::Standard,
    };
    let endpoints = Endpoints {
        amqp: ADDRESS,
        amqps: None,
        http: ADDRESS,
        https: None,
    };
    let place = ServerAddress::new("localhost", endpoints);
    let traces = Traces::default();
    let namespaces = Namespaces::new(
        real.clone(),
        Some(1),
        false,
        place,
        (None, false),
        traces,
        &[],
    );
    Arc::new(Shared {
        options,
        real,
        namespaces,
        listeners: Listeners::new(Vec::new()),
        tls: Tls::new(TlsOptions::default(), None, Vec::new(), 0),
        memory: Memory::new(u64::MAX, u64::MAX),
        connection_limit: ConnectionLimit::new(1),
        access: Access::new(AccessOptions::default(), [], None),
        resources: Arc::default(),
        activity: None,
        counts: ConnectionCounts::default(),
    })
}

/// The client's frames up to its session.
fn greeting() -> Vec<u8> {
    let key = Key::well_known();
    let response = format!("\0{}\0{}", key.name, key.key);
    let begin = [Value::Null, uint(0), uint(5000), uint(5000)];
    [
        SASL_HEADER.to_vec(),
        sasl_init("PLAIN", response.as_bytes()),
        AMQP_HEADER.to_vec(),
        performative(0, OPEN, &[text("client"), text("localhost")], &[]),
        performative(0, BEGIN, &begin, &[]),
    ]
    .concat()
}

/// The attach of a receiver for a session, or for the next one.
fn attach(handle: u32, session: Value) -> Vec<u8> {
    let mut source = vec![text("q")];
    source.resize(7, Value::Null);
    source.push(map([(symbol("com.microsoft:session-filter"), session)]));
    let fields = [
        text(&handle.to_string()),
        uint(handle),
        Value::Bool(true),
        Value::Ubyte(0),
        Value::Ubyte(1),
        composite(0x28, source),
        composite(0x29, []),
    ];
    performative(0, ATTACH, &fields, &[])
}

/// The attach of a sender, on the first or the second session.
fn sender(number: u32) -> Vec<u8> {
    let fields = [
        text(&number.to_string()),
        uint(number % 150),
        Value::Bool(false),
        Value::Ubyte(0),
        Value::Ubyte(0),
        composite(0x28, []),
        composite(0x29, [text("q")]),
        Value::Null,
        Value::Bool(false),
        uint(0),
    ];
    performative((number / 150) as u16, ATTACH, &fields, &[])
}

impl ClientConnection {
    /// Handles what the client has written; returns the handles of the links that are attached in the output, which it reads.
    fn attached_after(&mut self, input: &[u8]) -> Vec<u32> {
        self.turn(&mut BytesMut::from(input), || true);
        let mut read = Vec::new();
        while !self.output().is_empty() {
            let mut slices = [IoSlice::new(&[])];
            self.output().chunks(&mut slices);
            read.extend_from_slice(&slices[0]);
            let count = slices[0].len();
            self.output().advance(count);
        }
        let attaches = split(&read).into_iter();
        let attaches = attaches.filter(|frame| frame.code == ATTACH);
        attaches.map(|frame: Frame| frame.number(1)).collect()
    }
}

#[test]
fn a_session_granted_while_the_output_is_full_reaches_its_receiver() {
    let namespace = namespace();
    let mut peer = ClientConnection::new(shared(), &ConnectionOrigin::at(ADDRESS));
    peer.client.set_namespace(Arc::clone(&namespace));
    let credit = [
        uint(0),
        uint(5000),
        uint(0),
        uint(5000),
        uint(0),
        uint(0),
        uint(100),
    ];
    let input = [
        greeting(),
        attach(0, text("s")),
        performative(0, FLOW, &credit, &[]),
        attach(1, Value::Null),
    ];
    peer.turn(&mut BytesMut::from(&input.concat()[..]), || true);
    assert!(peer.outbound.has_postponed(), "the output is full");
    // The lock of the session ends, which is due with the next operation.
    let advance = namespace.clock.begin_advance(LOCK);
    advance.step_to(advance.target);
    peer.give_back();
    assert_eq!(peer.attached_after(&[]), [0]);
    assert_eq!(peer.attached_after(&[]), [1]);
}

#[test]
fn the_oldest_links_whose_token_has_expired_are_forgotten() {
    let mut peer = ClientConnection::new(shared(), &ConnectionOrigin::at(ADDRESS));
    peer.client.set_namespace(namespace());
    let begin = [Value::Null, uint(0), uint(5000), uint(5000)];
    peer.attached_after(&[greeting(), performative(1, BEGIN, &begin, &[])].concat());
    let attaches: Vec<u8> = (0..300).flat_map(sender).collect();
    assert_eq!(peer.attached_after(&attaches).len(), 300);
    peer.expire_tokens();
    assert_eq!(peer.links.ids().len(), 256);
}
