//! Somebody asks which sessions there are.

use bytes::Bytes;

use crate::{Context, Entity, ReceiverId, SessionName, Timestamp};

/// A session as it is seen by looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionView<'a> {
    /// Its id.
    pub name: &'a SessionName,
    /// Messages that are neither deferred nor scheduled, locked ones included.
    pub active: usize,
    /// Messages under a lock, deferred ones included.
    pub locked: usize,
    /// Messages set aside.
    pub deferred: usize,
    /// Who holds it.
    pub holder: Option<ReceiverId>,
    /// When its lock ends.
    pub locked_until: Option<Timestamp>,
    /// What its application keeps with it.
    pub state: Option<&'a Bytes>,
}

impl Entity {
    /// Sessions with active messages or with state; with `since`, those instead whose state was set after that and is
    /// still there. Ordered by name: up to `top` behind the first `skip`.
    pub fn sessions(
        &mut self,
        cx: &mut Context<'_>,
        since: Option<Timestamp>,
        skip: usize,
        top: usize,
    ) -> Vec<SessionName> {
        self.begin(cx);
        let sessions = self.active.sessions.iter();
        let sessions = sessions.flat_map(|sessions| sessions.iter());
        let listed = sessions.filter(|session| match since {
            None => session.active() > 0 || session.state.is_some(),
            Some(since) => session.state.as_ref().is_some_and(|s| s.set_at > since),
        });
        let names = listed.map(|session| session.name.clone());
        names.skip(skip).take(top).collect()
    }

    /// Every session about which there is anything to know, by name. Nobody notices: time does not pass, and the
    /// entity is not used by it.
    pub fn snapshot_sessions(&self) -> impl Iterator<Item = SessionView<'_>> {
        let sessions = self.active.sessions.iter();
        let sessions = sessions.flat_map(|sessions| sessions.iter());
        sessions.map(|session| SessionView {
            name: &session.name,
            active: session.active(),
            locked: session.locked.len(),
            deferred: session.deferred,
            holder: session.lock.map(|lock| lock.receiver),
            locked_until: session.lock.map(|lock| lock.until),
            state: session.state.as_ref().map(|state| &state.bytes),
        })
    }
}
