//! The order in which a thread may take the locks of a namespace, so that no two threads wait for each other for ever.
//!
//! In tests, and with the feature `watchdog`, a thread that takes one out of order panics.

use std::ops::{Deref, DerefMut};

use servicebus_broker::EntityId;

/// A lock by its place in the order: a thread that holds one takes only later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// What is administered.
    Administering,
    /// The caller that stands for time.
    Caller,
    /// What lets operations begin whose changes are written together; the thread that writes waits for their end.
    Unit,
    /// The router's, so that no receiver is told of anything while an entity is locked.
    Router,
    /// That of an entity; a commit takes several, in the order of their ids.
    Entity(EntityId),
    /// What is locked under an entity, each by itself: its metadata, the record, the messages behind it, the paths and
    /// indexes of the namespace.
    Inner,
}

/// What a lock gives access to, and its place in the order, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ordered<G> {
    guard: G,
    _held: Held,
}

/// Takes a lock of this rank.
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

    /// Every pair that the order names.
    #[test]
    fn locks_are_taken_in_their_order_alone() {
        let (first, second) = (Rank::Entity(EntityId(1)), Rank::Entity(EntityId(2)));
        let all = [
            Rank::Administering,
            Rank::Caller,
            Rank::Unit,
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
