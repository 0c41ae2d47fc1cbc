//! An operation failed in the middle of a change: what the entity holds is not to be trusted any more.

use std::mem;
use std::sync::Arc;

use crate::entity::role::Role;
use crate::operation::send::SendError;
use crate::{Entity, Timestamp};

impl Entity {
    /// Empties the entity without looking at what it holds, and refuses what comes with this reason from now on. Its
    /// description and the rules of a topic stay.
    pub fn break_down(&mut self, now: Timestamp, reason: Arc<str>) {
        let role = mem::replace(&mut self.role, Role::Queue);
        let (held, told) = (self.held.take(), mem::take(&mut self.told));
        if let (Role::Subscription(_), Some(held)) = (&role, &held) {
            held.changed(told, 0);
        }
        let mut description = mem::take(&mut self.description);
        // It stays until somebody has seen it.
        description.auto_delete_on_idle = None;
        let path = self.path.clone();
        let (entity, settings) = (self.active.entity(), self.settings);
        *self = Self::of_role(role, entity, path, description, &settings, now);
        self.held = held;
        self.broken = Some(Arc::new(reason.as_ref().to_owned()));
    }

    /// Panics where a test wants to see what becomes of a panic in the middle of an operation: when a message with the id
    /// `panic-in-` and the entity's path becomes active there.
    #[cfg(feature = "panics")]
    pub(crate) fn panic_if_asked(&self, message: &crate::Message) {
        let id = message.id();
        let is_here = id.strip_prefix("panic-in-") == Some(self.path.as_str());
        assert!(!is_here, "a test wanted this");
    }

    /// Refuses where the entity is broken.
    pub fn check_whole(&self) -> Result<(), SendError> {
        match &self.broken {
            None => Ok(()),
            Some(reason) => Err(SendError::Broken {
                path: self.path.clone(),
                reason: reason.as_str().into(),
            }),
        }
    }
}
