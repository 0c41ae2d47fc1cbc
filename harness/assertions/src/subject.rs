//! What an assertion polls, by its kind.

use crate::{
    Kind,
    assertion::Assertion,
    message::MessageState,
    recorded::{ABANDONED, COMPLETED, DELIVERED, EXPIRED, FORWARDED, RENEWED, RecordedEventKind},
};

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

impl Assertion {
    pub(crate) fn subject(&self) -> Subject {
        match self.kind {
            Kind::Abandoned | Kind::NotAbandoned => Subject::Record(&ABANDONED),
            Kind::Attached => Subject::Receivers,
            Kind::Completed | Kind::NotCompleted => Subject::Record(&COMPLETED),
            Kind::DeadLettered | Kind::NotDeadLettered => Subject::DeadLetters,
            Kind::Deferred | Kind::NotDeferred => Subject::InState(MessageState::Deferred),
            Kind::Delivered | Kind::NotDelivered => Subject::Record(&DELIVERED),
            Kind::Empty => Subject::Empty,
            Kind::Expired | Kind::NotExpired => Subject::Record(&EXPIRED),
            Kind::Forwarded | Kind::NotForwarded => Subject::Record(&FORWARDED),
            Kind::LockNotRenewed | Kind::LockRenewed => Subject::Record(&RENEWED),
            Kind::MessageCount => Subject::Counts,
            Kind::NotScheduled | Kind::Scheduled => Subject::InState(MessageState::Scheduled),
            Kind::SessionOrder => Subject::SessionOrder,
            Kind::SessionState => Subject::SessionState,
            Kind::UnsettledSends => Subject::UnsettledSends,
        }
    }

    /// Returns whether it concerns receivers, or messages that they can receive.
    pub(crate) fn concerns_receivers(&self) -> bool {
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
}
