//! Client operations on a queue that requires sessions.

use bytes::Bytes;
use servicebus_broker::{
    AcceptSessionError, AcceptedSession, Delivery, Effect, ReceiveDeferredError, ReceiveMode,
    ReceiverId, SequenceNumber, SessionAccess, SessionError, SessionName, SubQueue, Timestamp,
};

use super::{Bus, Receiver, message, rules};

/// The holder of locks that requests by number take: no link.
const MANAGEMENT: ReceiverId = ReceiverId(1_000_000);

/// A queue with the defaults that requires sessions.
pub(crate) fn sessions() -> Bus {
    rules().sessions().bus()
}

pub(crate) fn name(session: &str) -> SessionName {
    SessionName::new(session).expect("a session id")
}

impl Bus {
    /// Sends a message with this id to a session.
    pub(crate) fn send_to(&mut self, session: &str, id: &str) -> SequenceNumber {
        self.post(&message(id).session(session)).unwrap()
    }

    pub(crate) fn send_all_to(&mut self, session: &str, ids: &[&str]) -> Vec<SequenceNumber> {
        ids.iter().map(|id| self.send_to(session, id)).collect()
    }

    pub(crate) fn try_accept(
        &mut self,
        session: Option<&str>,
        mode: ReceiveMode,
    ) -> Result<(Receiver, Option<AcceptedSession>), AcceptSessionError> {
        self.try_accept_as(session, mode, SessionAccess::Exclusive)
    }

    pub(crate) fn try_accept_as(
        &mut self,
        session: Option<&str>,
        mode: ReceiveMode,
        access: SessionAccess,
    ) -> Result<(Receiver, Option<AcceptedSession>), AcceptSessionError> {
        self.receivers += 1;
        let id = ReceiverId(self.receivers);
        let wanted = session.map(name);
        let accepted = self.operate(|entity, cx| {
            entity.attach_session_receiver(cx, id, mode, wanted.as_ref(), access)
        })?;
        let store = SubQueue::Active;
        Ok((Receiver { store, id }, accepted))
    }

    /// A receiver that holds this session and locks what is received.
    pub(crate) fn accept(&mut self, session: &str) -> Receiver {
        let accepted = self.try_accept(Some(session), ReceiveMode::PeekLock);
        let (receiver, accepted) = accepted.unwrap();
        assert_eq!(accepted.unwrap().session, name(session));
        receiver
    }

    /// The same with this credit.
    pub(crate) fn accept_with_credit(&mut self, session: &str, credit: u32) -> Receiver {
        let receiver = self.accept(session);
        self.credit(receiver, credit);
        receiver
    }

    /// A receiver that holds the next session or waits for one, and which it is.
    pub(crate) fn accept_next(&mut self) -> (Receiver, Option<String>) {
        let accepted = self.try_accept(None, ReceiveMode::PeekLock).unwrap();
        let (receiver, accepted) = accepted;
        let session = accepted.map(|accepted| accepted.session.as_str().to_owned());
        (receiver, session)
    }

    /// The session that a receiver holds, and until when.
    pub(crate) fn held(&self, receiver: Receiver) -> Option<(String, Timestamp)> {
        let accepted = self.queue.accepted_session(receiver.id)?;
        Some((accepted.session.as_str().to_owned(), accepted.locked_until))
    }

    pub(crate) fn renew_session(&mut self, session: &str) -> Result<Timestamp, SessionError> {
        let client = self.client;
        self.operate(|entity, cx| entity.renew_session_lock(cx, client, &name(session)))
    }

    pub(crate) fn set_state(
        &mut self,
        session: &str,
        state: Option<&[u8]>,
    ) -> Result<(), SessionError> {
        let client = self.client;
        let state = state.map(Bytes::copy_from_slice);
        self.operate(|entity, cx| entity.set_session_state(cx, client, &name(session), state))
    }

    pub(crate) fn state(&mut self, session: &str) -> Result<Option<Bytes>, SessionError> {
        let client = self.client;
        self.operate(|entity, cx| entity.session_state(cx, client, &name(session)))
    }

    /// Ids of sessions with active messages, or of those whose state was set after `since`.
    pub(crate) fn list(
        &mut self,
        since: Option<Timestamp>,
        skip: usize,
        top: usize,
    ) -> Vec<String> {
        let listed = self.operate(|entity, cx| entity.sessions(cx, since, skip, top));
        listed.iter().map(SessionName::to_string).collect()
    }

    /// Ids of all known sessions.
    pub(crate) fn known_sessions(&self) -> Vec<String> {
        let seen = self.queue.snapshot_sessions();
        seen.map(|session| session.name.to_string()).collect()
    }

    pub(crate) fn lose_session(&mut self, session: &str) -> bool {
        self.operate(|entity, cx| entity.lose_session_lock(cx, &name(session)))
    }

    pub(crate) fn receive_deferred_of(
        &mut self,
        session: Option<&str>,
        numbers: &[SequenceNumber],
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        let session = session.map(name);
        self.operate(|entity, cx| {
            let mode = ReceiveMode::PeekLock;
            let session = session.as_ref();
            entity.receive_deferred(cx, SubQueue::Active, numbers, mode, MANAGEMENT, session)
        })
    }

    /// The ids of up to `max` messages of a session from this number on, locked ones included.
    pub(crate) fn peek_session(
        &mut self,
        store: SubQueue,
        session: &str,
        from: u64,
        max: usize,
    ) -> Vec<String> {
        let (from, session) = (SequenceNumber(from), name(session));
        let seen = self.operate(|entity, cx| entity.peek(cx, store, from, max, Some(&session)));
        let ids = seen.iter().map(|seen| seen.message.id().into_owned());
        ids.collect()
    }

    pub(crate) fn delete_of_session(
        &mut self,
        store: SubQueue,
        session: &str,
        max: usize,
    ) -> usize {
        let session = name(session);
        self.operate(|entity, cx| {
            entity.delete_messages(cx, store, max, Timestamp::MAX, Some(&session))
        })
    }

    /// The receivers that lost their sessions since the last call.
    pub(crate) fn lost(&mut self) -> Vec<ReceiverId> {
        let lost = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::SessionLost(receiver) => Some(receiver),
            Effect::Wake(_) | Effect::Forward(..) | Effect::Delete(..) => None,
        });
        lost.collect()
    }
}
