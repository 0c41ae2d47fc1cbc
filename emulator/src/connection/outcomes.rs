//! Repeats outcomes that a client may lose, and holds back outcomes for a fault.
//!
//! `fe2o3-amqp` before 0.18.2 passes a transfer to its session before it enters the delivery among the unsettled ones: an outcome
//! that arrives in between is dropped, and the send waits for ever (decision D31). The code in between does not await, so
//! that the gap stays open only if the thread loses its processor there. Such a client gets each outcome at once, with the
//! delivery left unsettled. The settling outcome follows when the next transfer of that link proves that the delivery was
//! entered, because one task does both in order. Until then the outcome is repeated.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use servicebus_amqp::{DeliveryNumber, DeliveryState, LinkId};

use super::peer::ClientConnection;

/// Delays between the repetitions of an outcome; the last one settles the delivery. Together 1.4 s: a runnable thread waits
/// that long for a processor only among hundreds of others.
const REPEATED_AFTER: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
    Duration::from_millis(64),
    Duration::from_millis(256),
    Duration::from_millis(1024),
];

/// Outcomes that are still to be sent.
pub(crate) struct Outcomes {
    /// Whether the client may lose outcomes.
    repeats_outcomes: bool,
    /// The latest delivery of each link of such a client.
    latest: HashMap<LinkId, LatestDelivery>,
    /// When repeated outcomes are sent next.
    due: BTreeSet<(Duration, LinkId)>,
    /// Outcomes that a fault holds back.
    back: Vec<HeldBackOutcome>,
}

/// The latest delivery of a link.
struct LatestDelivery {
    delivery: DeliveryNumber,
    repeated: Option<RepeatedOutcome>,
}

/// A repeated outcome, whose delivery the client may not have entered yet.
struct RepeatedOutcome {
    state: DeliveryState,
    due: Duration,
    /// How often it was repeated.
    times: usize,
}

/// An outcome that is sent after later ones of its link.
struct HeldBackOutcome {
    link: LinkId,
    delivery: DeliveryNumber,
    /// How many of them are still to come.
    behind: u32,
    /// `None` until it is known.
    state: Option<DeliveryState>,
}

impl Outcomes {
    pub(crate) fn new() -> Self {
        Self {
            repeats_outcomes: false,
            latest: HashMap::new(),
            due: BTreeSet::new(),
            back: Vec::new(),
        }
    }

    /// Repeats outcomes from now on.
    pub(crate) fn repeat(&mut self) {
        self.repeats_outcomes = true;
    }

    /// Holds the outcome of this delivery back until `behind` later ones of its link were sent.
    pub(crate) fn hold_back(&mut self, link: LinkId, delivery: DeliveryNumber, behind: u32) {
        self.back.push(HeldBackOutcome {
            link,
            delivery,
            behind,
            state: None,
        });
    }

    pub(crate) fn forget(&mut self, link: LinkId) {
        self.back.retain(|held| held.link != link);
        if let Some(latest) = self.latest.remove(&link) {
            self.end_repetition(link, latest);
        }
    }

    /// Returns the kept bytes.
    pub(crate) fn held(&self) -> usize {
        self.latest.len() * size_of::<(LinkId, LatestDelivery)>()
            + self.due.len() * size_of::<(Duration, LinkId)>()
            + self.back.len() * size_of::<HeldBackOutcome>()
    }

    /// Returns when the next repetition is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.due.first().map(|&(due, _)| due)
    }

    /// Ends the repetition of an outcome and returns it.
    fn end_repetition(
        &mut self,
        link: LinkId,
        latest: LatestDelivery,
    ) -> Option<(DeliveryNumber, DeliveryState)> {
        let repeated = latest.repeated?;
        self.due.remove(&(repeated.due, link));
        Some((latest.delivery, repeated.state))
    }

    /// Returns whether the outcome may be lost; if so, repeats it from `now` on.
    fn may_be_lost(
        &mut self,
        now: Duration,
        link: LinkId,
        delivery: DeliveryNumber,
        state: &DeliveryState,
    ) -> bool {
        let Some(latest) = self.latest.get_mut(&link) else {
            return false;
        };
        // The client has sent the next one.
        if latest.delivery != delivery {
            return false;
        }
        let due = now + REPEATED_AFTER[0];
        latest.repeated = Some(RepeatedOutcome {
            state: state.clone(),
            due,
            // In a transaction this client ignores an outcome that does not settle the delivery.
            times: match is_terminal(state) {
                true => 0,
                false => REPEATED_AFTER.len() - 1,
            },
        });
        self.due.insert((due, link));
        true
    }
}

impl ClientConnection {
    /// Records a delivery on a link, which proves that the client has entered the earlier ones.
    pub(crate) fn record_delivery(&mut self, link: LinkId, delivery: DeliveryNumber) {
        if !self.outcomes.repeats_outcomes {
            return;
        }
        let latest = LatestDelivery {
            delivery,
            repeated: None,
        };
        if let Some(before) = self.outcomes.latest.insert(link, latest)
            && let Some((delivery, state)) = self.outcomes.end_repetition(link, before)
        {
            self.engine.outcome(link, delivery, state);
        }
    }

    /// Answers a transfer in the turn that began at `now`.
    pub(crate) fn answer(
        &mut self,
        now: Duration,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        if self.suppresses_outcomes() {
            return;
        }
        let state = state.into();
        let mut back = self.outcomes.back.iter_mut();
        let own = back.find(|held| held.link == link && held.delivery == delivery);
        if let Some(own) = own {
            own.state = Some(state);
            return;
        }
        self.send_outcome(now, link, delivery, state);
        let known = |held: &HeldBackOutcome| held.link == link && held.state.is_some();
        for held in self.outcomes.back.iter_mut().filter(|held| known(held)) {
            held.behind = held.behind.saturating_sub(1);
        }
        let free = |held: &mut HeldBackOutcome| known(held) && held.behind == 0;
        let freed: Vec<HeldBackOutcome> = self.outcomes.back.extract_if(.., free).collect();
        for held in freed {
            if let Some(state) = held.state {
                self.send_outcome(now, link, held.delivery, state);
            }
        }
    }

    /// Sends a reply after earlier outcomes.
    pub(crate) fn reply(&mut self, link: LinkId, message: Vec<u8>) {
        if !self.suppresses_replies() {
            // Rust reads a reply only after the outcome of its request (wire.md §2.3).
            self.engine.flush();
            self.send_reply(link, message);
        }
    }

    pub(crate) fn repeat_outcomes(&mut self, now: Duration) {
        while let Some(&(due, link)) = self.outcomes.due.first()
            && due <= now
        {
            self.outcomes.due.pop_first();
            let Some(latest) = self.outcomes.latest.get_mut(&link) else {
                continue;
            };
            let Some(mut repeated) = latest.repeated.take() else {
                continue;
            };
            repeated.times += 1;
            let Some(wait) = REPEATED_AFTER.get(repeated.times) else {
                self.engine.outcome(link, latest.delivery, repeated.state);
                continue;
            };
            self.engine
                .outcome_unsettled(link, latest.delivery, repeated.state.clone());
            repeated.due = now + *wait;
            self.outcomes.due.insert((repeated.due, link));
            latest.repeated = Some(repeated);
        }
    }

    fn send_outcome(
        &mut self,
        now: Duration,
        link: LinkId,
        delivery: DeliveryNumber,
        state: DeliveryState,
    ) {
        if !self.outcomes.repeats_outcomes
            || !self.outcomes.may_be_lost(now, link, delivery, &state)
        {
            self.engine.outcome(link, delivery, state);
        } else if is_terminal(&state) {
            self.engine.outcome_unsettled(link, delivery, state);
        }
        self.count_answer(link);
    }
}

/// Returns whether the state ends the delivery.
fn is_terminal(state: &DeliveryState) -> bool {
    match state {
        DeliveryState::Outcome(_) | DeliveryState::Declared(_) => true,
        DeliveryState::Transactional { .. } => false,
    }
}
