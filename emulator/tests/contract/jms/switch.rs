//! Which clients are clients of JMS 2.0, what they are offered, and how they authenticate.

use serde_amqp::Value;

use crate::support::*;

const KEY: &[u8] = b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE";

fn offered(answer: &Frame) -> Value {
    answer.field(7).clone()
}

#[test]
fn jms_2_clients_get_the_shared_subs_and_delayed_delivery_offers() {
    let bus = Bus::premium(&["q"]);
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
    let answer = peer.introduce(&Open::jms("c", &[]));
    assert_eq!(
        offered(&answer),
        symbols(&["SHARED-SUBS", "DELAYED_DELIVERY"])
    );
    let mut other = Peer::connect(bus.amqp);
    assert_eq!(other.sasl("ANONYMOUS", b""), 0);
    assert_eq!(offered(&other.introduce(&Open::default())), Value::Null);
}

#[test]
fn clients_without_jms_2_create_no_entities_on_attach() {
    let bus = Bus::premium(&["q"]);
    let mut peer = bus.client();
    for attach in [
        Attach::producer("new", "queue"),
        Attach::consumer("new"),
        Attach::producer("new", "topic"),
    ] {
        assert_eq!(peer.refused(&attach).condition, "amqp:not-found");
    }
    let temporary = Attach::temporary("1", "temporary-queue", 0x2b);
    assert_eq!(peer.refused(&temporary).condition, "amqp:not-found");
    let selecting = Attach::consumer("q").selecting("a = 1");
    assert_eq!(peer.refused(&selecting).condition, "amqp:not-allowed");
}

#[test]
fn a_sasl_password_may_end_with_use_development_emulator() {
    let bus = Bus::premium(&["q"]);
    for (ending, outcome) in [
        (&b""[..], 0),
        (b";UseDevelopmentEmulator=true;", 0),
        (b";UseDevelopmentEmulator=true", 0),
        (b";UseDevelopmentEmulator=false;", 1),
        (b";", 0),
        (b";;", 1),
    ] {
        let mut peer = Peer::connect(bus.amqp);
        let response = [KEY, ending].concat();
        assert_eq!(peer.sasl("PLAIN", &response), outcome, "{ending:?}");
    }
}

#[test]
fn a_json_web_token_is_the_sasl_password_of_the_user_jwt() {
    let bus = Bus::premium(&["q"]);
    // {} and {"exp":9999999999}
    let token = "e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln";
    for (token, outcome) in [(token, 0), ("e30.eyJleHAiOjF9.c2ln", 1), ("no token", 1)] {
        let mut peer = Peer::connect(bus.amqp);
        let response = format!("\0$jwt\0{token}");
        assert_eq!(peer.sasl("PLAIN", response.as_bytes()), outcome, "{token}");
        if outcome == 0 {
            peer.introduce(&Open::jms("c", &[]));
            peer.attached(&Attach::producer("made", "queue"));
        }
    }
}
