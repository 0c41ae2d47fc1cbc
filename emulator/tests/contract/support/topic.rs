//! Configurations of topics, in the format of files.

use serde_json::{Value, json};

/// A namespace with the topic `t`, its subscriptions with their other members, and the queue `q`.
pub(crate) fn topic(properties: &Value, subscriptions: &[(&str, Value)]) -> String {
    let named = |(name, members): &(&str, Value)| {
        let mut subscription = members.clone();
        subscription["Name"] = (*name).into();
        subscription
    };
    let subscriptions: Vec<Value> = subscriptions.iter().map(named).collect();
    let topic = json!({"Name": "t", "Properties": properties, "Subscriptions": subscriptions});
    let namespace = json!({"Name": "sbemulatorns", "Queues": [{"Name": "q"}], "Topics": [topic]});
    json!({"UserConfig": {"Namespaces": [namespace]}}).to_string()
}

/// A subscription with these properties and the default rule.
pub(crate) fn properties(properties: &Value) -> Value {
    json!({ "Properties": properties })
}

/// A subscription with these rules.
pub(crate) fn rules(rules: &[Value]) -> Value {
    json!({ "Rules": rules })
}

/// A rule with an SQL filter and, unless it is empty, an action.
pub(crate) fn sql(name: &str, filter: &str, action: &str) -> Value {
    let mut properties = json!({"FilterType": "Sql", "SqlFilter": {"SqlExpression": filter}});
    if !action.is_empty() {
        properties["Action"] = json!({ "SqlExpression": action });
    }
    json!({"Name": name, "Properties": properties})
}
