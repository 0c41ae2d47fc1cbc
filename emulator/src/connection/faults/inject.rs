//! Applies faults to events, and suppresses answers.

use std::time::Duration;

use servicebus_amqp::{DeliveryState, Event, LinkId, Outcome, Settlement};
use servicebus_broker::LockToken;

use super::delays::{End, Suppressed, link_of};
use super::refuse::service_updated;
use crate::connection::commit::{Work, confirmed};
use crate::connection::links::Link;
use crate::connection::peer::ClientConnection;
use crate::connection::transact::in_transaction;
use crate::faults::{Affected, Effect, MatchedFault, MatchedFaults, When};

impl ClientConnection {
    /// Returns whether a fault may match the next event, or the effect of one lasts.
    pub(crate) fn is_watched(&self) -> bool {
        let namespace = self.client.namespace.as_ref();
        namespace.is_some_and(|namespace| namespace.faults.any())
            || !self.faults.redelivered.is_empty()
            || self.faults.end != End::None
    }

    /// Handles an event while faults exist.
    pub(crate) fn handle_watched(&mut self, event: Event, now: Duration, work: &mut Work) {
        if self.faults.end != End::None && !matches!(event, Event::Closed { .. }) {
            return;
        }
        let (matched, affected) = self.is_hit(&event, now);
        if matched == MatchedFaults::default() && !self.is_redelivered(&event) {
            self.carry_out(event, now, work);
            return;
        }
        self.commit(work);
        if let Some(due) = self.due_of(matched.first.as_ref(), now) {
            self.record_fault(matched.first.as_ref(), &affected);
            self.delay_operation(due, event, matched.then, affected);
            return;
        }
        self.resume_operation(event, matched.then, &affected, now, work);
    }

    /// Handles an event that has waited, or need not wait.
    pub(crate) fn resume_operation(
        &mut self,
        event: Event,
        fault: Option<MatchedFault>,
        affected: &Affected,
        now: Duration,
        work: &mut Work,
    ) {
        match &fault {
            Some(fault) => self.apply_fault(event, &fault.effect, now, work),
            None if self.is_redelivered(&event) => self.confirm_and_redeliver(event, now, work),
            None => self.carry_out(event, now, work),
        }
        self.commit(work);
        self.record_fault(fault.as_ref(), affected);
    }

    fn apply_fault(&mut self, event: Event, effect: &Effect, now: Duration, work: &mut Work) {
        let link = link_of(&event);
        match effect {
            Effect::LoseReply => self.lose_reply(event, now, work),
            Effect::Reject(error) => self.refuse_event(&event, None, error, now),
            Effect::Answer { status, error } => {
                self.refuse_event(&event, Some(*status), error, now);
            }
            Effect::Detach { when, error } => {
                let is_attach = matches!(event, Event::Attach { .. });
                let replies = self.reply_link_of(&event);
                match when {
                    When::Before => {}
                    When::After if is_attach => self.carry_out_alone(event, now, work),
                    When::After => self.carry_out_unanswered(event, now, work),
                }
                self.detach_with(link, error);
                self.detach_with(replies, error);
            }
            Effect::Close { when, .. } | Effect::Drop { when } | Effect::Crash { when } => {
                if *when == When::After {
                    self.carry_out_unanswered(event, now, work);
                }
                if let Effect::Close { error, .. } = effect {
                    self.close_with(error);
                } else if matches!(effect, Effect::Crash { .. }) {
                    self.crash();
                } else {
                    self.abort();
                }
            }
            Effect::Failover { when } => self.fail_over_at(event, *when, now, work),
            Effect::HoldBack { behind } => {
                if let Event::Transfer(transfer) = &event
                    && !transfer.settled
                {
                    self.outcomes
                        .hold_back(transfer.link, transfer.delivery, *behind);
                }
                self.carry_out(event, now, work);
            }
            Effect::LoseLock | Effect::LoseSessionLock => {
                self.lose_locks_of(&event, *effect == Effect::LoseSessionLock);
                self.carry_out(event, now, work);
            }
            Effect::DeliverTwice => self.confirm_and_redeliver(event, now, work),
            Effect::ExpireToken => {
                self.carry_out_alone(event, now, work);
                self.expire_tokens();
            }
            Effect::Stall(wait) => {
                self.carry_out(event, now, work);
                self.pause(*wait, now, false);
            }
            // These take time and were handled before.
            Effect::Delay(_) | Effect::Postpone | Effect::Elsewhere | Effect::RoundTrip { .. } => {
                self.carry_out(event, now, work)
            }
        }
    }

    fn fail_over_at(&mut self, event: Event, when: When, now: Duration, work: &mut Work) {
        let link = link_of(&event);
        let is_attach = matches!(event, Event::Attach { .. });
        // An update keeps links to `$cbs`, and with them requests for tokens and their replies.
        if link.is_some_and(|link| self.is_cbs(link)) {
            self.carry_out_alone(event, now, work);
        } else if when == When::After {
            self.carry_out_unanswered(event, now, work);
        }
        self.fail_over();
        // The connection does not have the link of an attach before it.
        if is_attach && when == When::Before {
            self.detach_with(link, &service_updated());
        }
    }

    fn lose_reply(&mut self, event: Event, now: Duration, work: &mut Work) {
        let is_attach = matches!(event, Event::Attach { .. });
        let link = link_of(&event);
        self.carry_out_unanswered(event, now, work);
        if is_attach || link.is_some_and(|link| self.is_cbs(link)) {
            self.drop_after_lost_reply();
        }
    }

    fn carry_out_alone(&mut self, event: Event, now: Duration, work: &mut Work) {
        self.carry_out(event, now, work);
        self.commit(work);
    }

    /// Carries out an event without answering it.
    fn carry_out_unanswered(&mut self, event: Event, now: Duration, work: &mut Work) {
        let link = link_of(&event);
        let is_request =
            link.is_some_and(|link| matches!(self.links.get(link), Some(Link::Requests(_))));
        if let (Event::Attach { .. }, Some(link)) = (&event, link) {
            self.faults.unanswered.insert(link);
        }
        self.faults.suppressed = match is_request {
            true => Suppressed::Replies,
            false => Suppressed::Outcomes,
        };
        self.carry_out_alone(event, now, work);
        self.faults.suppressed = Suppressed::Nothing;
    }

    /// Confirms a settlement without carrying it out, and redelivers the message: its delivery does not count. A transaction
    /// continues without the settlement.
    fn confirm_and_redeliver(&mut self, event: Event, now: Duration, work: &mut Work) {
        let Event::Settle(mut settlement) = event else {
            self.carry_out(event, now, work);
            return;
        };
        self.faults
            .redelivered
            .remove(&LockToken::from_tag(settlement.tag));
        let outcome = confirmed(std::mem::replace(
            &mut settlement.outcome,
            Outcome::Released,
        ));
        let state = match settlement.transaction.take() {
            Some(transaction) => in_transaction(transaction, outcome),
            None => outcome.into(),
        };
        let Settlement {
            link,
            delivery,
            settled,
            ..
        } = settlement;
        self.carry_out_unanswered(Event::Settle(settlement), now, work);
        if !settled {
            self.settle_delivery(link, delivery, state);
        }
    }

    /// Returns whether an event completes a message that will be redelivered.
    fn is_redelivered(&self, event: &Event) -> bool {
        let Event::Settle(settlement) = event else {
            return false;
        };
        settlement.outcome == Outcome::Accepted
            && self
                .faults
                .redelivered
                .contains(&LockToken::from_tag(settlement.tag))
    }

    /// Answers a settlement, unless a fault suppresses the answer.
    pub(crate) fn settle_delivery(
        &mut self,
        link: LinkId,
        delivery: servicebus_amqp::DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        if self.faults.suppressed != Suppressed::Outcomes {
            self.engine.settle(link, delivery, state);
        }
    }

    /// Answers a settlement in a transaction, which may still be rolled back.
    pub(crate) fn confirm_unsettled(
        &mut self,
        link: LinkId,
        delivery: servicebus_amqp::DeliveryNumber,
        state: DeliveryState,
    ) {
        if self.faults.suppressed != Suppressed::Outcomes {
            self.engine.confirm_unsettled(link, delivery, state);
        }
    }

    /// Returns whether outcomes of transfers are suppressed.
    pub(crate) fn suppresses_outcomes(&self) -> bool {
        self.faults.suppressed == Suppressed::Outcomes
    }

    /// Returns whether replies to requests are suppressed.
    pub(crate) fn suppresses_replies(&self) -> bool {
        self.faults.suppressed == Suppressed::Replies
    }

    /// Returns whether the answer to the link's attach is suppressed.
    pub(crate) fn is_unanswered(&self, link: LinkId) -> bool {
        self.faults.unanswered.contains(&link)
    }

    /// Returns the simulated round trip.
    pub(crate) fn round_trip(&self) -> Duration {
        self.faults.round_trip
    }

    /// Returns whether a fault has aborted the connection.
    pub(crate) fn is_aborted(&self) -> bool {
        self.faults.end == End::Dropped
    }

    /// Forgets the effects of faults on a link that is gone.
    pub(crate) fn forget_faulted(&mut self, link: LinkId) {
        let delayed_bytes = &mut self.faults.delayed_bytes;
        let mut dues = Vec::new();
        self.faults.delayed.retain(|&(due, _), delayed| {
            let is_of_link = delayed.link() == Some(link);
            if is_of_link {
                *delayed_bytes -= delayed.bytes();
                dues.push(due);
            }
            !is_of_link
        });
        let delivery = self.faults.receivers.remove(&link);
        dues.extend(delivery.and_then(|delivery| delivery.due));
        for due in dues {
            self.end_wait(due);
        }
        self.faults.unanswered.remove(&link);
        self.outcomes.forget(link);
    }

    /// Handles the opening of a connection whose namespace is known; where faults match on parties, it counts as open once
    /// its party is known too.
    pub(crate) fn connection_opened(&mut self, now: Duration) {
        let Some(namespace) = self.client.namespace.as_ref().filter(|ns| ns.faults.any()) else {
            return;
        };
        match namespace.faults.needs_party() && self.client.party.is_none() {
            true => self.faults.awaits_party = true,
            false => self.match_connection(now),
        }
    }

    /// Ends the wait for the party, which the client has shown or does without.
    pub(crate) fn end_wait_for_party(&mut self, now: Duration) {
        if std::mem::take(&mut self.faults.awaits_party) {
            self.match_connection(now);
        }
    }

    fn match_connection(&mut self, now: Duration) {
        let Some(namespace) = &self.client.namespace else {
            return;
        };
        let matched = namespace.match_faults(&self.connection_context());
        for fault in matched.first.iter().chain(&matched.then) {
            match &fault.effect {
                Effect::Delay(wait) => self.pause(*wait, now, true),
                Effect::Stall(wait) => self.pause(*wait, now, false),
                Effect::RoundTrip { length } => self.faults.round_trip = *length,
                Effect::Close { error, .. } => self.close_with(error),
                Effect::Drop { when } => {
                    if *when == When::Before {
                        self.discard_output();
                    }
                    self.abort();
                }
                Effect::Crash { when } => {
                    if *when == When::Before {
                        self.discard_output();
                    }
                    self.crash();
                }
                Effect::Failover { .. } => self.fail_over(),
                Effect::LoseReply
                | Effect::Reject(_)
                | Effect::Answer { .. }
                | Effect::Detach { .. }
                | Effect::HoldBack { .. }
                | Effect::LoseLock
                | Effect::LoseSessionLock
                | Effect::DeliverTwice
                | Effect::Postpone
                | Effect::Elsewhere
                | Effect::ExpireToken => {}
            }
            self.record_fault(Some(fault), &Affected::default());
        }
    }

    /// Records the effect of a fault after the events that it did not prevent.
    pub(crate) fn record_fault(&self, fault: Option<&MatchedFault>, affected: &Affected) {
        if let (Some(namespace), Some(fault)) = (&self.client.namespace, fault) {
            namespace.record_fault(self.client.caller.client, fault, affected);
        }
    }
}
