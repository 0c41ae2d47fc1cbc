//! Which sends of this connection wait for their outcome.
//!
//! Counted for the entity from the turn in which a transfer arrived until its outcome is in the socket, or its link is
//! gone: a test asks how many of them a client had under way at once.

use servicebus_amqp::{DeliveryNumber, DeliveryState, Event, LinkId};

use super::links::{Link, Sender};
use super::peer::ClientConnection;

impl ClientConnection {
    /// Counts a transfer that waits to be answered, before anything is done with it.
    pub(crate) fn count_arrival(&mut self, event: &Event) {
        let link = match event {
            Event::Transfer(transfer) if !transfer.settled => transfer.link,
            Event::TransferTooLarge { link, settled, .. } if !settled => *link,
            Event::Transfer(_)
            | Event::TransferTooLarge { .. }
            | Event::Settle(_)
            | Event::Sasl { .. }
            | Event::Opened(_)
            | Event::Attach { .. }
            | Event::Credit { .. }
            | Event::Detached { .. }
            | Event::Refused(_)
            | Event::Closed { .. } => return,
        };
        if let Some(Link::Sender(sender)) = self.links.get_mut(link) {
            sender.unsettled += 1;
            sender.entity.sends.begin();
        }
    }

    /// Hands the outcome of a transfer to the engine, which writes it at the end of the turn.
    pub(crate) fn hand_out(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        self.engine.outcome(link, delivery, state);
        if let Some(Link::Sender(sender)) = self.links.get_mut(link) {
            if sender.answered == 0 {
                self.outbound.answered.push(link);
            }
            sender.answered += 1;
        }
    }

    /// All outcomes that were handed out are in the socket.
    pub(crate) fn outcomes_written(&mut self) {
        for link in self.outbound.answered.drain(..) {
            if let Some(Link::Sender(sender)) = self.links.get_mut(link) {
                let answered = std::mem::take(&mut sender.answered);
                sender.unsettled -= answered;
                sender.entity.sends.end(answered);
            }
        }
    }
}

impl Sender {
    /// The link is gone, and nobody waits on it any longer.
    pub(crate) fn give_up(&self) {
        self.entity.sends.end(self.unsettled);
    }
}
