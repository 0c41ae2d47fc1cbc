//! Draws settings and histories from a seed, reproducibly.

use std::rc::Rc;
use std::time::Duration;

use servicebus_broker::{
    EntityDescription, EntityStatus, Expiry, FailedForwards, IdSource as _, LocksOnDetach,
    NamespaceSettings, ReceiveMode, SplitMix64, SubQueue,
};

use crate::history::{
    Change, Consume, Draft, NAMES, Number, Outcome, Pick, Properties, QUEUES, Rules, SessionUse,
    Size, TimeStep, Token, Transition,
};

struct SeededRng(SplitMix64);

impl SeededRng {
    fn pick(&mut self) -> Pick {
        Pick((self.0.next() >> 32) as u32)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((self.0.next() >> 32) * bound) >> 32
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
    let mut rng = SeededRng(SplitMix64(SplitMix64(seed).next()));
    let rules = rules(&mut rng);
    let transitions = (0..length).map(|_| transition(&mut rng)).collect();
    (rules, transitions)
}

fn rules(rng: &mut SeededRng) -> Rules {
    let either = |yes| usize::from(yes);
    let settings = NamespaceSettings {
        expiry: [Expiry::Eager, Expiry::OnReceive][either(rng.chance(35))],
        locks_on_detach: [LocksOnDetach::Keep, LocksOnDetach::Release][either(rng.chance(40))],
        failed_forwards: [
            FailedForwards::TransferDeadLetter,
            FailedForwards::DeadLetter,
        ][either(rng.chance(40))],
        ..NamespaceSettings::default()
    };
    let count = rng.one_of(&[1, 1, 2, 3, 3, QUEUES]);
    let queues = (0..count).map(|at| queue(rng, at, count)).collect();
    Rules { queues, settings }
}

fn queue(rng: &mut SeededRng, at: usize, count: usize) -> EntityDescription {
    let forward_to = rng.maybe(30, |rng| target(rng, count));
    let requires_session = rng.chance(30);
    let idle = rng.chance(20);
    let path = |at: usize| NAMES[at].parse().expect("a name is a path");
    EntityDescription {
        lock_duration: Duration::from_secs(rng.one_of(&[5, 30, 60])),
        max_delivery_count: rng.one_of(&[1, 2, 2, 3, 5]),
        default_message_time_to_live: rng
            .one_of(&[None, None, Some(1), Some(20), Some(60)])
            .map(Duration::from_secs),
        dead_lettering_on_message_expiration: rng.chance(50),
        requires_duplicate_detection: rng.chance(30),
        duplicate_detection_history_time_window: Duration::from_secs(rng.one_of(&[5, 20, 60])),
        forward_to: forward_to.map(path),
        // Not to itself: the order in which dead letters and messages in a cycle arrive is not guaranteed.
        forward_dead_lettered_messages_to: rng
            .maybe(30, |rng| target(rng, count))
            .filter(|&to| to != at)
            .map(path),
        auto_delete_on_idle: idle.then_some(Duration::from_secs(300)),
        max_size_in_megabytes: 1,
        enable_partitioning: rng.chance(20),
        requires_session,
        ..EntityDescription::default()
    }
}

/// A queue, itself too (observed 26); rarely one that does not exist.
fn target(rng: &mut SeededRng, count: usize) -> usize {
    match rng.chance(4) {
        true => NAMES.len() - 1,
        false => rng.below(count as u64) as usize,
    }
}

fn transition(rng: &mut SeededRng) -> Transition {
    // A queue, or a receiver.
    let queue = rng.pick();
    match rng.below(1000) {
        0..200 => {
            let drafts = rng.some(3, draft);
            Transition::Send(queue, drafts, rng.chance(40))
        }
        200..235 => Transition::Open(queue, store(rng), mode(rng), rng.maybe(60, session)),
        235..250 => Transition::Session(queue, session(rng), of_session(rng)),
        250..265 => Transition::Consume(queue, Consume::Close),
        265..385 => Transition::Consume(queue, Consume::Credit(rng.below(6) as u32)),
        385..535 => Transition::Consume(queue, Consume::Take(rng.below(5) as usize)),
        535..690 => Transition::Settle(token(rng), rng.chance(95), outcome(rng)),
        690..705 => Transition::SettleAll(rng.some(3, token), outcome(rng)),
        705..725 => Transition::Renew(rng.some(2, token)),
        725..775 => Transition::ReceiveDeferred(rng.some(2, number), mode(rng), rng.pick()),
        775..790 => Transition::Cancel(rng.some(2, number)),
        790..805 => {
            let max = rng.below(4) as usize;
            Transition::DeleteMessages(queue, store(rng), max, rng.one_of(&[0, 1, 5_000]))
        }
        805..830 => Transition::Update(queue, change(rng)),
        830..833 => Transition::LoseLocks(queue),
        833..938 => Transition::Advance(by(rng)),
        938..950 => Transition::Consume(queue, Consume::Skip),
        950..975 => Transition::Timeout(queue),
        975..985 => {
            let from = rng.below(20) | (rng.below(8) / 7) << 48;
            Transition::Browse(queue, store(rng), from, rng.below(5) as usize)
        }
        985..988 => Transition::Reset(queue),
        988..995 => Transition::Create(queue),
        995..998 => Transition::Restart,
        _ => Transition::Drop(queue),
    }
}

/// Few ids, so that there are duplicates; times like those of locks and windows, so that deadlines coincide.
fn draft(rng: &mut SeededRng) -> Draft {
    let size = match rng.below(200) {
        0..6 => Size::Large,
        6 => Size::Filling(rng.below(2) as u8),
        _ => Size::Small,
    };
    let is_large = size != Size::Small;
    Draft {
        id: rng.below(8) as u8,
        time_to_live: (rng.maybe(50, |rng| {
            rng.one_of(&[1, 5_000, 10_000, 30_000, 60_000, 100_000])
        }))
        .filter(|_| !is_large),
        delay: (rng.maybe(15, |rng| {
            rng.one_of(&[-1, 0, 1, 1_000, 5_000, 30_000, 400_000])
        }))
        .filter(|_| !is_large),
        session: rng.maybe(15, session),
        key: (rng.maybe(15, |rng| rng.below(3) as u8)).filter(|_| !is_large),
        size,
    }
}

/// Few, so that receivers hold them.
fn session(rng: &mut SeededRng) -> u8 {
    rng.below(3) as u8
}

fn of_session(rng: &mut SeededRng) -> SessionUse {
    match rng.below(12) {
        0..3 => SessionUse::Renew,
        3 => SessionUse::Lose,
        4 => SessionUse::State,
        5..8 => SessionUse::SetState(rng.maybe(75, |rng| rng.one_of(&[0, 10, 260_000, 262_145]))),
        8..10 => {
            let since = rng.maybe(50, |rng| rng.one_of(&[0, 1, 5_000, 60_000]));
            SessionUse::List(since, rng.below(2) as usize, rng.below(3) as usize)
        }
        10 => SessionUse::Browse(rng.below(20), rng.below(4) as usize),
        _ => SessionUse::Delete(rng.below(3) as usize),
    }
}

fn store(rng: &mut SeededRng) -> SubQueue {
    match rng.below(10) {
        0..6 => SubQueue::Active,
        6..9 => SubQueue::DeadLetter,
        _ => SubQueue::TransferDeadLetter,
    }
}

fn mode(rng: &mut SeededRng) -> ReceiveMode {
    match rng.chance(75) {
        true => ReceiveMode::PeekLock,
        false => ReceiveMode::ReceiveAndDelete,
    }
}

fn token(rng: &mut SeededRng) -> Token {
    match rng.below(100) {
        0..72 => Token::Recent(rng.below(4) as usize),
        72..94 => Token::Given(rng.pick()),
        94..97 => Token::Forged(rng.pick(), rng.below(128) as u8),
        _ => Token::Garbage(u128::from(rng.0.next()) << 64 | u128::from(rng.0.next())),
    }
}

fn number(rng: &mut SeededRng) -> Number {
    match rng.chance(88) {
        true => Number::Known(rng.pick()),
        false => Number::Any(rng.pick(), rng.below(3) as u8, rng.below(12)),
    }
}

fn outcome(rng: &mut SeededRng) -> Outcome {
    let text = |rng: &mut SeededRng| rng.maybe(50, |rng| rng.one_of(&["", "why", "bad"]));
    match rng.below(13) {
        0..3 => Outcome::Complete,
        3..6 => Outcome::Abandon(properties(rng)),
        6..7 => Outcome::Release,
        7..10 => Outcome::Defer(properties(rng)),
        _ => Outcome::DeadLetter(text(rng), text(rng), properties(rng)),
    }
}

/// Sometimes so long that one or a few of them exceed the limit of a message.
fn properties(rng: &mut SeededRng) -> Properties {
    let mut properties = Properties::default();
    if rng.chance(70) {
        return properties;
    }
    let most = if rng.chance(2) { 3 } else { 2 };
    for _ in 0..=rng.below(most) {
        let name = rng.one_of(&["a", "b", "c", "DeadLetterReason"]);
        let text: Rc<str> = match rng.below(100) {
            0 => "l".repeat(33_000).into(),
            1..3 => "l".repeat(30_000).into(),
            _ => rng.one_of(&["", "v", "w"]).into(),
        };
        properties.set(name, text);
    }
    properties
}

fn change(rng: &mut SeededRng) -> Change {
    let other = |rng: &mut SeededRng| rng.maybe(60, |rng| rng.below(NAMES.len() as u64) as usize);
    match rng.below(16) {
        0 => Change::Nothing,
        1..3 => Change::Status(rng.one_of(&EntityStatus::ALL)),
        3..7 => Change::Status(EntityStatus::Active),
        7 => Change::LockSeconds(rng.one_of(&[5, 30, 60])),
        8 => Change::MaxDeliveryCount(rng.one_of(&[1, 2, 3])),
        9 => Change::TimeToLiveSeconds(rng.one_of(&[None, Some(1), Some(5), Some(60)])),
        10 => Change::DeadLettersExpired(rng.chance(50)),
        11 => Change::WindowSeconds(rng.one_of(&[5, 20, 60])),
        12..14 => Change::ForwardTo(other(rng)),
        14 => Change::ForwardDeadLetters(other(rng)),
        _ => Change::IdleSeconds(rng.maybe(50, |_| 300)),
    }
}

fn by(rng: &mut SeededRng) -> TimeStep {
    match rng.below(60) {
        0..36 => TimeStep::Deadline(rng.pick(), rng.below(3) as i64 - 1),
        36..56 => TimeStep::Milliseconds(rng.below(20_000) as i64),
        56..59 => TimeStep::Milliseconds(rng.below(100_000) as i64),
        _ => TimeStep::Milliseconds(rng.below(400_000) as i64),
    }
}
