//! Who may administer, and the authorization rules of entities.

use servicebus_emulator::auth::{Claim, Key, sas};

use crate::support::*;

/// 32 bytes.
const SECRET: &str = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=";
const OTHER: &str = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=";

fn signed(resource: &str, name: &str, key: &str) -> Option<String> {
    let key = Key {
        name: name.into(),
        key: key.into(),
        claims: [Claim::Manage].into_iter().collect(),
    };
    Some(sas::sign(resource, &key, in_an_hour()))
}

fn authorization_rule(name: &str, rights: &[&str], rest: &str) -> String {
    let rights: String = rights
        .iter()
        .map(|right| format!("<AccessRights>{right}</AccessRights>"))
        .collect();
    format!(
        "<AuthorizationRule i:type=\"SharedAccessAuthorizationRule\"><ClaimType>SharedAccessKey</ClaimType>\
         <ClaimValue>None</ClaimValue><Rights>{rights}</Rights><KeyName>{name}</KeyName>{rest}</AuthorizationRule>"
    )
}

fn rules(inner: &str) -> String {
    queue(&format!("<AuthorizationRules>{inner}</AuthorizationRules>"))
}

#[test]
fn an_administration_token_covers_its_signed_resource() {
    let bus = Bus::with_queues(&["orders", "q"]);
    let known = Key::well_known();
    let may = |resource: &str, path: &str| {
        let token = signed(resource, &known.name, &known.key);
        let status = bus.admin_as(token).get(path).status;
        assert!(
            status == 200 || status == 401,
            "{resource} {path}: {status}"
        );
        status == 200
    };
    for (resource, path) in [
        ("https://localhost:5300", "/orders"),
        ("sb://localhost/", "/$Resources/queues"),
        ("http://other.host/orders", "/orders"),
        // JavaScript: the whole URL in lower case, with its query.
        (
            "https://localhost:5300/orders?api-version=2021-05",
            "/Orders?api-version=2021-05",
        ),
        (
            "https://localhost/$resources/queues?%24skip=0",
            "/$Resources/queues?%24skip=0",
        ),
        ("https://localhost/$namespaceinfo", "/$namespaceinfo"),
        ("https://localhost/a%2forders", "/A%2FOrders"),
    ] {
        assert!(may(resource, path), "{resource} {path}");
    }
    for (resource, path) in [
        ("https://localhost/q", "/orders"),
        ("https://localhost/orders", "/$Resources/queues"),
        ("https://localhost/orders", "/$namespaceinfo"),
        ("https://localhost/order", "/orders"),
        ("https://localhost/orders", "/localhost/orders"),
        ("sb://localhost/orders", "/127.0.0.1/orders"),
        ("sb://localhost/orders", "/a.servicebus.windows.net/orders"),
    ] {
        assert!(!may(resource, path), "{resource} {path}");
    }
    let lower = signed("https://localhost/orders", &known.name, &known.key).expect("a token");
    let reordered = {
        let mut parts: Vec<&str> = lower["SharedAccessSignature ".len()..].split('&').collect();
        parts.rotate_left(1);
        format!("SharedAccessSignature {}", parts.join("&"))
    };
    bus.admin_as(Some(reordered)).get("/orders").expect(200);
    bus.admin_as(Some("Bearer e30.eyJleHAiOjE5MDAwMDAwMDB9.c2ln".into()))
        .get("/orders")
        .expect(200);
}

#[test]
fn an_unauthorized_administration_request_gets_the_reason() {
    let keys = r#""Keys":[{"Name":"RootManageSharedAccessKey","Key":"SAS_KEY_VALUE","Claims":["Send","Listen","Manage"]},
                  {"Name":"reader","Key":"secret","Claims":["Send","Listen"]}],"Jwt":"refuse""#;
    let bus = Bus::configured(&queues(keys, &[("orders", "")]));
    let host = "https://localhost/";
    let expired = sas::sign(host, &Key::well_known(), now() - 10);
    for (token, code) in [
        (None, "claim is empty. SubCode=40102. Missing token: "),
        (Some("hello".to_owned()), "SubCode="),
        (
            Some("SharedAccessSignature sr=x".to_owned()),
            "SubCode=40105. Malformed token",
        ),
        (
            signed(host, "RootManageSharedAccessKey", "wrong"),
            "SubCode=40103. Invalid signature",
        ),
        (
            signed(host, "nobody", "wrong"),
            "SubCode=40103. Invalid signature",
        ),
        (
            signed(
                "https://localhost/q",
                "RootManageSharedAccessKey",
                "SAS_KEY_VALUE",
            ),
            "SubCode=40104. Invalid audience",
        ),
        (
            Some(expired),
            "ExpiredToken: The token is expired. Expiration time: '",
        ),
        (
            Some("Bearer e30.eyJleHAiOjE5MDAwMDAwMDB9.c2ln".into()),
            "SubCode=40100. Unauthorized",
        ),
    ] {
        let admin = bus.admin_as(token.clone());
        for reply in [
            admin.get("/orders"),
            admin.delete("/orders"),
            admin.change("/orders", &queue("<MaxDeliveryCount>3</MaxDeliveryCount>")),
            admin.put("/new", &queue("")),
        ] {
            let text = reply.refusal(401);
            assert!(text.starts_with(code), "{token:?}: {text}");
            assert!(!reply.body.contains("secret") && !reply.body.contains("SAS_KEY_VALUE"));
        }
    }
    let admin = bus.admin();
    assert_eq!(
        admin.get("/orders").expect(200).value("MaxDeliveryCount"),
        "10"
    );
    assert_starts_with(&admin.get("/new").expect(200).body, "<feed");
    let open = Bus::configured(&queues(r#""TokenCheck":"none""#, &[("q", "")]));
    open.admin_as(None).get("/q").expect(200);
}

#[test]
fn authorization_rules_of_an_entity_are_kept_with_their_keys() {
    let (_bus, admin) = Bus::with_queues(&["other"]).with_admin();
    let keys = format!("<PrimaryKey>{SECRET}</PrimaryKey><SecondaryKey>{OTHER}</SecondaryKey>");
    let given = authorization_rule("mine", &["Send"], &keys)
        + &authorization_rule("all", &["Manage", "Send", "Listen"], "");
    let made = admin.put("/q", &rules(&given)).expect(201);
    assert_eq!(made.texts("KeyName"), ["mine", "all"]);
    assert_eq!(
        made.texts("AccessRights"),
        ["Send", "Manage", "Send", "Listen"]
    );
    let primary = made.texts("PrimaryKey");
    assert_eq!((primary[0], primary[1].len()), (SECRET, 44));
    assert_eq!(made.texts("SecondaryKey")[0], OTHER);
    assert_eq!(made.texts("ClaimType"), ["SharedAccessKey"; 2]);
    // Masked keys are kept, others are changed, and omitted rules are removed.
    let masked = authorization_rule("all", &["Listen"], "<PrimaryKey></PrimaryKey>");
    let changed = admin.change("/q", &rules(&masked)).expect(200);
    assert_eq!(
        (changed.texts("KeyName"), changed.texts("AccessRights")),
        (vec!["all"], vec!["Listen"])
    );
    assert_eq!(changed.texts("PrimaryKey"), [primary[1]]);
    let none = admin
        .change("/q", &queue("<MaxDeliveryCount>3</MaxDeliveryCount>"))
        .expect(200);
    assert_eq!(none.text("AuthorizationRules"), Some(""));
    assert_contains(&none.body, "<AuthorizationRules></AuthorizationRules>");
    let topic = topic_entry(&format!("<AuthorizationRules>{given}</AuthorizationRules>"));
    assert_eq!(
        admin.put("/t", &topic).expect(201).texts("KeyName"),
        ["mine", "all"]
    );
}

#[test]
fn authorization_rules_of_an_entity_are_validated() {
    let (_bus, admin) = Bus::with_queues(&["other"]).with_admin();
    let many = |count: usize| -> String {
        (0..count)
            .map(|number| authorization_rule(&format!("k{number}"), &["Send"], ""))
            .collect()
    };
    admin.create("/twelve", &rules(&many(12)));
    for (inner, text) in [
        (many(13), "at most 12 authorization rules"),
        (
            authorization_rule("k", &["Manage"], ""),
            "Manage only together with Send and Listen",
        ),
        (
            authorization_rule("k", &[], ""),
            "must have a right at least",
        ),
        (
            authorization_rule("k", &["Send", "Send"], ""),
            "each at most once",
        ),
        (
            authorization_rule("k", &["send"], ""),
            "must be Manage, Send and Listen",
        ),
        (
            authorization_rule("", &["Send"], ""),
            "must have 1 to 256 letters",
        ),
        (
            authorization_rule("a b", &["Send"], ""),
            "must have 1 to 256 letters, digits, '.', '-' and '_', with a letter or digit at both ends",
        ),
        (authorization_rule("a;b", &["Send"], ""), "1 to 256 letters"),
        (authorization_rule("-x", &["Send"], ""), "1 to 256 letters"),
        (
            authorization_rule("k", &["Send"], "<PrimaryKey>short</PrimaryKey>"),
            "A key must have 44 characters",
        ),
        (
            authorization_rule("k", &["Send"], "") + &authorization_rule("k", &["Send"], ""),
            "must differ",
        ),
        (
            authorization_rule("k", &["Send"], "")
                .replace("SharedAccessAuthorizationRule", "AllowRule"),
            "must be SharedAccessAuthorizationRule",
        ),
    ] {
        let reply = admin.put("/q", &rules(&inner));
        assert_contains(reply.refusal(400), text);
        assert!(!reply.body.contains("short"), "a secret: {reply:?}");
    }
}

#[test]
fn a_key_of_an_entity_administers_that_entity_alone() {
    let (bus, admin) = Bus::with_queues(&["other"]).with_admin();
    let keys = format!("<PrimaryKey>{SECRET}</PrimaryKey><SecondaryKey>{OTHER}</SecondaryKey>");
    let manager = authorization_rule("manager", &["Manage", "Send", "Listen"], &keys);
    let sender = authorization_rule("sender", &["Send"], &keys);
    let body = topic_entry(&format!(
        "<AuthorizationRules>{manager}{sender}</AuthorizationRules>"
    ));
    admin.create("/t", &body);
    let host = "https://localhost/";
    for key in [SECRET, OTHER] {
        let own = bus.admin_as(signed(host, "manager", key));
        own.get("/T").expect(200);
        own.get("/t/Subscriptions").expect(200);
        own.get("/other").refusal(401);
        own.get("/$Resources/queues").refusal(401);
        own.put("/new", &queue("")).refusal(401);
    }
    let own = bus.admin_as(signed("https://localhost/t", "manager", SECRET));
    own.put("/t/Subscriptions/s", &subscription("")).expect(201);
    own.put("/t/Subscriptions/s/Rules/r", &rule(&sql_filter("a = 1")))
        .expect(201);
    own.get("/t/Subscriptions/s/Rules/").expect(200);
    bus.admin_as(signed(host, "sender", SECRET))
        .get("/t")
        .refusal(401);
    admin.update(
        "/t",
        &topic_entry("<MaxSizeInMegabytes>2048</MaxSizeInMegabytes>"),
    );
    own.get("/t").refusal(401);
}

#[test]
fn an_administration_request_selects_the_namespace_by_host_or_key() {
    let two = r#"{"UserConfig":{"Namespaces":[
        {"Name":"one","Queues":[{"Name":"q1"}],"Emulator":{"Keys":[{"Name":"first","Key":"1","Claims":["Send","Listen","Manage"]}]}},
        {"Name":"two","Queues":[{"Name":"q2"}],"Emulator":{"Keys":[{"Name":"second","Key":"2","Claims":["Send","Listen","Manage"]}]}}
    ]}}"#;
    let bus = Bus::configured(two);
    let admin = bus.admin_as(signed("https://localhost/", "second", "2"));
    assert_eq!(
        admin.get("/$namespaceinfo").expect(200).value("title"),
        "two"
    );
    assert_eq!(admin.get("/q2").expect(200).value("title"), "q2");
    assert!(
        admin.get("/q1").expect(200).body.starts_with("<feed"),
        "the other's"
    );
    let by_host = |host: &str| {
        let head = admin
            .head("GET", "/$namespaceinfo", &[])
            .replace(HOST, host);
        admin.raw(format!("{head}\r\n").as_bytes())
    };
    by_host("one.servicebus.windows.net").refusal(401);
    assert_eq!(
        by_host("two.localhost:5300").expect(200).value("title"),
        "two"
    );
    let unauthorized = bus.admin_as(Some("Bearer e30.eyJleHAiOjE5MDAwMDAwMDB9.c2ln".into()));
    assert_starts_with(
        unauthorized.get("/q1").refusal(401),
        "SubCode=40402. The namespace cannot be determined",
    );
}

#[test]
fn a_key_of_an_entity_opens_it_over_amqp() {
    let (bus, admin) = Bus::with_queues(&["other"]).with_admin();
    let keys = format!("<PrimaryKey>{SECRET}</PrimaryKey><SecondaryKey>{OTHER}</SecondaryKey>");
    let sender = authorization_rule("sender", &["Send"], &keys);
    admin.create("/q", &rules(&sender));
    for key in [SECRET, OTHER] {
        let mut peer = bus.unauthenticated_client();
        let token = signed("sb://localhost/q", "sender", key).expect("a token");
        assert_eq!(peer.put_token("sb://localhost/q", &token).cbs_status(), 202);
        peer.send_to("q", &Message::new("m"));
        let refused = peer.refused(&Attach::receiver("q"));
        assert_eq!(refused.condition, "amqp:unauthorized-access");
        assert_eq!(
            peer.put_token("sb://localhost/other", &token).cbs_status(),
            401
        );
    }
    assert_eq!(bus.http.held("q"), (2, 0));
}
