//! Whether the emulator has failed during a test, by a mistake of its own.
//!
//! It is a part of the bus and goes before the emulator does. A drop cannot await, so it blocks while the background
//! runtime asks. An emulator that cannot be asked any more has been stopped by the test.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use crate::{control::Failure, doors::Doors};

/// Fails a test in which the emulator failed.
#[derive(Debug)]
pub(crate) struct HealthCheck {
    /// None once it has asked.
    doors: Option<Arc<Doors>>,
}

impl HealthCheck {
    pub(crate) fn new(doors: &Arc<Doors>) -> Self {
        Self {
            doors: Some(Arc::clone(doors)),
        }
    }

    /// Asks where it is possible to wait.
    ///
    /// # Panics
    ///
    /// When the emulator has failed.
    pub(crate) async fn pronounce(mut self) {
        let Some(doors) = self.doors.take() else {
            return;
        };
        if let Some(failure) = doors.run(ask).await {
            panic!("{failure}");
        }
    }
}

impl Drop for HealthCheck {
    fn drop(&mut self) {
        let Some(doors) = self
            .doors
            .take()
            .filter(|doors| doors.control.is_emulator())
        else {
            return;
        };
        let (tell, told) = mpsc::channel();
        let asking = Arc::clone(&doors);
        let _asking = doors.background.spawn(async move {
            // Nobody to tell means that the test thread is gone.
            let _ = tell.send(ask(asking).await);
        });
        // The question has a deadline of its own.
        if let Ok(Some(failure)) = told.recv() {
            match thread::panicking() {
                // It may be why.
                true => eprintln!("{failure}"),
                false => panic!("{failure}"),
            }
        }
    }
}

/// Asks, and returns what to fail with.
async fn ask(doors: Arc<Doors>) -> Option<String> {
    let failures = doors.control.failures().await.ok()?;
    let told: Vec<String> = failures.iter().map(one).collect();
    (!told.is_empty()).then(|| {
        format!(
            "the emulator failed, which is a mistake in it:\n{}",
            told.join("\n")
        )
    })
}

fn one(failure: &Failure) -> String {
    match &failure.entity {
        Some(entity) => format!("  {entity} is broken: {}", failure.reason),
        None => format!("  {}", failure.reason),
    }
}
