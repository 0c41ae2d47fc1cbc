//! Reserves ready messages for waiting receivers.

use super::{MessageStore, State};
use crate::context::{Context, Effect};
use crate::ids::{EntityPath, ReceiverId};

impl MessageStore {
    /// Reserves ready entries for waiting receivers, and announces entries to forward from this entity.
    pub(crate) fn serve(&mut self, cx: &mut Context<'_>, path: &EntityPath) {
        // Every operation calls this for three stores, of which two are mostly empty. Sessions are served to their end, and
        // selectors look at the end of a store.
        if self.is_empty() && self.sessions.is_none() && !self.receivers.have_selectors() {
            return;
        }
        self.reserve(cx);
        if self.must_announce() {
            let forward = Effect::Forward(path.clone(), self.policy.kind());
            cx.effects.push(forward);
        }
    }

    /// Reserves ready entries for waiting receivers, both in order of arrival.
    fn reserve(&mut self, cx: &mut Context<'_>) {
        if !self.policy.serves() {
            return;
        }
        if self.sessions.is_some() {
            self.serve_sessions(cx);
            return;
        }
        if self.receivers.have_selectors() {
            self.serve_selecting(cx);
            return;
        }
        while let Some(((), offset)) = self.ready.first() {
            let returned = self.returned.as_deref();
            let former = returned.and_then(|returned| returned.get(&offset).copied());
            let Some((receiver, wake)) = self.receivers.reserve_next(offset, former) else {
                return;
            };
            self.reserve_to(receiver, offset);
            if wake {
                cx.effects.push(Effect::Wake(receiver));
            }
        }
    }

    /// Moves the first entry reserved for a receiver to another one that waits; returns whether one does.
    pub(crate) fn reassign(&mut self, cx: &mut Context<'_>, id: ReceiverId) -> bool {
        let other = self.receivers.next_except(id);
        let first = self.receivers.first_reserved(id);
        let (Some(other), Some((offset, _))) = (other, first) else {
            return false;
        };
        self.receivers.unreserve(id, offset);
        let is_told = self.receivers.reserve_to(other, offset) == Some(false);
        if let Some(entry) = self.entries.get_mut(offset) {
            entry.state = State::Reserved(other);
        }
        if !is_told {
            cx.effects.push(Effect::Wake(other));
        }
        true
    }
}
