//! Keys, namespaces, and the tokens that Resource Manager takes.

use std::thread;

use serde_json::{Value, json};
use servicebus_emulator::auth::{Claims, Key, sas};

use super::{GROUP, Manager, NAMESPACE, SUBSCRIPTION, VERSION, refused};
use crate::support::*;

#[test]
fn authorization_rule_keys_are_created_shown_and_regenerated() {
    let manager = Manager::with_queues(&["q"]);
    let rights = json!({"properties": {"rights": ["Send"]}});
    assert_eq!(
        manager
            .ask("PUT", "/authorizationRules/sender", Some(rights.clone()))
            .0,
        200
    );
    let (status, keys) = manager.ask("POST", "/authorizationRules/sender/listKeys", None);
    assert_eq!(status, 200, "{keys}");
    let signed = |key: &Value| {
        let key = Key {
            name: "sender".to_owned(),
            key: key.as_str().unwrap().to_owned(),
            claims: Claims::SEND,
        };
        sas::sign("sb://localhost/q", &key, in_an_hour())
    };
    let send = |token: String| {
        let headers = [("Authorization", token.as_str())];
        manager
            .sent("POST", "/q/messages", &headers, Some("hello"))
            .0
    };
    assert_eq!(send(signed(&keys["primaryKey"])), 201);
    assert_eq!(send(signed(&keys["secondaryKey"])), 201);
    let renewed = json!({"keyType": "PrimaryKey"});
    let (_, again) = manager.ask(
        "POST",
        "/authorizationRules/sender/regenerateKeys",
        Some(renewed.clone()),
    );
    assert_ne!(again["primaryKey"], keys["primaryKey"]);
    assert_eq!(send(signed(&keys["primaryKey"])), 401);
    assert_eq!(send(signed(&again["primaryKey"])), 201);
    let declared = manager.ask(
        "POST",
        "/authorizationRules/RootManageSharedAccessKey/regenerateKeys",
        Some(renewed),
    );
    assert_eq!(
        refused(declared),
        (409, "MessagingGatewayConflict".to_owned())
    );
    assert_eq!(
        manager
            .ask("PUT", "/queues/q/authorizationRules/own", Some(rights))
            .0,
        200
    );
    assert_eq!(manager.names("/queues/q/authorizationRules"), ["own"]);
    assert_eq!(
        manager.names("/authorizationRules"),
        ["RootManageSharedAccessKey", "sender"]
    );
    let wrong = json!({"properties": {"rights": ["Manage"]}});
    let wrong = manager.ask("PUT", "/authorizationRules/x", Some(wrong));
    assert_eq!(
        refused(wrong),
        (400, "MessagingGatewayBadRequest".to_owned())
    );
}

#[test]
fn a_given_key_is_validated_and_management_locks_apply() {
    let manager = Manager::with_queues(&["q"]);
    manager.put("/authorizationRules/sender", json!({"rights": ["Send"]}));
    let regenerate = |key: Value| {
        let body = json!({"keyType": "PrimaryKey", "key": key});
        manager.ask(
            "POST",
            "/authorizationRules/sender/regenerateKeys",
            Some(body),
        )
    };
    let own = " not base64, but forty-four characters long ";
    assert_eq!(regenerate(json!(own)).1["primaryKey"], own);
    for wrong in [json!(""), json!("short"), json!(5)] {
        let answer = regenerate(wrong);
        assert!(!answer.1.to_string().contains("short"), "a secret");
        assert_eq!(
            refused(answer),
            (400, "MessagingGatewayBadRequest".to_owned())
        );
    }
    assert_eq!(regenerate(Value::Null).0, 200);
    let lock = "/authorizationRules/sender/providers/Microsoft.Authorization/locks/l";
    manager.put(lock, json!({"level": "ReadOnly"}));
    assert_eq!(
        refused(regenerate(Value::Null)),
        (409, "ScopeLocked".to_owned())
    );
}

#[test]
fn an_added_key_authenticates_with_sasl_plain() {
    let manager = Manager::with_queues(&["q"]);
    let rights = json!({"rights": ["Send"]});
    manager.put("/authorizationRules/sender", rights);
    let keys = "/authorizationRules/sender/listKeys";
    let (_, keys) = manager.ask("POST", keys, None);
    let sign_in = |key: &str| {
        let mut peer = Peer::connect(manager.0.amqp);
        let response = format!("\0sender\0{key}");
        let outcome = peer.sasl("PLAIN", response.as_bytes());
        (outcome, peer)
    };
    assert_eq!(sign_in("wrong").0, 1);
    let mut events = manager.0.http.events("");
    events.retain(|event| event["kind"] == "refused");
    let refusal = members(&events[0], ["operation", "reason"]);
    assert_eq!(refusal, json!(["sign in", "amqp:unauthorized-access"]));
    for kind in ["primaryKey", "secondaryKey"] {
        let (accepted, mut peer) = sign_in(keys[kind].as_str().unwrap());
        assert_eq!(accepted, 0);
        peer.introduce(&Open::default());
        peer.send_to("q", &Message::new("m"));
        let refusal = peer.refused(&Attach::receiver("q"));
        assert_eq!(refusal.condition, "amqp:unauthorized-access");
    }
}

#[test]
fn namespaces_are_created_tagged_and_deleted_by_arm() {
    let manager = Manager::with_queues(&["q"]);
    let path = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/second?{VERSION}");
    let body =
        json!({"location": "northeurope", "tags": {"team": "shop"}, "sku": {"name": "Premium"}});
    let (status, made) = manager.at("PUT", &path, Some(body));
    assert_eq!(status, 200, "{made}");
    assert_eq!(
        (&made["sku"]["name"], &made["tags"]["team"]),
        (&json!("Premium"), &json!("shop"))
    );
    let (_, shown) = manager.at("PATCH", &path, Some(json!({"tags": {"team": "bank"}})));
    assert_eq!(
        (&shown["location"], &shown["tags"]["team"]),
        (&json!("northeurope"), &json!("bank"))
    );
    let (_, shown) = manager.at("PUT", &path, Some(json!({"properties": {}})));
    assert_eq!(
        (&shown["location"], &shown["tags"]),
        (&json!("northeurope"), &json!({}))
    );
    let (_, list) = manager.at(
        "GET",
        &format!("{SUBSCRIPTION}/providers/Microsoft.ServiceBus/namespaces?{VERSION}"),
        None,
    );
    assert_eq!(list["value"].as_array().unwrap().len(), 2);
    let check =
        format!("{SUBSCRIPTION}/providers/Microsoft.ServiceBus/CheckNameAvailability?{VERSION}");
    let available = |name: &str| {
        manager.at("POST", &check, Some(json!({"name": name}))).1["nameAvailable"].clone()
    };
    assert_eq!(
        (available("second"), available("third")),
        (json!(false), json!(true))
    );
    assert_eq!(manager.at("DELETE", &path, None).0, 200);
    assert_eq!(manager.at("DELETE", &path, None).0, 204);
    let last = manager.ask("DELETE", "", None);
    assert_eq!(refused(last), (409, "Conflict".to_owned()));
}

#[test]
fn a_namespace_removed_by_the_control_api_leaves_its_location_and_tags_to_no_later_one() {
    let manager = Manager::with_queues(&["q"]);
    let path = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/second?{VERSION}");
    let body = json!({"location": "northeurope", "tags": {"team": "shop"}});
    assert_eq!(manager.at("PUT", &path, Some(body)).0, 200);
    let own = "/$emulator/v1/namespaces/second";
    assert_eq!(manager.0.http.delete(own).status, 204);
    assert_eq!(manager.0.http.request("PUT", own, None).status, 201);
    let (_, shown) = manager.at("GET", &path, None);
    assert_eq!(
        (&shown["location"], &shown["tags"]),
        (&json!("westeurope"), &json!({}))
    );
}

#[test]
fn a_second_namespace_answers_for_the_well_known_key_and_shows_its_location_in_its_resources() {
    let manager = Manager::with_queues(&["q"]);
    let namespace = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/second");
    let ask = |method: &str, rest: &str, body: Option<Value>| {
        let (status, shown) = manager.at(method, &format!("{namespace}{rest}?{VERSION}"), body);
        assert_eq!(status, 200, "{shown}");
        shown
    };
    ask("PUT", "", Some(json!({"location": "northeurope"})));
    let key = "/authorizationRules/RootManageSharedAccessKey";
    let keys = ask("POST", &format!("{key}/listKeys"), None);
    assert_eq!(keys["keyName"], "RootManageSharedAccessKey-second");
    for resource in [
        ask("PUT", "/queues/orders", Some(json!({}))),
        ask("GET", key, None),
        ask("GET", "/networkRuleSets/default", None),
    ] {
        assert_eq!(resource["location"], "northeurope", "{resource}");
    }
}

#[test]
fn the_arm_and_jwt_settings_of_a_namespace_apply_to_arm_requests() {
    for (block, bearer, status) in [
        (r#""Arm":"off""#, "anyone", 403),
        (r#""Jwt":"refuse""#, "anyone", 401),
        (r#""Jwt":"refuse","TokenCheck":"none""#, "anyone", 200),
    ] {
        let config = format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"sbemulatorns","Queues":[],"Emulator":{{{block}}}}}]}}}}"#
        );
        let manager = Manager(Bus::configured(&config));
        let path = format!("{GROUP}/{NAMESPACE}?{VERSION}");
        let bearer = format!("Bearer {bearer}");
        let answer = manager.sent("GET", &path, &[("Authorization", &bearer)], None);
        assert_eq!(answer.0, status, "{block}: {}", answer.1);
        if block.contains("refuse") {
            // A token of this emulator is.
            let form = "grant_type=client_credentials";
            let (_, token) = manager.sent("POST", "/adfs/oauth2/v2.0/token", &[], Some(form));
            let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
            assert_eq!(
                manager
                    .sent("GET", &path, &[("Authorization", &bearer)], None)
                    .0,
                200
            );
        }
    }
}

/// The keys of `listKeys`, with the namespace that each belongs to.
#[test]
fn the_connection_strings_of_list_keys_work_with_several_namespaces() {
    let manager = Manager::with_queues(&["q"]);
    let rights = json!({"properties": {"rights": ["Send", "Listen"]}});
    let mut strings = Vec::new();
    for name in ["first", "second"] {
        let at = |below: &str| {
            let namespace = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/{name}");
            format!("{namespace}{below}?{VERSION}")
        };
        for (below, body) in [("", json!({})), ("/queues/q", json!({}))] {
            assert_eq!(manager.at("PUT", &at(below), Some(body)).0, 200);
        }
        // Both have the first key, and the entity's of the second has a name of the first.
        for below in [
            "/authorizationRules/app",
            "/queues/q/authorizationRules/own",
            "/queues/q/authorizationRules/RootManageSharedAccessKey",
        ] {
            let (status, _) = manager.at("PUT", &at(below), Some(rights.clone()));
            assert_eq!(status, 200, "{below}");
            let (_, keys) = manager.at("POST", &at(&format!("{below}/listKeys")), None);
            strings.push((name, keys));
        }
    }
    for (name, keys) in &strings {
        for kind in ["primaryKey", "secondaryKey"] {
            let key = Key {
                name: keys["keyName"].as_str().unwrap().to_owned(),
                key: keys[kind].as_str().unwrap().to_owned(),
                claims: Claims::SEND,
            };
            let token = sas::sign("sb://localhost/q", &key, in_an_hour());
            let mut peer = manager.0.unauthenticated_client();
            let reply = peer.put_token("sb://localhost/q", &token);
            assert_eq!(reply.cbs_status(), 202, "{name} {keys}: {}", reply.text());
            peer.send_to("q", &Message::new("m"));
            let headers = [("Authorization", &*token)];
            let (status, _) = manager.sent("POST", "/q/messages", &headers, Some("m"));
            assert_eq!(status, 201, "{name} {keys}");
        }
    }
    for (name, held) in [("first", 12), ("second", 12)] {
        let path = format!("/$emulator/v1/namespaces/{name}/counts?entity=q");
        assert_eq!(manager.0.http.get(&path).ok()["active"], held, "{name}");
    }
}

#[test]
fn the_name_of_an_authorization_rule_must_fit_into_a_connection_string() {
    let manager = Manager::with_queues(&["q"]);
    let body = json!({"properties": {"rights": ["Send"]}});
    let put = |name: &str| {
        let below = format!("/queues/q/authorizationRules/{name}");
        manager.ask("PUT", &below, Some(body.clone()))
    };
    let long = "x".repeat(51);
    for name in ["a;b=c", "a%2Fb", "-x", "x.", "a%00b", "%C3%A4", &long] {
        let (status, refusal) = put(name);
        assert_eq!(status, 400, "{name}: {refusal}");
        let text = refusal["error"]["message"].as_str().unwrap();
        assert_contains(text, "is not allowed; allowed: 1 to 50 letters, digits,");
    }
    for name in ["RootManageSharedAccessKey", "a.b-c_1", &long[1..]] {
        assert_eq!(put(name).0, 200, "{name}");
    }
}

#[test]
fn a_form_without_an_end_and_one_that_is_too_large_are_told_apart() {
    let manager = Manager::with_queues(&[]);
    let (admin, path) = (manager.0.admin_as(None), "/adfs/oauth2/v2.0/token");
    let cut = admin.cut_short("POST", path, "grant_type=client_credentials");
    assert_contains(&cut.expect(400).body, "The body ended before");
    let large = admin.send("POST", path, &[], Some(&"x".repeat(65_537)));
    assert_contains(&large.expect(413).body, "is larger than 65536 bytes.");
}

#[test]
fn a_namespace_with_arm_off_is_neither_listed_nor_deleted() {
    let config = r#"{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns"},
        {"Name":"apart","Emulator":{"Arm":"off"}}]}}"#;
    let manager = Manager(Bus::configured(config));
    let namespaces = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces");
    let (_, list) = manager.at("GET", &format!("{namespaces}?{VERSION}"), None);
    assert_eq!(list["value"].as_array().map(Vec::len), Some(1), "{list}");
    let apart = format!("{namespaces}/apart?{VERSION}");
    for method in ["DELETE", "GET"] {
        let answer = refused(manager.at(method, &apart, None));
        assert_eq!(answer, (403, "AuthorizationFailed".to_owned()), "{method}");
    }
}

#[test]
fn a_missing_arm_resource_is_reported_with_the_existing_ones() {
    let manager = Manager::with_queues(&["q"]);
    let keys = "/AuthorizationRules/RootManageSharedAccessKey";
    let rules = "/topics/t/subscriptions/s/rules";
    manager.put("/topics/t", json!({}));
    manager.put("/topics/t/subscriptions/s", json!({}));
    for (method, below, allowed) in [
        ("PUT", format!("{keys}/listKeys"), "POST"),
        ("GET", format!("{keys}/regenerateKeys"), "POST"),
        ("PATCH", keys.to_owned(), "GET, PUT, DELETE"),
        ("PUT", "/AuthorizationRules".to_owned(), "GET"),
        ("PUT", rules.to_owned(), "GET"),
        ("PATCH", format!("{rules}/$Default"), "GET, PUT, DELETE"),
        ("PATCH", "/queues/q".to_owned(), "GET, PUT, DELETE"),
    ] {
        let (status, body) = manager.ask(method, &below, Some(json!({})));
        let text = format!("{method} is not allowed here; allowed: {allowed}.");
        assert_eq!(
            (status, &body["error"]["message"]),
            (405, &json!(text)),
            "{below}"
        );
    }
}

#[test]
fn tags_beyond_the_limits_of_azure_are_refused() {
    let manager = Manager::with_queues(&["q"]);
    let many = |count| Value::from_iter((0..count).map(|number| (format!("t{number}"), "v")));
    let tag = |name: usize, value: usize| json!({"x".repeat(name): "\u{e4}".repeat(value)});
    let given = |tags: Value| manager.ask("PUT", "", Some(json!({"tags": tags})));
    for tags in [many(50), tag(512, 256), json!({"": ""})] {
        let (status, shown) = given(tags.clone());
        assert_eq!((status, &shown["tags"]), (200, &tags));
    }
    for (tags, code) in [
        (many(51), "InvalidTags"),
        (tag(513, 1), "InvalidTagName"),
        (tag(1, 257), "InvalidTagValueLength"),
        (json!({"a": 1}), "InvalidRequestContent"),
        (json!({"a": {"b": "c"}}), "InvalidRequestContent"),
        (json!(["a"]), "InvalidRequestContent"),
    ] {
        assert_eq!(refused(given(tags)), (400, code.to_owned()));
    }
    for (location, code) in [
        (json!(7), "InvalidRequestContent"),
        (
            json!("x".repeat(257)),
            "LocationNotAvailableForResourceType",
        ),
    ] {
        let body = json!({"location": location});
        let answer = manager.ask("PATCH", "", Some(body));
        assert_eq!(refused(answer), (400, code.to_owned()));
    }
    let (_, shown) = manager.ask("GET", "", None);
    assert_eq!(
        (&shown["tags"], &shown["location"]),
        (&json!({"": ""}), &json!("westeurope"))
    );
}

/// The removal of many queues takes long enough that another client creates the namespace meanwhile.
#[test]
fn a_namespace_created_again_during_its_removal_keeps_its_tags() {
    let manager = Manager::with_queues(&["q"]);
    let path = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/second?{VERSION}");
    let own = "/$emulator/v1/namespaces/second";
    let queues = Vec::from_iter((0..500).map(|number| format!("q{number}")));
    let topology = json!({"queues": queues}).to_string();
    let tags = json!({"team": "shop"});
    for _ in 0..20 {
        let http = manager.0.http;
        assert_eq!(http.request("PUT", own, Some(&topology)).status, 201);
        let (_, first) = manager.at("GET", &path, None);
        let created_at = |shown: &Value| shown["properties"]["createdAt"].clone();
        let is_created_again = || {
            let (status, shown) = manager.at("PUT", &path, Some(json!({"tags": tags})));
            status == 200 && created_at(&shown) != created_at(&first)
        };
        thread::scope(|scope| {
            let removal = scope.spawn(|| http.delete(own).status);
            while !is_created_again() {}
            assert_eq!(removal.join().unwrap(), 204);
        });
        let (_, shown) = manager.at("GET", &path, None);
        assert_eq!(shown["tags"], tags);
        assert_eq!(http.delete(own).status, 204);
    }
}
