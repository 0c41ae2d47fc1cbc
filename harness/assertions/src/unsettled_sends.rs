//! Assertions about the number of sends in flight.
//!
//! The emulator counts a send from its arrival until its outcome is in the socket, over all connections to the queue or
//! topic, and stores the maximum. The assertion covers the past: later sends can still exceed it.

use crate::{
    assertion::Assertion,
    check::Outcome,
    report::{AssertionFailed, Report},
    text,
    timeline::EventKind,
};

impl Assertion {
    pub(crate) fn evaluate_unsettled_sends(&self, found: u64) -> Outcome {
        match self.exceeds(found) {
            // The maximum only grows: once it is too large, waiting cannot help.
            true => Outcome::Fails,
            false => Outcome::holds_if(found >= self.least_sends()),
        }
    }

    pub(crate) fn not_unsettled(&self, report: &Report, found: u64) -> AssertionFailed {
        let sends = |number: u64| text::count(number, "send");
        let wanted = match (self.least_sends(), self.most) {
            (least, Some(most)) if least == most && self.least.is_some() => sends(most),
            (0, Some(most)) => format!("at most {}", sends(most)),
            (least, Some(most)) => format!("{least} to {}", sends(most)),
            (least, None) => format!("at least {}", sends(least)),
        };
        let within = match self.exceeds(found) {
            true => String::new(),
            false => format!(" within {}", text::seconds(self.within)),
        };
        let sentence = format!(
            "expected {wanted} unsettled at once, found {}{within}",
            text::found(found)
        );
        report.hinted_failure(&sentence, hint(report, found, self.exceeds(found)))
    }

    fn least_sends(&self) -> u64 {
        let usual = u64::from(self.most.is_none());
        self.least.unwrap_or(usual)
    }

    fn exceeds(&self, found: u64) -> bool {
        self.most.is_some_and(|most| found > most)
    }
}

/// Names the senders that exceeded the maximum, or explains what does not count.
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
