//! Moving time forward, and knowing when everything that follows from it has happened.
//!
//! At rest means: nothing is due, nothing ready waits for a consumer with credit to take it, and all output is
//! in the sockets. What clients do next is never part of it (harness.md §7).

use std::time::Duration;

use servicebus_broker::{EntityId, Mailbox, StoreKind};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use super::Namespace;
use crate::timers::Alarm;

/// How long an advance, or the answer to a change, waits for a client that does not read before it goes on.
const PATIENCE: Duration = Duration::from_secs(2);

/// What keeps a namespace from rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unrest {
    /// The address of a store, or a connection.
    pub(crate) place: String,
    /// What it still has to do.
    pub(crate) reason: String,
}

/// Tells the timers of a clock that was changed, also where an advance is dropped on its way.
struct ClockChange<'a>(&'a Alarm);

impl Drop for ClockChange<'_> {
    fn drop(&mut self) {
        self.0.notify();
    }
}

impl Namespace {
    /// Moves time forward by `by`, stopping at every deadline on the way, and returns when all of it has
    /// come to rest. Where there are more deadlines than `steps`, it stops before the next one and returns how far it
    /// came. Dropped on its way, it leaves the clock at the deadline that it has reached.
    pub(crate) async fn advance(&self, by: Duration, steps: u32) -> Result<(), Duration> {
        let _alone = self.advancing.lock().await;
        let changed = ClockChange(&self.alarm);
        let walk = self.clock.begin_walk(by);
        self.note_advance(by.as_millis() as u64);
        // What a client wrote before it asked for this happens before time goes on (spec/observed.md 18).
        self.router.read_all();
        let mut restless = Vec::new();
        let mut left = steps;
        loop {
            self.come_to_rest(&mut restless).await;
            match self.next_deadline() {
                Some(deadline) if deadline <= walk.target => {
                    left = left.checked_sub(1).ok_or_else(|| walk.passed())?;
                    walk.step_to(deadline);
                    while self.fire_due() {
                        yield_now().await;
                    }
                    // Where nothing has to come to rest this is the only place at which it can be dropped.
                    yield_now().await;
                }
                _ => break,
            }
        }
        walk.step_to(walk.target);
        drop(walk);
        drop(changed);
        self.come_to_rest(&mut restless).await;
        Ok(())
    }

    /// Stops time, after an advance that is on its way.
    pub(crate) async fn freeze(&self) {
        let _alone = self.advancing.lock().await;
        self.clock.freeze();
        self.alarm.notify();
    }

    /// Lets time flow again, after an advance that is on its way.
    pub(crate) async fn resume(&self) {
        let _alone = self.advancing.lock().await;
        self.clock.resume();
        self.alarm.notify();
    }

    /// Waits until the namespace is at rest and, if asked, no message is locked; says what is not after `within`.
    pub(crate) async fn settled(
        &self,
        within: Duration,
        entity: Option<(EntityId, StoreKind)>,
    ) -> Result<(), Vec<Unrest>> {
        let deadline = Instant::now() + within;
        loop {
            let turn = self.turns.notified();
            tokio::pin!(turn);
            turn.as_mut().enable();
            let mut unrest = self.unrest();
            unrest.extend(self.locks(entity));
            if unrest.is_empty() {
                return Ok(());
            }
            tokio::select! {
                () = turn => {}
                () = sleep_until(deadline) => return Err(unrest),
            }
        }
    }

    /// Waits until every connection has written what it has to say of changes of entities: a client that is answered
    /// only then finds its links detached, and settles nothing on them. One that does not read is not waited for.
    pub(crate) async fn changes_told(&self) {
        let told = async {
            loop {
                let turn = self.turns.notified();
                tokio::pin!(turn);
                turn.as_mut().enable();
                if self.router.following().is_empty() {
                    return;
                }
                turn.await;
            }
        };
        // Late or not, the change is made.
        let _ = timeout(PATIENCE, told).await;
    }

    /// Waits for rest. What did not come to it in time is put into `restless`, and not waited for again.
    async fn come_to_rest(&self, restless: &mut Vec<Unrest>) {
        let unrest = || {
            let mut unrest = self.unrest();
            unrest.retain(|unrest| !restless.contains(unrest));
            unrest
        };
        let rest = async {
            loop {
                let turn = self.turns.notified();
                tokio::pin!(turn);
                turn.as_mut().enable();
                if unrest().is_empty() {
                    return;
                }
                turn.await;
            }
        };
        if timeout(PATIENCE, rest).await.is_err() {
            let late = unrest();
            tracing::warn!(namespace = self.name(), unrest = ?late, "time goes on without rest");
            restless.extend(late);
        }
    }

    fn unrest(&self) -> Vec<Unrest> {
        let mut unrest = Vec::new();
        let now = self.clock.now();
        for entity in self.watched.due(&self.registry, now, usize::MAX) {
            unrest.push(Unrest {
                place: entity.path.to_string(),
                reason: "something is due".into(),
            });
        }
        for entity in self.watched.restless(&self.registry) {
            self.look(&entity, |queue| {
                if queue.mailbox.has_assigned() {
                    unrest.push(Unrest {
                        place: entity.path.to_string(),
                        reason: "messages wait to be written to a receiver".into(),
                    });
                }
                if queue.mailbox.is_forwarding() {
                    unrest.push(Unrest {
                        place: entity.path.to_string(),
                        reason: "messages are on their way to another entity".into(),
                    });
                }
            });
        }
        for connection in self.router.busy() {
            unrest.push(Unrest {
                place: format!("connection {}", connection.0),
                reason: "its output is not written".into(),
            });
        }
        unrest
    }

    /// The locks of a store and of the dead letters behind it, or all.
    fn locks(&self, wanted: Option<(EntityId, StoreKind)>) -> Vec<Unrest> {
        let mut held = Vec::new();
        // Each lock has an end, so that an entity without a deadline has none.
        for entity in self.watched.with_deadlines(&self.registry) {
            for kind in StoreKind::ALL {
                if wanted.is_some_and(|(id, first)| id != entity.id || kind < first) {
                    continue;
                }
                let holders = self.look(&entity, |queue| holders(&queue.mailbox, kind));
                held.extend(holders.into_iter().map(|(holder, count)| Unrest {
                    place: format!("{}{}", entity.path, kind.suffix()),
                    reason: format!("{count} locked by {}", self.holder(holder)),
                }));
            }
        }
        held
    }

    fn holder(&self, connection: u32) -> String {
        let name = self.client_name(servicebus_broker::ClientId(connection));
        name.map_or_else(
            || format!("connection {connection}"),
            |name| name.to_string(),
        )
    }
}

/// The connections that hold locks, each with how many.
fn holders(mailbox: &Mailbox, kind: StoreKind) -> Vec<(u32, usize)> {
    let mut holders = std::collections::BTreeMap::new();
    for consumer in mailbox.lock_holders(kind) {
        *holders.entry((consumer.0 >> 32) as u32).or_insert(0) += 1;
    }
    holders.into_iter().collect()
}

#[cfg(test)]
mod tests;
