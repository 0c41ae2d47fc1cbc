//! What is kept of Azure Resource Manager beyond namespaces, entities and rules: management locks, and tags.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::Value;

/// Of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct ResourceState {
    /// By their ids in lower case.
    pub(crate) locks: Mutex<BTreeMap<String, ManagementLock>>,
    /// Location and tags of namespaces, by their names in lower case.
    pub(crate) described: Mutex<BTreeMap<String, Value>>,
}

/// A management lock.
#[derive(Debug, Clone)]
pub(crate) struct ManagementLock {
    pub(crate) id: String,
    /// What it is on, in lower case.
    pub(crate) scope: String,
    pub(crate) name: String,
    pub(crate) is_read_only: bool,
    pub(crate) notes: Option<String>,
}
