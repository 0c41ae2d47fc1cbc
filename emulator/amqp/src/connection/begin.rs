//! Sessions come and go (AMQP 1.0 §2.5). Go opens and closes one for every token that it puts
//! (spec/wire.md §10.28), so both must be cheap.

use super::state::Connection;
use crate::error::{Error, Fault, condition};
use crate::event::Event;
use crate::ids::SessionId;
use crate::session::Session;
use crate::wire::{cold, reply};

impl Connection {
    pub(crate) fn on_begin(&mut self, channel: u16, body: &[u8]) -> Result<(), Fault> {
        let begin = cold::begin(body)?;
        if channel > self.channel_max {
            return Err(Fault::connection(
                condition::FRAMING_ERROR,
                format!("channel {channel} is above {}", self.channel_max),
            ));
        }
        if begin.remote_channel.is_some() {
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
        // On a session that we have ended this is the answer; where there is none it is ignored (spec/observed.md 70).
        if let Some(session) = self.sessions.remove(channel) {
            reply::end(self.outbox.buffer(), channel, None);
            self.drop_session(&session);
        }
        Ok(())
    }

    /// Ends a session because of what its peer did.
    pub(crate) fn end_session(&mut self, channel: u16, error: &Error) {
        if let Some(session) = self.sessions.retire(channel) {
            reply::end(self.outbox.buffer(), channel, Some(error));
            self.drop_session(&session);
        }
    }

    /// Reports and uncounts the links of a session that is gone.
    pub(crate) fn drop_session(&mut self, session: &Session) {
        self.link_count -= session.links().len();
        for link in session.links() {
            self.reassembly -= link.reassembling();
            if !link.is_detaching() {
                self.events.push_back(Event::Detached { link: link.id });
            }
        }
    }
}
