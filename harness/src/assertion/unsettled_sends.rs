//! How many sends a client had under way at once.
//!
//! The emulator counts a send from its arrival until its outcome is in the socket, over all connections to the queue or
//! topic, and remembers the most. So this is about the past: what is yet to be sent can still make it more.

use super::{AssertionFailed, Expectation, Kind, Looked, Report, known, poll};
use crate::{
    clients::EntityClient,
    error::{Error, ErrorKind},
    text,
    timeline::EventKind,
};

/// Expects bounds of the most sends that ever waited for their outcome at once.
#[derive(Debug, Clone)]
pub struct UnsettledSends {
    at_least: Option<u64>,
    at_most: Option<u64>,
}

impl UnsettledSends {
    /// Expects it of this queue or topic; until it is said how many, one at least.
    pub fn of(client: &impl EntityClient) -> Expectation<Self> {
        let kind = Self {
            at_least: None,
            at_most: None,
        };
        Expectation::new(client, kind)
    }
}

impl Expectation<UnsettledSends> {
    /// Expects exactly so many.
    pub fn count(self, number: u64) -> Self {
        self.at_least(number).at_most(number)
    }

    /// Expects so many or more.
    pub fn at_least(mut self, number: u64) -> Self {
        self.kind.at_least = Some(number);
        self
    }

    /// Expects so many or fewer, by now.
    pub fn at_most(mut self, number: u64) -> Self {
        self.kind.at_most = Some(number);
        self
    }

    async fn look(&self) -> Result<u64, Error> {
        let timeline = self.client.try_timeline().await?;
        timeline.most_unsettled_sends().ok_or_else(|| {
            let sentence = "this emulator does not count unsettled sends";
            Error::new(ErrorKind::Unsupported, None, sentence)
        })
    }

    fn least(&self) -> u64 {
        let usual = u64::from(self.kind.at_most.is_none());
        self.kind.at_least.unwrap_or(usual)
    }

    fn exceeds(&self, found: u64) -> bool {
        self.kind.at_most.is_some_and(|most| found > most)
    }

    fn sentence(&self, found: u64) -> String {
        let sends =
            |number: u64| text::count(usize::try_from(number).unwrap_or(usize::MAX), "send");
        let wanted = match (self.least(), self.kind.at_most) {
            (least, Some(most)) if least == most && self.kind.at_least.is_some() => sends(most),
            (0, Some(most)) => format!("at most {}", sends(most)),
            (least, Some(most)) => format!("{least} to {}", sends(most)),
            (least, None) => format!("at least {}", sends(least)),
        };
        let within = match self.exceeds(found) {
            true => String::new(),
            false => format!(" within {}", text::seconds(self.criteria.within)),
        };
        let found = super::found(found);
        format!("expected {wanted} unsettled at once, found {found}{within}")
    }
}

impl Kind for UnsettledSends {
    async fn check(expectation: Expectation<Self>) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&expectation.client).await?;
            // The most only grows: where it is too much already, no waiting helps.
            let is_over =
                |found: &u64| expectation.exceeds(*found) || *found >= expectation.least();
            match poll(expectation.criteria.within, || expectation.look(), is_over).await? {
                Looked::Otherwise(found) => Ok(found),
                Looked::Expected => expectation.look().await,
            }
        };
        match looked.await {
            Ok(found) if !expectation.exceeds(found) && found >= expectation.least() => Ok(()),
            Ok(found) => {
                let report = Report::of(&expectation.client).await;
                let hint = hint(&report, found, expectation.exceeds(found));
                Err(report.hinted_failure(&expectation.sentence(found), hint))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

/// Names the senders that exceeded the bound, or says what does not count.
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
