//! Tokens of requests: who may, and how the others are told.

use serde_json::json;
use servicebus_emulator::auth::{Claims, Key, sas};

use crate::support::*;

const JWT: &str = "e30.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";

fn keys(more: &str) -> Bus {
    let keys = r#""Keys":[{"Name":"RootManageSharedAccessKey","Key":"SAS_KEY_VALUE","Claims":["Send","Listen","Manage"]},
        {"Name":"sender","Key":"s","Claims":["Send"]},{"Name":"listener","Key":"l","Claims":["Listen"]}]"#;
    Bus::configured(&queues(
        &format!("{keys}{more}"),
        &[("q", ""), ("other", "")],
    ))
}

fn token(resource: &str, name: &str, secret: &str) -> String {
    let key = Key {
        name: name.to_owned(),
        key: secret.to_owned(),
        claims: Claims::NONE,
    };
    sas::sign(resource, &key, in_an_hour())
}

#[test]
fn each_operation_needs_its_right() {
    let bus = keys("");
    let with =
        |name: &str, secret: &str| bus.rest_with(Some(&token("http://localhost/q", name, secret)));
    let (sender, listener) = (with("sender", "s"), with("listener", "l"));
    let needs = |response: &Response, claim: &str| {
        let words = response.refusal(401);
        assert_starts_with(words, "SubCode=40100. Unauthorized: ");
        assert!(
            words.contains(&format!("'{claim}' claim(s) are required")),
            "{words}"
        );
    };
    needs(&listener.send("q", &[], "x"), "Send");
    assert_eq!(sender.send("q", &[], "x").status, 201);
    needs(&sender.peek_lock("q"), "Listen");
    let lock = listener.peek_lock("q").lock();
    for method in ["DELETE", "PUT", "POST"] {
        needs(&sender.ask(method, &lock), "Listen");
    }
    assert_eq!(listener.ask("DELETE", &lock).status, 200);
}

#[test]
fn a_token_may_be_signed_for_whatever_covers_the_request() {
    let bus = Bus::with_queues(&["q"]);
    let root = Key::well_known();
    for resource in [
        "http://localhost",
        "https://ns.servicebus.windows.net/",
        "sb://localhost:5672/Q",
        "https://ns.servicebus.windows.net/q/messages/head?timeout=0",
        "https://ns.servicebus.windows.net/q/messages/head?timeout=17",
        "https://ns.servicebus.windows.net/q/messages/head",
        "https://ns.servicebus.windows.net/q/messages",
        "ns.servicebus.windows.net",
    ] {
        let rest = bus.rest_with(Some(&sas::sign(resource, &root, in_an_hour())));
        assert_eq!(rest.peek_lock("q").status, 204, "{resource}");
    }
    let encoded = "https://ns.servicebus.windows.net/q/%24DeadLetterQueue/messages/head?timeout=0";
    let rest = bus.rest_with(Some(&sas::sign(encoded, &root, in_an_hour())));
    assert_eq!(rest.peek_lock("q/%24DeadLetterQueue").status, 204);
    for resource in [
        "http://localhost/other",
        "http://localhost/q/messages/1",
        "http://localhost/qq",
    ] {
        let rest = bus.rest_with(Some(&sas::sign(resource, &root, in_an_hour())));
        let refused = rest.peek_lock("q");
        assert_starts_with(refused.refusal(401), "SubCode=40104. InvalidAudience: ");
    }
}

#[test]
fn a_token_that_proves_nothing_is_refused_with_the_reason() {
    let bus = keys("");
    let expired = sas::sign("http://localhost/q", &Key::well_known(), now() - 1);
    let wrong = token("http://localhost/q", "sender", "wrong");
    let nobody = token("http://localhost/q", "nobody", "x");
    for (token, sub_code) in [
        (None, "40102. MissingToken"),
        (Some(""), "40105. MalformedToken"),
        (Some("SharedAccessSignature sr=x"), "40105. MalformedToken"),
        (Some("WRAP access_token=\"x\""), "40105. MalformedToken"),
        (Some("Bearer x"), "40105. MalformedToken"),
        (Some(expired.as_str()), "40106. ExpiredToken"),
        (Some(wrong.as_str()), "40103. InvalidSignature"),
        (Some(nobody.as_str()), "40103. InvalidSignature"),
    ] {
        let rest = bus.rest_with(token);
        for refused in [
            rest.send("q", &[], "x"),
            rest.take("q"),
            rest.ask("DELETE", "/q/messages/1/x"),
        ] {
            let words = refused.refusal(401);
            assert!(
                words.starts_with(&format!("SubCode={sub_code}: ")),
                "{token:?}: {words}"
            );
        }
    }
    assert_eq!(bus.http.held("q"), (0, 0), "nothing was written");
}

#[test]
fn a_stranger_does_not_learn_which_names_exist() {
    let bus = keys("");
    let rest = bus.rest_with(None);
    let said = |name: &str| rest.send(name, &[], "x").refusal(401).replace(name, "…");
    assert_eq!(said("q"), said("nobody"));
    let wrong = token("http://localhost/", "sender", "wrong");
    let rest = bus.rest_with(Some(&wrong));
    let said = |name: &str| rest.send(name, &[], "x").refusal(401).replace(name, "…");
    assert_eq!(said("q"), said("nobody"));
}

#[test]
fn json_web_tokens_and_no_checks_are_settings() {
    let bearer = format!("Bearer {JWT}");
    // Keys with fewer rights are declared: unsigned tokens have every right only where that is said.
    let unset = keys("");
    let refused = unset.rest_with(Some(&bearer)).send("q", &[], "x");
    assert!(refused.refusal(401).contains("unsigned tokens are refused"));
    let accepting = keys(r#","Jwt":"accept""#);
    assert_eq!(
        accepting
            .rest_with(Some(&bearer))
            .send("q", &[], "x")
            .status,
        201
    );
    let refusing = keys(r#","Jwt":"refuse""#);
    let refused = refusing.rest_with(Some(&bearer)).send("q", &[], "x");
    assert!(refused.refusal(401).contains("refuses JSON web tokens"));
    let open = keys(r#","TokenCheck":"none""#);
    assert_eq!(open.rest_with(None).send("q", &[], "x").status, 201);
    assert_eq!(open.rest_with(Some("nonsense")).take("q").status, 200);
}

#[test]
fn tokens_live_by_the_real_clock() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    bus.http
        .post("/$emulator/v1/clock/advance", &json!({"seconds": 7200}))
        .ok();
    assert_eq!(rest.send("q", &[], "x").status, 201);
}
