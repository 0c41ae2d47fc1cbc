//! Whether the emulator has failed during a test, by a mistake of its own.
//!
//! It is a part of the namespace and goes before the emulator does. A drop cannot await, so it blocks while the background
//! runtime asks. An emulator that cannot be asked any more has been stopped by the test.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use servicebus_control_api::Failure;

use crate::connections::Connections;

/// Fails a test in which the emulator failed.
#[derive(Debug)]
pub(crate) struct HealthCheck {
    /// None once it has asked.
    connections: Option<Arc<Connections>>,
}

impl HealthCheck {
    pub(crate) fn new(connections: &Arc<Connections>) -> Self {
        Self {
            connections: Some(Arc::clone(connections)),
        }
    }

    /// Asks where it is possible to wait.
    ///
    /// # Panics
    ///
    /// When the emulator has failed.
    pub(crate) async fn check(mut self) {
        let Some(connections) = self.connections.take() else {
            return;
        };
        if let Some(failure) = connections.run(ask).await {
            panic!("{failure}");
        }
    }
}

impl Drop for HealthCheck {
    fn drop(&mut self) {
        let Some(connections) = self
            .connections
            .take()
            .filter(|connections| connections.backend.emulator().is_some())
        else {
            return;
        };
        let (sender, receiver) = mpsc::channel();
        let asking = Arc::clone(&connections);
        let _asking = connections.background.spawn(async move {
            // The send fails only when the test thread has ended.
            let _ = sender.send(ask(asking).await);
        });
        // The question has a deadline of its own.
        if let Ok(Some(failure)) = receiver.recv() {
            match thread::panicking() {
                // It may be why.
                true => eprintln!("{failure}"),
                false => panic!("{failure}"),
            }
        }
    }
}

/// Asks, and returns what to fail with.
async fn ask(connections: Arc<Connections>) -> Option<String> {
    let failures = connections.backend.failures().await.ok()?;
    let rendered: Vec<String> = failures.iter().map(one).collect();
    (!rendered.is_empty()).then(|| {
        format!(
            "the emulator failed, which is a mistake in it:\n{}",
            rendered.join("\n")
        )
    })
}

fn one(failure: &Failure) -> String {
    match &failure.entity {
        Some(entity) => format!("  {entity} is broken: {}", failure.reason),
        None => format!("  {}", failure.reason),
    }
}
