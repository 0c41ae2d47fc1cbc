//! What time does to the reference's messages, and where a message goes when its lock is over.

use servicebus_broker::{Expiry, StoreKind};

use super::Reference;
use super::store::{Letter, State};
use crate::transition::STORES;

impl Reference {
    /// Everything that is due by now, in order; nothing of it before `earliest`.
    pub(super) fn let_happen(&mut self, earliest: i64) {
        let mut last = None;
        while let Some((at, kind, expires, number)) =
            self.next_due().filter(|due| due.0 <= self.now)
        {
            let at = at.max(earliest);
            if last.replace(at).is_some_and(|last| last < at) {
                self.serve();
            }
            if expires {
                self.expire(number, at);
                continue;
            }
            let letter = self.store(kind).letter(number);
            letter.count += u32::from(kind == StoreKind::Active);
            let count = letter.count;
            self.note_at(at, kind, number, format!("lock expired {count}"));
            self.unlock(kind, number, at);
        }
        self.serve();
    }

    /// Ends of locks before expiries, the queue before its dead letters.
    pub(super) fn next_due(&self) -> Option<(i64, StoreKind, bool, u64)> {
        let due = |kind: StoreKind, letter: &Letter| {
            let eager = self.rules.settings.expiry == Expiry::Eager;
            match letter.state {
                State::Locked { until, .. } => Some((until, kind, false, letter.number)),
                State::Ready | State::Assigned(_) if eager || self.look(kind).is_active() => {
                    Some((letter.expires_at?, kind, true, letter.number))
                }
                State::Ready | State::Assigned(_) => None,
            }
        };
        let all = |kind| {
            self.look(kind)
                .letters
                .iter()
                .filter_map(move |letter| due(kind, letter))
        };
        STORES.into_iter().flat_map(all).min()
    }

    /// A lock is over: expiry comes before the delivery limit.
    pub(super) fn unlock(&mut self, kind: StoreKind, number: u64, at: i64) {
        let limit = self.rules.queue.max_delivery_count;
        let letter = self.store(kind).letter(number);
        if letter.expires_at.is_some_and(|expires| expires <= at) {
            self.expire(number, at);
        } else if kind == StoreKind::Active && letter.count >= limit {
            let text = format!("Message could not be consumed after {limit} delivery attempts.");
            self.bury(
                number,
                at,
                Some("MaxDeliveryCountExceeded".into()),
                Some(text),
            );
        } else {
            letter.state = State::Ready;
        }
    }

    fn expire(&mut self, number: u64, at: i64) {
        if self.rules.queue.dead_lettering_on_message_expiration {
            let text = "The message expired and was dead lettered.";
            self.bury(
                number,
                at,
                Some("TTLExpiredException".into()),
                Some(text.into()),
            );
        } else {
            self.remove(StoreKind::Active, number);
            self.note_at(at, StoreKind::Active, number, "expired".into());
        }
    }

    pub(super) fn bury(
        &mut self,
        number: u64,
        at: i64,
        reason: Option<String>,
        description: Option<String>,
    ) {
        let mut letter = self.remove(StoreKind::Active, number);
        self.dead.last += 1;
        let there = self.dead.last;
        let text = format!(
            "dead-lettered to {there}: {:?}, {:?}",
            words(&reason),
            words(&description)
        );
        let texts = [
            ("DeadLetterReason", reason),
            ("DeadLetterErrorDescription", description),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| Some((name.into(), text?)));
        letter.properties.extend(texts);
        self.dead.letters.push(Letter {
            number: there,
            expires_at: None,
            state: State::Ready,
            ..letter
        });
        self.note_at(at, StoreKind::Active, number, text);
    }
}

/// As facts show it: nothing and an empty text are the same there.
fn words(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}
