//! A queue holds exact numbers of messages.

use std::time::Duration;

use super::{AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN, known, poll};
use crate::{
    control::ControlError,
    mailbox::{Counts, Mailbox},
    text,
};

type Number = fn(&Counts) -> u64;

/// Expects exact numbers of messages; numbers that are not named do not matter.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct MessageCount {
    mailbox: Mailbox,
    wanted: Vec<(&'static str, Number, u64)>,
    within: Duration,
}

impl MessageCount {
    /// Expects numbers of this queue.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            wanted: Vec::new(),
            within: WITHIN,
        }
    }

    /// Expects so many active messages, locked and deferred ones included.
    pub fn active(self, number: u64) -> Self {
        self.wanting("active", |counts| counts.active, number)
    }

    /// Expects so many messages in the dead-letter queue.
    pub fn dead_letter(self, number: u64) -> Self {
        self.wanting("dead_letter", |counts| counts.dead_letter, number)
    }

    /// Expects so many messages in the transfer dead-letter queue.
    pub fn transfer_dead_letter(self, number: u64) -> Self {
        let count: Number = |counts| counts.transfer_dead_letter;
        self.wanting("transfer_dead_letter", count, number)
    }

    /// Expects so many messages that wait for their time.
    pub fn scheduled(self, number: u64) -> Self {
        self.wanting("scheduled", |counts| counts.scheduled, number)
    }

    /// Expects so many locked messages.
    pub fn locked(self, number: u64) -> Self {
        self.wanting("locked", |counts| counts.locked, number)
    }

    /// Expects so many messages that were put aside.
    pub fn deferred(self, number: u64) -> Self {
        self.wanting("deferred", |counts| counts.deferred, number)
    }

    /// Expects so many messages that wait to be forwarded.
    pub fn transfer(self, number: u64) -> Self {
        self.wanting("transfer", |counts| counts.transfer, number)
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    fn wanting(mut self, name: &'static str, count: Number, number: u64) -> Self {
        self.wanted.push((name, count, number));
        self
    }

    /// Whether somebody counts what is asked for: a namespace that runs elsewhere says nothing of locks.
    fn checkable(&self) -> Result<(), ProbeError> {
        let counts_locks = self.wanted.iter().any(|(name, ..)| *name == "locked");
        if counts_locks && !self.mailbox.doors.control.is_emulator() {
            let what = format!(
                "how many messages of {} are locked, which only an emulator counts",
                self.mailbox
            );
            return Err(ControlError::Uncheckable { what }.into());
        }
        Ok(())
    }

    async fn look(&self) -> Result<Counts, ProbeError> {
        Ok(self.mailbox.try_counts().await?)
    }

    fn sentence(&self, found: &Counts) -> String {
        let listed = |number: fn(&(&'static str, Number, u64), &Counts) -> u64| {
            let parts = self.wanted.iter();
            let parts = parts.map(|wanted| format!("{} = {}", wanted.0, number(wanted, found)));
            Vec::from_iter(parts).join(", ")
        };
        format!(
            "expected {}, found {} after {}",
            listed(|wanted, _| wanted.2),
            listed(|wanted, found| (wanted.1)(found)),
            text::seconds(self.within)
        )
    }
}

impl Expectation for MessageCount {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    fn expected(&self) -> String {
        let numbers = self.wanted.iter();
        let numbers = numbers.map(|(name, _, number)| format!(" {name} = {number}"));
        numbers.collect()
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            self.checkable()?;
            known(&self.mailbox).await?;
            let expected = |counts: &Counts| {
                let mut wanted = self.wanted.iter();
                wanted.all(|(_, count, number)| count(counts) == *number)
            };
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(counts)) => {
                let names = |wanted| self.wanted.iter().any(|(name, ..)| *name == wanted);
                let report = match (names("dead_letter"), names("transfer_dead_letter")) {
                    (false, true) => Report::with_transfers(&self.mailbox).await,
                    (dead, _) => Report {
                        shows_dead: dead || !self.mailbox.is_owner(),
                        ..Report::of(&self.mailbox).await
                    },
                };
                Err(report.plain_failure(&self.sentence(&counts)))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}
