//! Whether a test left messages behind, where it asked for that to be checked.
//!
//! It is a part of the namespace and goes before the emulator does. A drop cannot await, so it blocks while the background
//! runtime looks; what is still on its way is waited for, as every assertion does.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::{
    assertion::left_behind, catalog::Catalog, clients::SubQueueClient, connections::Connections,
    error::Error, kind::EntityKind,
};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Fails a test that ends with messages that are locked or unread.
#[derive(Debug)]
pub(crate) struct LeakCheck {
    /// None once it has looked, or where the check is off.
    connections: Option<Arc<Connections>>,
}

impl LeakCheck {
    pub(crate) fn new(connections: &Arc<Connections>, is_asked: bool) -> Self {
        Self {
            connections: is_asked.then(|| Arc::clone(connections)),
        }
    }

    /// Looks where it is possible to wait.
    ///
    /// # Panics
    ///
    /// When messages are left.
    pub(crate) async fn check(mut self) {
        let Some(connections) = self.connections.take() else {
            return;
        };
        if let Err(failure) = connections.run(look).await {
            panic!("{failure}");
        }
    }
}

impl Drop for LeakCheck {
    fn drop(&mut self) {
        let Some(connections) = self.connections.take().filter(|_| !thread::panicking()) else {
            return;
        };
        let (sender, receiver) = mpsc::channel();
        let looking = Arc::clone(&connections);
        let _looking = connections.background.spawn(async move {
            // The send fails only when the test thread has ended.
            let _ = sender.send(look(looking).await);
        });
        // Every question has a deadline of its own.
        if let Ok(Err(failure)) = receiver.recv() {
            panic!("{failure}");
        }
    }
}

/// Looks until nothing is left, or fails with what is.
async fn look(connections: Arc<Connections>) -> Result<(), String> {
    let started = Instant::now();
    loop {
        let left = left(&connections)
            .await
            .map_err(|error| error.to_string())?;
        if left.is_empty() {
            return Ok(());
        }
        if started.elapsed() >= connections.within {
            return Err(left_behind(&left).await);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the queues and subscriptions that hold messages that can be received or are locked.
async fn left(connections: &Arc<Connections>) -> Result<Vec<SubQueueClient>, Error> {
    let catalog: Catalog = connections.catalog().await;
    let mut left = Vec::new();
    for (kind, name) in catalog.names() {
        if kind == EntityKind::Topic || !connections.backend.is_own(name) {
            continue;
        }
        let client = SubQueueClient::new(Arc::clone(connections), kind, name.to_owned());
        if client.try_counts().await?.active > 0 {
            left.push(client);
        }
    }
    Ok(left)
}
