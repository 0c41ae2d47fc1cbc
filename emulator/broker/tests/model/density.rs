//! Whether the histories are worth their time: everything that can happen happens in a few hundred of them.

use std::collections::BTreeSet;

use crate::START;
use crate::draw::history;
use crate::event::What;
use crate::history::Answer;
use crate::names::Names;
use crate::reference::Reference;

const HISTORIES: u64 = 1000;

/// Events, with their reasons, and refusals.
const EXPECTED: [&str; 49] = [
    "Abandoned",
    "Activated",
    "Cancelled",
    "Completed",
    "DeadLettered HeaderSizeExceeded",
    "DeadLettered InvalidOperationException",
    "DeadLettered MaxDeliveryCountExceeded",
    "DeadLettered MaxTransferHopCountExceeded",
    "DeadLettered MessagingEntityDisabledException",
    "DeadLettered MessagingEntityNotFoundException",
    "DeadLettered QuotaExceededException",
    "DeadLettered Session ID is null.",
    "DeadLettered TTLExpiredException",
    "Deferred",
    "Deleted",
    "Delivered",
    "Duplicate",
    "Enqueued",
    "Expired",
    "Forwarded",
    "LockExpired",
    "ReceivedAndDeleted",
    "Released",
    "Removed",
    "Renewed",
    "Scheduled",
    "SessionAccepted",
    "SessionExpired",
    "SessionReleased",
    "SessionRenewed",
    "StateSet",
    "TransferFailed InvalidOperationException",
    "TransferFailed MaxTransferHopCountExceeded",
    "TransferFailed MessagingEntityDisabledException",
    "TransferFailed MessagingEntityNotFoundException",
    "TransferFailed QuotaExceededException",
    "not deferred",
    "not deferred: disabled",
    "not deferred: session lock lost",
    "not held: the entity is disabled",
    "not held: the lock of session",
    "not held: the state of a session",
    "not renewed",
    "not scheduled",
    "not sent: The SessionId was not set",
    "not sent: The maximum entity",
    "not settled: dead already",
    "not settled: disabled",
    "not settled: session lock lost",
];

#[test]
fn everything_happens() {
    let mut happened = BTreeSet::new();
    for seed in 0..HISTORIES {
        let (rules, transitions) = history(seed, crate::STEPS);
        let mut names = Names::new(&rules);
        let mut reference = Reference::new(&rules, START);
        for transition in &transitions {
            if let Some(step) = names.resolve(transition, &reference) {
                let answer = reference.apply(&step);
                names.learn(&step, &answer);
                names.forget_lost(|q| reference.queue(q).is_some());
                happened.extend(reference.log.drain(..).map(|event| name_of(&event.what)));
                happened.extend(refusal(&answer));
            }
        }
    }
    let missing: Vec<_> = EXPECTED
        .iter()
        .filter(|&&expected| !happened.iter().any(|text| text.starts_with(expected)))
        .collect();
    assert!(
        missing.is_empty(),
        "{missing:#?} never happens; this does: {happened:#?}"
    );
}

fn name_of(what: &What) -> String {
    let name = format!("{what:?}");
    let name = name.split('(').next().unwrap_or_default();
    if let What::DeadLettered(_, reason, _) | What::TransferFailed(_, reason, _) = what {
        return format!("{name} {reason}");
    }
    name.to_owned()
}

fn refusal(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Sent(Err(why)) => Some(format!(
            "not sent: {}",
            why.chars().take(40).collect::<String>()
        )),
        Answer::Settled(Some(why)) => Some(format!("not settled: {why}")),
        Answer::Renewed(Err(_)) => Some("not renewed".into()),
        Answer::Deferred(Err(why)) => Some(format!("not deferred: {why}")),
        Answer::Cancelled(missing) if !missing.is_empty() => Some("not scheduled".into()),
        Answer::Accepted(Err(why)) | Answer::Session(Err(why)) => Some(format!("not held: {why}")),
        Answer::Done
        | Answer::Sent(Ok(_))
        | Answer::Messages(_)
        | Answer::Settled(None)
        | Answer::Renewed(Ok(_))
        | Answer::Deferred(Ok(_))
        | Answer::Cancelled(_)
        | Answer::Deleted(_)
        | Answer::Accepted(Ok(_))
        | Answer::Session(Ok(_))
        | Answer::Sessions(_) => None,
    }
}
