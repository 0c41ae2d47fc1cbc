//! Credit comes in, messages go out.

use servicebus_amqp::{Delivery as Frame, LinkId};
use servicebus_broker::ConsumerId;

use super::OUTPUT_HIGH;
use super::links::Link;
use super::peer::Peer;

/// Messages taken under one lock.
const TAKE: u32 = 64;

impl Peer {
    pub(super) fn on_credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        match self.links.get_mut(&link) {
            Some(Link::Receiver(receiver)) => {
                receiver.drain = drain;
                let consumer = receiver.consumer;
                self.set_credit(consumer, credit);
                self.caller.woken.push(consumer);
            }
            Some(Link::Browser(_)) => self.drain_browser(link, drain),
            _ => self.send_waiting(link),
        }
    }

    /// Takes what is assigned to our consumers, as long as there is room to write it, answers those who waited for a
    /// session, and parts with those who have lost theirs.
    pub(super) fn take_assigned(&mut self) {
        self.bell
            .answer(&mut self.caller.woken, &mut self.caller.lost);
        self.detach_lost();
        if self.engine.output().len() < OUTPUT_HIGH {
            self.resume_postponed();
        }
        self.serve_browsers();
        while !self.caller.woken.is_empty() || !self.caller.lost.is_empty() {
            let mut woken = std::mem::take(&mut self.caller.woken);
            woken.sort_unstable();
            woken.dedup();
            for consumer in woken {
                self.take(consumer);
            }
            self.detach_lost();
        }
    }

    /// Lets others have what our postponed consumers cannot take because the socket is full.
    pub(super) fn give_back(&mut self) {
        let mut done = 0;
        while let Some(&consumer) = self.postponed.get(done) {
            self.set_credit(consumer, 0);
            done += 1;
            // What one of our links gives back another one may have got, which cannot take it either.
            for woken in std::mem::take(&mut self.caller.woken) {
                self.postpone(woken);
            }
        }
    }

    fn postpone(&mut self, consumer: ConsumerId) {
        if !self.postponed.contains(&consumer) {
            self.postponed.push(consumer);
        }
    }

    fn resume_postponed(&mut self) {
        for consumer in std::mem::take(&mut self.postponed) {
            if let Some(&link) = self.consumers.get(&consumer) {
                self.renew_credit(link);
            }
        }
    }

    /// Lets a receiver have as much as it wants, or nothing while its deliveries are put off.
    pub(super) fn renew_credit(&mut self, link: LinkId) {
        if let Some(Link::Receiver(receiver)) = self.links.get(&link) {
            let consumer = receiver.consumer;
            self.set_credit(consumer, self.engine.credit(link));
            self.caller.woken.push(consumer);
        }
    }

    fn set_credit(&mut self, consumer: ConsumerId, credit: u32) {
        let link = self.consumers.get(&consumer);
        let Some(Link::Receiver(receiver)) = link.and_then(|link| self.links.get(link)) else {
            return;
        };
        if let Some(namespace) = &self.namespace {
            let kind = receiver.kind;
            let is_paused = link.is_some_and(|link| self.is_paused(*link));
            let credit = if is_paused { 0 } else { credit };
            namespace.operate(&receiver.entity, &mut self.caller, |mailbox, cx| {
                mailbox.set_credit(cx, kind, consumer, credit);
            });
        }
    }

    fn take(&mut self, consumer: ConsumerId) {
        let Some(&link) = self.consumers.get(&consumer) else {
            return;
        };
        self.answer_waiting(link);
        loop {
            if self.engine.output().len() >= OUTPUT_HIGH {
                self.postpone(consumer);
                return;
            }
            let max = self.engine.credit(link).min(TAKE);
            if max == 0 || !self.take_batch(link, max) {
                break;
            }
        }
        self.finish_drain(link);
    }

    /// Takes up to `max` messages under one lock and writes them; says whether more are assigned.
    fn take_batch(&mut self, link: LinkId, max: u32) -> bool {
        if self.watches_deliveries() {
            return self.take_watched(link);
        }
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (&self.namespace, self.links.get(&link))
        else {
            return false;
        };
        let bytes = self.engine.room(link, max).min(OUTPUT_HIGH);
        let (kind, consumer) = (receiver.kind, receiver.consumer);
        let mut taken = std::mem::take(&mut self.taken);
        let more = namespace.operate(&receiver.entity, &mut self.caller, |mailbox, cx| {
            mailbox.take(cx, kind, consumer, max as usize, bytes, &mut taken);
            mailbox.assigned(kind, consumer) > 0
        });
        self.taken = taken;
        self.write_taken(link);
        more
    }

    /// Writes what was taken for a link.
    pub(super) fn write_taken(&mut self, link: LinkId) {
        if !self.taken.is_empty() {
            self.note_use_of(link, self.shared.real.elapsed());
        }
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (&self.namespace, self.links.get(&link))
        else {
            return;
        };
        let ahead = namespace.clock.read().ahead;
        let mut taken = std::mem::take(&mut self.taken);
        for delivery in taken.drain(..) {
            self.scratch.clear();
            match delivery
                .message
                .encode(&delivery.stamp, ahead, &mut self.scratch)
            {
                Ok(tail) => {
                    let frame = Frame {
                        tag: delivery.token.to_tag(),
                        settled: receiver.settled,
                        message_format: 0,
                        head: &self.scratch,
                        tail,
                    };
                    if self.engine.deliver(link, frame).is_none() {
                        // Cannot be: no more was taken than there is credit and room for. Its lock will end.
                        tracing::error!(token = %delivery.token, "a message that was taken cannot be delivered");
                    }
                }
                // Cannot be: what is accepted was read down to its leaves. Its lock will end.
                Err(error) => tracing::error!(%error, "an accepted message cannot be encoded"),
            }
        }
        self.taken = taken;
    }

    /// Says that nothing more comes once everything assigned has gone out.
    fn finish_drain(&mut self, link: LinkId) {
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (&self.namespace, self.links.get_mut(&link))
        else {
            return;
        };
        if !receiver.drain || self.spoiled.puts_off(link) {
            return;
        }
        let (kind, consumer) = (receiver.kind, receiver.consumer);
        let drained = namespace.operate(&receiver.entity, &mut self.caller, |mailbox, cx| {
            let drained = mailbox.assigned(kind, consumer) == 0;
            if drained {
                mailbox.set_credit(cx, kind, consumer, 0);
            }
            drained
        });
        if drained {
            receiver.drain = false;
            self.engine.drained(link);
        }
    }
}
