//! The entities of a namespace as JSON in the official format, with every effective value: for programs that make the
//! same entities elsewhere.

use serde_json::{Value, json};

use super::{
    NamespaceConfig, SubscriptionConfig, TopicConfig, properties_json, rule_json,
    subscription_json, topic_json,
};

impl NamespaceConfig {
    /// Returns the `Queues` and `Topics` of the namespace with every effective value. A largest message that the tier
    /// decides is left out, and so are settings that only this emulator has.
    pub fn entities(&self) -> Value {
        let queues = self.queues.iter().map(|(path, description)| {
            json!({ "Name": path.as_str(), "Properties": properties_json(description) })
        });
        let topics = self.topics.iter().map(topic);
        json!({
            "Queues": queues.collect::<Vec<_>>(),
            "Topics": topics.collect::<Vec<_>>(),
        })
    }
}

fn topic(topic: &TopicConfig) -> Value {
    let subscriptions = topic.subscriptions.iter().map(subscription);
    json!({
        "Name": topic.path.as_str(),
        "Properties": topic_json(&topic.description),
        "Subscriptions": subscriptions.collect::<Vec<_>>(),
    })
}

fn subscription(subscription: &SubscriptionConfig) -> Value {
    let rules = subscription.rules.iter();
    let rules = rules.map(|rule| json!({ "Name": &*rule.name, "Properties": rule_json(rule) }));
    json!({
        "Name": subscription.name,
        "Properties": subscription_json(&subscription.description),
        "Rules": rules.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn what_is_written_reads_as_the_same_entities() {
        let text = r#"{"UserConfig":{"Namespaces":[{"Name":"n",
            "Queues":[{"Name":"orders","Properties":{"MaxDeliveryCount":3,"LockDuration":"PT30S"}}],
            "Topics":[{"Name":"prices","Properties":{},"Subscriptions":[
                {"Name":"eu","Properties":{"ForwardTo":"orders"},"Rules":[
                    {"Name":"cheap","Properties":{"FilterType":"Sql",
                        "SqlFilter":{"SqlExpression":"price < 10"},
                        "Action":{"SqlExpression":"SET tag = 'cheap'"}}}]}]}]}]}}"#;
        let config = Config::parse(text).unwrap();
        let mut namespace = config.namespaces[0].entities();
        namespace["Name"] = "n".into();
        let again = json!({ "UserConfig": { "Namespaces": [namespace] } });
        assert_eq!(Config::parse(&again.to_string()), Ok(config));
    }
}
