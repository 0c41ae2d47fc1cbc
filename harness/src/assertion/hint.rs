//! What to try next, where the record says so.
//!
//! A hint names one likely cause and what would change it. Where the record shows no cause there is none: a
//! wrong hint costs more than a missing one.

use std::time::SystemTime;

use super::{
    dead_letters::Wanted,
    failure::{Report, due_in},
    kinds::EXPIRED_REASON as EXPIRED,
};
use crate::{
    kind::topic_and_name,
    received_message::{MessageState, ReceivedMessage},
    text,
    timeline::{EventKind, Timeline},
};

/// Explains why a message was not dead-lettered as expected.
pub(super) fn dead_lettering(report: &Report, wanted: &Wanted) -> Option<String> {
    let other = report.dead.iter().find(|message| {
        let reason = message.dead_letter_reason();
        let mut wanted = wanted.reason.iter();
        wanted.any(|wanted| !wanted.matches(reason))
    });
    match other {
        Some(message) if message.dead_letter_reason() == Some(EXPIRED) => {
            Some(expired(report, message))
        }
        Some(message) => Some(other_reason(message, wanted)),
        None => general(report),
    }
}

/// Explains messages that are not where they were to be: they wait, or they are gone.
pub(super) fn general(report: &Report) -> Option<String> {
    nothing_sent(report)
        .or_else(|| {
            report
                .live
                .iter()
                .find_map(|message| waiting(report, message))
        })
        .or_else(|| dropped(report))
        .or_else(|| gone_on(report))
}

/// Explains messages that are gone.
pub(super) fn absence(report: &Report) -> Option<String> {
    nothing_sent(report)
        .or_else(|| dropped(report))
        .or_else(|| gone_on(report))
}

/// Explains messages that did not expire.
pub(super) fn expiry(report: &Report) -> Option<String> {
    let still = |message: &ReceivedMessage| {
        let left = message.expires_at?.duration_since(SystemTime::now()).ok()?;
        let id = message.message_id.as_deref()?;
        let left = text::rounded_seconds(left);
        Some(format!("{id} has {left} to live; advance the clock"))
    };
    nothing_sent(report).or_else(|| report.live.iter().find_map(still))
}

/// Explains messages that did not go on.
pub(super) fn forwarding(report: &Report) -> Option<String> {
    let owner = &report.owner;
    let target = report.declared.as_ref()?.forwards_to.as_ref();
    nothing_sent(report).or_else(|| match target {
        None => Some(format!("{owner} forwards nowhere")),
        Some(target) => Some(format!("{owner} forwards to {target}")),
    })
}

fn nothing_sent(report: &Report) -> Option<String> {
    let timeline = &report.timeline;
    let arrived = timeline.count(&EventKind::Sent) + timeline.count(&EventKind::Scheduled);
    let nothing = timeline.dropped() == 0 && arrived == 0;
    let owner = &report.owner;
    nothing.then(|| match topic_and_name(owner) {
        Some((topic, _)) => format!(
            "no message of {topic} ever came to {owner}; `explain` tells which of its rules match a message"
        ),
        None => format!("nothing was ever sent to {owner}"),
    })
}

fn expired(report: &Report, message: &ReceivedMessage) -> String {
    let deliveries = of(&report.timeline, message, &EventKind::Delivered);
    let locked = of(&report.timeline, message, &EventKind::LockExpired) > 0;
    let before = match deliveries {
        0 => "before any receiver got it".to_owned(),
        _ if locked => format!(
            "under its lock, before its {} delivery",
            ordinal(deliveries + 1)
        ),
        some => format!("before its {} delivery", ordinal(some + 1)),
    };
    format!("the message expired {before}; raise its time to live or advance less")
}

fn other_reason(message: &ReceivedMessage, wanted: &Wanted) -> String {
    let found = match message.dead_letter_reason() {
        Some(reason) => format!("with reason {reason:?}"),
        None => "without a reason".to_owned(),
    };
    let words = match message.dead_letter_error_description() {
        Some(description) => format!(" ({description:?})"),
        None => String::new(),
    };
    match &wanted.reason {
        Some(reason) => {
            format!("a message was dead-lettered {found}{words}, not with {reason}")
        }
        None => format!("a message was dead-lettered {found}{words}"),
    }
}

/// Explains a message that is still in its queue although it was handed out.
fn waiting(report: &Report, message: &ReceivedMessage) -> Option<String> {
    let id = message.message_id.as_deref()?;
    match message.state {
        MessageState::Scheduled => {
            let wait = due_in(message)?;
            return Some(format!(
                "{id} is scheduled and due in {wait}; advance the clock"
            ));
        }
        MessageState::Deferred if !report.is_locked(message) => {
            let number = message.sequence_number;
            return Some(format!(
                "{id} is deferred: only its number, {number}, gets it"
            ));
        }
        MessageState::Active | MessageState::Deferred => {}
    }
    let limit = report.declared.as_ref()?.max_delivery_count?;
    let delivered = of(&report.timeline, message, &EventKind::Delivered);
    if delivered == 0 {
        return Some(format!("{id} was never received; is a consumer running?"));
    }
    let counted = message.delivery_count;
    let state = match report.is_locked(message) {
        true => "it is locked now: settle it, or advance the clock past its lock",
        false => "it waits to be received again",
    };
    Some(format!(
        "{id} is still active after {delivered} of {limit} deliveries, {counted} of them counted; {state}"
    ))
}

/// Explains a queue whose messages expired and were not kept.
fn dropped(report: &Report) -> Option<String> {
    let expired = report.timeline.count(&EventKind::Expired);
    let keeps = report.declared.as_ref()?.dead_letters_expired;
    (expired > 0 && !keeps).then(|| {
        format!(
            "a message expired and was dropped: {} does not dead-letter on expiration",
            report.owner
        )
    })
}

/// Explains a queue that keeps nothing because it forwards.
fn gone_on(report: &Report) -> Option<String> {
    let target = report.declared.as_ref()?.forwards_to.as_ref()?;
    let forwarded = report.timeline.count(&EventKind::Forwarded);
    (forwarded > 0).then(|| format!("{} forwards to {target}: look there", report.owner))
}

fn of(timeline: &Timeline, message: &ReceivedMessage, kind: &EventKind) -> usize {
    let id = message.message_id.as_deref();
    let events = timeline.events().iter();
    events
        .filter(|event| event.kind == *kind && event.message_id.as_deref() == id)
        .count()
}

fn ordinal(number: usize) -> &'static str {
    const WORDS: [&str; 10] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
        "tenth",
    ];
    WORDS.get(number.wrapping_sub(1)).unwrap_or(&"next")
}
