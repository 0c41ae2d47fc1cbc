//! Links go (AMQP 1.0 §2.6.4 to §2.6.6).

use super::attach::answer_without_termini;
use super::state::Connection;
use crate::error::{Error, Fault, condition};
use crate::event::Event;
use crate::ids::LinkId;
use crate::link::{Link, LinkState};
use crate::wire::{cold, reply};

impl Connection {
    /// Closes a link from our side. There is no [`Event::Detached`] for it.
    pub fn detach(&mut self, link: LinkId, error: Option<Error>) {
        let Some(session) = self.sessions.of_mut(link) else {
            return;
        };
        let Some(found) = session.link_by_id(link) else {
            return;
        };
        if found.is_detaching() {
            return;
        }
        self.reassembly -= found.drop_partial();
        let out = self.outbox.buffer();
        answer_attach(out, found);
        found.stage = LinkState::Detaching;
        session.discard_backlog(link);
        reply::detach(out, link.channel(), link.handle(), true, error.as_ref());
    }

    pub(crate) fn on_detach(&mut self, channel: u16, body: &[u8]) -> Result<(), Fault> {
        let (handle, closed, _error) = cold::detach(body)?;
        // What is not there needs no detach (spec/observed.md 70): fe2o3-amqp detaches a refused link twice.
        let Some(session) = self.sessions.on(channel) else {
            return Ok(());
        };
        let Some(link) = session.remove(handle) else {
            return Ok(());
        };
        self.link_count -= 1;
        self.reassembly -= link.reassembling();
        session.forget(link.id);
        if link.is_detaching() {
            return Ok(());
        }
        let out = self.outbox.buffer();
        answer_attach(out, &link);
        reply::detach(out, channel, handle, closed, None);
        self.events.push_back(Event::Detached { link: link.id });
        Ok(())
    }

    /// Closes a link because of what its peer did.
    pub(crate) fn drop_link(&mut self, channel: u16, handle: u32, error: Error) {
        let link = self.sessions.on(channel).and_then(|s| s.link(handle));
        let Some(id) = link.filter(|link| !link.is_detaching()).map(|link| link.id) else {
            return;
        };
        self.detach(id, Some(error));
        self.events.push_back(Event::Detached { link: id });
    }
}

/// Answers the attach of a link that goes before the owner has decided. A detach alone would name a
/// handle that the peer has not heard from us.
fn answer_attach(out: &mut Vec<u8>, link: &Link) {
    if let LinkState::Attaching(echo) = &link.stage {
        answer_without_termini(out, link, echo);
    }
}

/// A handle that no link has, in the words of the service (spec/observed.md 70).
pub(crate) fn unattached(channel: u16, handle: u32) -> Fault {
    Fault::session(
        condition::UNATTACHED_HANDLE,
        format!("The link handle '{handle}' cannot be found in session '{channel}'."),
    )
}
