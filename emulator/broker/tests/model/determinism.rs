//! The same inputs give the same outputs, byte for byte; and irrelevant differences have no effect.
//!
//! Also checks that the histories are useful: every kind of step happens within a few hundred of them.

use std::collections::BTreeSet;

use servicebus_broker::LockToken;

use crate::START;
use crate::draw::history;
use crate::event::{ModelEvent, ModelKind};
use crate::history::{Answer, QUEUES, Rules, Step, Transition};
use crate::names::Names;
use crate::reference::Reference;
use crate::world::World;

const HISTORIES: u64 = 400;
const STEPS: usize = 100;

#[test]
fn the_same_seed_gives_the_same_history() {
    for (rules, transitions) in (0..HISTORIES).map(|seed| history(seed, STEPS)) {
        let steps = resolve(&rules, &transitions);
        let [one, other] = [0, 0].map(|_| Transcript::of(&rules, &steps, 42, Timer::Late));
        assert_eq!(one, other);
    }
}

#[test]
fn lock_tokens_do_not_influence_the_history() {
    for (rules, transitions) in (0..HISTORIES).map(|seed| history(seed, STEPS)) {
        let steps = resolve(&rules, &transitions);
        let [one, other] = [1, 2].map(|seed| Transcript::of(&rules, &steps, seed, Timer::Late));
        assert!(one.tokens != other.tokens || one.tokens.is_empty());
        assert_eq!((one.answers, one.events), (other.answers, other.events));
    }
}

/// Histories of independent queues that are not deleted: late forwards arrive late, and deleted queues record nothing more.
#[test]
fn a_late_timer_does_not_change_the_history() {
    for (mut rules, mut transitions) in (0..HISTORIES).map(|seed| history(seed, STEPS)) {
        for queue in &mut rules.queues {
            queue.forward_to = None;
            queue.forward_dead_lettered_messages_to = None;
            queue.auto_delete_on_idle = None;
        }
        transitions.retain(|transition| {
            // A lock begins when its session is granted, so that no receiver may wait.
            let waits = matches!(transition, Transition::Open(.., None));
            let is_late = matches!(
                transition,
                // The end of a session is not stored, so that a restart ends all locks under it at once.
                Transition::Update(..) | Transition::Drop(_) | Transition::Restart
            );
            !waits && !is_late
        });
        let steps = resolve(&rules, &transitions);
        let [late, punctual] =
            [Timer::Late, Timer::Punctual].map(|timer| Transcript::of(&rules, &steps, 1, timer));
        assert_eq!(late.sorted(), punctual.sorted());
    }
}

/// When the timers of a shell fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// Only before the next operation.
    Late,
    /// At every deadline.
    Punctual,
}

/// All output.
#[derive(Debug, PartialEq, Eq)]
struct Transcript {
    answers: Vec<Answer>,
    events: Vec<ModelEvent>,
    woken: Vec<u64>,
    tokens: Vec<LockToken>,
    wire: Vec<u8>,
}

impl Transcript {
    fn of(rules: &Rules, steps: &[Step], seed: u64, timer: Timer) -> Self {
        let mut world = World::new(rules, START, seed);
        let mut answers = Vec::new();
        for step in steps {
            if let &Step::Advance(to) = step
                && timer == Timer::Punctual
            {
                while let Some((due, q)) = next_due(&world).filter(|&(due, _)| due <= to) {
                    world.apply(&Step::Advance(due));
                    world.apply(&Step::Timeout(q));
                }
            }
            answers.push(world.apply(step));
        }
        for q in (0..QUEUES)
            .filter(|&q| world.entity(q).is_some())
            .collect::<Vec<_>>()
        {
            world.apply(&Step::Timeout(q));
        }
        Self {
            answers,
            events: world.events().collect(),
            woken: world.woken.iter().map(|id| id.0).collect(),
            tokens: world.tokens,
            wire: world.wire,
        }
    }

    /// Events queue by queue: events of independent queues have no order.
    fn sorted(mut self) -> Self {
        self.events.sort_by_key(|event| event.queue);
        self.woken.sort_unstable();
        self
    }
}

fn next_due(world: &World) -> Option<(i64, usize)> {
    let queues = (0..QUEUES).filter_map(|q| Some((world.deadline(q)?, q)));
    queues.min()
}

fn resolve(rules: &Rules, transitions: &[Transition]) -> Vec<Step> {
    let mut names = Names::new(rules);
    let mut reference = Reference::new(rules, START);
    let mut steps = Vec::new();
    for transition in transitions {
        if let Some(step) = names.resolve(transition, &reference) {
            let answer = reference.apply(&step);
            names.learn(&step, &answer);
            names.forget_lost(|q| reference.queue(q).is_some());
            steps.push(step);
        }
    }
    steps
}

const DENSE_HISTORIES: u64 = 1000;

/// Events, with their reasons, and refusals.
const EXPECTED: [&str; 48] = [
    "Abandoned",
    "Activated",
    "Cancelled",
    "Completed",
    "DeadLettered HeaderSizeExceeded",
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
    "not sent: The partition key",
    "not sent: The maximum entity",
    "not settled: dead already",
    "not settled: disabled",
    "not settled: session lock lost",
];

#[test]
fn the_random_histories_cover_every_operation_and_event() {
    let mut happened = BTreeSet::new();
    for seed in 0..DENSE_HISTORIES {
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

fn name_of(what: &ModelKind) -> String {
    let name = format!("{what:?}");
    let name = name.split('(').next().unwrap_or_default();
    if let ModelKind::DeadLettered(_, reason, _) | ModelKind::TransferFailed(_, reason, _) = what {
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
