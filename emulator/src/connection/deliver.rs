//! Applies credit and delivers messages.

use servicebus_amqp::{Delivery as Frame, LinkId};
use servicebus_broker::{Delivery, ReceiverId};

use super::account::OUTPUT_HIGH;
use super::links::Link;
use super::peer::ClientConnection;
use crate::durable::MissingBodies;

/// Messages taken under one lock.
const TAKE: u32 = 64;

/// The output of a connection's receivers.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    /// Receivers with reserved messages for which the output had no room.
    postponed: Vec<ReceiverId>,
    /// Messages that were taken and not written yet; empty between two turns.
    pub(crate) taken: Vec<Delivery>,
    /// The broker's sections of one message.
    pub(crate) scratch: Vec<u8>,
    /// Links with outcomes that are not in the socket yet.
    pub(crate) answered: Vec<LinkId>,
    pub(crate) replies_sent: u64,
}

impl Outbound {
    pub(crate) fn has_postponed(&self) -> bool {
        !self.postponed.is_empty()
    }

    fn postpone(&mut self, receiver_id: ReceiverId) {
        if !self.postponed.contains(&receiver_id) {
            self.postponed.push(receiver_id);
        }
    }
}

/// How often receivers take in one turn: taking can wake other receivers of this connection, and those with selectors look
/// at more messages each time.
const ROUNDS: usize = 4;

impl ClientConnection {
    pub(crate) fn on_credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        match self.links.get_mut(link) {
            Some(Link::Receiver(receiver)) => {
                receiver.drain = drain;
                let receiver_id = receiver.receiver_id;
                self.set_credit(receiver_id, credit);
                self.client.caller.woken.push(receiver_id);
            }
            Some(Link::Browser(_)) => self.drain_browser(link, drain),
            _ => self.send_on_credit(link, drain),
        }
    }

    /// Takes reserved messages while the output has room, answers links that waited for a session, and detaches those that
    /// have lost theirs.
    pub(crate) fn acquire_reserved(&mut self) {
        self.client
            .wake_handle
            .take_woken(&mut self.client.caller.woken, &mut self.client.caller.lost);
        self.detach_lost();
        if self.engine.output_len() < OUTPUT_HIGH {
            self.resume_postponed();
        }
        self.serve_browsers();
        for _ in 0..ROUNDS {
            if self.client.caller.woken.is_empty() && self.client.caller.lost.is_empty() {
                break;
            }
            let mut woken = std::mem::take(&mut self.client.caller.woken);
            woken.sort_unstable();
            woken.dedup();
            for receiver_id in woken {
                self.take(receiver_id);
            }
            self.detach_lost();
        }
    }

    /// Gives other receivers the messages that postponed receivers cannot take because the socket is full.
    pub(crate) fn give_back(&mut self) {
        let mut done = 0;
        while let Some(&receiver_id) = self.outbound.postponed.get(done) {
            self.set_credit(receiver_id, 0);
            done += 1;
            // Another link of this connection may have got them, and cannot take them either.
            for woken in std::mem::take(&mut self.client.caller.woken) {
                self.outbound.postpone(woken);
            }
        }
    }

    fn resume_postponed(&mut self) {
        for receiver_id in std::mem::take(&mut self.outbound.postponed) {
            if let Some(link) = self.links.of_receiver(receiver_id) {
                self.renew_credit(link);
            }
            // Also one that waited for a session, which has no credit yet: it may have been granted one.
            self.client.caller.woken.push(receiver_id);
        }
    }

    /// Sets the credit of a receiver in the broker; zero while a fault delays its deliveries.
    pub(crate) fn renew_credit(&mut self, link: LinkId) {
        if let Some(Link::Receiver(receiver)) = self.links.get(link) {
            let receiver_id = receiver.receiver_id;
            self.set_credit(receiver_id, self.engine.credit(link));
            self.client.caller.woken.push(receiver_id);
        }
    }

    fn set_credit(&mut self, receiver_id: ReceiverId, credit: u32) {
        let link = self.links.of_receiver(receiver_id);
        let Some(Link::Receiver(receiver)) = link.and_then(|link| self.links.get(link)) else {
            return;
        };
        if let Some(namespace) = &self.client.namespace {
            let kind = receiver.kind;
            let is_paused = link.is_some_and(|link| self.is_paused(link));
            let credit = if is_paused { 0 } else { credit };
            if credit > 0 {
                self.client.wake_handle.connected();
            }
            namespace.operate(&receiver.entity, &mut self.client.caller, |entity, cx| {
                entity.set_credit(cx, kind, receiver_id, credit);
            });
        }
    }

    fn take(&mut self, receiver_id: ReceiverId) {
        let Some(link) = self.links.of_receiver(receiver_id) else {
            return;
        };
        self.answer_waiting(link);
        self.act_as(link);
        loop {
            if self.engine.output_len() >= OUTPUT_HIGH {
                self.outbound.postpone(receiver_id);
                return;
            }
            let max = self.engine.credit(link).min(TAKE);
            if max == 0 && self.return_withheld(link) {
                return;
            }
            if max == 0 || !self.take_batch(link, max) {
                break;
            }
        }
        self.finish_drain(link);
    }

    /// Gives other receivers the messages that a closed session window keeps from this one; returns whether there are any.
    /// The engine reports the link's credit again when the window opens.
    fn return_withheld(&mut self, link: LinkId) -> bool {
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (&self.client.namespace, self.links.get(link))
        else {
            return false;
        };
        let (kind, receiver_id) = (receiver.kind, receiver.receiver_id);
        let is_withheld = self.engine.link_credit(link) > 0
            && namespace.read(&receiver.entity, |entity| {
                !entity.is_drained(kind, receiver_id)
            });
        if is_withheld {
            self.set_credit(receiver_id, 0);
        }
        is_withheld
    }

    /// Takes up to `max` messages under one lock and writes them; returns whether more are reserved.
    fn take_batch(&mut self, link: LinkId, max: u32) -> bool {
        if self.watches_deliveries() {
            return self.take_watched(link);
        }
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (&self.client.namespace, self.links.get(link))
        else {
            return false;
        };
        let bytes = self.engine.room(link, max).min(OUTPUT_HIGH);
        let (kind, receiver_id) = (receiver.kind, receiver.receiver_id);
        let mut taken = std::mem::take(&mut self.outbound.taken);
        let mut missing = MissingBodies::default();
        let more = namespace.operate(&receiver.entity, &mut self.client.caller, |entity, cx| {
            entity.acquire(cx, kind, receiver_id, max as usize, bytes, &mut taken);
            missing = namespace.missing_bodies_of(&taken);
            // A receiver that must look at more messages was woken, and continues behind the others.
            entity.reserved(kind, receiver_id) > 0 && !entity.is_searching(kind, receiver_id)
        });
        missing.fill(taken.iter_mut().map(|delivery| &mut delivery.message));
        self.outbound.taken = taken;
        self.write_taken(link);
        more
    }

    /// Writes the taken messages of a link.
    pub(crate) fn write_taken(&mut self, link: LinkId) {
        if !self.outbound.taken.is_empty() {
            self.record_use_of(link, self.client.shared.real.elapsed());
        }
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (&self.client.namespace, self.links.get(link))
        else {
            return;
        };
        let ahead = namespace.clock.ahead();
        let mut taken = std::mem::take(&mut self.outbound.taken);
        for delivery in taken.drain(..) {
            self.outbound.scratch.clear();
            match delivery.message.encode(
                &delivery.broker_properties,
                ahead,
                &mut self.outbound.scratch,
            ) {
                Ok(tail) => {
                    let frame = Frame {
                        tag: delivery.token.to_tag(),
                        settled: receiver.settled,
                        message_format: 0,
                        head: &self.outbound.scratch,
                        tail,
                    };
                    if self.engine.deliver(link, frame).is_none() {
                        // Unreachable: messages are taken only within credit and room. The lock will expire.
                        tracing::error!(token = %delivery.token, "a locked message cannot be delivered");
                    }
                }
                // Unreachable: an accepted message was validated completely. The lock will expire.
                Err(error) => tracing::error!(%error, "an accepted message cannot be encoded"),
            }
        }
        self.outbound.taken = taken;
    }

    /// Answers a drain once everything reserved is sent.
    fn finish_drain(&mut self, link: LinkId) {
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (&self.client.namespace, self.links.get_mut(link))
        else {
            return;
        };
        if !receiver.drain || self.faults.delays_deliveries(link) {
            return;
        }
        let (kind, receiver_id) = (receiver.kind, receiver.receiver_id);
        let drained = namespace.operate(&receiver.entity, &mut self.client.caller, |entity, cx| {
            let drained = entity.is_drained(kind, receiver_id);
            if drained {
                entity.set_credit(cx, kind, receiver_id, 0);
            }
            drained
        });
        if drained {
            receiver.drain = false;
            self.engine.drained(link);
        }
    }
}

#[cfg(test)]
mod tests;
