//! How many sends a client had under way at once.
//!
//! The emulator counts a send from its arrival until its outcome is in the socket, over all connections to the queue or
//! topic, and remembers the most. So this is about the past: what is yet to be sent can still make it more.

use std::time::Duration;

use super::{AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN, known, poll};
use crate::{mailbox::Mailbox, text, timeline::EventKind};

/// Expects bounds of the most sends that ever waited for their outcome at once.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct InFlight {
    mailbox: Mailbox,
    at_least: Option<u64>,
    at_most: Option<u64>,
    within: Duration,
}

impl InFlight {
    /// Expects it of this queue or topic; until it is said how many, one at least.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            at_least: None,
            at_most: None,
            within: WITHIN,
        }
    }

    /// Expects exactly so many.
    pub fn sends(self, number: u64) -> Self {
        self.sends_at_least(number).sends_at_most(number)
    }

    /// Expects so many or more.
    pub fn sends_at_least(mut self, number: u64) -> Self {
        self.at_least = Some(number);
        self
    }

    /// Expects so many or fewer, by now.
    pub fn sends_at_most(mut self, number: u64) -> Self {
        self.at_most = Some(number);
        self
    }

    /// Waits so long, in real time, for as many as are expected; more than that is told at once.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn look(&self) -> Result<u64, ProbeError> {
        let timeline = self.mailbox.try_timeline().await?;
        timeline.most_unsettled_sends().ok_or(ProbeError::NoSends)
    }

    fn least(&self) -> u64 {
        let usual = u64::from(self.at_most.is_none());
        self.at_least.unwrap_or(usual)
    }

    fn exceeds(&self, found: u64) -> bool {
        self.at_most.is_some_and(|most| found > most)
    }

    fn sentence(&self, found: u64) -> String {
        let sends =
            |number: u64| text::count(usize::try_from(number).unwrap_or(usize::MAX), "send");
        let wanted = match (self.least(), self.at_most) {
            (least, Some(most)) if least == most && self.at_least.is_some() => sends(most),
            (0, Some(most)) => format!("at most {}", sends(most)),
            (least, Some(most)) => format!("{least} to {}", sends(most)),
            (least, None) => format!("at least {}", sends(least)),
        };
        let within = match self.exceeds(found) {
            true => String::new(),
            false => format!(" within {}", text::seconds(self.within)),
        };
        let found = match found {
            0 => "none".to_owned(),
            some => some.to_string(),
        };
        format!("expected {wanted} unsettled at once, found {found}{within}")
    }
}

impl Expectation for InFlight {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            // The most only grows: where it is too much already, no waiting helps.
            let is_over = |found: &u64| self.exceeds(*found) || *found >= self.least();
            match poll(self.within, || self.look(), is_over).await? {
                Looked::Otherwise(found) => Ok(found),
                Looked::Expected => self.look().await,
            }
        };
        match looked.await {
            Ok(found) if !self.exceeds(found) && found >= self.least() => Ok(()),
            Ok(found) => {
                let report = Report::of(&self.mailbox).await;
                let hint = hint(&report, found, self.exceeds(found));
                Err(report.hinted_failure(&self.sentence(found), hint))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

/// Says who sent, for whoever did not bound themselves, or what does not count.
fn hint(report: &Report, found: u64, exceeds: bool) -> Option<String> {
    let sent = report.timeline.events().iter().filter(|event| {
        matches!(
            event.kind,
            EventKind::Sent | EventKind::Scheduled | EventKind::SendEnlisted
        )
    });
    let mut clients: Vec<_> = sent.filter_map(|event| event.client.as_deref()).collect();
    clients.sort_unstable();
    clients.dedup();
    match (found, clients.as_slice()) {
        (_, []) => None,
        (0, _) => Some(
            "only sends over AMQP that wait for their outcome count, and schedules do not"
                .to_owned(),
        ),
        (_, clients) if exceeds => Some(format!(
            "the senders were {}; all of them count together",
            clients.join(", ")
        )),
        _ => None,
    }
}
