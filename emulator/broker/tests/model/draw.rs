//! Draws settings and histories from a seed, reproducibly.

use std::rc::Rc;
use std::time::Duration;

use servicebus_broker::{
    EntityDescription, EntityStatus, Expiry, FailedForwards, IdSource, LocksOnDetach,
    NamespaceSettings, ReceiveMode, SubQueue,
};

use crate::history::{
    Change, Consume, Draft, NAMES, Number, Outcome, Pick, Properties, QUEUES, Rules, SessionUse,
    Size, TimeStep, Token, Transition,
};

/// SplitMix64: the smallest sufficient generator.
#[derive(Debug, Clone)]
pub(crate) struct SeededRng(pub(crate) u64);

impl IdSource for SeededRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

impl SeededRng {
    fn pick(&mut self) -> Pick {
        Pick((self.next() >> 32) as u32)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn maybe<T>(&mut self, percent: u64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(percent).then(|| draw(self))
    }

    fn some<T>(&mut self, most: u64, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = 1 + self.below(most);
        (0..length).map(|_| draw(self)).collect()
    }
}

/// Settings and the steps under them.
pub(crate) fn history(seed: u64, length: usize) -> (Rules, Vec<Transition>) {
    // Neighbouring seeds must not share their random numbers.
    let mut dice = SeededRng(SeededRng(seed).next());
    let rules = rules(&mut dice);
    let transitions = (0..length).map(|_| transition(&mut dice)).collect();
    (rules, transitions)
}

fn rules(dice: &mut SeededRng) -> Rules {
    let either = |yes| usize::from(yes);
    let settings = NamespaceSettings {
        expiry: [Expiry::Eager, Expiry::OnReceive][either(dice.chance(35))],
        locks_on_detach: [LocksOnDetach::Keep, LocksOnDetach::Release][either(dice.chance(40))],
        failed_forwards: [
            FailedForwards::TransferDeadLetter,
            FailedForwards::DeadLetter,
        ][either(dice.chance(40))],
        ..NamespaceSettings::default()
    };
    let count = dice.one_of(&[1, 1, 2, 3, 3, QUEUES]);
    let queues = (0..count).map(|at| queue(dice, at, count)).collect();
    Rules { queues, settings }
}

fn queue(dice: &mut SeededRng, at: usize, count: usize) -> EntityDescription {
    let forward_to = dice.maybe(30, |dice| target(dice, count));
    let requires_session = dice.chance(30);
    let idle = dice.chance(20);
    let path = |at: usize| NAMES[at].parse().expect("a name is a path");
    EntityDescription {
        lock_duration: Duration::from_secs(dice.one_of(&[5, 30, 60])),
        max_delivery_count: dice.one_of(&[1, 2, 2, 3, 5]),
        default_message_time_to_live: dice
            .one_of(&[None, None, Some(1), Some(20), Some(60)])
            .map(Duration::from_secs),
        dead_lettering_on_message_expiration: dice.chance(50),
        requires_duplicate_detection: dice.chance(30),
        duplicate_detection_history_time_window: Duration::from_secs(dice.one_of(&[5, 20, 60])),
        forward_to: forward_to.map(path),
        // Not to itself: the order in which dead letters and messages in a cycle arrive is not guaranteed.
        forward_dead_lettered_messages_to: dice
            .maybe(30, |dice| target(dice, count))
            .filter(|&to| to != at)
            .map(path),
        auto_delete_on_idle: idle.then_some(Duration::from_secs(300)),
        max_size_in_megabytes: 1,
        enable_partitioning: dice.chance(20),
        requires_session,
        ..EntityDescription::default()
    }
}

/// A queue, itself too (observed 26); rarely one that does not exist.
fn target(dice: &mut SeededRng, count: usize) -> usize {
    match dice.chance(4) {
        true => NAMES.len() - 1,
        false => dice.below(count as u64) as usize,
    }
}

fn transition(dice: &mut SeededRng) -> Transition {
    // A queue, or a receiver.
    let queue = dice.pick();
    match dice.below(1000) {
        0..200 => {
            let drafts = dice.some(3, draft);
            Transition::Send(queue, drafts, dice.chance(40))
        }
        200..235 => Transition::Open(queue, store(dice), mode(dice), dice.maybe(60, session)),
        235..250 => Transition::Session(queue, session(dice), of_session(dice)),
        250..265 => Transition::Consume(queue, Consume::Close),
        265..385 => Transition::Consume(queue, Consume::Credit(dice.below(6) as u32)),
        385..535 => Transition::Consume(queue, Consume::Take(dice.below(5) as usize)),
        535..690 => Transition::Settle(token(dice), dice.chance(95), outcome(dice)),
        690..705 => Transition::SettleAll(dice.some(3, token), outcome(dice)),
        705..725 => Transition::Renew(dice.some(2, token)),
        725..775 => Transition::ReceiveDeferred(dice.some(2, number), mode(dice), dice.pick()),
        775..790 => Transition::Cancel(dice.some(2, number)),
        790..805 => {
            let max = dice.below(4) as usize;
            Transition::DeleteMessages(queue, store(dice), max, dice.one_of(&[0, 1, 5_000]))
        }
        805..830 => Transition::Update(queue, change(dice)),
        830..833 => Transition::LoseLocks(queue),
        833..938 => Transition::Advance(by(dice)),
        938..950 => Transition::Consume(queue, Consume::Skip),
        950..975 => Transition::Timeout(queue),
        975..985 => {
            let from = dice.below(20) | (dice.below(8) / 7) << 48;
            Transition::Browse(queue, store(dice), from, dice.below(5) as usize)
        }
        985..988 => Transition::Reset(queue),
        988..995 => Transition::Create(queue),
        995..998 => Transition::Restart,
        _ => Transition::Drop(queue),
    }
}

/// Few ids, so that there are duplicates; times like those of locks and windows, so that deadlines coincide.
fn draft(dice: &mut SeededRng) -> Draft {
    let size = match dice.below(200) {
        0..6 => Size::Large,
        6 => Size::Filling(dice.below(2) as u8),
        _ => Size::Small,
    };
    let is_large = size != Size::Small;
    Draft {
        id: dice.below(8) as u8,
        time_to_live: (dice.maybe(50, |dice| {
            dice.one_of(&[1, 5_000, 10_000, 30_000, 60_000, 100_000])
        }))
        .filter(|_| !is_large),
        delay: (dice.maybe(15, |dice| {
            dice.one_of(&[-1, 0, 1, 1_000, 5_000, 30_000, 400_000])
        }))
        .filter(|_| !is_large),
        session: dice.maybe(15, session),
        key: (dice.maybe(15, |dice| dice.below(3) as u8)).filter(|_| !is_large),
        size,
    }
}

/// Few, so that receivers hold them.
fn session(dice: &mut SeededRng) -> u8 {
    dice.below(3) as u8
}

fn of_session(dice: &mut SeededRng) -> SessionUse {
    match dice.below(12) {
        0..3 => SessionUse::Renew,
        3 => SessionUse::Lose,
        4 => SessionUse::State,
        5..8 => {
            SessionUse::SetState(dice.maybe(75, |dice| dice.one_of(&[0, 10, 260_000, 262_145])))
        }
        8..10 => {
            let since = dice.maybe(50, |dice| dice.one_of(&[0, 1, 5_000, 60_000]));
            SessionUse::List(since, dice.below(2) as usize, dice.below(3) as usize)
        }
        10 => SessionUse::Browse(dice.below(20), dice.below(4) as usize),
        _ => SessionUse::Delete(dice.below(3) as usize),
    }
}

fn store(dice: &mut SeededRng) -> SubQueue {
    match dice.below(10) {
        0..6 => SubQueue::Active,
        6..9 => SubQueue::DeadLetter,
        _ => SubQueue::TransferDeadLetter,
    }
}

fn mode(dice: &mut SeededRng) -> ReceiveMode {
    match dice.chance(75) {
        true => ReceiveMode::PeekLock,
        false => ReceiveMode::ReceiveAndDelete,
    }
}

fn token(dice: &mut SeededRng) -> Token {
    match dice.below(100) {
        0..72 => Token::Recent(dice.below(4) as usize),
        72..94 => Token::Given(dice.pick()),
        94..97 => Token::Forged(dice.pick(), dice.below(128) as u8),
        _ => Token::Garbage(u128::from(dice.next()) << 64 | u128::from(dice.next())),
    }
}

fn number(dice: &mut SeededRng) -> Number {
    match dice.chance(88) {
        true => Number::Known(dice.pick()),
        false => Number::Any(dice.pick(), dice.below(3) as u8, dice.below(12)),
    }
}

fn outcome(dice: &mut SeededRng) -> Outcome {
    let text = |dice: &mut SeededRng| dice.maybe(50, |dice| dice.one_of(&["", "why", "bad"]));
    match dice.below(13) {
        0..3 => Outcome::Complete,
        3..6 => Outcome::Abandon(properties(dice)),
        6..7 => Outcome::Release,
        7..10 => Outcome::Defer(properties(dice)),
        _ => Outcome::DeadLetter(text(dice), text(dice), properties(dice)),
    }
}

/// Sometimes so long that one or a few of them exceed the limit of a message.
fn properties(dice: &mut SeededRng) -> Properties {
    let mut properties = Properties::default();
    if dice.chance(70) {
        return properties;
    }
    let most = if dice.chance(2) { 3 } else { 2 };
    for _ in 0..=dice.below(most) {
        let name = dice.one_of(&["a", "b", "c", "DeadLetterReason"]);
        let text: Rc<str> = match dice.below(100) {
            0 => "l".repeat(33_000).into(),
            1..3 => "l".repeat(30_000).into(),
            _ => dice.one_of(&["", "v", "w"]).into(),
        };
        properties.set(name, text);
    }
    properties
}

fn change(dice: &mut SeededRng) -> Change {
    let other =
        |dice: &mut SeededRng| dice.maybe(60, |dice| dice.below(NAMES.len() as u64) as usize);
    match dice.below(16) {
        0 => Change::Nothing,
        1..3 => Change::Status(dice.one_of(&EntityStatus::ALL)),
        3..7 => Change::Status(EntityStatus::Active),
        7 => Change::LockSeconds(dice.one_of(&[5, 30, 60])),
        8 => Change::MaxDeliveryCount(dice.one_of(&[1, 2, 3])),
        9 => Change::TimeToLiveSeconds(dice.one_of(&[None, Some(1), Some(5), Some(60)])),
        10 => Change::DeadLettersExpired(dice.chance(50)),
        11 => Change::WindowSeconds(dice.one_of(&[5, 20, 60])),
        12..14 => Change::ForwardTo(other(dice)),
        14 => Change::ForwardDeadLetters(other(dice)),
        _ => Change::IdleSeconds(dice.maybe(50, |_| 300)),
    }
}

fn by(dice: &mut SeededRng) -> TimeStep {
    match dice.below(60) {
        0..36 => TimeStep::Deadline(dice.pick(), dice.below(3) as i64 - 1),
        36..56 => TimeStep::Milliseconds(dice.below(20_000) as i64),
        56..59 => TimeStep::Milliseconds(dice.below(100_000) as i64),
        _ => TimeStep::Milliseconds(dice.below(400_000) as i64),
    }
}
