//! Templates as the portal exports them, as Bicep compiles them, nested, and wrong ones.

use std::fs;

use serde_json::{Map, json};
use servicebus_broker::filter::{Filter, SqlFilter};

use super::*;
use crate::config::Config;

fn fixture(name: &str) -> String {
    let path = format!(
        "{}/../../fixtures/arm/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    fs::read_to_string(path).unwrap()
}

fn given(parameters: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = parameters.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// What is imported and what is said of it, as a person read it.
fn assert_imported(name: &str, parameters: &[(&str, &str)]) {
    let imported = import(&fixture(name), &given(parameters)).unwrap();
    Config::parse(&imported.document.to_string()).unwrap();
    let notes: String = imported
        .notes
        .iter()
        .map(|note| format!("// {note}\n"))
        .collect();
    let found = format!("{notes}{:#}\n", imported.document);
    let path = format!(
        "{}/../../fixtures/arm/imported/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    if std::env::var_os("UPDATE_IMPORTED").is_some() {
        fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(path).unwrap());
}

#[test]
fn as_the_portal_exports() {
    assert_imported("exported", &[]);
}

#[test]
fn as_bicep_compiles() {
    assert_imported("bicep", &[("prefix", "shop")]);
}

#[test]
fn nested() {
    assert_imported("nested", &[("serviceBusNamespaceName", "market")]);
}

#[test]
fn a_subscription_of_a_client_of_jms_stays_its() {
    let properties = json!({
        "isClientAffine": true,
        "clientAffineProperties": {"clientId": "desk", "isShared": true},
    });
    let resource = |kind: &str, name: &str, properties| {
        json!({
            "type": format!("Microsoft.ServiceBus/namespaces{kind}"),
            "name": name,
            "sku": {"name": "Premium"},
            "properties": properties,
        })
    };
    let resources = [
        resource("", "n1-name", json!({})),
        resource("/topics", "n1-name/t", json!({})),
        resource("/topics/subscriptions", "n1-name/t/sub$desk$DS", properties),
        resource(
            "/topics/subscriptions/rules",
            "n1-name/t/sub$desk$DS/Default",
            json!({"sqlFilter": {"sqlExpression": "NOT color = 1"}}),
        ),
    ];
    let template = json!({"resources": resources}).to_string();
    let imported = import(&template, &given(&[])).unwrap();
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    let config = Config::parse(&imported.document.to_string()).unwrap();
    let topics = config.namespaces[0].topics.iter();
    let mut subscriptions = topics.flat_map(|topic| &topic.subscriptions);
    let subscription = subscriptions.next().unwrap();
    let client = subscription.description.client.as_ref().unwrap();
    assert_eq!(
        (&*client.client_id, client.is_durable, client.is_shared),
        ("desk", true, true)
    );
    let selector = SqlFilter::selector("NOT color = 1").unwrap();
    assert_eq!(subscription.rules[0].filter, Filter::Sql(selector));
    assert_eq!(client.selector.as_deref(), Some("NOT color = 1"));
}

#[test]
fn values_are_of_the_types_that_are_declared() {
    let parameters = [
        ("prefix", "shop"),
        ("withTopic", "false"),
        ("maxDeliveryCount", "3"),
        ("queues", r#"[{"name": "one", "sessions": true}]"#),
    ];
    let imported = import(&fixture("bicep"), &given(&parameters)).unwrap();
    let namespace = &imported.document["UserConfig"]["Namespaces"][0];
    assert_eq!(namespace["Topics"], json!([]));
    let queue = json!({"Name": "one", "Properties": {
        "DeadLetteringOnMessageExpiration": true, "MaxDeliveryCount": 3, "RequiresSession": true,
    }});
    assert_eq!(namespace["Queues"], json!([queue]));
}

/// Every problem of a template, one a line.
fn problems(template: &Value, parameters: &[(&str, &str)]) -> String {
    let imported = import(&template.to_string(), &given(parameters));
    imported.unwrap_err().to_string()
}

#[test]
fn what_cannot_be_understood_is_told_with_its_path() {
    let queue = |name: &str, properties: Value| {
        json!({
            "parameters": {"a": {"type": "string", "defaultValue": "[variables('b')]"}, "n": {"type": "int"}},
            "variables": {"b": "[parameters('a')]"},
            "resources": [{"type": "Microsoft.ServiceBus/namespaces/queues", "name": name, "properties": properties}],
        })
    };
    for (name, properties, expected) in [
        (
            "[concat('x', '/', parameters('a'))]",
            json!({}),
            "resources[0].name: parameters, variables and expressions refer to one another deeper than 100, or go round",
        ),
        (
            "x/q",
            json!({"maxDeliveryCount": "[parameters('n')]"}),
            "resources[0].properties: the parameter n has no default and needs a value",
        ),
        (
            "x/q",
            json!({"lockDuration": "[reference('x').lockDuration]"}),
            "resources[0].properties: the function reference is not known; only a deployment could evaluate it",
        ),
        (
            "x/q",
            json!({"lockDuration": "PT1H"}),
            "resources[0].properties.lockDuration: 3600 s is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)",
        ),
        (
            "x/q",
            json!({"forwardTo": "none"}),
            "resources: \"q\" forwards to \"none\" by ForwardTo, which is not in the template",
        ),
        (
            "q",
            json!({}),
            "resources[0].name: \"q\" is no name of a resource of the type namespaces/queues: each part of the type has one",
        ),
        (
            "[concat('x', '/q']",
            json!({}),
            "resources[0].name: \"[concat('x', '/q']\" is no expression: it ends where , or ) should be",
        ),
        (
            "[concat('x/q', copyIndex())]",
            json!({}),
            "resources[0].name: copyIndex stands outside of a copy",
        ),
    ] {
        assert_eq!(problems(&queue(name, properties), &[]), expected);
    }
    assert_eq!(
        problems(&queue("x/q", json!({})), &[("z", "1")]),
        "parameters: there is no parameter \"z\""
    );
    assert_eq!(
        problems(&queue("x/q", json!({})), &[("n", "many")]),
        "parameters.n: \"many\" is no value of its type int"
    );
    assert_eq!(
        problems(&json!({"resources": []}), &[]),
        "resources: the template has no resource of Service Bus"
    );
}

#[test]
fn what_is_no_template_is_refused() {
    let deep = "[".repeat(100_000);
    for (text, expected) in [
        ("{", "the template is no JSON"),
        ("[]", "the template is no JSON object"),
        (deep.as_str(), "the template is no JSON"),
    ] {
        let problem = import(text, &BTreeMap::new()).unwrap_err().to_string();
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn what_grows_without_end_is_refused() {
    let mut variables = Map::new();
    variables.insert("v0".to_owned(), "0123456789".into());
    for index in 1..16 {
        let before = format!("variables('v{}')", index - 1);
        variables.insert(
            format!("v{index}"),
            format!("[concat({before}, {before})]").into(),
        );
    }
    let template = json!({
        "variables": variables,
        "resources": [{"type": "Microsoft.ServiceBus/namespaces", "name": "[variables('v15')]"}],
    });
    let problem = problems(&template, &[]);
    assert!(problem.contains("more than"), "{problem}");
}

proptest::proptest! {
    #[test]
    fn no_expression_panics(body in "[a-z'(),.\\[\\]0-9é ]{0,40}") {
        let template = json!({
            "resources": [{"type": "Microsoft.ServiceBus/namespaces/queues", "name": format!("[{body}]")}],
        });
        let _ = import(&template.to_string(), &BTreeMap::new());
    }
}
