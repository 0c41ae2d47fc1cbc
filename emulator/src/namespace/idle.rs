//! Advances time, and detects when all consequences have happened.
//!
//! A namespace is idle if nothing is due, no ready message waits for a receiver with credit to take it, and all output is in
//! the sockets. What clients do next does not count (harness.md §7), with one exception: a client that is connecting is
//! about to ask for waiting messages. A wait for idleness also waits for the operations that faults hold; an advance does
//! not, because time ends some of them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use servicebus_broker::{
    ClientId, Entities as _, Entity, EntityId, ReceiverId, SubQueue, Timestamp,
};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{AUTOMATIC_CLOCK, Namespace, SharedEntity};
use crate::faults::REQUESTS;
use crate::router::CONNECTING;

/// How long an advance, or the response to a change, waits for a client that does not read.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of checks whether a client is still connecting: no event reports that it will not ask for messages.
const CONNECTING_CHECK: Duration = Duration::from_millis(20);

/// Maximum number of busy parts that are listed; the others are only counted.
const MAX_TOLD: usize = 100;

/// What keeps a namespace from being idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Busy {
    /// The address of a store, or a connection.
    pub(crate) place: String,
    /// What is left to do there.
    pub(crate) reason: String,
}

/// Why there is no next deadline to advance to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoNext {
    NothingDue,
    /// The next deadline, and the time until then, which is longer than the limit.
    TooFar(Timestamp, Duration),
}

/// Stores a changed clock and wakes the timers, even if an advance is dropped half-way.
struct ClockChange<'a>(&'a Namespace);

impl Drop for ClockChange<'_> {
    fn drop(&mut self) {
        self.0.append_clock();
        self.0.alarm.notify();
    }
}

impl Namespace {
    /// Advances time by `by`, stopping at every deadline, and returns when the namespace is idle. With more deadlines than
    /// `steps`, it stops before the next one and returns how far it came. If dropped, it leaves the clock at the last
    /// reached deadline.
    pub(crate) async fn advance(&self, by: Duration, steps: u32) -> Result<(), Duration> {
        let Ok(done) = self
            .advance_by(ClientId::BROKER, || Ok::<_, Infallible>(by), steps)
            .await;
        done
    }

    /// Advances the automatic clock by `by`, however many deadlines are on the way.
    pub(super) async fn step_by(&self, by: Duration) {
        let by = || Ok::<_, Infallible>(by);
        // It goes no further than needed.
        let Ok(_) = self.advance_by(AUTOMATIC_CLOCK, by, u32::MAX).await;
    }

    /// Advances time to the next deadline as [`Self::advance`] does, if it is at most `limit` away when the advance begins.
    pub(crate) async fn advance_to_next(
        &self,
        limit: Duration,
        steps: u32,
    ) -> Result<Result<(), Duration>, NoNext> {
        let until_next = || {
            let next = self.next_deadline().ok_or(NoNext::NothingDue)?;
            let by = next.since(self.clock.now());
            match by <= limit {
                true => Ok(by),
                false => Err(NoNext::TooFar(next, by)),
            }
        };
        self.advance_by(ClientId::BROKER, until_next, steps).await
    }

    /// Advances time by the result of `by`, which is called once time stands.
    async fn advance_by<E>(
        &self,
        client: ClientId,
        by: impl FnOnce() -> Result<Duration, E>,
        steps: u32,
    ) -> Result<Result<(), Duration>, E> {
        let _alone = self.advancing.lock().await;
        self.connected().await;
        let changed = ClockChange(self);
        let mut advance = self.clock.begin_advance(Duration::ZERO);
        let by = by()?;
        advance.target = advance.target + by;
        self.record_advance(client, by.as_millis() as u64);
        // Everything that a client wrote before its request happens before time advances (spec/observed.md 18).
        self.router.read_all();
        let mut late = Vec::new();
        let mut left = steps;
        loop {
            self.wait_idle(&mut late).await;
            match self.next_deadline() {
                Some(deadline) if deadline <= advance.target => {
                    let Some(rest) = left.checked_sub(1) else {
                        return Ok(Err(advance.passed()));
                    };
                    left = rest;
                    advance.step_to(deadline);
                    while self.fire_due() {
                        yield_now().await;
                    }
                    // If the namespace is always idle, this is the only point at which the future can be dropped.
                    yield_now().await;
                }
                _ => break,
            }
        }
        advance.step_to(advance.target);
        drop(advance);
        drop(changed);
        self.wait_idle(&mut late).await;
        Ok(Ok(()))
    }

    /// Stops time after a running advance, and ends automatic steps.
    pub(crate) async fn freeze(&self) {
        self.end_automatic_clock();
        self.stop_clock().await;
    }

    pub(crate) async fn stop_clock(&self) {
        let _alone = self.advancing.lock().await;
        self.clock.freeze();
        self.append_clock();
        self.alarm.notify();
    }

    /// Lets time flow again after a running advance.
    pub(crate) async fn resume(&self) {
        self.end_automatic_clock();
        let _alone = self.advancing.lock().await;
        self.clock.resume();
        self.append_clock();
        self.alarm.notify();
    }

    /// Waits until the namespace is idle and, if asked, no message is locked; returns what is still busy after `within`.
    pub(crate) async fn settled(
        &self,
        within: Duration,
        entity: Option<(EntityId, SubQueue)>,
    ) -> Result<(), Vec<Busy>> {
        let deadline = Instant::now() + within;
        loop {
            let turn = self.turns.notified();
            tokio::pin!(turn);
            turn.as_mut().enable();
            if self.is_settled(entity) {
                return Ok(());
            }
            tokio::select! {
                () = turn => {}
                () = sleep(CONNECTING_CHECK) => {}
                () = sleep_until(deadline) => break,
            }
        }
        let mut busy = self.busy();
        busy.extend(self.held_by_faults());
        busy.extend(self.locks(entity));
        busy.extend(self.connecting());
        if busy.len() > MAX_TOLD {
            let reason = format!("{} more are not idle", busy.len() - MAX_TOLD);
            let place = self.name().to_owned();
            busy.truncate(MAX_TOLD);
            busy.push(Busy { place, reason });
        }
        match busy.is_empty() {
            true => Ok(()),
            false => Err(busy),
        }
    }

    /// Whether [`Self::settled`] has nothing to wait for. Asked after every turn, so that it counts no locks.
    fn is_settled(&self, entity: Option<(EntityId, SubQueue)>) -> bool {
        let are_held = !self.held_by_faults().is_empty();
        !are_held && self.is_idle() && self.locked_stores(entity).next().is_none()
    }

    /// Waits until every connection has written the consequences of changed entities: a client that gets its response then
    /// finds its links detached, and settles nothing on them. Does not wait for clients that do not read.
    pub(crate) async fn changes_written(&self) {
        let written = self.wait_in_turns(|| self.router.following().is_empty());
        // The change is made even if the wait times out.
        let _ = timeout(TIMEOUT, written).await;
    }

    /// Waits for something that connections bring about in their turns.
    pub(crate) async fn wait_in_turns(&self, has_happened: impl Fn() -> bool) {
        loop {
            let turn = self.turns.notified();
            tokio::pin!(turn);
            turn.as_mut().enable();
            if has_happened() {
                return;
            }
            turn.await;
        }
    }

    /// Waits until the namespace is idle. Adds connections that were busy for too long to `late`, and does not wait for them
    /// again.
    async fn wait_idle(&self, late: &mut Vec<Busy>) {
        let busy = || {
            let mut busy = self.busy();
            busy.retain(|busy| !late.contains(busy));
            busy
        };
        let idle = self.wait_in_turns(|| busy().is_empty());
        if timeout(TIMEOUT, idle).await.is_err() {
            let busy = busy();
            tracing::warn!(
                namespace = self.name(),
                ?busy,
                "the clock advances although some clients are busy"
            );
            late.extend(busy);
        }
    }

    /// Waits until the connecting clients have asked for the waiting messages. Does not wait longer than one client counts as
    /// connecting: another one may connect at any time.
    async fn connected(&self) {
        let connected = async {
            while !self.connecting().is_empty() {
                let turn = self.turns.notified();
                // A client that asks for nothing stops counting as connecting soon.
                let _ = timeout(CONNECTING_CHECK, turn).await;
            }
        };
        let _ = timeout(CONNECTING, connected).await;
    }

    /// Returns the connecting clients, if a message waits for which no receiver has asked: one of them may be about to.
    fn connecting(&self) -> Vec<Busy> {
        let connecting = self.router.connecting();
        if connecting.is_empty() {
            return Vec::new();
        }
        let entities = self.entities();
        let Some(waiting) = entities
            .iter()
            .find(|entity| self.read(entity, |entity| entity.has_ready(SubQueue::Active)))
        else {
            return Vec::new();
        };
        let busy = connecting.into_iter().map(|connection| Busy {
            place: waiting.path.to_string(),
            reason: format!(
                "a message waits while {} is connecting",
                self.receiver_name(connection.receiver_id(0))
            ),
        });
        busy.collect()
    }

    /// Returns whether nothing is in progress, and no client is connecting.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy().is_empty() && self.connecting().is_empty()
    }

    fn busy(&self) -> Vec<Busy> {
        let mut busy = Vec::new();
        let now = self.clock.now();
        for entity in self.with_entities(|entities| entities.due(now, usize::MAX)) {
            busy.push(Busy {
                place: entity.path.to_string(),
                reason: "something is due".into(),
            });
        }
        for entity in self.with_entities(|entities| entities.busy()) {
            self.read(&entity, |entity| {
                if entity.has_reserved() {
                    busy.push(Busy {
                        place: entity.path().to_string(),
                        reason: "messages wait to be written to a receiver".into(),
                    });
                }
                if entity.is_forwarding() {
                    busy.push(Busy {
                        place: entity.path().to_string(),
                        reason: "messages are on their way to another entity".into(),
                    });
                }
            });
        }
        for connection in self.router.busy() {
            busy.push(Busy {
                place: format!("connection {}", connection.0),
                reason: "its output is not written".into(),
            });
        }
        busy
    }

    /// Returns the operations that faults hold. [`Self::busy`] leaves them out: time must advance for them to end.
    fn held_by_faults(&self) -> Vec<Busy> {
        let mut by_connection = BTreeMap::new();
        for (held, count) in self.faults.held.counts() {
            let from = held.delivery_from;
            if from.is_none_or(|(id, kind)| self.has_ready(id, kind)) {
                *by_connection.entry(held.connection).or_insert(0) += count;
            }
        }
        let held = by_connection.into_iter();
        let held = held.map(|(connection, count)| match connection {
            REQUESTS => Busy {
                place: "HTTP".to_owned(),
                reason: format!("requests held by faults: {count}"),
            },
            connection => Busy {
                place: self.receiver_name(connection.receiver_id(0)),
                reason: format!("operations held by faults: {count}"),
            },
        });
        held.collect()
    }

    fn has_ready(&self, id: EntityId, kind: SubQueue) -> bool {
        let entity = self.entity_name(id).and_then(|path| self.entity(&path));
        entity.is_some_and(|entity| self.read(&entity, |entity| entity.has_ready(kind)))
    }

    /// Returns the locks of a store and of its dead letters, or all.
    fn locks(&self, wanted: Option<(EntityId, SubQueue)>) -> Vec<Busy> {
        let mut held = Vec::new();
        for (entity, kind) in self.locked_stores(wanted) {
            let holders = self.holders(&self.read(&entity, |entity| locks_held(entity, kind)));
            held.extend(holders.into_iter().map(|(holder, count)| Busy {
                place: format!("{}{}", entity.path, kind.suffix()),
                reason: format!("{count} locked by {holder}"),
            }));
        }
        held
    }

    /// Those of a store and the dead letters behind it, or of all, that have locks.
    fn locked_stores(
        &self,
        wanted: Option<(EntityId, SubQueue)>,
    ) -> impl Iterator<Item = (Arc<SharedEntity>, SubQueue)> {
        // Each lock has an end, so that an entity without a deadline has none.
        let entities = self
            .with_entities(|entities| entities.with_deadlines())
            .into_iter();
        let stores =
            entities.flat_map(|entity| SubQueue::ALL.map(|kind| (Arc::clone(&entity), kind)));
        stores.filter(move |(entity, kind)| {
            let is_wanted = wanted.is_none_or(|(id, first)| id == entity.id && *kind >= first);
            is_wanted && self.read(entity, |entity| entity.counts(*kind).locked > 0)
        })
    }

    /// Returns the clients that hold locks of a store, each with their number.
    fn holders(&self, receivers: &BTreeMap<ReceiverId, usize>) -> BTreeMap<String, usize> {
        let mut holders = BTreeMap::new();
        for (&receiver, locks) in receivers {
            *holders.entry(self.receiver_name(receiver)).or_insert(0) += locks;
        }
        holders
    }
}

/// Returns the receivers that hold locks of a store, each with their number.
fn locks_held(entity: &Entity, kind: SubQueue) -> BTreeMap<ReceiverId, usize> {
    let mut held = BTreeMap::new();
    for receiver in entity.lock_holders(kind) {
        *held.entry(receiver).or_insert(0) += 1;
    }
    held
}

#[cfg(test)]
mod tests;
