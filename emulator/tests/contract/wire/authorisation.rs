//! Which clients are authorized, and the errors for all others.

use std::time::Duration;

use serde_amqp::Value;
use serde_json::json;
use servicebus_emulator::auth::{Claims, Key, sas};
use servicebus_emulator::{Config, Options};

use crate::support::*;

mod expiry;

const UNAUTHORIZED: &str = "amqp:unauthorized-access";

/// A namespace with two queues and a key for each right.
fn keys() -> Bus {
    let keys = r#""Keys":[
        {"Name":"RootManageSharedAccessKey","Key":"SAS_KEY_VALUE"},
        {"Name":"listener","Key":"l","Claims":["Listen"]},
        {"Name":"sender","Key":"s","Claims":["Send"]}]"#;
    Bus::configured(&queues(keys, &[("a", ""), ("b", "")]))
}

fn key(name: &str, key: &str) -> Key {
    Key {
        name: name.into(),
        key: key.into(),
        claims: Claims::ALL,
    }
}

/// A token of the key that everybody knows.
fn token(resource: &str, name: &str, secret: &str) -> String {
    sas::sign(resource, &key(name, secret), in_an_hour())
}

/// Puts a token that must be accepted.
fn show(peer: &mut Peer, audience: &str, token: &str) {
    let reply = peer.put_token(audience, token);
    assert_eq!(
        (reply.cbs_status(), reply.text().as_str()),
        (202, "Accepted")
    );
}

/// Shows a token of the root key for a resource.
fn show_root(peer: &mut Peer, resource: &str) {
    show(peer, resource, &root_token(resource));
}

/// Shows a token of the key with this name and secret for a resource.
fn show_key(peer: &mut Peer, resource: &str, name: &str, secret: &str) {
    show(peer, resource, &token(resource, name, secret));
}

#[test]
fn an_unauthorized_attach_does_not_reveal_whether_the_entity_exists() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let mut refuse = |attach: fn(&str) -> Attach, name: &str, suffix: &str| {
        let refusal = peer.refused(&attach(&format!("{name}{suffix}")));
        assert_eq!(refusal.condition, UNAUTHORIZED, "{refusal:?}");
        refusal
            .words()
            .replace(&format!("localhost/{name}"), "localhost/…")
    };
    for suffix in ["", "/$DeadLetterQueue", "/$Transfer/$DeadLetterQueue"] {
        for attach in [Attach::sender, Attach::receiver] {
            let [real, made_up] = ["a", "x"].map(|name| refuse(attach, name, suffix));
            assert_eq!(real, made_up);
            assert_starts_with(&real, "Unauthorized access. ");
        }
    }
}

/// As the Java SDK does it when its first operation is a peek.
#[test]
fn attaches_to_management_wait_for_the_first_token() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let requests = Attach::sender("a/$management");
    let replies = Attach {
        target: composite(0x29, [text("replies")]),
        ..Attach::receiver("a/$management")
    };
    let other = Attach::sender("b/$management").named("other");
    let [first, second, third] =
        [&requests, &replies, &other].map(|attach| peer.ask_to_attach(attach));
    show_key(&mut peer, "sb://localhost/a", "listener", "l");
    let mut answer = |attach, handle| peer.answer_to(attach, handle);
    let (requests, replies) = (answer(&requests, first), answer(&replies, second));
    let refusal = answer(&other, third).expect_err("the token is of another queue");
    assert_eq!(refusal.condition, UNAUTHORIZED);
    let node = Node {
        requests: requests.expect("it is attached"),
        replies: replies.expect("it is attached"),
        reply_to: "replies".to_owned(),
    };
    peer.credit(&node.replies, 1);
    let reply = peer.call(&node, "peek-message", peek_from(1, Value::Int(1)));
    assert_eq!(reply.status(), 204);
}

/// As the Java SDK does it on a connection that clients of several entities share.
#[test]
fn attaches_of_java_to_management_wait_for_the_token_of_their_entity() {
    let bus = Bus::started(Options {
        config: parse(&queues("", &[("a", ""), ("b", "")])),
        step_timeout: Duration::from_secs(2),
        ..Options::default()
    });
    let open = |product: &str| Open {
        rest: [
            vec![Value::Null; 7],
            vec![map([(symbol("product"), text(product))])],
        ]
        .concat(),
        ..Open::default()
    };
    let mut java = Peer::open(bus.amqp, &open("azure-messaging-servicebus"));
    show_root(&mut java, "sb://localhost/a");
    let attach = Attach::sender("b/$management");
    let handle = java.ask_to_attach(&attach);
    java.assert_no_frame(|frame| frame.code == ATTACH);
    show_root(&mut java, "sb://localhost/b");
    java.answer_to(&attach, handle).expect("the token came");
    // Not for ever, and other links do not wait.
    let mut java = Peer::open(bus.amqp, &open("azure-messaging-servicebus"));
    show_root(&mut java, "sb://localhost/a");
    let handle = java.ask_to_attach(&attach);
    assert_eq!(java.refused(&Attach::sender("b")).condition, UNAUTHORIZED);
    java.assert_no_frame(|frame| frame.code == ATTACH);
    let refusal = java.answer_to(&attach, handle).expect_err("no token came");
    assert_eq!(refusal.condition, UNAUTHORIZED);
    let mut other = Peer::open(bus.amqp, &open("MSJSClient"));
    show_root(&mut other, "sb://localhost/a");
    other.ask_to_attach(&attach);
    assert!(other.settle_down().iter().any(|frame| frame.code == ATTACH));
}

/// The namespace and the party of a client are known only then.
#[test]
fn a_fault_of_a_party_fires_at_an_attach_that_waited_for_the_token() {
    let bus = keys();
    let effect = json!({"reject": {"condition": "amqp:internal-error"}});
    let fault = json!({"operation": "attach", "party": "listener", "effect": effect});
    assert_eq!(bus.http.post("~/faults", &fault).status, 201);
    let mut peer = bus.unauthenticated_client();
    let attach = Attach::sender("a/$management");
    let early = peer.ask_to_attach(&attach);
    show_key(&mut peer, "sb://localhost/a", "listener", "l");
    let refusal = peer.answer_to(&attach, early).expect_err("a fault fires");
    assert_eq!(refusal.condition, "amqp:internal-error");
}

/// Its values would take many times as many bytes until the token comes.
#[test]
fn a_large_attach_does_not_wait_for_a_token() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let attach = Attach {
        properties: map([(symbol("large"), text(&"x".repeat(4096)))]),
        ..Attach::sender("a/$management")
    };
    assert_eq!(peer.refused(&attach).condition, UNAUTHORIZED);
}

#[test]
fn an_invalid_token_is_answered_with_401_and_the_reason() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let expired = sas::sign("sb://localhost/a", &Key::well_known(), now() - 1);
    let good = root_token("sb://localhost/a");
    let cut = &good[..good.len() - 20];
    for (token, reason) in [
        (
            expired.as_str(),
            "ExpiredToken: The token is expired. Expiration time: ",
        ),
        (
            &token("sb://localhost/a", "RootManageSharedAccessKey", "wrong"),
            "the signature does not match",
        ),
        (
            &token("sb://localhost/a", "nobody", "SAS_KEY_VALUE"),
            "this namespace has no key named \"nobody\"",
        ),
        (&root_token("sb://localhost/b"), "does not cover \"a\""),
        (cut, ""),
        ("SharedAccessSignature sr", "malformed token"),
        ("", "malformed token"),
        ("a.b.c", "malformed token"),
    ] {
        let reply = peer.put_token("sb://localhost/a", token);
        assert_eq!(reply.cbs_status(), 401, "{token}");
        let text = reply.text();
        let (words, _) = untracked(&text);
        assert!(
            words.contains(reason) && words.contains("'sb://localhost/a'"),
            "{token}: {words}"
        );
        assert!(
            !words.contains("SAS_KEY_VALUE"),
            "a secret got out: {words}"
        );
        // Python takes the mere presence of a condition at $cbs for a failure; the others read the status.
        assert_eq!(reply.condition(), "");
        assert_eq!(peer.refused(&Attach::sender("a")).condition, UNAUTHORIZED);
    }
}

#[test]
fn cbs_refuses_requests_other_than_put_token() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let cbs = peer.node("$cbs");
    let request = |body: Value| Message::request(ulong(7), text(&cbs.reply_to), body);
    let named =
        |message: Message, operation: &str| message.application("operation", text(operation));
    let good = text(&root_token("sb://localhost/a"));
    let name = ("name", text("sb://localhost/a"));
    // The type does not determine the token: Python calls a signature a JSON web token.
    let python = named(request(good.clone()), "put-token")
        .application("type", text("jwt"))
        .application(name.0, name.1.clone());
    assert_eq!(peer.ask(&cbs, &python).cbs_status(), 202);
    let other = named(request(good.clone()), "delete-token").application(name.0, name.1.clone());
    let nameless = named(request(good), "put-token");
    let bodiless = named(request(uint(1)), "put-token").application(name.0, name.1);
    for (message, status) in [(other, 501), (nameless, 400), (bodiless, 400)] {
        let reply = peer.ask(&cbs, &message);
        assert_eq!(reply.cbs_status(), status, "{}", reply.text());
        assert_eq!(reply.correlation_id, ulong(7));
    }
}

#[test]
fn a_key_gives_its_own_rights_only() {
    let bus = keys();
    let mut listener = bus.unauthenticated_client();
    show_key(&mut listener, "sb://localhost/", "listener", "l");
    let refusal = listener.refused(&Attach::sender("a"));
    assert_eq!(refusal.condition, UNAUTHORIZED);
    assert_contains(refusal.words(), "'Send' claim(s) are required");
    listener.receiver("a");
    let management = listener.node("a/$management");
    let body = peek_from(1, Value::Int(1));
    assert_eq!(
        listener
            .call(&management, "peek-message", body.clone())
            .status(),
        204
    );

    let mut sender = bus.unauthenticated_client();
    show_key(&mut sender, "sb://localhost/", "sender", "s");
    sender.send_to("a", &Message::new("allowed"));
    let refusal = sender.refused(&Attach::receiver("a"));
    assert_contains(refusal.words(), "'Listen' claim(s) are required");
    let management = sender.node("a/$management");
    let reply = sender.call(&management, "peek-message", body);
    refused_with(&reply, 401, UNAUTHORIZED);
    assert_eq!(bus.http.held("a"), (1, 0));
}

#[test]
fn a_client_with_a_claim_is_told_that_an_entity_is_missing() {
    let bus = keys();
    let mut listener = bus.unauthenticated_client();
    show_key(&mut listener, "sb://localhost/", "listener", "l");
    assert_eq!(
        listener.refused(&Attach::sender("x")).condition,
        "amqp:not-found"
    );
}

#[test]
fn a_token_applies_to_its_path_and_sub_paths() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    show(
        &mut peer,
        "amqps://localhost:5671/A",
        &root_token("amqps://localhost/a"),
    );
    peer.sender("a");
    peer.receiver("a");
    peer.receiver("a/$DeadLetterQueue");
    peer.node("a/$management");
    peer.node("a/$DeadLetterQueue/$management");
    assert_eq!(peer.refused(&Attach::receiver("b")).condition, UNAUTHORIZED);

    let mut peer = bus.unauthenticated_client();
    let dead_letters = "sb://localhost/a/$deadletterqueue";
    show_root(&mut peer, dead_letters);
    peer.receiver("a/$DeadLetterQueue");
    assert_eq!(peer.refused(&Attach::receiver("a")).condition, UNAUTHORIZED);
    assert_eq!(peer.refused(&Attach::sender("a")).condition, UNAUTHORIZED);
}

#[test]
fn rights_are_the_union_of_tokens_and_a_refresh_replaces_one() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    show_key(&mut peer, "sb://localhost/a", "listener", "l");
    show_key(&mut peer, "sb://localhost/b", "sender", "s");
    peer.receiver("a");
    peer.sender("b");
    assert_eq!(peer.refused(&Attach::sender("a")).condition, UNAUTHORIZED);
    show_key(&mut peer, "sb://localhost/a", "sender", "s");
    peer.sender("a");
    assert_eq!(
        peer.refused(&Attach::receiver("a").named("late")).condition,
        UNAUTHORIZED
    );
}

#[test]
fn sasl_plain_authorizes_for_the_whole_namespace() {
    let bus = keys();
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("PLAIN", b"\0listener\0l"), 0);
    peer.introduce(&Open::default());
    peer.receiver("b");
    assert_eq!(peer.refused(&Attach::sender("a")).condition, UNAUTHORIZED);
    for response in [&b"\0listener\0wrong"[..], b"\0nobody\0l", b"listener", b""] {
        let mut peer = Peer::connect(bus.amqp);
        assert_eq!(peer.sasl("PLAIN", response), 1);
        peer.read_to_end();
    }
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("SCRAM-SHA-1", b""), 1);
    peer.read_to_end();
}

#[test]
fn every_sasl_mechanism_of_the_sdks_is_accepted() {
    let bus = keys();
    for mechanism in ["MSSBCBS", "ANONYMOUS", "EXTERNAL"] {
        let mut peer = Peer::connect(bus.amqp);
        assert_eq!(peer.sasl(mechanism, b""), 0, "{mechanism}");
        peer.introduce(&Open::default());
        assert_eq!(peer.refused(&Attach::sender("a")).condition, UNAUTHORIZED);
    }
    // SASL is optional.
    let mut peer = Peer::connect(bus.amqp);
    peer.introduce(&Open::default());
    show_root(&mut peer, "sb://localhost/");
    peer.sender("a");
}

#[test]
fn the_jwt_setting_decides_on_json_web_tokens_over_amqp() {
    let token = "e30.eyJleHAiOjQwMDAwMDAwMDB9.c2ln";
    let expired = "e30.eyJleHAiOjEwMDAwMDAwMDB9.c2ln";
    for (setting, status) in [
        ("", 202),
        (r#""Jwt":"accept""#, 202),
        (r#""Jwt":"refuse""#, 401),
    ] {
        let bus = Bus::configured(&queues(setting, &[("a", "")]));
        let mut peer = bus.unauthenticated_client();
        assert_eq!(
            peer.put_token("sb://localhost/a", token).cbs_status(),
            status,
            "{setting}"
        );
        assert_eq!(peer.attach(&Attach::sender("a")).is_ok(), status == 202);
        assert_eq!(
            peer.put_token("sb://localhost/a", expired).cbs_status(),
            401
        );
    }
}

#[test]
fn with_a_key_set_only_tokens_signed_by_its_keys_are_accepted() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/");
    let config = Config::from_file(format!("{path}config/token-keys.json").as_ref());
    let bus = Bus::started(Options {
        config: config.unwrap_or_else(|error| panic!("{error}")),
        ..Options::default()
    });
    let token = std::fs::read_to_string(format!("{path}tokens/rs256.jwt")).expect("a token");
    let token = token.trim();
    let (signed, _) = token.rsplit_once('.').expect("three parts");
    let mut peer = bus.unauthenticated_client();
    for bad in [
        format!("{signed}."),
        format!("{signed}.c2ln"),
        format!("e30.{token}"),
    ] {
        assert_eq!(peer.put_token("sb://localhost/q", &bad).cbs_status(), 401);
        assert_eq!(peer.refused(&Attach::sender("q")).condition, UNAUTHORIZED);
    }
    show(&mut peer, "sb://localhost/q", token);
    peer.sender("q");
}

#[test]
fn the_send_claim_allows_scheduling_and_no_other_management() {
    let bus = keys();
    let resource = "sb://localhost/";
    let later = || schedule(&[Message::new("later").scheduled_at(client_now() + 60_000)]);
    let mut sender = bus.unauthenticated_client();
    show_key(&mut sender, resource, "sender", "s");
    let management = sender.node("a/$management");
    let reply = sender.call(&management, "schedule-message", later());
    let wanted = scheduled(&reply);

    let mut listener = bus.unauthenticated_client();
    show_key(&mut listener, resource, "listener", "l");
    let other = listener.node("a/$management");
    for (operation, body) in [
        ("schedule-message", later()),
        ("cancel-scheduled-message", map([numbers(&wanted)])),
    ] {
        let reply = listener.call(&other, operation, body);
        let refused = (reply.status(), reply.condition());
        assert_eq!(refused, (401, UNAUTHORIZED.to_owned()), "{operation}");
    }
    // A missing operation is reported whatever the rights.
    for peer in [(&mut sender, &management), (&mut listener, &other)] {
        let reply = peer.0.call(peer.1, "nonsense", map([]));
        let refused = (reply.status(), reply.condition());
        assert_eq!(refused, (501, "amqp:not-implemented".to_owned()));
    }
    assert_eq!(bus.http.counts("a")["scheduled"], 1);
    let body = map([numbers(&wanted)]);
    let reply = sender.call(&management, "cancel-scheduled-message", body);
    assert_eq!(reply.status(), 200);
    assert_eq!(bus.http.counts("a")["scheduled"], 0);
}

#[test]
fn without_token_check_no_client_needs_a_token() {
    let bus = Bus::configured(&queues(r#""TokenCheck":"none""#, &[("a", "")]));
    let mut peer = bus.unauthenticated_client();
    let sender = peer.sender("a");
    peer.send(&sender, &Message::new("free"));
    assert_eq!(
        peer.refused(&Attach::sender("x")).condition,
        "amqp:not-found"
    );
    show(&mut peer, "sb://localhost/a", "anything");
    let management = peer.node("a/$management");
    assert_eq!(
        peer.call(&management, "peek-message", map([])).status(),
        400
    );
}
