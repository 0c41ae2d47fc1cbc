//! Naive sessions: their holders, waiting receivers and states.

use servicebus_broker::SubQueue::Active;
use servicebus_broker::{ReceiveMode, SessionView, SubQueue};

use super::queue::{ModelMessage, Queue, State};
use super::{ModelKind, Reference};
use crate::event::{session_of, session_text};
use crate::history::{Answer, Draft, SessionUse};

/// Maximum number of sessions.
const SESSIONS: u8 = 10;
/// Bytes of a state.
const MOST: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) holds: Vec<Hold>,
    /// Receivers in the order in which they came.
    pub(crate) waiting: Vec<u64>,
    states: Vec<SessionRecord>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    session: u8,
    pub(crate) receiver: u64,
    pub(crate) until: i64,
}

#[derive(Debug, Clone, Copy)]
struct SessionRecord {
    session: u8,
    size: usize,
    set_at: i64,
}

/// A session as a snapshot shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedSession {
    session: u8,
    active: usize,
    locked: usize,
    deferred: usize,
    held: Option<(u64, i64)>,
    state: Option<usize>,
}

impl ListedSession {
    pub(crate) fn of(view: &SessionView<'_>) -> Self {
        let until = view.locked_until.map(|until| until.as_millis());
        Self {
            session: session_of(view.name.as_str()),
            active: view.active,
            locked: view.locked,
            deferred: view.deferred,
            held: view.holder.map(|holder| holder.0).zip(until),
            state: view.state.map(|state| state.len()),
        }
    }
}

impl Sessions {
    pub(crate) fn hold(&self, session: u8) -> Option<Hold> {
        let mut holds = self.holds.iter();
        holds.find(|hold| hold.session == session).copied()
    }

    /// Whether a receiver waits for a session or holds one.
    pub(crate) fn knows(&self, id: u64) -> bool {
        self.waiting.contains(&id) || self.holds.iter().any(|hold| hold.receiver == id)
    }

    pub(crate) fn size(&self) -> u64 {
        self.states.iter().map(|kept| kept.size as u64).sum()
    }

    fn state(&self, session: u8) -> Option<SessionRecord> {
        let mut states = self.states.iter();
        states.find(|kept| kept.session == session).copied()
    }
}

impl Queue {
    /// Whether the messages of a store belong to sessions.
    pub(crate) fn has_sessions(&self, kind: SubQueue) -> bool {
        kind == Active && self.description.requires_session
    }

    /// The session of the first existing message of these.
    pub(crate) fn session_of_any(&self, kind: SubQueue, numbers: &[u64]) -> Option<u8> {
        let mut messages = self.store(kind).messages.iter();
        let message = messages.find(|message| numbers.contains(&message.shown()))?;
        message.draft.session.filter(|_| self.has_sessions(kind))
    }

    pub(crate) fn listed_sessions(&self) -> Vec<ListedSession> {
        let sessions = (0..SESSIONS).filter(|_| self.has_sessions(Active));
        let listed = sessions.filter_map(|session| self.listed(session));
        listed.collect()
    }

    fn listed(&self, session: u8) -> Option<ListedSession> {
        let messages = self.of_session(session);
        let hold = self.sessions.hold(session);
        let state = self.sessions.state(session).map(|kept| kept.size);
        let count = |which: fn(&ModelMessage) -> bool| messages.iter().filter(|l| which(l)).count();
        let is_known = !messages.is_empty() || hold.is_some() || state.is_some();
        is_known.then(|| ListedSession {
            session,
            active: count(|l| !l.is_deferred() && !l.is_scheduled()),
            locked: count(|l| l.locked_until().is_some()),
            deferred: count(ModelMessage::is_deferred),
            held: hold.map(|hold| (hold.receiver, hold.until)),
            state,
        })
    }

    fn of_session(&self, session: u8) -> Vec<&ModelMessage> {
        let messages = self.store(Active).messages.iter();
        let own = messages.filter(|message| message.draft.session == Some(session));
        own.collect()
    }
}

impl Reference {
    pub(crate) fn accept_session(
        &mut self,
        q: usize,
        id: u64,
        mode: ReceiveMode,
        wanted: Option<u8>,
    ) -> Answer {
        self.begin(q);
        if let Some(session) = wanted {
            if self.at(q).sessions.hold(session).is_some() {
                let session = session_text(session);
                let text = format!(
                    "The requested session '{session}' cannot be accepted. It may be locked by another receiver."
                );
                return Answer::Accepted(Err(text));
            }
            self.store(q, Active).receivers.push((id, mode));
            self.hold(q, session, id);
        } else {
            self.store(q, Active).receivers.push((id, mode));
            self.at(q).sessions.waiting.push(id);
            self.run_due(q, self.now);
        }
        self.serve(q);
        let mut holds = self.at(q).sessions.holds.iter();
        let held = holds.find(|hold| hold.receiver == id);
        Answer::Accepted(Ok(held.map(|hold| (hold.session, hold.until))))
    }

    pub(crate) fn of_session(&mut self, q: usize, session: u8, what: SessionUse) -> Answer {
        match what {
            SessionUse::Renew => Answer::Session(self.renew_session(q, session).map(Some)),
            SessionUse::Lose => {
                self.let_pass(q);
                let hold = self.at(q).sessions.hold(session);
                if let Some(hold) = hold {
                    self.session_lock_expired(q, hold.receiver, self.now);
                    self.serve(q);
                }
                Answer::Session(Ok(hold.map(|_| 1)))
            }
            SessionUse::State => {
                self.begin(q);
                let held = self.check_held(q, session);
                let state = self.at(q).sessions.state(session);
                Answer::Session(held.map(|_| state.map(|kept| kept.size as i64)))
            }
            SessionUse::SetState(size) => {
                Answer::Session(self.set_state(q, session, size).map(|()| None))
            }
            SessionUse::List(age, skip, top) => {
                self.begin(q);
                let since = age.map(|age| self.now - age);
                let queue = self.at(q);
                let listed = |&session: &u8| match since {
                    None => {
                        let has_state = queue.sessions.state(session).is_some();
                        has_state
                            || queue
                                .listed(session)
                                .is_some_and(|listed| listed.active > 0)
                    }
                    Some(since) => {
                        let state = queue.sessions.state(session);
                        state.is_some_and(|kept| kept.set_at > since)
                    }
                };
                let listed = (0..SESSIONS).filter(listed);
                Answer::Sessions(listed.skip(skip).take(top).collect())
            }
            SessionUse::Browse(from, max) => {
                Answer::Messages(self.peek((q, Active), from, max, Some(session)))
            }
            SessionUse::Delete(max) => {
                Answer::Deleted(self.delete((q, Active), max, i64::MAX, Some(session)))
            }
        }
    }

    fn renew_session(&mut self, q: usize, session: u8) -> Result<i64, String> {
        self.begin(q);
        self.check_held(q, session)?;
        let until = self.now + self.at(q).description.lock_duration.as_millis() as i64;
        let mut holds = self.at(q).sessions.holds.iter_mut();
        let hold = holds.find(|hold| hold.session == session);
        let hold = hold.expect("it is held");
        hold.until = until.max(hold.until + 1);
        let until = hold.until;
        self.note((q, Active), 0, ModelKind::SessionRenewed(session, until));
        Ok(until)
    }

    fn set_state(&mut self, q: usize, session: u8, size: Option<usize>) -> Result<(), String> {
        self.begin(q);
        self.check_held(q, session)?;
        let size = size.filter(|&size| size > 0);
        if let Some(size) = size.filter(|&size| size > MOST) {
            return Err(format!(
                "the state of a session has {size} bytes, at most {MOST} are allowed"
            ));
        }
        let before = self.at(q).sessions.state(session);
        let before = before.map_or(0, |kept| kept.size);
        let more = size.unwrap_or(0).saturating_sub(before) as u64;
        let queue = self.at(q);
        let (held, max) = (queue.size(), queue.max_size());
        if more > 0 && held + more > max {
            return Err(format!(
                "The maximum entity size has been reached or exceeded for Queue: '{}'. Size of entity in \
                 bytes:{held}, Max entity size in bytes:{max}.",
                super::name(q)
            ));
        }
        let set_at = self.now;
        let states = &mut self.at(q).sessions.states;
        states.retain(|kept| kept.session != session);
        states.extend(size.map(|size| SessionRecord {
            session,
            size,
            set_at,
        }));
        let size = size.map(|size| size as u64);
        self.note((q, Active), 0, ModelKind::StateSet(session, size));
        self.serve(q);
        Ok(())
    }

    fn check_held(&mut self, q: usize, session: u8) -> Result<(), String> {
        let queue = self.at(q);
        if !queue.description.status.can_receive() {
            return Err("the entity is disabled".into());
        }
        match queue.sessions.hold(session) {
            Some(_) => Ok(()),
            None => {
                let session = session_text(session);
                Err(format!("the lock of session '{session}' is not held"))
            }
        }
    }

    /// The error for a message without a session.
    pub(crate) fn check_session(&mut self, q: usize, draft: &Draft) -> Result<(), String> {
        let text = "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have \
                    session support enabled can only receive messages that have the SessionId set to a valid value.";
        match self.at(q).has_sessions(Active) && draft.session.is_none() {
            true => Err(text.to_owned()),
            false => Ok(()),
        }
    }

    fn hold(&mut self, q: usize, session: u8, receiver: u64) {
        let until = self.now + self.at(q).description.lock_duration.as_millis() as i64;
        self.at(q).sessions.holds.push(Hold {
            session,
            receiver,
            until,
        });
        self.note((q, Active), 0, ModelKind::SessionAccepted(session, until));
    }

    /// Grants the session of the first available message to the first waiting receiver.
    pub(crate) fn grant_sessions(&mut self, q: usize) {
        while let Some(queue) = self.queue(q)
            && queue.serves(Active)
            && let Some(&first) = queue.sessions.waiting.first()
        {
            let messages = queue.store(Active).messages.iter();
            let ready = messages.filter(|message| message.state == State::Ready);
            let mut sessions = ready.filter_map(|message| message.draft.session);
            let free = sessions.find(|&session| queue.sessions.hold(session).is_none());
            let Some(session) = free else {
                return;
            };
            self.at(q).sessions.waiting.remove(0);
            self.hold(q, session, first);
        }
    }

    /// Reserves the first messages of each session within its holder's credit.
    pub(crate) fn serve_sessions(&mut self, q: usize) {
        if !self.at(q).has_sessions(Active) || !self.at(q).serves(Active) {
            return;
        }
        let store = self.store(q, Active);
        store.restore_all();
        for hold in self.at(q).sessions.holds.clone() {
            let store = self.store(q, Active);
            let messages = store.messages.iter_mut();
            let own = messages.filter(|l| l.draft.session == Some(hold.session));
            for message in own.filter(|message| message.state == State::Ready) {
                let mut waiting = store.waiting.iter_mut();
                let own = waiting.find(|(id, credit)| *id == hold.receiver && *credit > 0);
                let Some((_, credit)) = own else {
                    break;
                };
                *credit -= 1;
                message.state = State::Assigned(hold.receiver);
            }
        }
        let waiting = &mut self.store(q, Active).waiting;
        waiting.retain(|&(_, credit)| credit > 0);
    }

    /// Every delivery under the lock of a session has failed.
    pub(crate) fn session_lock_expired(&mut self, q: usize, receiver: u64, at: i64) {
        let (session, locked) = self.end_hold(q, receiver);
        self.note_at(at, (q, Active), 0, ModelKind::SessionExpired(session));
        self.lost.push(receiver);
        for number in locked {
            self.expire_lock((q, Active), number, at);
        }
    }

    pub(crate) fn lose_sessions(&mut self, q: usize) {
        for receiver in self.holders(q) {
            self.session_lock_expired(q, receiver, self.now);
        }
    }

    /// Detaches a receiver: its locked messages count as not delivered.
    pub(crate) fn leave_session(&mut self, q: usize, id: u64) {
        self.at(q).sessions.waiting.retain(|&waiting| waiting != id);
        if !self.holders(q).contains(&id) {
            return;
        }
        let (session, locked) = self.end_hold(q, id);
        self.note((q, Active), 0, ModelKind::SessionReleased(session));
        for number in locked {
            self.note((q, Active), number, ModelKind::Released);
            self.unlock((q, Active), number, self.now);
        }
    }

    pub(crate) fn forget_sessions(&mut self, q: usize) {
        for receiver in self.holders(q) {
            let (session, _) = self.end_hold(q, receiver);
            self.lost.push(receiver);
            self.note((q, Active), 0, ModelKind::SessionReleased(session));
        }
        self.at(q).sessions.states.clear();
    }

    fn holders(&mut self, q: usize) -> Vec<u64> {
        let holds = self.at(q).sessions.holds.iter();
        let mut holders: Vec<u64> = holds.map(|hold| hold.receiver).collect();
        holders.sort_unstable();
        holders
    }

    /// Takes a session from its holder, with its reservations and its credit; returns the locked messages.
    fn end_hold(&mut self, q: usize, receiver: u64) -> (u8, Vec<u64>) {
        let holds = &mut self.at(q).sessions.holds;
        let at = holds.iter().position(|hold| hold.receiver == receiver);
        let hold = holds.remove(at.expect("it holds a session"));
        let store = self.store(q, Active);
        for number in store.reserved_to(receiver) {
            store.message(number).state = State::Ready;
        }
        store.waiting.retain(|&(waits, _)| waits != receiver);
        let locked = self.at(q).of_session(hold.session).into_iter();
        let locked = locked.filter(|message| message.locked_until().is_some());
        (hold.session, locked.map(|message| message.number).collect())
    }
}
