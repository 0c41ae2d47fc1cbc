//! The official emulator's JSON, written from what the builder collected.

use serde_json::{Map, Value, json};

use super::{Expiry, LocksOnDetach, Queue, Topology};

/// The namespace of the official emulator, which some clients take for granted.
const NAMESPACE: &str = "sbemulatorns";

/// Writes the topology as a configuration file.
pub(super) fn text(topology: &Topology) -> String {
    let queues: Vec<Value> = topology.queues.iter().map(Queue::document).collect();
    let mut namespace = json!({ "Name": NAMESPACE, "Queues": queues, "Topics": [] });
    let settings = settings(topology);
    if !settings.is_empty() {
        namespace["Emulator"] = Value::Object(settings);
    }
    let document = json!({
        "UserConfig": { "Namespaces": [namespace], "Logging": { "Type": "Console" } }
    });
    format!("{document:#}")
}

fn settings(topology: &Topology) -> Map<String, Value> {
    let expiry = topology.expiry.map(|expiry| match expiry {
        Expiry::Eager => ("Expiry", "eager"),
        Expiry::OnReceive => ("Expiry", "on-receive"),
    });
    let locks = topology.locks_on_detach.map(|locks| match locks {
        LocksOnDetach::Keep => ("LocksOnDetach", "keep"),
        LocksOnDetach::Release => ("LocksOnDetach", "release"),
    });
    let written = [expiry, locks].into_iter().flatten();
    written
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_builder_writes_the_official_format() {
        let topology = Topology::new()
            .queue(
                Queue::new("orders")
                    .max_delivery_count(3)
                    .lock_duration(Duration::from_secs(30))
                    .default_time_to_live(Duration::from_secs(3_600))
                    .dead_lettering_on_message_expiration(true),
            )
            .expiry(Expiry::OnReceive)
            .locks_on_detach(LocksOnDetach::Release);

        let document: Value = serde_json::from_str(&text(&topology)).unwrap();

        let namespace = &document["UserConfig"]["Namespaces"][0];
        assert_eq!(namespace["Name"], "sbemulatorns");
        assert_eq!(
            namespace["Queues"],
            json!([{ "Name": "orders", "Properties": {
                "MaxDeliveryCount": 3,
                "LockDuration": "PT30S",
                "DefaultMessageTimeToLive": "PT1H",
                "DeadLetteringOnMessageExpiration": true,
            }}])
        );
        assert_eq!(
            namespace["Emulator"],
            json!({ "Expiry": "on-receive", "LocksOnDetach": "release" })
        );
    }

    #[test]
    fn settings_left_alone_are_not_written() {
        let document: Value = serde_json::from_str(&text(&Topology::new())).unwrap();
        assert_eq!(
            document["UserConfig"]["Namespaces"][0].get("Emulator"),
            None
        );
    }
}
