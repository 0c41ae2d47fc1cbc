//! Deliveries while faults exist: one at a time, each matched before it is taken.

use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::LinkId;
use servicebus_broker::{
    Context, Delivery, DeliveryView, Entity, LockToken, ReceiveMode, SessionName,
};

use super::delays::DelayedDelivery;
use super::match_context::entity_state;
use crate::connection::links::Link;
use crate::connection::peer::ClientConnection;
use crate::durable::MissingBodies;
use crate::faults::{
    Affected, Effect, Lock, MatchContext, MatchedFault, MatchedFaults, Operation, Traits,
};
use crate::namespace::SharedEntity;

impl ClientConnection {
    /// Takes and writes one message, or applies a fault to it; returns whether more are reserved.
    pub(crate) fn take_watched(&mut self, link: LinkId) -> bool {
        let (Some(namespace), Some(Link::Receiver(receiver))) =
            (self.client.namespace.clone(), self.links.get(link))
        else {
            return false;
        };
        if self.is_paused(link) {
            return false;
        }
        let (entity, kind) = (Arc::clone(&receiver.entity), receiver.kind);
        let receiver_id = receiver.receiver_id;
        let mut observed = MatchContext {
            operations: vec![Operation::Deliver],
            entities: vec![entity.store_path(kind)],
            link: Some(link),
            ..MatchContext::default()
        };
        self.add_party(&mut observed);
        let mut affected = Affected::at(Arc::clone(&entity), kind);
        // A fault was applied already to a delayed delivery.
        let earlier_delay = self.faults.receivers.remove(&link);
        let mut taken = std::mem::take(&mut self.outbound.taken);
        let mut missing = MissingBodies::default();
        let (matched, more) = namespace.operate(&entity, &mut self.client.caller, |locked, cx| {
            let state = entity_state(locked, kind);
            let has_other_receiver = locked.has_other_receiver(kind, receiver_id);
            let lock = Lock::of(locked, kind);
            let Some((mode, view)) = locked.next_reserved(cx, kind, receiver_id) else {
                return (MatchedFaults::default(), false);
            };
            affected.number = Some(view.number);
            let is_locked = mode == ReceiveMode::PeekLock;
            let matched = match earlier_delay {
                Some(delayed) => MatchedFaults {
                    first: None,
                    then: delayed.fault,
                },
                None => namespace.match_faults(&MatchContext {
                    messages: vec![Traits::of_delivery(DeliveryView {
                        message: &namespace.whole(view.message),
                        ..view
                    })],
                    lock: is_locked.then_some(lock),
                    can_come_twice: is_locked,
                    has_other_receiver,
                    before: Some(state),
                    ..observed
                }),
            };
            let goes_elsewhere = |fault: &MatchedFault| fault.effect == Effect::Elsewhere;
            let mut all = matched.first.iter().chain(&matched.then);
            if matched.first.is_none() && matched.then.as_ref().is_some_and(goes_elsewhere) {
                locked.move_to_other_receiver(cx, kind, receiver_id);
            } else if !all.any(|fault| fault.effect.prevents()) {
                locked.acquire(cx, kind, receiver_id, 1, 0, &mut taken);
                missing = namespace.missing_bodies_of(&taken);
            }
            (matched, locked.reserved(kind, receiver_id) > 0)
        });
        missing.fill(taken.iter_mut().map(|delivery| &mut delivery.message));
        let delivery = taken.first().map(|Delivery { token, message, .. }| {
            let session = message.session_id();
            let session = session.and_then(|session| SessionName::new(&session));
            (*token, session)
        });
        self.outbound.taken = taken;
        self.write_taken(link);
        self.fault_delivery(link, matched, delivery, &entity, &affected);
        more && !self.is_paused(link)
    }

    fn fault_delivery(
        &mut self,
        link: LinkId,
        matched: MatchedFaults,
        delivery: Option<(LockToken, Option<SessionName>)>,
        entity: &SharedEntity,
        affected: &Affected,
    ) {
        let now = self.client.shared.real.elapsed();
        if let Some(due) = self.due_of(matched.first.as_ref(), now) {
            self.record_fault(matched.first.as_ref(), affected);
            let namespace = self.client.namespace.as_ref();
            let delayed = DelayedDelivery {
                due: Some(due),
                held: namespace.map(|namespace| {
                    let held = &namespace.faults.held;
                    held.add_delivery(self.client.id, (entity.id, affected.store))
                }),
                fault: matched.then,
            };
            self.faults.receivers.insert(link, delayed);
            // Other receivers may take what this one cannot take now.
            self.renew_credit(link);
            return;
        }
        let Some(fault) = &matched.then else {
            return;
        };
        match &fault.effect {
            Effect::Detach { error, .. } => self.detach_with(Some(link), error),
            Effect::Close { error, .. } => self.close_with(error),
            Effect::Drop { .. } => self.abort(),
            Effect::Crash { .. } => self.crash(),
            Effect::Failover { .. } => self.fail_over(),
            Effect::LoseLock => self.lose(entity, |entity, cx| {
                if let Some((token, _)) = delivery {
                    entity.lose_lock(cx, affected.store, token);
                }
            }),
            Effect::LoseSessionLock => self.lose(entity, |entity, cx| {
                if let Some((_, Some(session))) = &delivery {
                    entity.lose_session_lock(cx, session);
                }
            }),
            Effect::DeliverTwice => {
                self.faults.redelivered.extend(delivery.map(|(token, _)| token));
            }
            Effect::ExpireToken => self.expire_tokens(),
            Effect::Stall(wait) => self.pause(*wait, now, false),
            Effect::LoseReply
            | Effect::Reject(_)
            | Effect::Answer { .. }
            | Effect::Delay(_)
            | Effect::HoldBack { .. }
            | Effect::Postpone
            // It was moved to the other receiver when it was matched.
            | Effect::Elsewhere
            | Effect::RoundTrip { .. } => {}
        }
        self.record_fault(Some(fault), affected);
    }

    fn lose(&mut self, entity: &SharedEntity, lose: impl FnOnce(&mut Entity, &mut Context<'_>)) {
        if let Some(namespace) = &self.client.namespace {
            namespace.operate(entity, &mut self.client.caller, lose);
        }
    }

    /// Returns whether a fault may match a delivery, or has delayed one.
    pub(crate) fn watches_deliveries(&self) -> bool {
        let namespace = self.client.namespace.as_ref();
        namespace.is_some_and(|namespace| namespace.faults.any())
            || !self.faults.receivers.is_empty()
    }

    /// Returns whether a receiver gets nothing for now.
    pub(crate) fn is_paused(&self, link: LinkId) -> bool {
        self.faults.delays_deliveries(link)
    }

    /// Resumes receivers whose delay is over.
    pub(crate) fn release_receivers(&mut self, now: Duration) {
        let delayed = self.faults.receivers.iter();
        let over =
            delayed.filter(|(_, delayed)| delayed.due.is_some_and(|due| self.is_due(due, now)));
        let over: Vec<LinkId> = over.map(|(&link, _)| link).collect();
        for link in over {
            if let Some(delayed) = self.faults.receivers.get_mut(&link) {
                delayed.due = None;
                // The message is reserved again first, and keeps the namespace from being idle in turn.
                let held = delayed.held.take();
                self.renew_credit(link);
                drop(held);
            }
        }
    }
}
