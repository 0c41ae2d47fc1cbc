//! With any operations in between, a committed transaction equals its operations one after another at the moment of its
//! commit, and any other equals nothing.
//!
//! Two worlds are compared after every step. One has transactions of several connections, interleaved with each other and
//! with other work; the other has none, and applies the operations of a transaction when it is committed. So nothing may be
//! visible before, nothing may be missing, and nothing may be lost that is not lost without transactions.

mod twins;

use proptest::prelude::*;
use servicebus_broker::{EntityStatus, SubQueue};

use twins::Twins;

/// Those that are sent to, `x` apart, which is not there.
const TARGETS: [&str; 7] = [
    "plain",
    "known",
    "forwards",
    "forwards_dead_letters",
    "t",
    "sessions",
    "x",
];
/// Those that are received from.
const SOURCES: [&str; 5] = [
    "plain",
    "known",
    "forwards_dead_letters",
    "t/Subscriptions/s",
    "sessions",
];
const CONNECTIONS: usize = 3;

/// What a client does. Connections, their transactions and what they have locked are named by an index.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Declare(usize),
    /// In a transaction, or without.
    Send(Option<usize>, &'static str, Vec<Sent>),
    Transfer(usize, &'static str, &'static str, Sent),
    Lock(&'static str, SubQueue),
    Settle(Option<usize>, usize, End),
    Renew(usize),
    Commit(usize),
    RollBack(usize),
    /// The receiver that took this message goes.
    Close(usize),
    /// The connection is gone with its transactions.
    Lose(usize),
    Advance(u64),
    Status(&'static str, EntityStatus),
    LoseLocks(&'static str),
    Delete(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) id: u8,
    pub(crate) time_to_live: Option<u64>,
    pub(crate) scheduled_in: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Complete,
    Abandon,
    Defer,
    DeadLetter,
}

fn sent() -> impl Strategy<Value = Sent> {
    let time_to_live = prop::option::weighted(0.1, 1..100u64);
    let scheduled_in = prop::option::weighted(0.1, 1..100u64);
    (0..30u8, time_to_live, scheduled_in).prop_map(|(id, time_to_live, scheduled_in)| Sent {
        id,
        time_to_live,
        scheduled_in,
    })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Complete),
        2 => Just(End::Abandon),
        1 => Just(End::Defer),
        2 => Just(End::DeadLetter),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    // One of them more often, so that a transaction finds work at its own entity.
    let target = || prop_oneof![Just("plain"), prop::sample::select(&TARGETS[..6])];
    let source = || prop_oneof![Just("plain"), prop::sample::select(&SOURCES[..])];
    let anywhere = prop::sample::select(&TARGETS[..]);
    let which = || 0..8usize;
    let maybe = || prop::option::weighted(0.8, 0..8usize);
    let store = prop_oneof![4 => Just(SubQueue::Active), 1 => Just(SubQueue::DeadLetter)];
    let batch = prop::collection::vec(sent(), 1..4);
    let status = prop::sample::select(&EntityStatus::ALL[..]);
    prop_oneof![
        6 => (0..CONNECTIONS).prop_map(Step::Declare),
        24 => (maybe(), target(), batch).prop_map(|(t, name, sent)| Step::Send(t, name, sent)),
        // To itself it would come behind what follows in the transaction.
        12 => (which(), target(), anywhere, sent())
            .prop_filter("another entity", |(_, via, to, _)| via != to)
            .prop_map(|(t, via, to, sent)| Step::Transfer(t, via, to, sent)),
        24 => (source(), store).prop_map(|(name, store)| Step::Lock(name, store)),
        30 => (maybe(), which(), end()).prop_map(|(t, lock, end)| Step::Settle(t, lock, end)),
        2 => which().prop_map(Step::Renew),
        1 => which().prop_map(Step::Close),
        8 => which().prop_map(Step::Commit),
        1 => which().prop_map(Step::RollBack),
        1 => (0..CONNECTIONS).prop_map(Step::Lose),
        4 => (0..40u64).prop_map(Step::Advance),
        1 => (target(), status).prop_map(|(name, status)| Step::Status(name, status)),
        4 => target().prop_map(|name| Step::Status(name, EntityStatus::Active)),
        1 => source().prop_map(Step::LoseLocks),
        1 => prop::sample::select(&["plain", "known"][..]).prop_map(Step::Delete),
    ]
}

/// For each of two tests, which run in parallel; more by `PROPTEST_CASES`.
const CASES: u32 = 1_000;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..200)
}

fn compare_after_each(releases_on_detach: bool, steps: &[Step]) {
    let mut twins = Twins::new(releases_on_detach);
    for step in steps {
        twins.take(step);
        twins.compare();
    }
}

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.max(CASES),
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_transactions_apply_completely_or_not_at_all(steps in steps()) {
        compare_after_each(false, &steps);
    }

    #[test]
    fn random_transactions_with_release_on_detach_apply_completely_or_not_at_all(steps in steps()) {
        compare_after_each(true, &steps);
    }
}
