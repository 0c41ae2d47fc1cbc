//! Values that Azure Resource Manager has or writes in a form of its own, and how long its management locks last.

use serde_json::json;

use super::{GROUP, Manager, NAMESPACE, SUBSCRIPTION, VERSION, refused};
use crate::support::*;

const RULES: &str = "/topics/t/subscriptions/s/rules";

fn with_subscription() -> Manager {
    let manager = Manager::with_queues(&["q"]);
    manager.put("/topics/t", json!({}));
    manager.put("/topics/t/subscriptions/s", json!({}));
    manager
}

#[test]
fn correlation_properties_of_any_type_are_shown_by_arm() {
    let manager = with_subscription();
    let value = |key: &str, kind: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>{key}</Key><Value i:type=\"x:{kind}\" \
             xmlns:x=\"http://www.w3.org/2001/XMLSchema\">{text}</Value></KeyValueOfstringanyType>"
        )
    };
    let typed = rule(&format!(
        "<Filter i:type=\"CorrelationFilter\"><Properties>{}{}{}</Properties></Filter>",
        value("at", "dateTime", "2020-01-01T00:00:00Z"),
        value("span", "duration", "PT1M30S"),
        value("most", "double", "INF")
    ));
    let admin = manager.0.admin();
    admin.create("/t/Subscriptions/s/Rules/typed", &typed);
    let shown = manager.get(&format!("{RULES}/typed"));
    assert_eq!(
        shown["properties"]["correlationFilter"]["properties"],
        json!({"at": "2020-01-01T00:00:00Z", "span": "PT1M30S", "most": "INF"})
    );
}

#[test]
fn a_correlation_property_with_a_null_value_is_refused() {
    let manager = with_subscription();
    let filter = json!({"correlationFilter": {"properties": {"tier": null}}});
    let body = Some(json!({"properties": filter}));
    let refusal = refused(manager.ask("PUT", &format!("{RULES}/r"), body));
    assert_eq!(refusal, (400, "MessagingGatewayBadRequest".to_owned()));
}

#[test]
fn arm_refuses_a_rule_whose_filter_cannot_be_read() {
    let manager = with_subscription();
    for filter in [
        json!({"sqlFilter": "1=0"}),
        json!({"sqlFilter": {"sqlExpression": 5}}),
        json!({"sqlFilter": {"expression": "1=0"}}),
        json!({"correlationFilter": [], "filterType": "CorrelationFilter"}),
    ] {
        let body = Some(json!({"properties": filter}));
        let refusal = refused(manager.ask("PUT", &format!("{RULES}/r"), body));
        assert_eq!(refusal, (400, "MessagingGatewayBadRequest".to_owned()));
    }
    let filter =
        json!({"correlationFilter": {"label": 7}, "action": {"requiresPreprocessing": true}});
    let shown = manager.put(&format!("{RULES}/r"), filter);
    assert_eq!(shown["properties"]["correlationFilter"]["label"], "7");
}

#[test]
fn a_size_that_standard_has_is_accepted_as_text() {
    let manager = Manager::with_queues(&["q"]);
    let shown = manager.put("/queues/q", json!({"maxMessageSizeInKilobytes": "256"}));
    assert_eq!(shown["properties"]["maxMessageSizeInKilobytes"], 256);
}

#[test]
fn a_subscription_that_terraform_writes_without_a_client_has_none() {
    let manager = Manager(Bus::configured(&queues(r#""Tier":"premium""#, &[])));
    // Terraform writes 0 for the default size, and an empty client.
    let topic = manager.put("/topics/t", json!({"maxSizeInMegabytes": 0}));
    assert_eq!(topic["properties"]["maxSizeInMegabytes"], 1024);
    let own = json!({"isClientAffine": false, "clientAffineProperties": {}});
    let made = manager.put("/topics/t/subscriptions/s", own);
    assert_eq!(made["properties"]["isClientAffine"], false);
}

#[test]
fn a_standard_namespace_refuses_the_subscription_of_a_jms_client() {
    let manager = with_subscription();
    let body = Some(json!({"properties": {"isClientAffine": true}}));
    let (status, refusal) = manager.ask("PUT", "/topics/t/subscriptions/j", body);
    assert_eq!(status, 400);
    assert_contains(
        &refusal["error"]["message"].to_string(),
        "only premium namespaces",
    );
}

/// A JMS client has properties of its own; the other features are not built.
#[test]
fn arm_refuses_what_the_emulator_does_not_support() {
    let manager = Manager(Bus::configured(&queues(r#""Tier":"premium""#, &[])));
    manager.put("/topics/t", json!({}));
    for (path, property) in [
        ("/topics/t", "filteringMessagesBeforePublishing"),
        ("/topics/t", "enableSubscriptionPartitioning"),
        ("/topics/t", "isAnonymousAccessible"),
        ("/topics/t/subscriptions/s", "isClientAffine"),
    ] {
        manager.put("/topics/t", json!({property: false}));
        let body = Some(json!({"properties": {property: "True"}}));
        let (status, refusal) = manager.ask("PUT", path, body);
        assert_eq!(status, 400, "{property}");
        let text = refusal["error"]["message"].to_string();
        assert_contains(&text, property);
        assert_contains(&text, "true is not allowed; allowed: false");
    }
}

/// Java's client writes milliseconds, .NET's ticks (admin-http.md §5.3).
#[test]
fn an_unlimited_duration_may_have_lost_its_fraction() {
    let manager = Manager::with_queues(&["q"]);
    for fraction in ["", ".477", ".477539", ".4775807"] {
        let duration = format!("P10675199DT2H48M5{fraction}S");
        let properties =
            json!({"autoDeleteOnIdle": duration, "defaultMessageTimeToLive": duration});
        let shown = manager.put("/queues/q", properties);
        for property in ["autoDeleteOnIdle", "defaultMessageTimeToLive"] {
            assert_eq!(shown["properties"][property], "P10675199DT2H48M5.4775807S");
        }
    }
}

#[test]
fn failed_transfers_are_not_in_the_message_count() {
    let manager = Manager::with_queues(&["q", "target"]);
    manager.put("/queues/q", json!({"forwardTo": "target"}));
    assert_eq!(manager.ask("DELETE", "/queues/target", None).0, 200);
    manager.0.client().send_to("q", &Message::new("m"));
    let shown = manager.get("/queues/q");
    let counts = &shown["properties"]["countDetails"];
    assert_eq!(counts["transferDeadLetterMessageCount"], 1);
    assert_eq!(shown["properties"]["messageCount"], 0);
}

#[test]
fn a_namespace_shows_what_it_was_given() {
    let manager = Manager::with_queues(&["q"]);
    let path = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/premium-1?{VERSION}");
    let given = json!({"disableLocalAuth": true, "minimumTlsVersion": "1.0",
        "publicNetworkAccess": "Disabled", "premiumMessagingPartitions": 2});
    let sku = json!({"name": "Premium", "tier": "Premium", "capacity": 4});
    let body = json!({"location": "westus2", "sku": sku, "properties": given});
    let wrong = json!({"sku": {"name": "Premium", "capacity": 3}});
    let (status, refusal) = manager.at("PUT", &path, Some(wrong));
    let text = refusal["error"]["message"].as_str().unwrap();
    assert_eq!(status, 400);
    assert_contains(
        text,
        "The value 3 of 'capacity' of the namespace 'premium-1'",
    );
    assert_contains(text, "allowed: 1, 2, 4, 8, 16");
    assert_eq!(manager.at("GET", &path, None).0, 404);
    assert_eq!(manager.at("PUT", &path, Some(body)).0, 200);
    manager.at("PATCH", &path, Some(json!({"tags": {"a": "b"}})));
    let (_, shown) = manager.at("GET", &path, None);
    assert_eq!(
        (&shown["sku"], &shown["location"]),
        (&sku, &json!("westus2"))
    );
    for (key, value) in given.as_object().unwrap() {
        assert_eq!(&shown["properties"][key], value, "{key}");
    }
    let rules = path.replace('?', "/networkRuleSets/default?");
    let (_, rules) = manager.at("GET", &rules, None);
    assert_eq!(rules["properties"]["publicNetworkAccess"], "Disabled");
    // What other tiers do not have is ignored.
    let path = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/sbemulatorns?{VERSION}");
    let zero = json!({"sku": {"name": "Standard", "capacity": 0}});
    let (status, shown) = manager.at("PUT", &path, Some(zero));
    assert_eq!((status, &shown["sku"]["capacity"]), (200, &json!(null)));
    assert_eq!(shown["properties"]["premiumMessagingPartitions"], 0);
    let rules = "/networkRuleSets/default";
    let (status, refusal) = manager.ask("PUT", rules, Some(json!({"properties": {}})));
    assert_eq!(status, 404);
    assert_contains(
        &refusal["error"]["message"].to_string(),
        "allow every address",
    );
}

#[test]
fn a_refusal_repeats_only_the_ends_of_a_long_value() {
    let manager = Manager::with_queues(&["q"]);
    let body = json!({"properties": {"maxDeliveryCount": "é".repeat(200_000)}});
    let (status, refusal) = manager.ask("PUT", "/queues/q", Some(body));
    let text = refusal["error"]["message"].as_str().unwrap();
    assert_eq!(status, 400);
    assert!(text.len() <= 2051, "{} bytes", text.len());
    assert_contains(text, "'maxDeliveryCount' of 'q': \"éé");
    assert_contains(text, "éé\" is not allowed; allowed: ");
}

#[test]
fn a_management_lock_ends_with_its_resource() {
    let manager = Manager::with_queues(&["a/q"]);
    manager.put("/topics/t", json!({}));
    manager.put(
        "/topics/t/subscriptions/s",
        json!({"autoDeleteOnIdle": "PT5M"}),
    );
    let second = format!("{GROUP}/providers/Microsoft.ServiceBus/namespaces/second");
    let (status, _) = manager.at("PUT", &format!("{second}?{VERSION}"), Some(json!({})));
    assert_eq!(status, 200);
    let first = format!("{GROUP}/{NAMESPACE}");
    let locks = "/providers/Microsoft.Authorization/locks";
    let lock = |scope: &str| {
        let body = json!({"properties": {"level": "ReadOnly"}});
        let path = format!("{scope}{locks}/l?{VERSION}");
        let (status, made) = manager.at("PUT", &path, Some(body));
        assert_eq!(status, 200, "{scope}: {made}");
    };
    let locked = || {
        let (_, list) = manager.at("GET", &format!("{SUBSCRIPTION}{locks}?{VERSION}"), None);
        list["value"].as_array().unwrap().len()
    };
    lock(&format!("{first}/queues/A~q"));
    lock(&format!("{first}/topics/t"));
    lock(&format!("{first}/topics/t/subscriptions/s/rules/$Default"));
    lock(&second);
    lock(&format!(
        "{second}/authorizationRules/RootManageSharedAccessKey-second"
    ));
    lock(&first);
    assert_eq!(locked(), 6);
    manager.0.admin().delete("/a/q").expect(200);
    assert_eq!(locked(), 5);
    manager.0.http.advance(301.0);
    assert_eq!(locked(), 4, "that of the idle subscription");
    manager.0.admin().delete("/t").expect(200);
    assert_eq!(locked(), 3);
    let own = "/$emulator/v1/namespaces/second";
    assert_eq!(manager.0.http.delete(own).status, 204);
    assert_eq!(locked(), 1, "that of the other namespace");
}
