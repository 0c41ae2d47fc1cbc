//! The topology of a namespace that runs.

use std::sync::Arc;

use serde_json::Value;

use super::ServiceBus;
use crate::{
    action::Action,
    connections::Connections,
    error::control::ControlError,
    keys,
    shared::is_made_up,
    topology::{NAMESPACE, Topology},
};

impl ServiceBus {
    /// Returns what the namespace holds now, as it would be declared: to start another namespace with, or to keep in a file.
    ///
    /// How this namespace is reached is not part of it: its key, its address, and its name where that was made up. Keys that
    /// its own topology declared beside that are.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn topology(&self) -> Action<'_, Topology> {
        Action::new(async move {
            let ask = |connections: Arc<Connections>| async move {
                let mut document = connections.backend.topology().await?;
                let own = connections.amqp.key_name().to_owned();
                forget_entrance(&mut document, &own);
                Ok::<_, ControlError>(document)
            };
            let document = self.connections.run(ask).await?;
            Ok(Topology::exported(format!("{document:#}")))
        })
    }
}

/// Leaves out how the namespace is reached, which another one would have to share.
fn forget_entrance(document: &mut Value, own: &str) {
    let Some(namespace) = document.pointer_mut("/UserConfig/Namespaces/0") else {
        return;
    };
    if namespace["Name"].as_str().is_some_and(is_made_up) {
        namespace["Name"] = NAMESPACE.into();
    }
    let Some(block) = namespace["Emulator"].as_object_mut() else {
        return;
    };
    block.remove("Address");
    let Some(Value::Array(mut declared)) = block.remove("Keys") else {
        return;
    };
    declared.retain(|key| {
        let name = key["Name"].as_str().unwrap_or_default();
        name != own && !keys::is_own(name)
    });
    if !declared.is_empty() {
        block.insert("Keys".to_owned(), declared.into());
    }
}
