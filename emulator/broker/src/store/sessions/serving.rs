//! Grants sessions to waiting receivers, and reserves the messages of sessions for their holders.

use super::{EndedLock, Grant, SessionLock, Slot};
use crate::context::{Context, Effect};
use crate::event::EventKind;
use crate::ids::{Offset, SessionName};
use crate::message::Message;
use crate::store::{Entry, MessageStore, State};

impl MessageStore {
    /// Returns the session of a message that is about to be appended, if the entity has sessions.
    pub(crate) fn session_of(&mut self, message: &Message) -> Option<Slot> {
        let sessions = self.sessions.as_mut()?;
        sessions.find_or_create(&message.session_id()?)
    }

    /// Returns whether a message belongs to this session; at an entity without sessions, whether it has this session id.
    pub(crate) fn belongs(&self, offset: Offset, entry: &Entry, name: &SessionName) -> bool {
        match &self.sessions {
            Some(sessions) => sessions.of(offset).is_some_and(|own| own.name == *name),
            None => entry
                .message
                .session_id()
                .is_some_and(|own| own == name.as_str()),
        }
    }

    /// Returns ready messages in order; only those of `session` if it is given.
    pub(crate) fn ready_of<'a>(
        &'a self,
        session: Option<&'a SessionName>,
    ) -> Box<dyn Iterator<Item = Offset> + 'a> {
        let ready = self.ready.offsets();
        match (&self.sessions, session) {
            (None, None) => Box::new(ready),
            (None, Some(name)) => Box::new(ready.filter(|offset| {
                let entry = self.entries.get(*offset);
                entry.is_some_and(|entry| self.belongs(*offset, entry, name))
            })),
            (Some(sessions), Some(name)) => {
                let found = sessions.find(name).into_iter();
                Box::new(found.flat_map(|(_, session)| session.ready.iter().copied()))
            }
            (Some(_), None) => {
                let all = self.entries.iter();
                let ready = all.filter(|(_, entry)| entry.state == State::Ready);
                Box::new(ready.map(|(offset, _)| offset))
            }
        }
    }

    /// Returns the session lock that governs a message, if the entity has sessions.
    pub(crate) fn session_lock_of(&self, offset: Offset) -> Option<SessionLock> {
        self.sessions.as_ref()?.of(offset)?.lock
    }

    /// Grants available sessions to waiting receivers in order of arrival; their locks begin now.
    pub(crate) fn grant_sessions(&mut self, cx: &mut Context<'_>) {
        let until = self.policy.lock_until(cx.now);
        while self.policy.serves()
            && let Some(sessions) = &mut self.sessions
            && let Some(Grant { session, lock }) =
                sessions.grant_next(until, || SessionLock::new_token(cx.ids))
        {
            self.record_accepted(cx, &session, lock);
            if self.receivers.wake(lock.receiver) {
                cx.effects.push(Effect::Wake(lock.receiver));
            }
        }
    }

    /// Records that a receiver holds a session from now on.
    pub(crate) fn record_accepted(
        &self,
        cx: &mut Context<'_>,
        session: &SessionName,
        lock: SessionLock,
    ) {
        let kind = EventKind::SessionAccepted {
            session: cx.events.text(session.as_str()),
            locked_until: lock.until,
        };
        self.record_as(&mut cx.by(lock.client), None, kind);
    }

    /// Ends the lock of a session. Reserved messages are ready again; the caller handles locked ones.
    pub(crate) fn end_session(&mut self, slot: Slot) -> Option<EndedLock> {
        let sessions = self.sessions.as_mut()?;
        let ended = sessions.end(slot)?;
        self.set_credit(ended.lock.receiver, 0);
        Some(ended)
    }

    /// Moves a held session with its locks to the receiver of `lock`, without redelivering or counting anything.
    pub(crate) fn hand_over_session(&mut self, slot: Slot, lock: SessionLock) {
        let Some(ended) = self.end_session(slot) else {
            return;
        };
        for offset in ended.locked {
            if let Some(entry) = self.entries.get_mut(offset)
                && let State::Locked(held) = &mut entry.state
            {
                held.receiver = lock.receiver;
            }
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.hold(&ended.session, lock);
        }
    }

    /// Reserves messages of changed sessions for their holders.
    pub(crate) fn serve_sessions(&mut self, cx: &mut Context<'_>) {
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        let mut changed = std::mem::take(&mut sessions.changed);
        for &slot in &changed {
            self.serve_session(cx, slot);
        }
        if let Some(sessions) = &mut self.sessions {
            for &slot in &changed {
                sessions.served(slot);
            }
            changed.clear();
            sessions.changed = changed;
        }
    }

    /// A message that was put back precedes later ones, even if those are reserved already.
    fn serve_session(&mut self, cx: &mut Context<'_>, slot: Slot) {
        while let Some(session) = self.sessions.as_ref().and_then(|all| all.get(slot))
            && let (Some(lock), Some(&offset)) = (session.lock, session.ready.first())
        {
            let holder = lock.receiver;
            if !self.receivers.has_credit_of(holder) {
                let last = self.receivers.last_reserved(holder);
                let Some(last) = last.filter(|&last| last > offset) else {
                    return;
                };
                self.receivers.unreserve(holder, last);
                self.requeue(last);
            }
            let Some(wake) = self.receivers.reserve_to(holder, offset) else {
                return;
            };
            self.reserve_to(holder, offset);
            if wake {
                cx.effects.push(Effect::Wake(holder));
            }
        }
    }
}
