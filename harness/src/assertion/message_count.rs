//! A queue holds exact numbers of messages, or none.

use super::{AssertionFailed, Expectation, Kind, Report, hint};
use crate::{
    clients::{Counts, EntityClient},
    error::Error,
    error::control::ControlError,
    text,
};

type Number = fn(&Counts) -> u64;

/// Expects exact numbers of messages; numbers that are not named do not matter.
#[derive(Debug, Clone)]
pub struct MessageCount {
    wanted: Vec<(&'static str, Number, u64)>,
}

/// Expects numbers of messages, of which none is named yet: nothing to assert.
#[derive(Debug, Clone)]
pub struct NoCount;

/// What numbers of messages can be named of.
pub trait CountsMessages {
    /// Returns the numbers that were named.
    #[doc(hidden)]
    fn counted(self) -> MessageCount;
}

impl CountsMessages for NoCount {
    fn counted(self) -> MessageCount {
        MessageCount { wanted: Vec::new() }
    }
}

impl CountsMessages for MessageCount {
    fn counted(self) -> MessageCount {
        self
    }
}

impl MessageCount {
    /// Expects numbers of this queue, which are to be named.
    pub fn of(client: &impl EntityClient) -> Expectation<NoCount> {
        Expectation::new(client, NoCount)
    }
}

impl<K: CountsMessages> Expectation<K> {
    /// Expects so many active messages, locked and deferred ones included.
    pub fn active(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("active", |counts| counts.active, number)
    }

    /// Expects so many messages in the dead-letter queue.
    pub fn dead_letter(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("dead_letter", |counts| counts.dead_letter, number)
    }

    /// Expects so many messages in the transfer dead-letter queue.
    pub fn transfer_dead_letter(self, number: u64) -> Expectation<MessageCount> {
        let count: Number = |counts| counts.transfer_dead_letter;
        self.wanting("transfer_dead_letter", count, number)
    }

    /// Expects so many messages that wait for their time.
    pub fn scheduled(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("scheduled", |counts| counts.scheduled, number)
    }

    /// Expects so many locked messages.
    pub fn locked(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("locked", |counts| counts.locked, number)
    }

    /// Expects so many deferred messages.
    pub fn deferred(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("deferred", |counts| counts.deferred, number)
    }

    /// Expects so many messages that wait to be forwarded.
    pub fn transfer(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("transfer", |counts| counts.transfer, number)
    }

    fn wanting(self, name: &'static str, count: Number, number: u64) -> Expectation<MessageCount> {
        let mut expectation = self.with_kind(CountsMessages::counted);
        expectation.kind.wanted.push((name, count, number));
        expectation
    }
}

impl<K> Expectation<K> {
    async fn counts(&self) -> Result<Counts, Error> {
        self.client.try_counts().await
    }
}

impl Expectation<MessageCount> {
    /// Whether the namespace counts what is asked for: a namespace that runs elsewhere says nothing of locks.
    fn checkable(&self) -> Result<(), Error> {
        let counts_locks = self.kind.wanted.iter().any(|(name, ..)| *name == "locked");
        if counts_locks && self.client.connections.backend.control_url().is_none() {
            let what = format!(
                "how many messages of {} are locked, which only an emulator counts",
                self.client
            );
            return Err(ControlError::Uncheckable { what }.into());
        }
        Ok(())
    }

    async fn failure(&self, counts: Counts) -> AssertionFailed {
        let names = |wanted| self.kind.wanted.iter().any(|(name, ..)| *name == wanted);
        let report = match (names("dead_letter"), names("transfer_dead_letter")) {
            (false, true) => Report::with_transfers(&self.client).await,
            (dead, _) => Report {
                shows_dead: dead || !self.client.is_owner(),
                ..Report::of(&self.client).await
            },
        };
        let hint = hint::standing(&report);
        report.hinted_failure(&self.sentence(&counts), hint)
    }

    fn sentence(&self, found: &Counts) -> String {
        let listed = |number: fn(&(&'static str, Number, u64), &Counts) -> u64| {
            let parts = self.kind.wanted.iter();
            let parts = parts.map(|wanted| format!("{} = {}", wanted.0, number(wanted, found)));
            Vec::from_iter(parts).join(", ")
        };
        format!(
            "expected {}, found {} after {}",
            listed(|wanted, _| wanted.2),
            listed(|wanted, found| (wanted.1)(found)),
            text::seconds(self.criteria.within)
        )
    }
}

impl Kind for MessageCount {
    fn expected(&self) -> String {
        let numbers = self.wanted.iter();
        let numbers = numbers.map(|(name, _, number)| format!(" {name} = {number}"));
        numbers.collect()
    }

    async fn check(expectation: Expectation<Self>) -> Result<(), AssertionFailed> {
        if let Err(error) = expectation.checkable() {
            return Err(AssertionFailed::unchecked(&error));
        }
        let is_expected = |counts: &Counts| {
            let mut wanted = expectation.kind.wanted.iter();
            wanted.all(|(_, count, number)| count(counts) == *number)
        };
        let look = || expectation.counts();
        expectation
            .expect(look, is_expected, |counts| expectation.failure(counts))
            .await
    }
}

/// Expects a queue, or a dead-letter queue, to hold no message of any state.
#[derive(Debug, Clone)]
pub struct Empty;

impl Empty {
    /// Expects it of this queue.
    pub fn of(client: &impl EntityClient) -> Expectation<Self> {
        Expectation::new(client, Self)
    }
}

impl Kind for Empty {
    async fn check(expectation: Expectation<Self>) -> Result<(), AssertionFailed> {
        let failure = async |counts: Counts| {
            let report = Report::of(&expectation.client).await;
            let found = text::count(usize::try_from(counts.present()).unwrap_or(0), "message");
            let within = text::seconds(expectation.criteria.within);
            let expected = format!("expected to be empty, found {found} after {within}");
            report.hinted_failure(&expected, hint::general(&report))
        };
        let is_empty = |counts: &Counts| counts.present() == 0;
        let look = || expectation.counts();
        expectation.expect(look, is_empty, failure).await
    }
}
