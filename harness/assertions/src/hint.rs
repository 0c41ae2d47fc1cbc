//! Hints about the likely cause of a failure, from the record.
//!
//! A hint names one likely cause and its remedy. Without a cause in the record there is no hint: a wrong hint costs more
//! than a missing one.

mod faults;

use std::collections::HashSet;

use crate::{
    catalog::topic_and_name,
    message::{Message, MessageState},
    namespace::TEST_CLIENT,
    report::{Report, due_in},
    selector::ExpectedDeadLetter,
    text,
    timeline::{Event, EventKind, Timeline, is_at, without_tracking},
};

/// The condition of a settlement whose lock was lost.
const MESSAGE_LOCK_LOST: &str = "com.microsoft:message-lock-lost";
/// The operations that send messages; a refused discharge is a transaction whose messages are not sent.
const SENDS: [&str; 3] = ["send", "schedule-message", "discharge"];
/// The operation of an attach that was refused, by the role of the link, and that of a refused token.
const ATTACH_RECEIVER: &str = "attach a receiver";
const ATTACH_SENDER: &str = "attach a sender";
const PUT_TOKEN: &str = "put-token";
/// The conditions of refusals that last: the client lacks a right, or made a link of the wrong kind.
const LASTING: [&str; 3] = [
    "amqp:unauthorized-access",
    "amqp:not-allowed",
    "com.microsoft:entity-disabled",
];
/// The largest number of held sessions in a hint.
const NAMED: usize = 3;
/// The dead-letter reason of expired messages.
pub(crate) const EXPIRED: &str = "TTLExpiredException";

/// Explains why a message was not dead-lettered as expected.
pub(crate) fn dead_lettering(report: &Report, wanted: &ExpectedDeadLetter) -> Option<String> {
    let other = report.dead_letters.iter().find(|message| {
        let reason = message.dead_letter_reason.as_deref();
        let mut wanted = wanted.reason.iter();
        wanted.any(|wanted| !wanted.matches(reason))
    });
    match other {
        Some(message) if message.dead_letter_reason.as_deref() == Some(EXPIRED) => {
            Some(expired(report, message))
        }
        Some(message) => Some(other_reason(message, wanted)),
        None => {
            let mut wanted = wanted.reason.iter();
            let waits = wanted.any(|reason| reason.matches(Some(EXPIRED)));
            let expiry = waits.then(|| expiry(report)).flatten();
            expiry.or_else(|| general(report))
        }
    }
}

/// Explains where missing messages are: still waiting, or gone. Does not consider receivers.
pub(crate) fn locate_messages(report: &Report) -> Option<String> {
    nothing_sent(report)
        .or_else(|| duplicate(report))
        .or_else(|| not_receivable(report))
        .or_else(|| dropped(report))
        .or_else(|| forwarded_on(report))
}

/// Explains messages that no receiver gets, because they are scheduled or deferred.
pub(crate) fn not_receivable(report: &Report) -> Option<String> {
    let mut selected = report.selected();
    selected.find_map(|message| unavailable(report, message))
}

/// Explains messages that are left, although a receiver should have received them before.
pub(crate) fn remaining(report: &Report) -> Option<String> {
    let mut selected = report.selected();
    selected.find_map(|message| waiting(report, message))
}

/// Explains missing messages that a receiver should have received before.
pub(crate) fn general(report: &Report) -> Option<String> {
    nothing_sent(report)
        .or_else(|| duplicate(report))
        .or_else(|| remaining(report))
        .or_else(|| dropped(report))
        .or_else(|| forwarded_on(report))
}

/// Explains messages that were not received, or not processed by a receiver.
pub(crate) fn receiving(report: &Report) -> Option<String> {
    general(report).or_else(|| connecting(report))
}

/// Explains messages that were not completed, maybe because the receiver was too late.
pub(crate) fn completing(report: &Report) -> Option<String> {
    settled_too_late(report)
        .or_else(|| received_and_deleted(report))
        .or_else(|| receiving(report))
}

/// Explains why no client receives.
pub(crate) fn connecting(report: &Report) -> Option<String> {
    attaching(report, ATTACH_RECEIVER)
}

/// Explains why no client attaches a link: a wrong entity name, a refusal, or a client that does not trust the emulator.
fn attaching(report: &Report, attach: &str) -> Option<String> {
    missing_entity(report)
        .or_else(|| refused_link(report, attach))
        .or_else(|| untrusted_certificate(report))
}

/// Explains messages that are gone.
pub(crate) fn absence(report: &Report) -> Option<String> {
    nothing_sent(report)
        .or_else(|| duplicate(report))
        .or_else(|| dropped(report))
        .or_else(|| forwarded_on(report))
}

/// Explains messages that did not expire.
pub(crate) fn expiry(report: &Report) -> Option<String> {
    let still = |message: &Message| {
        let left = message.expires_at?.duration_since(report.listed_at).ok()?;
        let id = message.message_id.as_deref()?;
        let left = text::rounded_seconds(left);
        let advice = advice(report);
        Some(format!("{id} has {left} to live{advice}"))
    };
    nothing_sent(report).or_else(|| report.selected().find_map(still))
}

/// Explains messages that were not forwarded.
pub(crate) fn forwarding(report: &Report) -> Option<String> {
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
    let owner = &report.owner;
    if timeline.dropped() > 0 || !report.has_record() {
        return None;
    }
    if arrived > 0 {
        return no_matching_id(report);
    }
    if let Some(refused) = refused(report).or_else(|| faults::blocked(report)) {
        return Some(refused);
    }
    Some(match topic_and_name(owner) {
        Some((topic, _)) => format!(
            "no message of {topic} ever reached {owner}; `explain` shows which of its rules match a message"
        ),
        None => attaching(report, ATTACH_SENDER)
            .unwrap_or_else(|| format!("nothing was ever sent to {owner}")),
    })
}

/// Explains the last rejected message: its sender may retry for long, or hide the error.
fn refused(report: &Report) -> Option<String> {
    let mut events = report.timeline.events().iter();
    let refused = events.rfind(|event| {
        let operation = event.operation.as_deref();
        event.kind == EventKind::Refused && operation.is_some_and(|own| SENDS.contains(&own))
    })?;
    let client = refused.client.as_deref().unwrap_or("a client");
    let why = without_tracking(refused.detail.as_deref()?);
    let what = match refused.operation.as_deref() {
        Some("discharge") => "transaction",
        _ => "message",
    };
    Some(format!("a {what} of {client} was refused: {why}"))
}

/// Explains that no arrived message has the expected id.
fn no_matching_id(report: &Report) -> Option<String> {
    let id = report.which.only_id()?;
    let events = report.timeline.events().iter();
    // A fault may have stopped a message from arriving.
    let came = events.filter(|event| event.kind != EventKind::Fault);
    let known = came.filter_map(|event| event.message_id.as_deref());
    if known.clone().any(|known| known == id) {
        return None;
    }
    if let Some(refused) = refused(report).or_else(|| faults::blocked(report)) {
        return Some(refused);
    }
    let mut seen = HashSet::new();
    let known = known.filter(|id| seen.insert(*id)).take(text::COMPARED);
    let near = known.filter(|known| report.which.is_near(known));
    let near = near.min_by_key(|known| text::distance(id, known));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    Some(format!(
        "no message with message id {id:?} ever reached {}{near}",
        report.owner
    ))
}

/// Explains a message that was dropped as a duplicate.
fn duplicate(report: &Report) -> Option<String> {
    let events = report.timeline.events();
    let index = events.iter().position(|event| {
        event.kind == EventKind::DuplicateDropped
            && report.which.is_named(event.message_id.as_deref())
    })?;
    let (dropped, before) = (&events[index], &events[..index]);
    let first = before.iter().rev().find(|event| {
        event.kind != EventKind::DuplicateDropped
            && event.sequence_number.is_some()
            && event.message_id == dropped.message_id
    });
    let id = dropped.message_id.as_deref()?;
    let of = first.and_then(|event| event.sequence_number);
    let of = of.map_or_else(String::new, |number| format!(" of #{number}"));
    Some(format!("{id} was dropped as a duplicate{of}"))
}

/// Explains a settlement after the end of the lock, unless the message was completed later.
fn settled_too_late(report: &Report) -> Option<String> {
    let events = report.timeline.events();
    let refused = events.iter().enumerate().filter(|(_, event)| {
        event.kind == EventKind::Refused
            && event.reason.as_deref() == Some(MESSAGE_LOCK_LOST)
            && report.which.is_named(event.message_id.as_deref())
    });
    let mut lasting = refused.filter(|(index, refused)| {
        let mut later = events[*index..].iter();
        !later.any(|later| {
            later.kind == EventKind::Completed && later.message_id == refused.message_id
        })
    });
    let (index, refused) = lasting.next()?;
    let id = refused.message_id.as_deref()?;
    let client = refused.client.as_deref().unwrap_or("a client");
    let operation = refused.operation.as_deref().unwrap_or("settle");
    let ended = events.iter().rfind(|event| {
        event.kind == EventKind::LockExpired && event.message_id.as_deref() == Some(id)
    });
    let ended = ended.map_or_else(String::new, |ended| {
        format!("; the lock ended at +{:.3} s", ended.offset)
    });
    if faults::takes_lock(events, index) {
        return Some(format!(
            "{client} tried to {operation} {id} after a fault took its lock{ended}"
        ));
    }
    let ahead = match report.timeline.advanced() {
        0.0 => String::new(),
        seconds => format!(", the clock is {seconds} s ahead"),
    };
    Some(format!(
        "{client} tried to {operation} {id} after its lock was lost{ended}{ahead}"
    ))
}

/// Explains a message that its client could not complete, because the delivery deleted it.
fn received_and_deleted(report: &Report) -> Option<String> {
    let mut events = report.timeline.events().iter();
    let deleted = events.rfind(|event| {
        event.kind == EventKind::ReceivedAndDeleted
            && is_at(event, &report.subject)
            && report.which.is_named(event.message_id.as_deref())
    })?;
    let id = deleted.message_id.as_deref()?;
    let client = deleted.client.as_deref().unwrap_or("a client");
    Some(format!(
        "{client} received {id} in mode receive-and-delete, in which nothing is completed; assert that it was delivered"
    ))
}

/// Explains that a client attached to an entity that does not exist.
fn missing_entity(report: &Report) -> Option<String> {
    let events = report.timeline.events().iter().rev();
    let mut missing = events.filter_map(|event| {
        let is_missing = event.reason.as_deref() == Some("amqp:not-found");
        let (_, name) = resource(event.detail.as_deref()?)?;
        let client = event.client.as_deref().unwrap_or("a client");
        // The test has seen its own error; a client of the code under test may hide it.
        let explains = client != TEST_CLIENT || text::is_near(name, &report.owner);
        (is_missing && explains).then(|| (client.to_owned(), name.to_owned()))
    });
    let (client, name) = missing.next()?;
    let suggestion = match text::is_near(&name, &report.owner) {
        true => format!("; did you mean {:?}?", report.owner),
        false => String::new(),
    };
    Some(format!(
        "{client} requested {name:?}, which does not exist{suggestion}"
    ))
}

/// Explains that the last link of a client, or its token, was refused. The test itself has seen its own refusals.
fn refused_link(report: &Report, attach: &str) -> Option<String> {
    let receivers = report.receivers.as_deref().unwrap_or_default();
    let mut events = report.timeline.events().iter();
    let refused = events.rfind(|event| {
        let operation = event.operation.as_deref();
        let client = event.client.as_deref();
        let mut receivers = receivers.iter();
        event.kind == EventKind::Refused
            && (operation == Some(attach) || operation == Some(PUT_TOKEN))
            && event
                .reason
                .as_deref()
                .is_some_and(|reason| LASTING.contains(&reason))
            && client != Some(TEST_CLIENT)
            && !receivers.any(|receiver| Some(receiver.client.as_str()) == client)
            && (is_at(event, &report.owner) || names(event, &report.owner))
    })?;
    let client = refused.client.as_deref().unwrap_or("a client");
    let why = without_tracking(refused.detail.as_deref()?);
    Some(match refused.operation.as_deref() {
        Some(PUT_TOKEN) => format!("a token of {client} was refused: {why}"),
        _ => format!("{client} could not {attach}: {why}"),
    })
}

/// Returns whether an event of the namespace names an entity, or the whole namespace, as its resource.
fn names(event: &Event, entity: &str) -> bool {
    let resource = event.detail.as_deref().and_then(resource);
    resource.is_some_and(|(_, path)| path.is_empty() || path.eq_ignore_ascii_case(entity))
}

/// Returns the host and the path of the address in an error: `sb://host/path`, in quotes.
fn resource(detail: &str) -> Option<(&str, &str)> {
    let (_, rest) = detail.split_once("://")?;
    let (address, _) = rest.split_once('\'')?;
    Some(address.split_once('/').unwrap_or((address, "")))
}

/// Explains that a client does not trust the emulator's certificate.
fn untrusted_certificate(report: &Report) -> Option<String> {
    let mut events = report.timeline.events().iter();
    let refused =
        events.rfind(|event| event.reason.as_deref() == Some("emulator:tls-not-trusted"))?;
    let detail = refused.detail.as_deref().unwrap_or_default();
    Some(format!("a TLS handshake failed: {detail}"))
}

fn expired(report: &Report, message: &Message) -> String {
    if !report.has_record() {
        return "the message expired; raise its time to live".to_owned();
    }
    let deliveries = count_events(&report.timeline, message, &EventKind::Delivered);
    let locked = count_events(&report.timeline, message, &EventKind::LockExpired) > 0;
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

fn other_reason(message: &Message, wanted: &ExpectedDeadLetter) -> String {
    let found = match message.dead_letter_reason.as_deref() {
        Some(reason) => format!("with reason {reason:?}"),
        None => "without a reason".to_owned(),
    };
    let words = match message.dead_letter_error_description.as_deref() {
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

/// Advises to advance the clock, which only an emulator has, as the record.
fn advice(report: &Report) -> &'static str {
    match report.has_record() {
        true => "; advance the clock",
        false => "",
    }
}

/// Explains a message that no receiver gets, because it is scheduled or deferred.
fn unavailable(report: &Report, message: &Message) -> Option<String> {
    let id = message.message_id.as_deref()?;
    match message.state {
        MessageState::Scheduled => {
            let wait = due_in(report, message)?;
            let advice = advice(report);
            Some(format!("{id} is scheduled and due in {wait}{advice}"))
        }
        MessageState::Deferred if !report.is_locked(message) => {
            let number = message.sequence_number;
            Some(format!(
                "{id} is deferred: receive it by its sequence number, {number}"
            ))
        }
        MessageState::Active | MessageState::Deferred => None,
    }
}

/// Explains a message that is still in its queue.
fn waiting(report: &Report, message: &Message) -> Option<String> {
    let unavailable = unavailable(report, message);
    if unavailable.is_some() || !report.has_record() {
        return unavailable;
    }
    let id = message.message_id.as_deref()?;
    let limit = report.declared.as_ref()?.max_delivery_count?;
    let delivered = count_events(&report.timeline, message, &EventKind::Delivered);
    if delivered == 0 {
        return Some(never_received(report, message, id));
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

/// Explains a message that no receiver has taken, by the record and the receivers.
fn never_received(report: &Report, message: &Message, id: &str) -> String {
    if let Some(why) = session_holders(report, message) {
        return format!("{id} was never received{why}");
    }
    if let Some(why) = faults::holding(report, id).or_else(|| connecting(report)) {
        return format!("{id} was never received: {why}");
    }
    let (receivers, owner) = (report.receivers.as_deref(), &report.owner);
    match receivers {
        Some([]) => format!("{id} was never received: no client is attached to {owner}"),
        Some(receivers) => {
            let names = receivers.iter().map(|receiver| receiver.client.as_str());
            let names = Vec::from_iter(names).join(", ");
            format!("{id} was never received, although {names} receives from {owner}")
        }
        None => format!("{id} was never received"),
    }
}

/// Explains from the sessions that receivers hold why none gets a message.
fn session_holders(report: &Report, message: &Message) -> Option<String> {
    let session = message.session_id.as_deref()?;
    let mut held = report.holders.iter();
    if let Some((_, holder)) = held.find(|(held, _)| held == session) {
        return Some(format!(", although {holder} holds its session {session:?}"));
    }
    let held = report.holders.iter().take(NAMED);
    let held = held.map(|(held, holder)| format!("{holder} holds {held:?}"));
    let held = Vec::from_iter(held).join(", ");
    (!held.is_empty()).then(|| format!(": no receiver holds its session {session:?}; {held}"))
}

/// Explains an empty queue whose messages expired and were dropped.
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

/// Explains an empty queue that forwards its messages.
fn forwarded_on(report: &Report) -> Option<String> {
    let target = report.declared.as_ref()?.forwards_to.as_ref()?;
    let forwarded = report.timeline.count(&EventKind::Forwarded);
    (forwarded > 0).then(|| format!("{} forwards to {target}: look there", report.owner))
}

fn count_events(timeline: &Timeline, message: &Message, kind: &EventKind) -> usize {
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
