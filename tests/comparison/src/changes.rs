//! Making an emulator another one than a topology asks for, to see whether a comparison of the two notices.

use serde_json::{Value, json};
use servicebus_emulator::config::{Config, NamespaceConfig};

/// Returns a topology with what is changed in its first namespace; nothing where nothing is changed, or the topology is
/// none, which the harness says better.
pub(crate) fn applied(topology: &str, changes: &Value) -> Option<String> {
    if changes.is_null() {
        return None;
    }
    let config = Config::parse(topology).ok()?;
    Some(written(&config, changes))
}

/// Writes the first namespace of a configuration with what is changed in it.
fn written(config: &Config, changes: &Value) -> String {
    let first = config.namespaces.first();
    let mut namespace = first.map_or_else(|| json!({}), NamespaceConfig::declaration);
    for queue in members(&mut namespace["Queues"]) {
        change(&mut queue["Properties"], &changes["Queue"]);
    }
    for topic in members(&mut namespace["Topics"]) {
        change(&mut topic["Properties"], &changes["Topic"]);
        for subscription in members(&mut topic["Subscriptions"]) {
            change(&mut subscription["Properties"], &changes["Subscription"]);
            for rule in members(&mut subscription["Rules"]) {
                // Filters exclude each other, so a rule is changed as a whole.
                if let Value::Object(_) = changes["Rule"] {
                    rule["Properties"] = changes["Rule"].clone();
                }
            }
        }
    }
    change(&mut namespace["Emulator"], &changes["Emulator"]);
    json!({"UserConfig": {"Namespaces": [namespace], "Logging": {"Type": "Console"}}}).to_string()
}

fn members(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}

fn change(properties: &mut Value, changes: &Value) {
    if let (Some(properties), Some(changes)) = (properties.as_object_mut(), changes.as_object()) {
        let changes = changes.iter();
        properties.extend(changes.map(|(name, value)| (name.clone(), value.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entity_of_a_kind_is_changed() {
        let text = r#"{"UserConfig":{"Namespaces":[{"Name":"n",
            "Queues":[{"Name":"orders","Properties":{}}],
            "Topics":[{"Name":"prices","Properties":{},"Subscriptions":[
                {"Name":"eu","Properties":{},"Rules":[
                    {"Name":"none","Properties":{"FilterType":"False"}}]}]}]}]}}"#;
        let config = Config::parse(text).unwrap();
        let changes = json!({
            "Emulator": { "Expiry": "on-receive" },
            "Queue": { "MaxDeliveryCount": 7 },
            "Rule": { "FilterType": "True" },
        });
        let text = written(&config, &changes);
        let changed = Config::parse(&text).unwrap();
        let namespace = &changed.namespaces[0];
        assert_eq!(namespace.queues[0].1.max_delivery_count, 7);
        assert_ne!(namespace.settings, config.namespaces[0].settings);
        let rules = |config: &Config| {
            let topics = &config.namespaces[0].topics;
            topics[0].subscriptions[0].rules[0].filter.clone()
        };
        assert_ne!(rules(&changed), rules(&config));
    }
}
