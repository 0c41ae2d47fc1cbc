//! Assertions about numbers: of an entity's messages, of attached receivers, and of sends in flight.
//!
//! The emulator counts a send from its arrival until its outcome is in the socket, over all connections to the queue or
//! topic, and stores the maximum. The assertion covers the past: later sends can still exceed it.

use servicebus_control_api::{Counts, Receiver};

use crate::{
    assertion::{Assertion, Number},
    check::Outcome,
    hint,
    report::{AssertionFailed, Report},
    text,
    timeline::EventKind,
};

impl Assertion {
    pub(crate) fn are_counted(&self, counts: &Counts) -> bool {
        let mut wanted = self.counts.iter();
        wanted.all(|(name, wanted)| number(counts, name) == *wanted)
    }

    pub(crate) fn not_counted(&self, report: &Report, found: &Counts) -> AssertionFailed {
        let wanted = self.counts.iter();
        let wanted = wanted.map(|(name, number)| format!("{name} = {number}"));
        let counted = self.counts.iter();
        let counted = counted.map(|(name, _)| format!("{name} = {}", number(found, name)));
        let sentence = format!(
            "expected {}, found {} after {}",
            Vec::from_iter(wanted).join(", "),
            Vec::from_iter(counted).join(", "),
            text::seconds(self.within)
        );
        let mut wanted = self.counts.iter();
        let hint = match wanted.any(|(name, wanted)| number(found, name) < *wanted) {
            true => hint::locate_messages(report),
            false => hint::not_receivable(report),
        };
        report.hinted_failure(&sentence, hint)
    }

    pub(crate) fn not_empty(&self, report: &Report, found: u64) -> AssertionFailed {
        let found = text::count(found, "message");
        let within = text::seconds(self.within);
        let sentence = format!("expected to be empty, found {found} after {within}");
        report.hinted_failure(&sentence, hint::remaining(report))
    }

    /// Counts the selected receivers.
    pub(crate) fn attached(&self, found: &[Receiver]) -> u64 {
        let selected = found.iter().filter(|receiver| {
            let mut to = self.to.iter();
            to.all(|text| text.matches(Some(&receiver.client)))
        });
        selected.count() as u64
    }

    pub(crate) fn not_attached(&self, report: &Report, found: &[Receiver]) -> AssertionFailed {
        let (Number::AtLeast(number) | Number::Exactly(number)) = self.number;
        let wanted = text::count(number, "receiver");
        let client = self.to.as_ref().map(|text| format!(" of {text}"));
        let client = client.unwrap_or_default();
        let within = text::seconds(self.within);
        let found = match found {
            [] => "none".to_owned(),
            found => {
                Vec::from_iter(found.iter().map(|receiver| receiver.client.as_str())).join(", ")
            }
        };
        let sentence =
            format!("expected {wanted}{client} to be attached, found {found} within {within}");
        report.hinted_failure(&sentence, hint::connecting(report))
    }

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
        report.hinted_failure(&sentence, senders(report, found, self.exceeds(found)))
    }

    fn least_sends(&self) -> u64 {
        let usual = u64::from(self.most.is_none());
        self.least.unwrap_or(usual)
    }

    fn exceeds(&self, found: u64) -> bool {
        self.most.is_some_and(|most| found > most)
    }
}

fn number(counts: &Counts, name: &str) -> u64 {
    match name {
        "active" => counts.active,
        "dead_letter" => counts.dead_letter,
        "transfer_dead_letter" => counts.transfer_dead_letter,
        "scheduled" => counts.scheduled,
        "locked" => counts.locked,
        "deferred" => counts.deferred,
        _ => counts.transfer,
    }
}

/// Names the senders that exceeded the maximum, or explains what does not count.
fn senders(report: &Report, found: u64, exceeds: bool) -> Option<String> {
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
