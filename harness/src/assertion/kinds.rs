//! The kinds of expectations about what the record says, what a queue holds, and its dead letters.

use super::{
    AssertionFailed,
    expectation::{
        AboutDeadLetters, AboutMessages, Counted, Expectation, Kind, Repeated, Targeted, Timed,
    },
    held::Held,
    hint,
    recorded::Verb,
};
use crate::{
    clients::{EntityClient, SubQueueClient},
    received_message::MessageState,
    timeline::EventKind,
};

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
        EventKind::DeadLettered => event.reason.as_deref() == Some(hint::EXPIRED),
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

/// Makes markers of what they take and how they are checked, and the methods that begin an expectation of them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $begin:ident: $($takes:ident),+ => |$it:ident| $check:expr;)+) => {
        $(
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
                async fn check($it: Expectation<Self>) -> Result<(), AssertionFailed> {
                    $check.await
                }
            }

            $(impl $takes for $name {})+
        )+

        impl SubQueueClient {
            $(
                /// Expects this:
                $(#[$doc])*
                pub fn $begin(&self) -> Expectation<$name> {
                    $name::of(self)
                }
            )+
        }
    };
}

kinds! {
    /// Deliveries were abandoned.
    Abandoned, expect_abandoned: AboutMessages, Repeated => |it| it.with_kind(|_| &ABANDONED).check();
    /// No deliveries were abandoned once the namespace is idle.
    NotAbandoned, expect_not_abandoned: AboutMessages => |it| it.with_kind(|_| &ABANDONED).check_absent();
    /// Messages were completed.
    Completed, expect_completed: AboutMessages, Counted => |it| it.with_kind(|_| &COMPLETED).check();
    /// No messages were completed once the namespace is idle.
    NotCompleted, expect_not_completed: AboutMessages => |it| it.with_kind(|_| &COMPLETED).check_absent();
    /// Messages were delivered to receivers.
    Delivered, expect_delivered: AboutMessages, Repeated, Targeted => |it| it.with_kind(|_| &DELIVERED).check();
    /// No messages were delivered to receivers once the namespace is idle.
    NotDelivered, expect_not_delivered: AboutMessages, Targeted => |it| it.with_kind(|_| &DELIVERED).check_absent();
    /// Messages expired, dropped or dead-lettered.
    Expired, expect_expired: AboutMessages, Counted => |it| it.with_kind(|_| &EXPIRED).check();
    /// No messages expired once the namespace is idle.
    NotExpired, expect_not_expired: AboutMessages => |it| it.with_kind(|_| &EXPIRED).check_absent();
    /// Messages were forwarded to another entity.
    Forwarded, expect_forwarded: AboutMessages, Counted, Targeted => |it| it.with_kind(|_| &FORWARDED).check();
    /// No messages were forwarded once the namespace is idle.
    NotForwarded, expect_not_forwarded: AboutMessages, Targeted => |it| it.with_kind(|_| &FORWARDED).check_absent();
    /// Locks were renewed.
    LockRenewed, expect_lock_renewed: AboutMessages, Repeated => |it| it.with_kind(|_| &RENEWED).check();
    /// No locks were renewed once the namespace is idle.
    LockNotRenewed, expect_lock_not_renewed: AboutMessages => |it| it.with_kind(|_| &RENEWED).check_absent();
    /// Messages in the queue are deferred.
    Deferred, expect_deferred: AboutMessages, Counted => |it| Held::in_state(it, MessageState::Deferred).check();
    /// No messages in the queue are deferred once the namespace is idle.
    NotDeferred, expect_not_deferred: AboutMessages => |it| Held::in_state(it, MessageState::Deferred).check_none();
    /// Messages in the queue are scheduled.
    Scheduled, expect_scheduled: AboutMessages, Counted, Timed => |it| Held::in_state(it, MessageState::Scheduled).check();
    /// No messages in the queue are scheduled once the namespace is idle.
    NotScheduled, expect_not_scheduled: AboutMessages, Timed => |it| Held::in_state(it, MessageState::Scheduled).check_none();
    /// Clients of the code under test receive from the queue.
    Attached, expect_attached: Counted, Targeted => |it| it.check();
    /// Messages are in the dead-letter queue.
    DeadLettered, expect_dead_lettered: AboutMessages, Counted, AboutDeadLetters => |it| Held::dead(it).check();
    /// No messages are in the dead-letter queue once the namespace is idle.
    NotDeadLettered, expect_not_dead_lettered: AboutMessages, AboutDeadLetters => |it| Held::dead(it).check_none();
}
