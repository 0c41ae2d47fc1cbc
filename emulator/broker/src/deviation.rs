//! Rules that a test has the broker break, to prove that a comparison with another service notices.
//!
//! A deviation is one mistake that an emulator could really make, at one place in the code, which asks
//! [`Deviations::has`]. Without the cargo feature `deviations` a set of them has no place to hold anything, the answer is
//! the constant `false`, and no deviation has a name: a program that is shipped can neither be told to deviate nor pays
//! for the question. The feature belongs to tests alone.

/// One rule that is broken; the section of the semantics or the decision that it breaks stands behind each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// An abandoned delivery is not counted (semantics §2.3).
    AbandonDoesNotCount,
    /// A lock that runs out is no failed delivery (decision D32).
    LockExpiryDoesNotCount,
    /// The header shows deliveries instead of failed ones: one more (wire.md §7).
    DeliveryCountStartsAtOne,
    /// Every delivery of a message has the same lock token (semantics §2.2).
    LockTokenStays,
    /// A lock that has ended is renewed nevertheless (semantics §2.4).
    LostLockRenews,
    /// A request with a lost lock is told that nothing was found (semantics §20.1).
    LostLockIsNotFound,
    /// A deferred message is received again without being asked for (semantics §7).
    DeferredComesBack,
    /// Messages under a lock are not seen by peeking (semantics §10).
    PeekHidesLocked,
    /// A dead letter has no reason, at most a description (semantics §3.2).
    DeadLetterHasNoReason,
    /// A forwarded dead letter does not say where from (semantics §11).
    DeadLetterHasNoSource,
    /// A message may live longer than its entity allows (semantics §4).
    TimeToLiveHasNoCeiling,
    /// Message ids are remembered for 20 s, whatever the entity says (semantics §9).
    DuplicateWindowIsFixed,
    /// A scheduled message does not wait for its time (semantics §8).
    ScheduledIsActiveAtOnce,
    /// A message that becomes active shows when it was scheduled (semantics §8).
    ActivationKeepsEnqueueTime,
    /// Cancelling what is not scheduled succeeds (semantics §20.2).
    CancelAlwaysSucceeds,
    /// The last message of a session comes first (semantics §6).
    SessionOrderIsReversed,
    /// What a closed session receiver had locked counts as failed (decision D2).
    SessionReleaseCounts,
    /// The state of a session ends with the session's lock (semantics §6).
    SessionStateEndsWithLock,
    /// A rule selects, but its action changes nothing (semantics §13.2).
    ActionIsNotApplied,
    /// A message is forwarded once more than is allowed (decision D3).
    FifthForwardIsAllowed,
    /// A forwarded message forgets its number where it first entered (semantics §11).
    ForwardingForgetsOrigin,
    /// A sender's link names no limit for messages (semantics §17.2).
    LinkHasNoLimit,
    /// A transaction that is rolled back has happened (semantics §12).
    RollbackCommits,
}

/// Panics where a test wants to see what becomes of a panic in the middle of an operation: when a message with the id
/// `panic-in-` and the entity's path becomes active there.
#[cfg(feature = "deviations")]
pub(crate) fn panic_at(message: &crate::Message, path: &crate::EntityPath) {
    let id = message.id();
    let is_here = id.strip_prefix("panic-in-") == Some(path.as_str());
    assert!(!is_here, "a test wanted this");
}

/// What one namespace does otherwise than the service; nothing unless a test says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deviations {
    /// A bit for each, in the order of their declaration.
    #[cfg(feature = "deviations")]
    bits: u32,
}

#[cfg(not(feature = "deviations"))]
impl Deviations {
    /// Whether this rule is broken: never.
    pub const fn has(self, _: Deviation) -> bool {
        false
    }
}

/// What is shipped has no room for a deviation.
#[cfg(not(feature = "deviations"))]
const _: () = assert!(size_of::<Deviations>() == 0);

#[cfg(feature = "deviations")]
impl Deviations {
    /// Whether this rule is broken.
    pub const fn has(self, deviation: Deviation) -> bool {
        self.bits & (1 << deviation as u32) != 0
    }
}

#[cfg(feature = "deviations")]
impl FromIterator<Deviation> for Deviations {
    fn from_iter<T: IntoIterator<Item = Deviation>>(all: T) -> Self {
        let bits = all.into_iter().map(|deviation| 1 << deviation as u32);
        Self {
            bits: bits.fold(0, |all, bit| all | bit),
        }
    }
}

#[cfg(feature = "deviations")]
impl Deviation {
    /// All of them with their names, in the order of their declaration.
    pub const NAMED: [(&str, Self); 23] = [
        ("abandon-does-not-count", Self::AbandonDoesNotCount),
        ("lock-expiry-does-not-count", Self::LockExpiryDoesNotCount),
        (
            "delivery-count-starts-at-one",
            Self::DeliveryCountStartsAtOne,
        ),
        ("lock-token-stays", Self::LockTokenStays),
        ("lost-lock-renews", Self::LostLockRenews),
        ("lost-lock-is-not-found", Self::LostLockIsNotFound),
        ("deferred-comes-back", Self::DeferredComesBack),
        ("peek-hides-locked", Self::PeekHidesLocked),
        ("dead-letter-has-no-reason", Self::DeadLetterHasNoReason),
        ("dead-letter-has-no-source", Self::DeadLetterHasNoSource),
        ("time-to-live-has-no-ceiling", Self::TimeToLiveHasNoCeiling),
        ("duplicate-window-is-fixed", Self::DuplicateWindowIsFixed),
        ("scheduled-is-active-at-once", Self::ScheduledIsActiveAtOnce),
        (
            "activation-keeps-enqueue-time",
            Self::ActivationKeepsEnqueueTime,
        ),
        ("cancel-always-succeeds", Self::CancelAlwaysSucceeds),
        ("session-order-is-reversed", Self::SessionOrderIsReversed),
        ("session-release-counts", Self::SessionReleaseCounts),
        (
            "session-state-ends-with-lock",
            Self::SessionStateEndsWithLock,
        ),
        ("action-is-not-applied", Self::ActionIsNotApplied),
        ("fifth-forward-is-allowed", Self::FifthForwardIsAllowed),
        ("forwarding-forgets-origin", Self::ForwardingForgetsOrigin),
        ("link-has-no-limit", Self::LinkHasNoLimit),
        ("rollback-commits", Self::RollbackCommits),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "deviations")]
    fn each_has_a_name_and_a_bit_of_its_own() {
        for (place, (name, deviation)) in Deviation::NAMED.into_iter().enumerate() {
            assert_eq!(deviation as usize, place, "{name}");
            let alone = Deviations::from_iter([deviation]);
            let mut others = Deviation::NAMED.into_iter();
            assert!(others.all(|(_, other)| alone.has(other) == (other == deviation)));
        }
        // The last that was declared has a name, so that all have.
        assert_eq!(
            Deviation::NAMED.len(),
            Deviation::RollbackCommits as usize + 1
        );
    }

    #[test]
    fn nothing_deviates_unless_it_is_told_to() {
        assert!(!Deviations::default().has(Deviation::AbandonDoesNotCount));
    }
}
