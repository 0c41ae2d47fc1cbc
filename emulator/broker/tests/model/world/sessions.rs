//! Session operations on a real queue.

use bytes::Bytes;
use servicebus_broker::{
    ReceiveMode, ReceiverId, SequenceNumber, SessionAccess, SessionName, SubQueue, Timestamp,
};

use super::{CLIENT, World, see};
use crate::event::{session_of, session_text};
use crate::history::{Answer, SessionUse};

impl World {
    pub(crate) fn accept(
        &mut self,
        queue: usize,
        id: u64,
        mode: ReceiveMode,
        wanted: Option<u8>,
    ) -> Answer {
        let wanted = wanted.map(session_name);
        let accepted = self.with(queue, |entity, cx| {
            entity.attach_session_receiver(
                cx,
                ReceiverId(id),
                mode,
                wanted.as_ref(),
                SessionAccess::Exclusive,
            )
        });
        let accepted = accepted.map_err(|error| error.to_string());
        Answer::Accepted(accepted.map(|accepted| {
            let accepted = accepted?;
            let session = session_of(accepted.session.as_str());
            Some((session, accepted.locked_until.as_millis()))
        }))
    }

    pub(crate) fn of_session(&mut self, queue: usize, session: u8, what: SessionUse) -> Answer {
        let name = session_name(session);
        let now = self.now;
        self.with(queue, |entity, cx| match what {
            SessionUse::Renew => {
                let until = entity.renew_session_lock(cx, CLIENT, &name);
                let until = until.map_err(|error| error.to_string());
                Answer::Session(until.map(|until| Some(until.as_millis())))
            }
            SessionUse::Lose => {
                let was_held = entity.lose_session_lock(cx, &name);
                Answer::Session(Ok(was_held.then_some(1)))
            }
            SessionUse::State => {
                let state = entity.session_state(cx, CLIENT, &name);
                let state = state.map_err(|error| error.to_string());
                Answer::Session(state.map(|state| state.map(|state| state.len() as i64)))
            }
            SessionUse::SetState(size) => {
                let state = size.map(|size| Bytes::from(vec![b's'; size]));
                let set = entity.set_session_state(cx, CLIENT, &name, state);
                Answer::Session(set.map(|()| None).map_err(|error| error.to_string()))
            }
            SessionUse::List(age, skip, top) => {
                let since = age.map(|age| Timestamp::from_millis(now.as_millis() - age));
                let names = entity.sessions(cx, since, skip, top);
                Answer::Sessions(names.iter().map(|name| session_of(name.as_str())).collect())
            }
            SessionUse::Browse(from, max) => {
                let from = SequenceNumber(from);
                let seen = entity.peek(cx, SubQueue::Active, from, max, Some(&name));
                Answer::Messages(
                    seen.iter()
                        .map(|seen| see(&seen.broker_properties, &seen.message))
                        .collect(),
                )
            }
            SessionUse::Delete(max) => {
                let before = Timestamp::MAX;
                let kind = SubQueue::Active;
                Answer::Deleted(entity.delete_messages(cx, kind, max, before, Some(&name)))
            }
        })
    }
}

pub(crate) fn session_name(session: u8) -> SessionName {
    SessionName::new(&session_text(session)).expect("it is short")
}
