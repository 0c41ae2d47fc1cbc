//! Who and what a history has so far: makes steps of transitions.

use proptest::sample::Index;
use servicebus_broker::StoreKind;

use crate::system::System;
use crate::transition::{Answer, By, Key, Step, Token, Transition};

/// Consumers and tokens by their number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    messages: usize,
    consumers: u64,
    /// Consumers that are open.
    pub(crate) open: Vec<(StoreKind, u64)>,
    /// Where each token is from.
    tokens: Vec<StoreKind>,
}

impl Names {
    /// The step that a transition means now; none when it is about something that does not exist.
    pub(crate) fn resolve(&mut self, transition: &Transition, system: &System) -> Option<Step> {
        Some(match transition {
            Transition::Send(letters) => {
                let letters = letters.iter().map(|&time_to_live| {
                    self.messages += 1;
                    (format!("m{}", self.messages), time_to_live)
                });
                Step::Send(letters.collect())
            }
            &Transition::Open(kind, mode) => {
                self.consumers += 1;
                self.open.push((kind, self.consumers));
                Step::Open(kind, self.consumers, mode)
            }
            Transition::Close(who) => {
                let (kind, id) = self.consumer(who)?;
                self.open.retain(|&open| open != (kind, id));
                Step::Close(kind, id)
            }
            Transition::Credit(who, credit) => {
                let (kind, id) = self.consumer(who)?;
                Step::Credit(kind, id, *credit)
            }
            Transition::Take(who, max) => {
                let (kind, id) = self.consumer(who)?;
                Step::Take(kind, id, *max)
            }
            Transition::Settle(token, own, outcome) => {
                let (key, kind) = self.token(token)?;
                let kind = if *own { kind } else { other(kind) };
                Step::Settle(kind, key, outcome.clone())
            }
            Transition::Renew(tokens, kind) => {
                let keys = tokens.iter().filter_map(|token| self.token(token));
                // Most of the time all of one store, or it would hardly ever succeed.
                let kind = keys.clone().next().map_or(*kind, |(_, kind)| kind);
                Step::Renew(kind, keys.map(|(key, _)| key).collect())
            }
            &Transition::Advance(by) => {
                let now = system.now();
                let to = match by {
                    By::Milliseconds(milliseconds) => now + milliseconds,
                    By::Deadline(offset) => system.deadline()? + offset,
                };
                Step::Advance(to.max(now))
            }
            Transition::Timeout => Step::Timeout,
            &Transition::Browse(kind, from, max) => Step::Browse(kind, from, max),
            Transition::Reset => Step::Reset,
        })
    }

    /// Remembers what a step brought about.
    pub(crate) fn learn(&mut self, step: &Step, answer: &Answer) {
        if let (&Step::Take(kind, ..), Answer::Messages(taken)) = (step, answer) {
            self.tokens.extend(taken.iter().map(|_| kind));
        }
    }

    fn consumer(&self, who: &Index) -> Option<(StoreKind, u64)> {
        (!self.open.is_empty()).then(|| *who.get(&self.open))
    }

    fn token(&self, token: &Token) -> Option<(Key, StoreKind)> {
        let last = self.tokens.len().checked_sub(1);
        let (at, key): (usize, fn(usize) -> Key) = match token {
            Token::Given(index) => (index.index(last? + 1), Key::Given),
            Token::Recent(back) => (last?.checked_sub(*back)?, Key::Given),
            &Token::Forged(index, bit) => {
                let at = index.index(last? + 1);
                return Some((Key::Forged(at, bit), self.tokens[at]));
            }
            &Token::Garbage(bits) => return Some((Key::Garbage(bits), StoreKind::Active)),
        };
        Some((key(at), self.tokens[at]))
    }
}

fn other(kind: StoreKind) -> StoreKind {
    match kind {
        StoreKind::Active => StoreKind::DeadLetters,
        StoreKind::DeadLetters => StoreKind::Active,
    }
}
