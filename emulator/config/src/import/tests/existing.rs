//! Tests of templates that add to what has been deployed before.

use super::parameters::imported;
use super::*;

fn resource(kind: &str, name: &str, properties: Value) -> Value {
    json!({
        "type": format!("Microsoft.ServiceBus/namespaces/{kind}"),
        "name": name,
        "properties": properties,
    })
}

const ADDED: &str = "is not in the template; it is declared with default values";

#[test]
fn a_subscription_of_a_topic_that_exists_already_declares_the_topic() {
    let subscription = resource("topics/subscriptions", "n1-name/events~all/s", json!({}));
    let rule = resource(
        "topics/subscriptions/rules",
        "n1-name/Events~All/S/r",
        json!({"sqlFilter": {"sqlExpression": "1=1"}}),
    );
    let mut existing = resource(
        "topics",
        "n1-name/events~all",
        json!({"enablePartitioning": true}),
    );
    let note = |path: &str| format!("{path}: the topic \"events/all\" {ADDED}");
    let alone = json!({"resources": [rule, subscription]});
    let (namespace, notes) = imported(&alone, &[]);
    let rules = &namespace["Topics"][0]["Subscriptions"][0]["Rules"];
    assert_eq!(rules.as_array().unwrap().len(), 1, "{namespace}");
    assert_eq!(
        (namespace["Topics"][0]["Name"].as_str(), &notes[1]),
        (Some("events/all"), &note("resources[1]"))
    );
    assert_eq!(notes.len(), 2, "{notes:?}");
    existing["existing"] = true.into();
    let by_name = json!({"resources": {"topic": existing, "added": subscription}});
    assert_eq!(imported(&by_name, &[]).1[1], note("resources.added"));
}

#[test]
fn a_topic_whose_condition_is_false_exists_already_with_default_values() {
    let mut topic = resource(
        "topics",
        "n1-name/t",
        json!({"requiresDuplicateDetection": true}),
    );
    topic["condition"] = false.into();
    let subscription = resource("topics/subscriptions", "n1-name/t/s", json!({}));
    let (namespace, notes) = imported(&json!({"resources": [topic, subscription]}), &[]);
    let expected = json!([{"Name": "t", "Subscriptions": [{"Name": "s"}]}]);
    assert_eq!(namespace["Topics"], expected);
    assert_eq!(notes[1], format!("resources[1]: the topic \"t\" {ADDED}"));
}

#[test]
fn a_forwarding_target_that_exists_already_is_declared_once_as_a_queue() {
    let (namespace, notes) = imported(
        &json!({"resources": [
            resource("queues", "n1-name/q", json!({"forwardTo": "audit~all", "forwardDeadLetteredMessagesTo": "Q2"})),
            resource("queues", "n1-name/q2", json!({})),
            resource("topics", "n1-name/t", json!({})),
            resource("topics/subscriptions", "n1-name/t/s", json!({"forwardTo": "Audit/All"})),
        ]}),
        &[],
    );
    let names = namespace["Queues"].as_array().unwrap().iter();
    let names: Vec<&Value> = names.map(|own| &own["Name"]).collect();
    assert_eq!(names, ["q", "q2", "audit/all"]);
    assert_eq!(
        notes[1..],
        [
            "resources: the ForwardTo of \"q\", \"audit/all\" is not in the template; it is declared with default values"
        ]
    );
}

#[test]
fn what_exists_already_is_valid_in_its_namespace() {
    let mut namespace = resource("", "n1-name", json!({}));
    namespace["type"] = "Microsoft.ServiceBus/namespaces".into();
    namespace["sku"] = json!({"name": "Basic"});
    let subscription = resource("topics/subscriptions", "n1-name/t/s", json!({}));
    let problem = problems(&json!({"resources": [namespace, subscription]}), &[]);
    assert!(problem.starts_with("resources[1]: "), "{problem}");
}
