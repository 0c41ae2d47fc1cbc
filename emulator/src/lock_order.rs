//! The order in which a thread may take the locks of a namespace, which prevents deadlocks.
//!
//! In tests, and with the feature `watchdog`, a thread that takes a lock out of order panics.

use std::ops::{Deref, DerefMut};

use servicebus_broker::EntityId;

/// A lock by its rank: a thread that holds one takes only locks of higher ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The lock of administrative changes.
    Administering,
    /// The caller for deadlines.
    Caller,
    /// The lock of a unit of work, whose changes are committed together; the writer thread waits for its end.
    UnitOfWork,
    /// The router's lock, which prevents notifying receivers while an entity is locked.
    Router,
    /// The lock of an entity; a commit takes several, in the order of their ids.
    Entity(EntityId),
    /// A lock that is taken under an entity's, one at a time: its metadata, the record, the recorded messages, the paths and
    /// indexes of the namespace.
    Inner,
}

/// A guard with its rank.
#[derive(Debug)]
pub(crate) struct Ordered<G> {
    guard: G,
    _held: Held,
}

pub(crate) fn take<G>(rank: Rank, lock: impl FnOnce() -> G) -> Ordered<G> {
    let _held = Held::new(rank);
    Ordered {
        guard: lock(),
        _held,
    }
}

impl<G: Deref> Deref for Ordered<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Ordered<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

use held::Held;

#[cfg(any(test, feature = "watchdog"))]
mod held {
    use std::cell::RefCell;

    use super::Rank;

    thread_local! {
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    #[derive(Debug)]
    pub(super) struct Held(Rank);

    impl Held {
        pub(super) fn new(rank: Rank) -> Self {
            HELD.with_borrow_mut(|held| {
                let later = held.iter().find(|other| **other >= rank);
                assert_eq!(later, None, "{rank:?} is locked under what comes later");
                held.push(rank);
            });
            Self(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            HELD.with_borrow_mut(|held| held.retain(|rank| *rank != self.0));
        }
    }
}

#[cfg(not(any(test, feature = "watchdog")))]
mod held {
    #[derive(Debug)]
    pub(super) struct Held;

    impl Held {
        pub(super) fn new(_: super::Rank) -> Self {
            Self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    /// Covers every pair of ranks.
    #[test]
    fn locks_can_only_be_taken_in_their_order() {
        let (first, second) = (Rank::Entity(EntityId(1)), Rank::Entity(EntityId(2)));
        let all = [
            Rank::Administering,
            Rank::Caller,
            Rank::UnitOfWork,
            Rank::Router,
            first,
            second,
            Rank::Inner,
        ];
        for (place, outer) in all.into_iter().enumerate() {
            for (other, inner) in all.into_iter().enumerate() {
                let both = catch_unwind(|| {
                    let _outer = take(outer, || &());
                    let _inner = take(inner, || &());
                });
                assert_eq!(both.is_ok(), place < other, "{outer:?}, then {inner:?}");
            }
        }
    }
}
