//! Which sends of this connection wait for their outcome.
//!
//! Counted for the entity from the turn in which a transfer arrived until its outcome is in the socket, or its link is
//! gone: a test asks how many of them a client had under way at once.

use servicebus_amqp::{DeliveryNumber, DeliveryState, LinkId};

use super::links::{Link, Sender};
use super::peer::Peer;

impl Peer {
    /// Hands the outcome of a transfer to the engine, which writes it at the end of the turn.
    pub(super) fn hand_out(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        self.engine.outcome(link, delivery, state);
        if let Some(Link::Sender(sender)) = self.links.get_mut(&link) {
            if sender.answered == 0 {
                self.answered.push(link);
            }
            sender.answered += 1;
        }
    }

    /// All outcomes that were handed out are in the socket.
    pub(super) fn outcomes_written(&mut self) {
        for link in self.answered.drain(..) {
            if let Some(Link::Sender(sender)) = self.links.get_mut(&link) {
                let answered = std::mem::take(&mut sender.answered);
                sender.unsettled -= answered;
                sender.entity.sends.end(answered);
            }
        }
    }
}

impl Sender {
    /// A transfer arrived that waits to be answered.
    pub(super) fn await_outcome(&mut self) {
        self.unsettled += 1;
        self.entity.sends.begin();
    }

    /// The link is gone, and nobody waits on it any longer.
    pub(super) fn give_up(&self) {
        self.entity.sends.end(self.unsettled);
    }
}
