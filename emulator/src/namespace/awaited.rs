//! Who sends dead letters on to which name: whoever gets that name later finds them without asking everybody.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::{EntityPath, StoreKind};

use super::{Entity, Namespace};

/// The entities whose dead letters go on, by where they go.
#[derive(Debug, Default)]
pub(super) struct Awaited(Mutex<BTreeMap<EntityPath, BTreeSet<EntityPath>>>);

impl Awaited {
    /// The dead letters of `source` go to `after` from now on, no longer to `before`.
    pub(super) fn turn(
        &self,
        source: &EntityPath,
        before: Option<&EntityPath>,
        after: Option<&EntityPath>,
    ) {
        if before == after {
            return;
        }
        let mut awaited = self.lock();
        if let Some(before) = before
            && let Some(sources) = awaited.get_mut(before)
        {
            sources.remove(source);
            if sources.is_empty() {
                awaited.remove(before);
            }
        }
        if let Some(after) = after {
            let sources = awaited.entry(after.clone()).or_default();
            sources.insert(source.clone());
        }
    }

    fn sources(&self, target: &EntityPath) -> Vec<EntityPath> {
        let awaited = self.lock();
        let sources = awaited.get(target).into_iter().flatten();
        sources.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<EntityPath, BTreeSet<EntityPath>>> {
        self.0.lock()
    }
}

impl Namespace {
    /// Dead letters that waited for an entity of this name go on, and its deadlines count.
    pub(super) fn welcome(&self, created: &Entity) {
        self.awaited
            .turn(&created.path, None, created.dead_letters_go_to().as_ref());
        for source in self.awaited.sources(&created.path) {
            let source = self.entity(&source);
            let waits =
                |entity: &Entity| entity.dead_letters_go_to().as_ref() == Some(&created.path);
            if let Some(source) = source.filter(|source| waits(source)) {
                self.operate_as_broker(&source, |mailbox, cx| {
                    mailbox.retry_forwards(cx, StoreKind::DeadLetters);
                });
            }
        }
        if let Some(deadline) = created.next_deadline() {
            self.alarm.arm(deadline);
        }
    }

    /// An entity is about to be emptied: its dead letters go nowhere.
    pub(super) fn take_leave(&self, gone: &Entity) {
        self.awaited
            .turn(&gone.path, gone.dead_letters_go_to().as_ref(), None);
    }
}

impl Entity {
    fn dead_letters_go_to(&self) -> Option<EntityPath> {
        let queue = self.lock();
        let description = queue.mailbox.description();
        description.forward_dead_lettered_messages_to.clone()
    }
}
