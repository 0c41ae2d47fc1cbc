//! How a connection begins and stays alive, and the names of clients: in the record, and as receivers and holders of locks.

use serde_amqp::Value;
use serde_json::json;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

#[test]
fn a_client_may_pipeline_the_whole_handshake() {
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
fn a_handshake_may_arrive_byte_by_byte() {
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
fn a_client_with_an_idle_timeout_gets_heartbeats() {
    let bus = Bus::with_queues(&["q"]);
    let open = Open {
        rest: vec![uint(65_536), Value::Ushort(255), uint(200)],
        ..Open::default()
    };
    let mut peer = Peer::open(bus.amqp, &open);
    peer.wait_for_heartbeats(3);
    // One empty frame from this side keeps it alive, too.
    peer.write(&[0, 0, 0, 8, 2, 0, 0, 0]);
    let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
    assert_eq!(peer.put_token("sb://localhost/", &token).cbs_status(), 202);
}

#[test]
fn a_close_of_the_client_is_answered_and_ends_the_connection() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.frame(0, CLOSE, &[]);
    assert_eq!(peer.expect(CLOSE).field(0), &Value::Null);
    peer.read_to_end();
}

#[test]
fn a_stop_closes_connections_with_a_reason() {
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

const RECEIVERS: &str = "~/receivers?entity=q";

/// The clients of the events of a kind, in order.
fn clients(bus: &Bus, kind: &str) -> Vec<String> {
    let mut events = bus.http.events("?entity=q");
    events.retain(|event| event["kind"] == kind);
    let named = events.iter().map(|event| event["client"].as_str());
    named
        .map(|name| name.unwrap_or("none").to_owned())
        .collect()
}

#[test]
fn the_timeline_names_a_link_by_its_client_identifier() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client_as(&Open::named("container"));
    let sender = peer
        .attach(&Attach::sender("q").identified("shop"))
        .unwrap();
    peer.send(&sender, &Message::new("a"));
    peer.send(&sender, &Message::new("b"));
    for worker in ["worker-1", "worker-2"] {
        let attach = Attach::receiver("q").named(worker).identified(worker);
        let receiver = peer.attach(&attach).unwrap();
        let delivery = peer.receive_one(&receiver);
        peer.settle(&delivery, accepted());
    }
    assert_eq!(clients(&bus, "sent"), ["shop", "shop"]);
    assert_eq!(clients(&bus, "delivered"), ["worker-1", "worker-2"]);
    eventually("both are completed", || {
        let completed = clients(&bus, "completed");
        (completed == ["worker-1", "worker-2"]).then_some(())
    });
    let receivers = bus.http.get(RECEIVERS).ok();
    let expected =
        json!([{"client": "worker-1", "credit": 0}, {"client": "worker-2", "credit": 0}]);
    assert_eq!(receivers["receivers"], expected);
}

#[test]
fn the_timeline_names_a_link_without_identifier_by_its_container() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client_as(&Open::named("container"));
    peer.send_to("q", &Message::new("a"));
    let receiver = peer.receiver("q");
    assert_eq!(clients(&bus, "sent"), ["container"]);
    let receivers = || bus.http.get(RECEIVERS).ok()["receivers"].clone();
    // It has attached and granted no credit yet.
    assert_eq!(receivers(), json!([]));
    peer.receive_one(&receiver);
    assert_eq!(receivers(), json!([{"client": "container", "credit": 0}]));
}

#[test]
fn the_timeline_has_the_start_of_a_long_container_id() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client_as(&Open::named(&"é".repeat(1000)));
    peer.send_to("q", &Message::new("a"));
    assert_eq!(clients(&bus, "sent"), ["é".repeat(256)]);
}

#[test]
fn an_error_names_the_host_of_the_open_without_its_port() {
    let bus = Bus::with_queues(&["q"]);
    for (hostname, host) in [
        ("localhost:5672", "localhost"),
        ("::1", "::1"),
        ("[::1]", "[::1]"),
        ("[::1]:5672", "[::1]"),
    ] {
        let mut peer = bus.client_as(&Open::to(hostname));
        let refusal = peer.refused(&Attach::receiver("nowhere"));
        assert_contains(refusal.words(), &format!("'sb://{host}/nowhere'"));
    }
}

#[test]
fn a_refused_event_has_the_operation_and_the_message() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.send_to("q", &Message::new("a"));
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    bus.http.advance(61.0);
    peer.settle(&delivery, accepted());
    peer.refused(&Attach::receiver("nowhere"));
    let mut events = bus.http.events("");
    events.retain(|event| event["kind"] == "refused");
    let summary = events.iter();
    let summary = summary.map(|event| {
        (
            &event["operation"],
            &event["sequence_number"],
            &event["message_id"],
        )
    });
    let expected = [
        (json!("complete"), json!(1), json!("a")),
        (json!("attach a receiver"), json!(null), json!(null)),
    ];
    assert_eq!(
        Vec::from_iter(summary),
        Vec::from_iter(
            expected
                .iter()
                .map(|(operation, number, id)| (operation, number, id))
        )
    );
}

#[test]
fn a_message_is_busy_while_a_client_is_connecting() {
    let (bus, mut sending) = Bus::with_queues(&["q"]).with_client();
    sending.send_to("q", &Message::new("a"));
    let mut worker = bus.client_as(&Open::named("worker-1"));
    let busy = bus.http.post("~/settled", &json!({"within": 0}));
    let problems = &busy.body["error"]["problems"];
    let connecting = json!({
        "path": "q", "value": "a message waits while worker-1 is connecting", "allowed": "idle",
    });
    assert!(
        problems
            .as_array()
            .is_some_and(|problems| problems.contains(&connecting)),
        "{problems}"
    );
    let delivery = worker.receive_from("q");
    worker.settle(&delivery, accepted());
    let settled = json!({"within": 30});
    let settled = bus.http.post("~/settled", &settled);
    assert_eq!(settled.status, 200);
}

/// JavaScript's SDK gives every receiver an identifier, and asks for its session by a link of the connection.
#[test]
fn a_session_holder_may_request_by_a_link_without_identifier() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    peer.attach(&Attach::sender("q").identified("shop"))
        .unwrap();
    let session = Attach::session("q", text("s")).named("cart");
    peer.attach(&session.identified("worker")).unwrap();
    let node = peer.node("q/$management");
    for operation in ["renew-session-lock", "get-session-state"] {
        let request = Message::request(text("r"), text(&node.reply_to), in_session("s", []))
            .application("operation", text(&format!("com.microsoft:{operation}")))
            .application("associated-link-name", text("cart"));
        assert_eq!(peer.ask(&node, &request).status(), 200, "{operation}");
    }
}
