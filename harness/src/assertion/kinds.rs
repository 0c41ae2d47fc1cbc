//! The kinds of expectations about what the record says, what a queue holds, and its dead letters.

use super::{
    AssertionFailed,
    attached::AttachedReceivers,
    dead_letters::DeadLetters,
    expectation::{
        AboutDeadLetters, AboutMessages, Counted, Expectation, Kind, Repeated, Targeted, Timed,
    },
    hint,
    recorded::{Recorded, Verb},
    stored::Stored,
};
use crate::{clients::EntityClient, received_message::MessageState, timeline::EventKind};

/// The reason of dead letters that expired.
pub(super) const EXPIRED_REASON: &str = "TTLExpiredException";

static ABANDONED: Verb = Verb {
    one: "delivery abandoned",
    many: "deliveries abandoned",
    is: |event| event.kind == EventKind::Abandoned,
    counted: |timeline| Some(timeline.count(&EventKind::Abandoned)),
    target: |_| None,
    hint: hint::receiving,
};
static COMPLETED: Verb = Verb {
    one: "message completed",
    many: "messages completed",
    is: |event| event.kind == EventKind::Completed,
    counted: |timeline| Some(timeline.count(&EventKind::Completed)),
    target: |_| None,
    hint: hint::completing,
};
/// With a lock or without; a message that is only in its queue was not delivered.
static DELIVERED: Verb = Verb {
    one: "delivery",
    many: "deliveries",
    is: |event| {
        matches!(
            event.kind,
            EventKind::Delivered | EventKind::ReceivedAndDeleted
        )
    },
    counted: |timeline| {
        let [locked, deleted] = [EventKind::Delivered, EventKind::ReceivedAndDeleted];
        Some(timeline.count(&locked) + timeline.count(&deleted))
    },
    target: |event| event.client.as_deref(),
    hint: hint::receiving,
};
/// An expired message is dropped or dead-lettered, as its queue says; either way it expired.
static EXPIRED: Verb = Verb {
    one: "message expired",
    many: "messages expired",
    is: |event| match event.kind {
        EventKind::Expired => true,
        EventKind::DeadLettered => event.reason.as_deref() == Some(EXPIRED_REASON),
        _ => false,
    },
    // The counter of dead letters does not count by reason.
    counted: |_| None,
    target: |_| None,
    hint: hint::expiry,
};
static FORWARDED: Verb = Verb {
    one: "message forwarded",
    many: "messages forwarded",
    is: |event| event.kind == EventKind::Forwarded,
    counted: |timeline| Some(timeline.count(&EventKind::Forwarded)),
    target: |event| event.detail.as_deref(),
    hint: hint::forwarding,
};
static RENEWED: Verb = Verb {
    one: "lock renewed",
    many: "locks renewed",
    is: |event| event.kind == EventKind::LockRenewed,
    counted: |timeline| Some(timeline.count(&EventKind::LockRenewed)),
    target: |_| None,
    hint: hint::absence,
};

/// Makes markers of what they take and how they are checked.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $($takes:ident),+ => $check:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl $name {
            /// Expects it of this queue, subscription or topic.
            pub fn of(client: &impl EntityClient) -> Expectation<Self> {
                Expectation::new(client, Self)
            }
        }

        impl Kind for $name {
            async fn check(expectation: Expectation<Self>) -> Result<(), AssertionFailed> {
                $check(expectation).await
            }
        }

        $(impl $takes for $name {})+
    )+};
}

kinds! {
    /// Deliveries were abandoned.
    Abandoned: AboutMessages, Repeated => |it| Recorded::new(it, &ABANDONED).check();
    /// No deliveries were abandoned once the namespace is idle.
    NotAbandoned: AboutMessages => |it| Recorded::new(it, &ABANDONED).check_absent();
    /// Messages were completed.
    Completed: AboutMessages, Counted => |it| Recorded::new(it, &COMPLETED).check();
    /// No messages were completed once the namespace is idle.
    NotCompleted: AboutMessages => |it| Recorded::new(it, &COMPLETED).check_absent();
    /// Messages were delivered to receivers.
    Delivered: AboutMessages, Repeated, Targeted => |it| Recorded::new(it, &DELIVERED).check();
    /// No messages were delivered to receivers once the namespace is idle.
    NotDelivered: AboutMessages, Targeted => |it| Recorded::new(it, &DELIVERED).check_absent();
    /// Messages expired, dropped or dead-lettered.
    Expired: AboutMessages, Counted => |it| Recorded::new(it, &EXPIRED).check();
    /// No messages expired once the namespace is idle.
    NotExpired: AboutMessages => |it| Recorded::new(it, &EXPIRED).check_absent();
    /// Messages were forwarded to another entity.
    Forwarded: AboutMessages, Counted, Targeted => |it| Recorded::new(it, &FORWARDED).check();
    /// No messages were forwarded once the namespace is idle.
    NotForwarded: AboutMessages, Targeted => |it| Recorded::new(it, &FORWARDED).check_absent();
    /// Locks were renewed.
    LockRenewed: AboutMessages, Repeated => |it| Recorded::new(it, &RENEWED).check();
    /// No locks were renewed once the namespace is idle.
    LockNotRenewed: AboutMessages => |it| Recorded::new(it, &RENEWED).check_absent();
    /// Messages in the queue are deferred.
    Deferred: AboutMessages, Counted => |it| Stored::new(it, MessageState::Deferred).check();
    /// No messages in the queue are deferred once the namespace is idle.
    NotDeferred: AboutMessages => |it| Stored::new(it, MessageState::Deferred).check_none();
    /// Messages in the queue are scheduled.
    Scheduled: AboutMessages, Counted, Timed => |it| Stored::new(it, MessageState::Scheduled).check();
    /// No messages in the queue are scheduled once the namespace is idle.
    NotScheduled: AboutMessages, Timed => |it| Stored::new(it, MessageState::Scheduled).check_none();
    /// Clients of the code under test receive from the queue.
    Attached: Counted, Targeted => |it| AttachedReceivers::new(it).check();
    /// Messages are in the dead-letter queue.
    DeadLettered: AboutMessages, Counted, AboutDeadLetters => |it| DeadLetters::new(it).check();
    /// No messages are in the dead-letter queue once the namespace is idle.
    NotDeadLettered: AboutMessages, AboutDeadLetters => |it| DeadLetters::new(it).check_none();
}
