//! What a bus has made in a namespace, and its end.
//!
//! Everything is removed when the bus ends, whichever way: a drop blocks until that is done, because a process that
//! ends does not wait for threads of its own.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use parking_lot::Mutex;

use super::{Secure, admin::Admin};
use crate::{
    background::Background,
    kind::{EntityKind, topic_and_name},
    turn::Turn,
};

/// A namespace while a bus works in it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(super) admin: Admin,
    /// How long an advance of the clock may really wait.
    pub(super) longest_wait: Duration,
    made: Mutex<Vec<(EntityKind, String)>>,
}

impl Site {
    pub(super) fn new(admin: Admin, longest_wait: Duration) -> Self {
        Self {
            admin,
            longest_wait,
            made: Mutex::default(),
        }
    }

    /// Remembers what is to be removed; before it is made, or a request that is given up would be forgotten.
    pub(super) fn remember(&self, kind: EntityKind, name: &str) {
        let mut made = self.made.lock();
        made.push((kind, name.to_owned()));
    }

    /// Whether this bus has made an entity, or what it is under.
    pub(crate) fn has_made(&self, name: &str) -> bool {
        let made = self.made.lock();
        let root = topic_and_name(name).map_or(name, |(topic, _)| topic);
        let is_it = |made: &String| made.eq_ignore_ascii_case(root);
        made.iter().any(|(_, made)| is_it(made))
    }

    /// Whether nothing is left to remove.
    fn is_clean(&self) -> bool {
        let made = self.made.lock();
        made.is_empty()
    }

    /// Removes everything, the last first, so that nothing forwards to what is gone. What is gone already counts.
    async fn clean(&self) {
        let made = std::mem::take(&mut *self.made.lock());
        let roots = made
            .iter()
            .rev()
            .filter(|(kind, _)| *kind != EntityKind::Subscription);
        for (kind, name) in roots {
            match self.admin.delete(name).await {
                Ok(()) => {}
                Err(error) if matches!(error.status(), Some(404 | 410)) => {}
                Err(error) => eprintln!(
                    "the {kind} \"{name}\" stays in the namespace for five minutes without use: {error}"
                ),
            }
        }
    }
}

/// Keeps the namespace for one bus; dropping it removes what that made.
#[derive(Debug)]
pub(crate) struct RemoteRun {
    site: Arc<Site>,
    background: Arc<Background>,
    secure: Secure,
    /// Dropped last, so that the next bus finds nothing.
    #[expect(dead_code, reason = "its drop is what counts")]
    turn: Turn,
}

impl RemoteRun {
    pub(super) fn new(
        site: Arc<Site>,
        background: Arc<Background>,
        secure: Secure,
        turn: Turn,
    ) -> Self {
        Self {
            site,
            background,
            secure,
            turn,
        }
    }

    pub(crate) fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site)
    }

    pub(crate) fn secure(&self) -> Secure {
        self.secure.clone()
    }

    /// Removes what the bus made where it is possible to wait.
    pub(crate) async fn stop(self) {
        self.site.clean().await;
    }
}

impl Drop for RemoteRun {
    fn drop(&mut self) {
        // Stopped in good order, which may be on the background runtime: that must not wait for itself.
        if self.site.is_clean() {
            return;
        }
        let (tell, told) = mpsc::channel();
        let site = self.site();
        let _cleaning = self.background.spawn(async move {
            site.clean().await;
            // Nobody to tell means that the test thread is gone.
            let _ = tell.send(());
        });
        // Every request has a deadline of its own.
        let _ = told.recv();
    }
}
