//! The official emulator's JSON, written from what the builder collected.

use serde_json::{Value, json};

use super::{Queue, Topic, Topology};

/// The namespace of the official emulator, which some clients take for granted.
pub(super) const NAMESPACE: &str = "sbemulatorns";

/// Writes the topology as a configuration file.
pub(super) fn text(topology: &Topology) -> String {
    let queues: Vec<Value> = topology.queues.iter().map(Queue::document).collect();
    let topics: Vec<Value> = topology.topics.iter().map(Topic::document).collect();
    let mut namespace = json!({ "Name": NAMESPACE, "Queues": queues, "Topics": topics });
    let settings = topology.settings.document();
    if !settings.is_empty() {
        namespace["Emulator"] = Value::Object(settings);
    }
    of(vec![namespace])
}

/// Writes a configuration file with these namespaces.
pub(super) fn of(namespaces: Vec<Value>) -> String {
    let document = json!({
        "UserConfig": { "Namespaces": namespaces, "Logging": { "Type": "Console" } }
    });
    format!("{document:#}")
}
