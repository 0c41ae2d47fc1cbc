//! Messages went out to consumers, or never did.
//!
//! A delivery is one to somebody who received, with a lock or without; a message that merely lies in its queue
//! was not delivered. The record holds no bodies, so messages are known by their ids.

use std::time::Duration;

use super::{
    AssertionFailed, Expectation, ProbeError, Report, hint, known,
    recorded::{Number, Recorded, Verb, by_record, undecided},
};
use crate::{
    mailbox::Mailbox,
    matcher::Text,
    timeline::{EventKind, Timeline},
};

static DELIVERED: Verb = Verb {
    one: "delivery",
    many: "deliveries",
    is: |event| {
        matches!(
            event.kind,
            EventKind::Delivered | EventKind::ReceivedAndDeleted
        )
    },
    counted: |timeline| {
        let [locked, deleted] = [EventKind::Delivered, EventKind::ReceivedAndDeleted];
        Some(timeline.count(&locked) + timeline.count(&deleted))
    },
    target: |event| event.client.as_deref(),
    hint: hint::general,
};

/// Expects deliveries to consumers; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Delivered {
    recorded: Recorded,
}

by_record!(Delivered);

impl Delivered {
    /// Expects a message of any kind to have gone to anyone.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &DELIVERED),
        }
    }

    /// Expects it to have gone to this client, by the name its connection has in the timeline.
    pub fn to(mut self, client: impl Into<Text>) -> Self {
        self.recorded.target = Some(client.into());
        self
    }

    /// Expects this message.
    pub fn message_id(mut self, id: impl Into<Text>) -> Self {
        self.recorded.message_id = Some(id.into());
        self
    }

    /// Expects exactly so many deliveries.
    pub fn times(mut self, times: u64) -> Self {
        self.recorded.number = Number::Exactly(times);
        self
    }

    /// Expects so many deliveries or more.
    pub fn at_least(mut self, times: u64) -> Self {
        self.recorded.number = Number::AtLeast(times);
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.recorded.within = within;
        self
    }
}

/// Expects no deliveries to consumers once the bus is at rest.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct NeverDelivered {
    recorded: Recorded,
}

impl NeverDelivered {
    /// Expects none of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &DELIVERED),
        }
    }

    /// Expects none to this client, by the name its connection has in the timeline; others may be.
    pub fn to(mut self, client: impl Into<Text>) -> Self {
        self.recorded.target = Some(client.into());
        self
    }

    /// Expects none of this message; others may be.
    pub fn message_id(mut self, id: impl Into<Text>) -> Self {
        self.recorded.message_id = Some(id.into());
        self
    }

    /// Waits so long for the bus to come to rest, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.recorded.within = within;
        self
    }

    /// Returns the record that speaks against it, if there is one.
    async fn look(&self) -> Result<Option<Timeline>, ProbeError> {
        let recorded = &self.recorded;
        known(&recorded.mailbox).await?;
        let refuted =
            |timeline: &Timeline| recorded.found(timeline) > 0 || !recorded.is_exact(timeline);
        // A delivery is never taken back: what has happened need not be waited for.
        let so_far = recorded.look().await?;
        if refuted(&so_far) {
            return Ok(Some(so_far));
        }
        recorded.mailbox.settled(recorded.within).await?;
        Ok(Some(recorded.look().await?).filter(refuted))
    }
}

impl Expectation for NeverDelivered {
    fn mailbox(&self) -> &Mailbox {
        &self.recorded.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let timeline = match self.look().await {
            Ok(None) => return Ok(()),
            Ok(Some(timeline)) => timeline,
            Err(error) => return Err(AssertionFailed::unchecked(&error)),
        };
        let which = self.recorded.which();
        let found = self.recorded.found(&timeline);
        let mut sentence = format!("expected no delivery{which}, found {found}");
        if found == 0 {
            sentence += &undecided(&timeline);
        }
        let report = Report::of(&self.recorded.mailbox).await;
        Err(report.hinted_failure(&sentence, None))
    }
}
