//! The kinds of assertions: their subjects, and the fields that they take beside `entity` and `within`.

use crate::{
    message::MessageState,
    recorded::{ABANDONED, COMPLETED, DELIVERED, EXPIRED, FORWARDED, RENEWED, RecordedEventKind},
};

/// What an assertion expects. The names are those of the harness's macros, without `assert_` and in camel case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the macros of the harness describe them")]
pub enum Kind {
    Abandoned,
    Attached,
    Completed,
    DeadLettered,
    Deferred,
    Delivered,
    Empty,
    Expired,
    Forwarded,
    LockNotRenewed,
    LockRenewed,
    MessageCount,
    NotAbandoned,
    NotCompleted,
    NotDeadLettered,
    NotDeferred,
    NotDelivered,
    NotExpired,
    NotForwarded,
    NotScheduled,
    Scheduled,
    SessionOrder,
    SessionState,
    UnsettledSends,
}

/// What a check polls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    Receivers,
    Record(&'static RecordedEventKind),
    InState(MessageState),
    DeadLetters,
    UnsettledSends,
    Counts,
    Empty,
    SessionOrder,
    SessionState,
}

/// The name, the subject, whether the assertion is negative, and the groups of fields that it takes.
type Definition = (&'static str, Subject, bool, &'static [Fields]);
pub(crate) type Fields = &'static [&'static str];

const MESSAGES: Fields = &["message_id", "body", "body_json"];
const DEAD: Fields = &["reason", "description"];
const COUNT: Fields = &["count"];
const TIMES: Fields = &["times", "at_least"];
const TO: Fields = &["to"];
const TIMED: Fields = &["at", "due_in", "tolerance"];
const BOUNDS: Fields = &["count", "at_least", "at_most"];
const BODIES: Fields = &["session", "bodies"];
const STATE: Fields = &["session", "text", "bytes", "json", "set"];
/// The message counts that can be expected.
pub(crate) const COUNTS: Fields = &[
    "active",
    "dead_letter",
    "transfer_dead_letter",
    "scheduled",
    "locked",
    "deferred",
    "transfer",
];

impl Kind {
    /// All kinds, ordered by name.
    pub const ALL: [Self; 24] = [
        Self::Abandoned,
        Self::Attached,
        Self::Completed,
        Self::DeadLettered,
        Self::Deferred,
        Self::Delivered,
        Self::Empty,
        Self::Expired,
        Self::Forwarded,
        Self::LockNotRenewed,
        Self::LockRenewed,
        Self::MessageCount,
        Self::NotAbandoned,
        Self::NotCompleted,
        Self::NotDeadLettered,
        Self::NotDeferred,
        Self::NotDelivered,
        Self::NotExpired,
        Self::NotForwarded,
        Self::NotScheduled,
        Self::Scheduled,
        Self::SessionOrder,
        Self::SessionState,
        Self::UnsettledSends,
    ];

    /// Returns the name, such as `dead_lettered`.
    pub fn name(self) -> &'static str {
        self.definition().0
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the fields that it takes beside those of every kind.
    pub fn takes(self) -> impl Iterator<Item = &'static str> {
        let groups = self.definition().3.iter();
        groups.flat_map(|group| group.iter().copied())
    }

    pub(crate) fn subject(self) -> Subject {
        self.definition().1
    }

    pub(crate) fn is_negative(self) -> bool {
        self.definition().2
    }

    /// Returns whether it concerns receivers, or messages that they can receive.
    pub(crate) fn concerns_receivers(self) -> bool {
        match self.subject() {
            Subject::Record(event_kind) => !event_kind.targets_entity,
            Subject::Receivers
            | Subject::DeadLetters
            | Subject::InState(MessageState::Deferred)
            | Subject::SessionOrder
            | Subject::SessionState => true,
            Subject::InState(_) | Subject::UnsettledSends | Subject::Counts | Subject::Empty => {
                false
            }
        }
    }

    fn definition(self) -> Definition {
        use MessageState::{Deferred, Scheduled};
        use Subject::{DeadLetters, InState, Record};
        match self {
            Self::Abandoned => ("abandoned", Record(&ABANDONED), false, &[MESSAGES, TIMES]),
            Self::NotAbandoned => ("not_abandoned", Record(&ABANDONED), true, &[MESSAGES]),
            Self::Completed => ("completed", Record(&COMPLETED), false, &[MESSAGES, COUNT]),
            Self::NotCompleted => ("not_completed", Record(&COMPLETED), true, &[MESSAGES]),
            Self::Delivered => (
                "delivered",
                Record(&DELIVERED),
                false,
                &[MESSAGES, TO, TIMES],
            ),
            Self::NotDelivered => ("not_delivered", Record(&DELIVERED), true, &[MESSAGES, TO]),
            Self::Expired => ("expired", Record(&EXPIRED), false, &[MESSAGES, COUNT]),
            Self::NotExpired => ("not_expired", Record(&EXPIRED), true, &[MESSAGES]),
            Self::Forwarded => (
                "forwarded",
                Record(&FORWARDED),
                false,
                &[MESSAGES, TO, COUNT],
            ),
            Self::NotForwarded => ("not_forwarded", Record(&FORWARDED), true, &[MESSAGES, TO]),
            Self::LockRenewed => ("lock_renewed", Record(&RENEWED), false, &[MESSAGES, TIMES]),
            Self::LockNotRenewed => ("lock_not_renewed", Record(&RENEWED), true, &[MESSAGES]),
            Self::Deferred => ("deferred", InState(Deferred), false, &[MESSAGES, COUNT]),
            Self::NotDeferred => ("not_deferred", InState(Deferred), true, &[MESSAGES]),
            Self::Scheduled => (
                "scheduled",
                InState(Scheduled),
                false,
                &[MESSAGES, COUNT, TIMED],
            ),
            Self::NotScheduled => (
                "not_scheduled",
                InState(Scheduled),
                true,
                &[MESSAGES, TIMED],
            ),
            Self::DeadLettered => (
                "dead_lettered",
                DeadLetters,
                false,
                &[DEAD, MESSAGES, COUNT],
            ),
            Self::NotDeadLettered => ("not_dead_lettered", DeadLetters, true, &[DEAD, MESSAGES]),
            Self::Attached => ("attached", Subject::Receivers, false, &[TO, COUNT]),
            Self::Empty => ("empty", Subject::Empty, false, &[]),
            Self::MessageCount => ("message_count", Subject::Counts, false, &[COUNTS]),
            Self::SessionOrder => ("session_order", Subject::SessionOrder, false, &[BODIES]),
            Self::SessionState => ("session_state", Subject::SessionState, false, &[STATE]),
            Self::UnsettledSends => ("unsettled_sends", Subject::UnsettledSends, false, &[BOUNDS]),
        }
    }
}
