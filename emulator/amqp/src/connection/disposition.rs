//! Outcomes in both directions (AMQP 1.0 §2.6.12).
//!
//! A peer's range is not visited id by id: only unsettled deliveries are, however wide the range. Each delivery is reported
//! to the owner at most once, even if the peer repeats itself, and once more after each answer that leaves it unsettled.

use std::collections::VecDeque;

use super::Connection;
use super::close::track;
use super::outbox::Outbox;
use crate::error::{Error, Fault};
use crate::event::{Event, Settlement};
use crate::ids;
use crate::ids::{DeliveryNumber, LinkId};
use crate::session::{Session, UNKNOWN};
use crate::unsettled::{DeliveryState, Outcome};
use crate::wire::disposition::{self, Disposition};
use crate::wire::state::{self, State};

/// Number of gaps in one range that are answered. An honest peer's ranges have none.
const ANSWERED_GAPS: u32 = 8;

impl Connection {
    pub(crate) fn on_disposition(&mut self, channel: u16, body: &[u8]) -> Result<(), Fault> {
        let undecodable = |error| Fault::decoding("disposition", error);
        let disposition = disposition::read(body).map_err(undecodable)?;
        let Some(session) = self.sessions.live(channel)? else {
            return Ok(());
        };
        disposition.check_range()?;
        if !disposition.from_receiver {
            // The peer's own deliveries: this side has settled them or will.
            return Ok(());
        }
        let decoded;
        let state = match disposition.state {
            Some(encoded) if state::is_accepted(encoded) => &state::ACCEPTED,
            Some(encoded) => {
                decoded = state::read(encoded).map_err(undecodable)?;
                &decoded
            }
            None => &state::NOTHING,
        };
        let is_answered = state.outcome.is_some() || state.transaction.is_some();
        if !is_answered && !disposition.settled {
            return Ok(());
        }
        let looked_at = apply(
            channel,
            session,
            &disposition,
            state,
            &mut self.events,
            &mut self.outbox,
            &self.config.tracking_id,
        );
        self.spend(looked_at);
        Ok(())
    }

    /// Answers a delivery from the peer: accepted, or rejected, with or without a transaction. The other outcomes hang or
    /// deceive senders (spec/wire.md §10a.6) and must not be used.
    pub fn outcome(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        self.write_outcome(link, delivery, true, state.into());
    }

    /// Answers as [`Self::outcome`] does, but leaves the delivery unsettled, so that the outcome can be sent again.
    pub fn outcome_unsettled(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        self.write_outcome(link, delivery, false, state.into());
    }

    fn write_outcome(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        settled: bool,
        state: DeliveryState,
    ) {
        debug_assert!(is_for_senders(&state), "a sender gets accepted or rejected");
        let session = self.sessions.of_mut(link);
        let Some(found) = session.and_then(|session| session.link_by_id(link)) else {
            return;
        };
        if found.is_detaching() || found.incoming().is_none() {
            return;
        }
        self.outbox.state(link, true, delivery.0, settled, state);
    }

    /// Makes the engine write each outcome of a delivery from the peer twice, back to back: unsettled, then settled.
    ///
    /// Microsoft's .NET library loses an outcome that arrives before its own write has returned, unless a second one settles
    /// the delivery (spec/observed.md 44).
    pub fn repeat_outcomes(&mut self) {
        self.outbox.repeats_outcomes = true;
    }

    /// Settles a delivery to the peer, as an answer or by the owner's decision, and forgets it. Has no effect if the peer
    /// has settled it.
    pub fn settle(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        let Some(session) = self.sessions.of_mut(link) else {
            return;
        };
        let id = ids::widen(delivery.0, session.next_delivery);
        let entry = session.unsettled.get_mut(id);
        if entry.is_some_and(|entry| entry.link == link) {
            session.unsettled.remove(id);
            self.outbox
                .state(link, false, delivery.0, true, state.into());
        }
    }

    /// Returns whether the session of this link has attached ones. A settlement on a link that is gone must not be answered
    /// then: go-amqp ends the session, and clients that wait for the answer all the same have a session for each receiver.
    pub fn shares_session(&self, link: LinkId) -> bool {
        self.sessions.of(link).is_some_and(Session::has_open_link)
    }

    /// Sets the condition and text with which settlements of unknown deliveries of this link are refused. By default, and on
    /// sessions whose links differ in them, they are those of a lost message lock: a forgotten delivery has no link.
    pub fn refuse_unknown(
        &mut self,
        link: LinkId,
        condition: &'static str,
        description: &'static str,
    ) {
        if let Some(session) = self.sessions.of_mut(link) {
            let own = (condition, description);
            session.unknown = match session.unknown {
                Some(other) if other != own => Some(UNKNOWN),
                _ => Some(own),
            };
        }
    }

    /// Answers a peer's settlement in a transaction, and leaves the delivery unsettled: until the transaction is discharged
    /// and [`Self::settle`] follows, the peer may send another outcome. Has no effect if the peer has settled it.
    pub fn confirm_unsettled(
        &mut self,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        let Some(session) = self.sessions.of_mut(link) else {
            return;
        };
        let id = ids::widen(delivery.0, session.next_delivery);
        if let Some(entry) = session.unsettled.get_mut(id)
            && entry.link == link
        {
            entry.notified = false;
            self.outbox
                .state(link, false, delivery.0, false, state.into());
        }
    }
}

fn is_for_senders(state: &DeliveryState) -> bool {
    match state {
        DeliveryState::Outcome(outcome) | DeliveryState::Transactional { outcome, .. } => {
            matches!(outcome, Outcome::Accepted | Outcome::Rejected { .. })
        }
        DeliveryState::Declared(_) => true,
    }
}

/// Applies a disposition; returns how many deliveries were visited.
fn apply(
    channel: u16,
    session: &mut Session,
    disposition: &Disposition<'_>,
    state: &State,
    events: &mut VecDeque<Event>,
    outbox: &mut Outbox,
    tracking_id: &str,
) -> usize {
    let mut looked_at = 0;
    let mut cursor = ids::widen(disposition.first, session.next_delivery);
    let last = cursor + u64::from(disposition.last.wrapping_sub(disposition.first));
    // Only a peer that waits for an answer gets one (spec/wire.md §4.4).
    let mut gaps = match disposition.settled {
        true => 0,
        false => ANSWERED_GAPS,
    };
    while cursor <= last {
        let (next, places) = session.unsettled.next_from(cursor);
        looked_at += places;
        let found = next.filter(|id| *id <= last);
        let until = found.unwrap_or(last + 1);
        if until > cursor && gaps > 0 {
            gaps -= 1;
            let first = cursor.max(session.first_refused());
            let (condition, description) = session.unknown.unwrap_or(UNKNOWN);
            let error = track(Error::new(condition, description), tracking_id);
            if first < until {
                reject(outbox, channel, (first as u32, (until - 1) as u32), &error);
            }
            events.push_back(Event::Refused(Box::new(error)));
        }
        if let Some(id) = found {
            report(session, id, disposition.settled, state, events);
        }
        cursor = until + 1;
    }
    looked_at
}

/// Reports one delivery, unless the owner knows its settlement. The event is built in place, and the entry is written only
/// after it was read: either would stall on the copy.
#[inline]
fn report(
    session: &mut Session,
    id: u64,
    settled: bool,
    state: &State,
    events: &mut VecDeque<Event>,
) {
    // A settlement without an outcome releases, as does work of a transaction without one; other states were skipped.
    let outcome = state.outcome.clone().unwrap_or(Outcome::Released);
    let Some(entry) = session.unsettled.get_mut(id) else {
        return;
    };
    if !entry.notified {
        events.push_back(Event::Settle(Settlement {
            link: entry.link,
            delivery: DeliveryNumber(id as u32),
            tag: entry.tag,
            outcome,
            settled,
            transaction: state.transaction.clone(),
        }));
        entry.notified = true;
    }
    if settled {
        session.unsettled.remove(id);
    }
}

/// Refuses settlements of deliveries that are unknown or were forgotten.
fn reject(outbox: &mut Outbox, channel: u16, range: (u32, u32), error: &Error) {
    outbox.with_error(Some(error), |out, error| {
        let error = error.cloned().map(Box::new);
        let state = Outcome::Rejected { error }.into();
        disposition::write(out, channel, false, range, true, &state);
    });
}
