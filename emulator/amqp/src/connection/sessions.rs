//! The sessions of a connection by channel (AMQP 1.0 §2.5). Both directions of a session use the peer's channel number, so
//! that one table serves both.
//!
//! Go begins and ends a session for every token that it puts (spec/wire.md §10.28), so both must be cheap.

use std::mem;

use super::Connection;
use crate::error::{Error, Fault, condition};
use crate::event::Event;
use crate::ids::{LinkId, SessionId};
use crate::session::Session;
use crate::wire::{cold, reply};

#[derive(Debug)]
pub(crate) struct Sessions {
    slots: Vec<Slot>,
    /// The container id of this side's `open`, by which errors name the connection.
    connection: Box<str>,
}

#[derive(Debug, Default)]
enum Slot {
    #[default]
    Free,
    Live(Box<Session>),
    /// This side has ended it, the peer has not; input is dropped.
    Ending,
}

impl Sessions {
    pub(crate) fn new(connection: &str) -> Self {
        Self {
            slots: Vec::new(),
            connection: connection.into(),
        }
    }

    /// Returns the session on `channel`; `None` if this side has ended it and the peer may not know yet.
    pub(crate) fn live(&mut self, channel: u16) -> Result<Option<&mut Session>, Fault> {
        match self.slots.get_mut(usize::from(channel)) {
            Some(Slot::Live(session)) => Ok(Some(session)),
            Some(Slot::Ending) => Ok(None),
            Some(Slot::Free) | None => Err(Fault::connection(
                condition::NOT_FOUND,
                format!(
                    "The session channel '{channel}' cannot be found in connection '{}'.",
                    self.connection
                ),
            )),
        }
    }

    pub(crate) fn of(&self, link: LinkId) -> Option<&Session> {
        match self.slots.get(usize::from(link.channel()))? {
            Slot::Live(session) => Some(session),
            Slot::Free | Slot::Ending => None,
        }
    }

    pub(crate) fn of_mut(&mut self, link: LinkId) -> Option<&mut Session> {
        self.on(link.channel())
    }

    pub(crate) fn on(&mut self, channel: u16) -> Option<&mut Session> {
        match self.slots.get_mut(usize::from(channel))? {
            Slot::Live(session) => Some(session),
            Slot::Free | Slot::Ending => None,
        }
    }

    /// Returns the bytes of all sessions without incomplete deliveries.
    pub(crate) fn held(&self) -> usize {
        let of = |slot: &Slot| match slot {
            Slot::Live(session) => session.held(),
            Slot::Free | Slot::Ending => 0,
        };
        self.slots.len() * size_of::<Slot>() + self.slots.iter().map(of).sum::<usize>()
    }

    /// Adds a session on a free channel.
    pub(crate) fn insert(&mut self, channel: u16, session: Session) {
        let index = usize::from(channel);
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        self.slots[index] = Slot::Live(Box::new(session));
    }

    /// Removes the session from its channel, which becomes free.
    pub(crate) fn remove(&mut self, channel: u16) -> Option<Box<Session>> {
        self.replace(channel, Slot::Free)
    }

    /// Removes the session from its channel, on which the peer's end is still expected.
    pub(crate) fn retire(&mut self, channel: u16) -> Option<Box<Session>> {
        self.replace(channel, Slot::Ending)
    }

    /// Removes all sessions and channels.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Box<Session>> + use<> {
        mem::take(&mut self.slots)
            .into_iter()
            .filter_map(|slot| match slot {
                Slot::Live(session) => Some(session),
                Slot::Free | Slot::Ending => None,
            })
    }

    fn replace(&mut self, channel: u16, with: Slot) -> Option<Box<Session>> {
        let slot = self.slots.get_mut(usize::from(channel))?;
        match mem::replace(slot, with) {
            Slot::Live(session) => Some(session),
            Slot::Free | Slot::Ending => None,
        }
    }
}

impl Connection {
    pub(crate) fn on_begin(&mut self, channel: u16, body: &[u8]) -> Result<(), Fault> {
        let begin = cold::begin(body).map_err(|error| Fault::decoding("begin", error))?;
        if channel > self.channel_max {
            return Err(Fault::connection(
                condition::FRAMING_ERROR,
                format!("channel {channel} is above {}", self.channel_max),
            ));
        }
        if begin.is_answer {
            return Err(Fault::connection(
                condition::NOT_ALLOWED,
                "begin answers a session that was not asked for",
            ));
        }
        if self.sessions.on(channel).is_some() {
            return Err(Fault::connection(
                condition::NOT_ALLOWED,
                format!("channel {channel} has a session already"),
            ));
        }
        self.generation = self.generation.wrapping_add(1);
        let id = SessionId(u64::from(self.generation) << 16 | u64::from(channel));
        let session = Session::new(id, &begin, &self.config);
        self.sessions.insert(channel, session);
        reply::begin(self.outbox.buffer(), channel, channel, &self.config);
        Ok(())
    }

    pub(crate) fn on_end(&mut self, channel: u16) -> Result<(), Fault> {
        // On a session that this side has ended this is the answer; on an unknown channel it is ignored (spec/observed.md
        // 70).
        if let Some(session) = self.sessions.remove(channel) {
            reply::end(self.outbox.buffer(), channel, None);
            self.drop_session(&session);
        }
        Ok(())
    }

    /// Ends a session because of an error of its peer.
    pub(crate) fn end_session(&mut self, channel: u16, error: &Error) {
        if let Some(session) = self.sessions.retire(channel) {
            self.outbox.with_error(Some(error), |out, error| {
                reply::end(out, channel, error);
            });
            self.drop_session(&session);
        }
    }

    /// Reports and uncounts the links of a session that has ended.
    pub(crate) fn drop_session(&mut self, session: &Session) {
        self.link_count -= session.links().len();
        for link in session.links() {
            self.reassembly -= link.reassembling();
            if !link.is_detaching() {
                self.events.push_back(Event::Detached {
                    link: link.id,
                    closed: false,
                });
            }
        }
    }
}
