//! Resources of Azure Resource Manager, by requests as management clients send them.

mod keys;
mod values;

use serde_json::{Value, json};

use crate::support::*;

const SUBSCRIPTION: &str = "/subscriptions/00000000-0000-0000-0000-000000000001";
const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g";
const NAMESPACE: &str = "providers/Microsoft.ServiceBus/namespaces/sbemulatorns";
const VERSION: &str = "api-version=2024-01-01";

/// A management client.
struct Manager(Bus);

impl Manager {
    fn with_queues(names: &[&str]) -> Self {
        Self(Bus::with_queues(names))
    }

    /// Asks for what belongs to the namespace.
    fn ask(&self, method: &str, below: &str, body: Option<Value>) -> (u16, Value) {
        let path = format!("{GROUP}/{NAMESPACE}{below}?{VERSION}");
        self.at(method, &path, body)
    }

    fn at(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|body| body.to_string());
        let headers = [("Authorization", "Bearer anyone")];
        self.sent(method, path, &headers, body.as_deref())
    }

    fn sent(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> (u16, Value) {
        let reply = self.0.admin_as(None).send(method, path, headers, body);
        let body = serde_json::from_str(&reply.body).unwrap_or_default();
        (reply.status, body)
    }

    fn put(&self, below: &str, properties: Value) -> Value {
        let (status, body) = self.ask("PUT", below, Some(json!({"properties": properties})));
        assert_eq!(status, 200, "{below}: {body}");
        body
    }

    fn get(&self, below: &str) -> Value {
        let (status, body) = self.ask("GET", below, None);
        assert_eq!(status, 200, "{below}: {body}");
        body
    }

    fn names(&self, below: &str) -> Vec<String> {
        let list = self.get(below);
        let names = list["value"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| own["name"].as_str().unwrap().to_owned());
        names.collect()
    }
}

/// Status and code of a refusal.
fn refused((status, body): (u16, Value)) -> (u16, String) {
    (
        status,
        body["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

#[test]
fn an_entity_is_created_shown_updated_listed_and_deleted_by_arm() {
    let manager = Manager::with_queues(&["q"]);
    let made = manager.put(
        "/queues/orders",
        json!({"lockDuration": "PT30S", "maxDeliveryCount": 3, "maxMessageSizeInKilobytes": 256}),
    );
    let id = format!("{GROUP}/{NAMESPACE}/queues/orders");
    assert_eq!(members(&made, ["id", "name"]), json!([id, "orders"]));
    let properties = &made["properties"];
    assert_eq!(properties["lockDuration"], "PT30S");
    assert_eq!(properties["autoDeleteOnIdle"], "P10675199DT2H48M5.4775807S");
    assert_eq!(properties["accessedAt"], "0001-01-01T00:00:00Z");
    assert_eq!(properties["maxMessageSizeInKilobytes"], 256);
    assert_eq!(properties["countDetails"]["deadLetterMessageCount"], 0);
    assert_eq!(properties.get("forwardTo"), None);
    // `az` sends everything back that it has read.
    let mut changed = properties.clone();
    changed["defaultMessageTimeToLive"] = "P1Y2M3DT3H11M2S".into();
    changed["forwardTo"] = "q".into();
    let changed = manager.put("/queues/ORDERS", changed);
    assert_eq!(
        changed["properties"]["defaultMessageTimeToLive"],
        "P428DT3H11M2S"
    );
    assert_eq!(changed["properties"]["forwardTo"], "q");
    assert_eq!(changed["properties"]["maxDeliveryCount"], 3);
    assert_eq!(manager.names("/queues"), ["orders", "q"]);
    assert_eq!(manager.ask("DELETE", "/queues/orders", None).0, 200);
    assert_eq!(manager.ask("DELETE", "/queues/orders", None).0, 204);
    let missing = refused(manager.ask("GET", "/queues/orders", None));
    assert_eq!(
        missing,
        (404, "MessagingGatewayNotFoundStatusCode".to_owned())
    );
}

#[test]
fn a_jms_subscription_shows_its_client_over_arm() {
    let manager = Manager(Bus::configured(&queues(r#""Tier":"premium""#, &[])));
    manager.put("/topics/t", json!({}));
    let below = "/topics/t/subscriptions/sub$desk$D";
    let client = json!({"clientId": "desk", "isDurable": true, "isShared": false});
    let own = json!({"isClientAffine": true, "clientAffineProperties": client});
    let made = manager.put(below, own);
    assert_eq!(made["properties"]["isClientAffine"], true);
    assert_eq!(made["properties"]["clientAffineProperties"], client);
    // Its client is unchanged, whatever is written later.
    let changed = manager.put(below, json!({"maxDeliveryCount": 4}));
    assert_eq!(changed["properties"]["maxDeliveryCount"], 4);
    assert_eq!(changed["properties"]["clientAffineProperties"], client);
    let exported = manager.0.http.get("~/topology").ok().to_string();
    assert_contains(&exported, r#""ClientId":"desk""#);
}

#[test]
fn arm_lists_have_pages() {
    let manager = Manager::with_queues(&["a", "b", "c"]);
    // Go encodes the names of parameters, those of a link to the next page too.
    for dollar in ["$", "%24"] {
        let path = format!("{GROUP}/{NAMESPACE}/queues?{VERSION}&{dollar}top=2");
        let (_, page) = manager.at("GET", &path, None);
        assert_eq!(page["value"].as_array().unwrap().len(), 2);
        let next = page["nextLink"].as_str().unwrap();
        let rest = next.strip_prefix("https://localhost:5300").unwrap();
        let (_, page) = manager.at("GET", &rest.replace('$', dollar), None);
        assert_eq!(page["value"][0]["name"], "c");
        assert_eq!(page.get("nextLink"), None);
    }
    for (query, allowed) in [
        ("$skip=-1", "'$skip' is '-1'; allowed: 0 to 2147483647."),
        ("$top=0", "'$top' is '0'; allowed: 1 to 1000."),
        ("$top=1001", "'$top' is '1001'; allowed: 1 to 1000."),
        ("$top=x", "'$top' is 'x'; allowed: 1 to 1000."),
    ] {
        let path = format!("{GROUP}/{NAMESPACE}/queues?{VERSION}&{query}");
        let (status, body) = manager.at("GET", &path, None);
        assert_eq!(status, 400, "{query}");
        assert_contains(body["error"]["message"].as_str().unwrap(), allowed);
    }
}

#[test]
fn the_arm_list_of_namespaces_supports_get_only() {
    let manager = Manager::with_queues(&["q"]);
    let path = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces?{VERSION}");
    for method in ["POST", "PUT", "DELETE"] {
        let answer = manager.at(method, &path, Some(json!({})));
        assert_eq!(
            refused(answer),
            (405, "MethodNotAllowed".to_owned()),
            "{method}"
        );
    }
    assert_eq!(manager.at("GET", &path, None).0, 200);
}

#[test]
fn the_first_rule_created_by_arm_replaces_the_default_rule() {
    let manager = Manager::with_queues(&["q"]);
    manager.put("/topics/events", json!({}));
    let subscription = "/topics/events/subscriptions/billing";
    manager.put(subscription, json!({"requiresSession": true}));
    let rules = format!("{subscription}/rules");
    assert_eq!(manager.names(&rules), ["$Default"]);
    let rule = manager.put(
        &format!("{rules}/large"),
        json!({"sqlFilter": {"sqlExpression": "amount > 10"}}),
    );
    let filter = json!({"sqlExpression": "amount > 10", "compatibilityLevel": 20});
    assert_eq!(rule["properties"]["sqlFilter"], filter);
    assert_eq!(rule["properties"]["action"], json!({}));
    assert_eq!(manager.names(&rules), ["large"]);
    let correlation = json!({"filterType": "CorrelationFilter", "correlationFilter": {"label": "paid", "properties": {"tier": "gold"}}});
    manager.put(&format!("{rules}/paid"), correlation);
    let shown = manager.get(&format!("{rules}/paid"));
    assert_eq!(
        shown["properties"]["correlationFilter"]["properties"]["tier"],
        "gold"
    );
    assert_eq!(
        manager.ask("DELETE", &format!("{rules}/large"), None).0,
        200
    );
    assert_eq!(manager.names(&rules), ["paid"]);
    assert_eq!(
        manager.get("/topics/events")["properties"]["subscriptionCount"],
        1
    );
}

#[test]
fn the_operations_that_roles_grant_are_listed() {
    let manager = Manager::with_queues(&[]);
    let path = format!("/providers/Microsoft.ServiceBus/operations?{VERSION}");
    let (status, list) = manager.at("GET", &path, None);
    assert_eq!(status, 200, "{list}");
    let operations = list["value"].as_array().unwrap();
    for name in [
        "checkNameAvailability/action",
        "namespaces/queues/Delete",
        "namespaces/queues/authorizationRules/listkeys/action",
        "namespaces/topics/subscriptions/rules/write",
    ] {
        let name = format!("Microsoft.ServiceBus/{name}");
        let found = operations.iter().find(|one| one["name"] == *name);
        let found = found.unwrap_or_else(|| panic!("{name} is missing: {list}"));
        assert!(found["display"]["operation"].is_string(), "{found}");
    }
}

#[test]
fn an_invalid_arm_request_is_refused_with_the_reason() {
    let manager = Manager::with_queues(&["q"]);
    let large = "x".repeat(10 << 20);
    let bearer = [("Authorization", "Bearer anyone")];
    let queue = format!("{GROUP}/{NAMESPACE}/queues/q");
    let versioned = format!("{queue}?{VERSION}");
    let send = |body| manager.sent("PUT", &versioned, &bearer, Some(body));
    let old = manager.at("GET", &format!("{queue}?api-version=2021-05"), None);
    let impossible = manager.at("GET", &format!("{queue}?api-version=2024-13-45"), None);
    for (answer, status, code) in [
        (
            manager.sent("GET", &versioned, &[], None),
            401,
            "AuthenticationFailed",
        ),
        (
            manager.at("GET", &queue, None),
            400,
            "MissingApiVersionParameter",
        ),
        (old, 400, "InvalidApiVersionParameter"),
        (impossible, 400, "InvalidApiVersionParameter"),
        (send("{"), 400, "InvalidRequestContent"),
        (send(&large), 413, "RequestContentTooLarge"),
    ] {
        assert_eq!(refused(answer), (status, code.to_owned()));
    }
    for properties in [
        json!({"lockDuration": "a minute"}),
        json!({"lockDuration": "PT1H"}),
        json!({"lockDuration": "P1"}),
        json!({"autoDeleteOnIdle": 5}),
        json!({"requiresSession": true}),
        json!({"forwardTo": "nowhere"}),
    ] {
        let answer = manager.ask("PUT", "/queues/q", Some(json!({"properties": properties})));
        assert_eq!(
            refused(answer),
            (400, "MessagingGatewayBadRequest".to_owned())
        );
    }
}

/// Paths below the subscription, the code of the error, and what its message names.
const NOT_SERVED: &str = "\
    GET | resourceGroups/g/NAMESPACE/disasterRecoveryConfigs/alias | NotSupported | aliases
    PUT | resourceGroups/g/NAMESPACE/networkRuleSets/default | NotSupported | network rules
    GET | providers/Microsoft.ServiceBus/premiumMessagingRegions | NotSupported | regions
    GET | resourceGroups/g/NAMESPACE/providers/Microsoft.Insights/metrics | NotSupported | counts
    PUT | resourceGroups/g/providers/Microsoft.Resources/deployments/d | NotSupported | import
    GET | resourceGroups/g/providers/Microsoft.Web/sites | InvalidResourceNamespace | providers
    GET | resourceGroup/g | InvalidResourceType | begin with
    GET | resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/x | ResourceNotFound | /x'";

#[test]
fn missing_and_unserved_resources_are_reported() {
    let manager = Manager::with_queues(&["q"]);
    let below = |method, path| refused(manager.ask(method, path, None));
    let conflict = (409, "MessagingGatewayConflict".to_owned());
    assert_eq!(below("PUT", "/topics/q"), conflict);
    let missing = (404, "MessagingGatewayNotFoundStatusCode".to_owned());
    assert_eq!(below("PUT", "/topics/t/subscriptions/s"), missing);
    for line in NOT_SERVED.lines() {
        let [method, path, code, named] = line.trim().split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let path = format!("{SUBSCRIPTION}/{path}?{VERSION}").replace("NAMESPACE", NAMESPACE);
        let answer = manager.at(method, &path, None);
        assert_eq!(refused(answer.clone()), (404, code.to_owned()), "{line}");
        assert!(answer.1.to_string().contains(named), "{line}: {}", answer.1);
    }
}

#[test]
fn arm_subscription_ids_and_resource_group_names_are_validated() {
    let manager = Manager::with_queues(&["q"]);
    let long = "g".repeat(91);
    let other = "99999999-0000-0000-0000-000000000001";
    for (subscription, group, code) in [
        ("anyone", "g", Some("InvalidSubscriptionId")),
        ("00000000-0000", "g", Some("InvalidSubscriptionId")),
        (other, "g", None),
        (other, "(gröup)_1.x-y", None),
        (other, "a%20group", Some("InvalidResourceGroup")),
        (other, "group.", Some("InvalidResourceGroup")),
        (other, &long, Some("InvalidResourceGroup")),
    ] {
        let group = group.replace('ö', "%C3%B6");
        let path =
            format!("/subscriptions/{subscription}/resourcegroups/{group}/{NAMESPACE}?{VERSION}");
        let expected = code.map_or((200, ""), |code| (400, code));
        let (status, code) = refused(manager.at("GET", &path, None));
        assert_eq!((status, code.as_str()), expected, "{path}");
    }
}

#[test]
fn scripted_faults_reach_requests_by_the_entity_of_their_path() {
    let manager = Manager::with_queues(&["q"]);
    manager.put("/topics/events", json!({}));
    let billing = "/topics/events/subscriptions/billing";
    for (name, entity, below, effect) in [
        (
            "GET",
            "q",
            "/queues/Q",
            json!({"answer": {"status": 503, "description": "too busy"}}),
        ),
        (
            "PUT",
            "events/subscriptions/billing",
            billing,
            json!({"answer": {"status": 429}}),
        ),
    ] {
        let fault = json!({"operation": "http", "name": name, "entity": entity, "effect": effect});
        let path = "/$emulator/v1/namespaces/sbemulatorns/faults";
        manager.0.http.post(path, &fault).ok();
        let other = manager.ask(name, "/topics/events", None);
        assert_eq!(other.0, 200, "{}", other.1);
        let (status, body) = manager.ask(name, below, None);
        let text = &body["error"]["message"];
        let (status_of, code) = match name {
            "GET" => (503, "ServiceUnavailable"),
            _ => (429, "TooManyRequests"),
        };
        assert_eq!(
            (status, &body["error"]["code"]),
            (status_of, &json!(code)),
            "{text}"
        );
        assert!(name == "PUT" || text == "too busy", "{text}");
        assert_eq!(manager.ask(name, below, None).0, 200);
    }
}

#[test]
fn a_management_lock_applies_to_arm_requests_only() {
    let config = r#"{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Queues":[{"Name":"q"},{"Name":"idle","Properties":{"AutoDeleteOnIdle":"PT5M"}}]}]}}"#;
    let manager = Manager(Bus::configured(config));
    // `az lock` writes two slashes where the resource has no parent.
    let scope = format!("{GROUP}/providers/Microsoft.ServiceBus//namespaces/sbemulatorns");
    let lock =
        format!("{scope}/providers/Microsoft.Authorization/locks/keep?api-version=2016-09-01");
    let (status, made) = manager.at(
        "PUT",
        &lock,
        Some(json!({"properties": {"level": "CanNotDelete", "notes": "mine"}})),
    );
    assert_eq!(
        (status, &made["properties"]["level"]),
        (200, &json!("CanNotDelete"))
    );
    assert_eq!(manager.at("GET", &lock, None), (200, made));
    assert_eq!(
        refused(manager.ask("DELETE", "/queues/q", None)),
        (409, "ScopeLocked".to_owned())
    );
    manager.put("/queues/q", json!({"maxDeliveryCount": 2}));
    // Neither the administration API nor idle deletion is bound by it.
    assert_eq!(manager.0.admin().delete("/q").status, 200);
    manager.0.http.advance(301.0);
    assert_eq!(manager.names("/queues"), [""; 0]);
    manager.put("/queues/q", json!({}));
    assert_eq!(manager.at("DELETE", &lock, None).0, 200);
    assert_eq!(manager.at("DELETE", &lock, None).0, 204);
    let wrong = manager.at(
        "PUT",
        &lock,
        Some(json!({"properties": {"level": "Never"}})),
    );
    assert_eq!(refused(wrong), (400, "InvalidLockLevel".to_owned()));
    assert_eq!(manager.ask("DELETE", "/queues/q", None).0, 200);
}

#[test]
fn a_management_lock_needs_an_existing_scope() {
    let manager = Manager::with_queues(&["q"]);
    manager.put("/topics/t", json!({}));
    manager.put("/topics/t/subscriptions/s", json!({}));
    let locked = |scope: &str| {
        let path =
            format!("{scope}/providers/Microsoft.Authorization/locks/l?api-version=2016-09-01");
        let body = json!({"properties": {"level": "CanNotDelete"}});
        refused(manager.at("PUT", &path, Some(body)))
    };
    let namespace = format!("{GROUP}/{NAMESPACE}");
    for below in [
        "/queues/q",
        "/topics/t/subscriptions/s/rules/$Default",
        "/authorizationRules/RootManageSharedAccessKey",
        "",
    ] {
        assert_eq!(locked(&format!("{namespace}{below}")).0, 200, "{below}");
    }
    assert_eq!((locked(GROUP).0, locked(SUBSCRIPTION).0), (200, 200));
    let missing = "MessagingGatewayNotFoundStatusCode";
    for (scope, code) in [
        (format!("{namespace}/queues/other"), missing),
        (format!("{namespace}/topics/q"), missing),
        (
            format!("{namespace}/topics/t/subscriptions/s/rules/r"),
            missing,
        ),
        (format!("{namespace}/authorizationRules/other"), missing),
        (format!("{namespace}-2"), "ResourceNotFound"),
        (
            format!("{GROUP}/providers/Microsoft.Web/sites/x"),
            "InvalidResourceNamespace",
        ),
    ] {
        assert_eq!(locked(&scope), (404, code.to_owned()), "{scope}");
    }
}

#[test]
fn an_arm_body_must_be_an_object() {
    let manager = Manager::with_queues(&["q"]);
    manager.put("/queues/q", json!({"maxDeliveryCount": 3}));
    for body in [json!([]), json!("q"), json!({"properties": [5]})] {
        let answer = manager.ask("PUT", "/queues/q", Some(body));
        assert_eq!(refused(answer), (400, "InvalidRequestContent".to_owned()));
    }
    let shown = manager.get("/queues/q");
    assert_eq!(shown["properties"]["maxDeliveryCount"], 3);
}

#[test]
fn the_resource_id_of_an_entity_is_a_path_to_it() {
    let manager = Manager::with_queues(&["a/b"]);
    let id = format!("{GROUP}/{NAMESPACE}/queues/a~b");
    for below in ["/queues/a%2Fb", "/queues/a~b"] {
        assert_eq!(manager.get(below)["id"], id, "{below}");
    }
}

#[test]
fn sizes_and_duplicate_windows_of_arm_requests_are_validated() {
    let manager = Manager::with_queues(&["q"]);
    for (below, properties, expected) in [
        (
            "/queues/a",
            json!({"maxSizeInMegabytes": 777}),
            "1024, 2048",
        ),
        (
            "/topics/a",
            json!({"maxSizeInMegabytes": 10_240}),
            "1024, 2048",
        ),
        (
            "/queues/a",
            json!({"duplicateDetectionHistoryTimeWindow": "PT5S"}),
            "allowed: 20 s",
        ),
    ] {
        let body = json!({"properties": properties});
        let (status, answer) = manager.ask("PUT", below, Some(body));
        let text = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && text.contains(expected), "{status}: {text}");
    }
    // A partitioned entity shows the size of all its partitions, and clients send back what they read.
    let own = json!({"enablePartitioning": true, "maxSizeInMegabytes": 1024});
    let made = manager.put("/queues/p", own);
    assert_eq!(made["properties"]["maxSizeInMegabytes"], 16_384);
    let again = manager.put("/queues/p", made["properties"].clone());
    assert_eq!(again["properties"]["maxSizeInMegabytes"], 16_384);
}
