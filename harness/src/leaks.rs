//! Whether a test left messages behind, where it asked for that to be checked.
//!
//! It is a part of the bus and goes before the emulator does. A drop cannot await, so it blocks while the background
//! runtime looks; what is still on its way is waited for, as every assertion does.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::{
    assertion::left_behind,
    catalog::Catalog,
    doors::Doors,
    kind::EntityKind,
    mailbox::{CountsError, Mailbox},
};

/// How long what is on its way may take, in real time.
const WITHIN: Duration = Duration::from_secs(5);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Fails a test that ends with messages that are locked or that nobody has read.
#[derive(Debug)]
pub(crate) struct LeakCheck {
    /// None once it has looked, or where nobody asked.
    doors: Option<Arc<Doors>>,
}

impl LeakCheck {
    pub(crate) fn new(doors: &Arc<Doors>, is_asked: bool) -> Self {
        Self {
            doors: is_asked.then(|| Arc::clone(doors)),
        }
    }

    /// Looks where it is possible to wait.
    ///
    /// # Panics
    ///
    /// When messages are left.
    pub(crate) async fn pronounce(mut self) {
        let Some(doors) = self.doors.take() else {
            return;
        };
        if let Err(failure) = doors.run(look).await {
            panic!("{failure}");
        }
    }
}

impl Drop for LeakCheck {
    fn drop(&mut self) {
        let Some(doors) = self.doors.take().filter(|_| !thread::panicking()) else {
            return;
        };
        let (tell, told) = mpsc::channel();
        let looking = Arc::clone(&doors);
        let _looking = doors.background.spawn(async move {
            // Nobody to tell means that the test thread is gone.
            let _ = tell.send(look(looking).await);
        });
        // Every question has a deadline of its own.
        if let Ok(Err(failure)) = told.recv() {
            panic!("{failure}");
        }
    }
}

/// Looks until nothing is left, or fails with what is.
async fn look(doors: Arc<Doors>) -> Result<(), String> {
    let started = Instant::now();
    loop {
        let left = left(&doors).await.map_err(|error| error.to_string())?;
        if left.is_empty() {
            return Ok(());
        }
        if started.elapsed() >= WITHIN {
            return Err(left_behind(&left).await);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the queues and subscriptions that hold messages which could be received, or which somebody holds.
async fn left(doors: &Arc<Doors>) -> Result<Vec<Mailbox>, CountsError> {
    let catalog: Catalog = doors.catalog().await;
    let mut left = Vec::new();
    for (kind, name) in catalog.names() {
        if kind == EntityKind::Topic || !doors.control.is_own(name) {
            continue;
        }
        let mailbox = Mailbox::new(Arc::clone(doors), kind, name.to_owned());
        if mailbox.try_counts().await?.active > 0 {
            left.push(mailbox);
        }
    }
    Ok(left)
}
