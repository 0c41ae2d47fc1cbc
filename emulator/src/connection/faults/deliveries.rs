//! Deliveries while there are faults: one at a time, each looked at before it is taken.

use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::LinkId;
use servicebus_broker::{
    Context, Delivery, LockToken, Mailbox, ReceiveMode, SessionName, StoreKind,
};

use super::later::PutOff;
use crate::connection::attach::store_path;
use crate::connection::links::Link;
use crate::connection::peer::Peer;
use crate::faults::{Blow, Effect, Operation, Sighting, Strike, Traits};
use crate::namespace::Entity;

impl Peer {
    /// Takes and writes one message, or does to it what a fault says; whether more are assigned.
    pub(in crate::connection) fn take_watched(&mut self, link: LinkId) -> bool {
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (self.namespace.clone(), self.links.get(&link))
        else {
            return false;
        };
        if self.is_paused(link) {
            return false;
        }
        let (entity, kind) = (Arc::clone(&receiver.entity), receiver.kind);
        let consumer = receiver.consumer;
        let client = namespace.client_name(self.caller.client);
        // One that was put off was struck already.
        let carried = self.spoiled.receivers.remove(&link);
        let mut taken = std::mem::take(&mut self.taken);
        let (strike, more) = namespace.operate(&entity, &mut self.caller, |mailbox, cx| {
            let Some((mode, message)) = mailbox.next_assigned(cx, kind, consumer) else {
                return (Strike::default(), false);
            };
            let is_locked = mode == ReceiveMode::PeekLock;
            let strike = match carried {
                Some(put_off) => Strike {
                    first: None,
                    then: put_off.blow,
                },
                None => namespace.faults.strike(&Sighting {
                    operations: vec![Operation::Receive],
                    entities: vec![store_path(&entity, kind)],
                    messages: vec![Traits::of(message)],
                    client,
                    is_locked,
                    can_come_twice: is_locked,
                    ..Sighting::default()
                }),
            };
            let mut blows = strike.first.iter().chain(&strike.then);
            if !blows.any(|blow| blow.effect.prevents()) {
                mailbox.take(cx, kind, consumer, 1, 0, &mut taken);
            }
            (strike, mailbox.assigned(kind, consumer) > 0)
        });
        let delivery = taken.first().map(|Delivery { token, message, .. }| {
            let session = message.session_id();
            let session = session.and_then(|session| SessionName::new(&session));
            (*token, session)
        });
        self.taken = taken;
        self.write_taken(link);
        self.spoil_delivery(link, strike, delivery, (&entity, kind));
        more && !self.is_paused(link)
    }

    fn spoil_delivery(
        &mut self,
        link: LinkId,
        strike: Strike,
        delivery: Option<(LockToken, Option<SessionName>)>,
        (entity, kind): (&Arc<Entity>, StoreKind),
    ) {
        let now = self.shared.real.elapsed();
        if let Some(Blow {
            effect: Effect::Delay(wait),
            ..
        }) = strike.first
        {
            let due = Some(self.due(wait, now));
            self.note_blow(strike.first.as_ref(), std::slice::from_ref(entity));
            let blow = strike.then;
            self.spoiled.receivers.insert(link, PutOff { due, blow });
            // Others may have what this one cannot take now.
            self.renew_credit(link);
            return;
        }
        let Some(blow) = &strike.then else { return };
        match &blow.effect {
            Effect::Detach { words, .. } => self.detach_with(Some(link), words),
            Effect::Close { words, .. } => self.close_with(words),
            Effect::Drop { .. } => self.vanish(),
            Effect::LoseLock => self.lose(entity, |mailbox, cx| {
                if let Some((token, _)) = delivery {
                    mailbox.lose_lock(cx, kind, token);
                }
            }),
            Effect::LoseSessionLock => self.lose(entity, |mailbox, cx| {
                if let Some((_, Some(session))) = &delivery {
                    mailbox.lose_session_lock(cx, session);
                }
            }),
            Effect::DeliverTwice => {
                self.spoiled
                    .in_vain
                    .extend(delivery.map(|(token, _)| token));
            }
            Effect::ExpireToken => self.expire_tokens(),
            Effect::Stall(wait) => self.pause(*wait, now, false),
            Effect::LoseReply
            | Effect::Reject(_)
            | Effect::Answer { .. }
            | Effect::Delay(_)
            | Effect::HoldBack { .. }
            | Effect::RoundTrip(_) => {}
        }
        self.note_blow(Some(blow), std::slice::from_ref(entity));
    }

    fn lose(&mut self, entity: &Entity, lose: impl FnOnce(&mut Mailbox, &mut Context<'_>)) {
        if let Some(namespace) = &self.namespace {
            namespace.operate(entity, &mut self.caller, lose);
        }
    }

    /// Whether a fault may strike a delivery, or one has put it off.
    pub(in crate::connection) fn watches_deliveries(&self) -> bool {
        let namespace = self.namespace.as_ref();
        namespace.is_some_and(|namespace| namespace.faults.any())
            || !self.spoiled.receivers.is_empty()
    }

    /// Whether a receiver gets nothing for now.
    pub(in crate::connection) fn is_paused(&self, link: LinkId) -> bool {
        self.spoiled.puts_off(link)
    }

    /// Lets those receivers have messages again that have waited for long enough.
    pub(super) fn release_receivers(&mut self, now: Duration) {
        let put_off = self.spoiled.receivers.iter();
        let over =
            put_off.filter(|(_, put_off)| put_off.due.is_some_and(|due| self.has_come(due, now)));
        let over: Vec<LinkId> = over.map(|(&link, _)| link).collect();
        for link in over {
            if let Some(put_off) = self.spoiled.receivers.get_mut(&link) {
                put_off.due = None;
            }
            self.renew_credit(link);
        }
    }
}
