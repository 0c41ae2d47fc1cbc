//! How a connection begins and stays alive.

use serde_amqp::Value;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

#[test]
fn a_client_need_not_wait_for_any_answer() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = Peer::connect(bus.amqp);
    let window = uint(1000);
    let mut all = SASL_HEADER.to_vec();
    all.extend(sasl_init(
        "PLAIN",
        b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE",
    ));
    all.extend(AMQP_HEADER);
    all.extend(Open::default().frame());
    all.extend(performative(
        0,
        BEGIN,
        &[Value::Null, uint(0), window.clone(), window],
        &[],
    ));
    all.extend(performative(0, ATTACH, &Attach::sender("q").fields(0), &[]));
    let fields = [
        uint(0),
        uint(0),
        binary(b"t"),
        uint(0),
        Value::Bool(false),
        Value::Bool(false),
    ];
    all.extend(performative(
        0,
        TRANSFER,
        &fields,
        &Message::new("early").encode(),
    ));
    peer.write(&all);
    assert_eq!(peer.read_header(), *SASL_HEADER);
    peer.take("the SASL outcome", |frame| frame.code == 0x44);
    assert_eq!(peer.read_header(), *AMQP_HEADER);
    peer.expect(ATTACH);
    peer.expect(DISPOSITION);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn bytes_may_come_one_by_one() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = Peer::connect(bus.amqp);
    let mut all = AMQP_HEADER.to_vec();
    all.extend(Open::default().frame());
    for byte in all {
        peer.write(&[byte]);
    }
    assert_eq!(peer.read_header(), *AMQP_HEADER);
    let open = peer.expect(OPEN);
    assert_eq!(open.field(2), &uint(65_536), "max-frame-size");
    assert!(open.number(4) > 0, "idle-time-out");
    peer.close();
}

#[test]
fn a_client_that_wants_signs_of_life_gets_them() {
    let bus = Bus::with_queues(&["q"]);
    let open = Open {
        rest: vec![uint(65_536), Value::Ushort(255), uint(200)],
        ..Open::default()
    };
    let mut peer = Peer::open(bus.amqp, &open);
    peer.wait_for_heartbeats(3);
    // One empty frame from us keeps it going, too.
    peer.write(&[0, 0, 0, 8, 2, 0, 0, 0]);
    let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
    assert_eq!(peer.put_token("sb://localhost/", &token).cbs_status(), 202);
}

#[test]
fn a_connection_ends_when_its_client_closes_it() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.frame(0, CLOSE, &[]);
    assert_eq!(peer.expect(CLOSE).field(0), &Value::Null);
    peer.read_to_end();
}

#[test]
fn stopping_says_goodbye_with_a_reason() {
    let bus = Bus::with_queues(&["q"]);
    let mut peers = [bus.client(), bus.client()];
    let stopping = std::thread::spawn(move || bus.stop());
    for peer in &mut peers {
        let refusal = peer.closed();
        assert_eq!(refusal.condition, "amqp:connection:forced");
        assert_starts_with(&refusal.text, "The emulator is stopping.");
    }
    stopping.join().expect("the emulator stops");
}
