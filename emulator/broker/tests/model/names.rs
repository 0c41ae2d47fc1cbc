//! The names in a history so far, which turn transitions into steps.

use std::time::Duration;

use servicebus_broker::{EntityDescription, ReceiveMode, SubQueue};

use crate::history::{
    Answer, Change, Consume, Draft, EncodedMessage, Key, NAMES, Number, Pick, QUEUES, Rules, Step,
    StoreAddress, TimeStep, Token, Transition,
};
use crate::reference::{ModelMessage, Queue, Reference};
use crate::world::wire::encoded;

/// A queue with so many messages gets no more, so that steps meet among a few.
const ENOUGH: usize = 12;

/// A receiver that does not exist, or not in this store.
const STRANGER: u64 = 1_000_000;

/// Receivers and tokens by their number.
#[derive(Debug)]
pub(crate) struct Names {
    /// As the queues were declared.
    declared: Vec<EntityDescription>,
    receivers: u64,
    /// Receivers that are open.
    pub(crate) open: Vec<(StoreAddress, u64)>,
    /// The origin of each token.
    tokens: Vec<StoreAddress>,
}

impl Names {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            declared: rules.queues.clone(),
            receivers: 0,
            open: Vec::new(),
            tokens: Vec::new(),
        }
    }

    /// Returns the step of a transition; `None` if it names something that does not exist.
    pub(crate) fn resolve(
        &mut self,
        transition: &Transition,
        reference: &Reference,
    ) -> Option<Step> {
        let queue = |pick: &Pick| {
            let queues: Vec<usize> = reference.queues().map(|(q, _)| q).collect();
            pick.of(&queues).copied()
        };
        Some(match transition {
            Transition::Send(pick, drafts, batch) => {
                let q = queue(pick)?;
                Step::Send(q, sent(drafts, reference, q)?, *batch)
            }
            Transition::Open(pick, kind, mode, wanted) => {
                let has_sessions = reference.queue(queue(pick)?)?.has_sessions(*kind);
                self.open((queue(pick)?, *kind), *mode, *wanted, has_sessions)
            }
            Transition::Session(pick, session, what) => {
                let q = queue(pick)?;
                let has_sessions = reference.queue(q)?.has_sessions(SubQueue::Active);
                has_sessions.then_some(Step::Session(q, *session, *what))?
            }
            Transition::Consume(who, what) => self.consume(*who, *what)?,
            Transition::Settle(token, own, outcome) => {
                let (key, (q, kind)) = self.token(token, reference)?;
                let kind = if *own { kind } else { other(kind) };
                Step::Settle((q, kind), key, outcome.clone())
            }
            Transition::SettleAll(tokens, outcome) => {
                let (place, keys) = self.of_one_place(tokens, reference)?;
                Step::SettleAll(place, keys, outcome.clone())
            }
            Transition::Renew(tokens) => {
                let (place, keys) = self.of_one_place(tokens, reference)?;
                Step::Renew(place, keys)
            }
            Transition::ReceiveDeferred(numbers, mode, who) => {
                let (place, numbers) = known(numbers, reference, ModelMessage::is_deferred)?;
                let session = reference.queue(place.0)?.session_of_any(place.1, &numbers);
                Step::ReceiveDeferred(place, numbers, *mode, self.holder(place, *who)?, session)
            }
            Transition::Cancel(numbers) => {
                let ((q, _), numbers) = known(numbers, reference, ModelMessage::is_scheduled)?;
                Step::Cancel(q, numbers)
            }
            Transition::DeleteMessages(pick, kind, max, age) => {
                Step::DeleteMessages((queue(pick)?, *kind), *max, reference.now - age)
            }
            Transition::Update(pick, change) => {
                let q = queue(pick)?;
                let description = &reference.queue(q)?.description;
                Step::Update(q, Box::new(change.of(description, q)))
            }
            Transition::LoseLocks(pick) => Step::LoseLocks(queue(pick)?),
            Transition::Advance(TimeStep::Milliseconds(passed)) => {
                Step::Advance(reference.now + passed)
            }
            Transition::Advance(TimeStep::Deadline(pick, offset)) => {
                let to = reference.deadline(queue(pick)?)? + offset;
                Step::Advance(to.max(reference.now))
            }
            Transition::Timeout(pick) => Step::Timeout(queue(pick)?),
            Transition::Browse(pick, kind, from, max) => {
                Step::Browse((queue(pick)?, *kind), *from, *max)
            }
            Transition::Reset(pick) => Step::Reset(queue(pick)?),
            Transition::Create(pick) => {
                let q = self.missing(*pick, reference)?;
                Step::Create(q, Box::new(self.declared[q].clone()))
            }
            Transition::Drop(pick) => Step::Drop(queue(pick)?),
            Transition::Restart => Step::Restart,
        })
    }

    fn open(
        &mut self,
        place: StoreAddress,
        mode: ReceiveMode,
        wanted: Option<u8>,
        has_sessions: bool,
    ) -> Step {
        self.receivers += 1;
        self.open.push((place, self.receivers));
        match has_sessions {
            true => Step::Accept(place.0, self.receivers, mode, wanted),
            false => Step::Open(place, self.receivers, mode, wanted == Some(0)),
        }
    }

    fn consume(&mut self, who: Pick, what: Consume) -> Option<Step> {
        let &(place, id) = who.of(&self.open)?;
        Some(match what {
            Consume::Credit(credit) => Step::Credit(place, id, credit),
            Consume::Take(max) => Step::Take(place, id, max),
            Consume::Skip => Step::Skip(place, id),
            Consume::Close => {
                self.open.retain(|&(_, open)| open != id);
                Step::Close(place, id)
            }
        })
    }

    /// Records the tokens that a step issued.
    pub(crate) fn learn(&mut self, step: &Step, answer: &Answer) {
        match (step, answer) {
            (&Step::Take(place, ..), Answer::Messages(taken))
            | (&Step::ReceiveDeferred(place, ..), Answer::Deferred(Ok(taken))) => {
                self.tokens.extend(taken.iter().map(|_| place));
            }
            (&Step::Accept(_, id, ..), Answer::Accepted(Err(_))) => {
                self.open.retain(|&(_, open)| open != id);
            }
            (Step::Restart, _) => self.open.clear(),
            _ => {}
        }
    }

    /// Removes the receivers of deleted queues.
    pub(crate) fn forget_lost(&mut self, is_there: impl Fn(usize) -> bool) {
        self.open.retain(|&((q, _), _)| is_there(q));
    }

    /// Returns the receiver for a lock: one of the store, or another one.
    fn holder(&self, place: StoreAddress, who: Pick) -> Option<u64> {
        let open = self.open.iter().filter(|(at, _)| *at == place);
        let ids: Vec<u64> = open.map(|&(_, id)| id).chain([STRANGER]).collect();
        who.of(&ids).copied()
    }

    /// A queue that is gone.
    fn missing(&self, pick: Pick, reference: &Reference) -> Option<usize> {
        let all = 0..self.declared.len();
        let missing: Vec<usize> = all.filter(|&q| reference.queue(q).is_none()).collect();
        pick.of(&missing).copied()
    }

    fn token(&self, token: &Token, reference: &Reference) -> Option<(Key, StoreAddress)> {
        let last = self.tokens.len().checked_sub(1);
        let given: Vec<usize> = match token {
            Token::Recent(back) => vec![last?.checked_sub(*back)?],
            Token::Given(_) | Token::Forged(..) => (0..=last?).collect(),
            Token::Garbage(_) => vec![],
        };
        let (key, place) = match *token {
            Token::Recent(_) => (Key::Given(given[0]), self.tokens[given[0]]),
            Token::Given(pick) => {
                let at = *pick.of(&given)?;
                (Key::Given(at), self.tokens[at])
            }
            Token::Forged(pick, bit) => {
                let at = *pick.of(&given)?;
                (Key::Forged(at, bit), self.tokens[at])
            }
            Token::Garbage(bits) => (Key::Garbage(bits), (0, SubQueue::Active)),
        };
        reference.queue(place.0).map(|_| (key, place))
    }

    /// Chooses all from one store, or it would hardly ever succeed.
    fn of_one_place(
        &self,
        tokens: &[Token],
        reference: &Reference,
    ) -> Option<(StoreAddress, Vec<Key>)> {
        let tokens = tokens
            .iter()
            .filter_map(|token| self.token(token, reference));
        let tokens: Vec<_> = tokens.collect();
        let place = tokens.first()?.1;
        let tokens = tokens.into_iter().filter(|token| token.1 == place);
        Some((place, tokens.map(|(key, _)| key).collect()))
    }
}

/// Returns the messages for a queue that does not hold enough yet.
fn sent(drafts: &[Draft], reference: &Reference, q: usize) -> Option<Vec<EncodedMessage>> {
    let queue = reference.queue(q).filter(|queue| queue.len() < ENOUGH)?;
    let drafts = drafts.iter().map(|&draft| fitting(draft, queue));
    let drafts: Vec<Draft> = drafts.collect();
    Some(parcels(&drafts, reference.now, queue.room()))
}

/// Nearly everything that is sent to a queue with sessions has one.
fn fitting(draft: Draft, queue: &Queue) -> Draft {
    let has_sessions = queue.has_sessions(SubQueue::Active);
    match draft.session {
        None if has_sessions && draft.id > 0 => Draft {
            session: Some(draft.id % 3),
            key: None,
            ..draft
        },
        None | Some(_) => draft,
    }
}

fn parcels(drafts: &[Draft], now: i64, mut room: u64) -> Vec<EncodedMessage> {
    let parcels = drafts.iter().map(|&draft| {
        let payload = encoded(&draft, now, room);
        room = room.saturating_sub(payload.len() as u64);
        EncodedMessage { draft, payload }
    });
    parcels.collect()
}

/// Numbers of messages of one store.
fn known(
    numbers: &[Number],
    reference: &Reference,
    which: impl Fn(&ModelMessage) -> bool,
) -> Option<(StoreAddress, Vec<u64>)> {
    let mut all = Vec::new();
    for (q, queue) in reference.queues() {
        for kind in SubQueue::ALL {
            let messages = queue.store(kind).messages.iter().filter(|l| which(l));
            all.extend(messages.map(|message| ((q, kind), message.shown())));
        }
    }
    let named = numbers.iter().filter_map(|number| match number {
        Number::Known(pick) => pick.of(&all).copied(),
        Number::Any(pick, partition, number) => {
            let queues: Vec<usize> = reference.queues().map(|(q, _)| q).collect();
            let place = (*pick.of(&queues)?, SubQueue::Active);
            Some((place, number | u64::from(*partition) << 48))
        }
    });
    let named: Vec<(StoreAddress, u64)> = named.collect();
    let place = named.first()?.0;
    let numbers = named.into_iter().filter(|(at, _)| *at == place);
    Some((place, numbers.map(|(_, number)| number).collect()))
}

fn other(kind: SubQueue) -> SubQueue {
    match kind {
        SubQueue::Active => SubQueue::DeadLetter,
        SubQueue::DeadLetter | SubQueue::TransferDeadLetter => SubQueue::Active,
    }
}

impl Change {
    fn of(self, before: &EntityDescription, own: usize) -> EntityDescription {
        let mut after = before.clone();
        let path = |target: Option<usize>| {
            target.map(|target| NAMES[target].parse().expect("a name is a path"))
        };
        match self {
            Self::Nothing => {}
            Self::Status(status) => after.status = status,
            Self::LockSeconds(seconds) => after.lock_duration = Duration::from_secs(seconds),
            Self::MaxDeliveryCount(count) => after.max_delivery_count = count,
            Self::TimeToLiveSeconds(seconds) => {
                after.default_message_time_to_live = seconds.map(Duration::from_secs);
            }
            Self::DeadLettersExpired(yes) => after.dead_lettering_on_message_expiration = yes,
            Self::WindowSeconds(seconds) => {
                after.duplicate_detection_history_time_window = Duration::from_secs(seconds);
            }
            Self::ForwardTo(target) => after.forward_to = path(target),
            Self::ForwardDeadLetters(target) => {
                // Not to itself, as when it is made.
                after.forward_dead_lettered_messages_to = path(target.filter(|&to| to != own));
            }
            Self::IdleSeconds(seconds) => {
                after.auto_delete_on_idle = seconds.map(Duration::from_secs);
            }
        }
        after
    }
}

const _: () = assert!(QUEUES < NAMES.len(), "one name is left over");
