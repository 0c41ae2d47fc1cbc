//! The kinds of expectations about what the record says, what a queue holds, and its dead letters.

use servicebus_control_api::Receiver;

use super::{
    AssertionFailed, ProbeError, Report,
    dead_letters::Wanted,
    expectation::{
        AboutDeadLetters, AboutMessages, Counted, Expectation, Kind, Repeated, Targeted, Timed,
    },
    hint,
    recorded::{Number, Verb},
    stored::Stored,
};
use crate::{clients::EntityClient, received_message::MessageState, text, timeline::EventKind};

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
    ($($(#[$doc:meta])* $name:ident: $($takes:ident),+ => |$it:ident| $check:expr;)+) => {$(
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
    )+};
}

kinds! {
    /// Deliveries were abandoned.
    Abandoned: AboutMessages, Repeated => |it| it.with_kind(|_| &ABANDONED).check();
    /// No deliveries were abandoned once the namespace is idle.
    NotAbandoned: AboutMessages => |it| it.with_kind(|_| &ABANDONED).check_absent();
    /// Messages were completed.
    Completed: AboutMessages, Counted => |it| it.with_kind(|_| &COMPLETED).check();
    /// No messages were completed once the namespace is idle.
    NotCompleted: AboutMessages => |it| it.with_kind(|_| &COMPLETED).check_absent();
    /// Messages were delivered to receivers.
    Delivered: AboutMessages, Repeated, Targeted => |it| it.with_kind(|_| &DELIVERED).check();
    /// No messages were delivered to receivers once the namespace is idle.
    NotDelivered: AboutMessages, Targeted => |it| it.with_kind(|_| &DELIVERED).check_absent();
    /// Messages expired, dropped or dead-lettered.
    Expired: AboutMessages, Counted => |it| it.with_kind(|_| &EXPIRED).check();
    /// No messages expired once the namespace is idle.
    NotExpired: AboutMessages => |it| it.with_kind(|_| &EXPIRED).check_absent();
    /// Messages were forwarded to another entity.
    Forwarded: AboutMessages, Counted, Targeted => |it| it.with_kind(|_| &FORWARDED).check();
    /// No messages were forwarded once the namespace is idle.
    NotForwarded: AboutMessages, Targeted => |it| it.with_kind(|_| &FORWARDED).check_absent();
    /// Locks were renewed.
    LockRenewed: AboutMessages, Repeated => |it| it.with_kind(|_| &RENEWED).check();
    /// No locks were renewed once the namespace is idle.
    LockNotRenewed: AboutMessages => |it| it.with_kind(|_| &RENEWED).check_absent();
    /// Messages in the queue are deferred.
    Deferred: AboutMessages, Counted => |it| Stored::of(it, MessageState::Deferred).check();
    /// No messages in the queue are deferred once the namespace is idle.
    NotDeferred: AboutMessages => |it| Stored::of(it, MessageState::Deferred).check_none();
    /// Messages in the queue are scheduled.
    Scheduled: AboutMessages, Counted, Timed => |it| Stored::of(it, MessageState::Scheduled).check();
    /// No messages in the queue are scheduled once the namespace is idle.
    NotScheduled: AboutMessages, Timed => |it| Stored::of(it, MessageState::Scheduled).check_none();
    /// Clients of the code under test receive from the queue.
    Attached: Counted, Targeted => |it| it.check();
    /// Messages are in the dead-letter queue.
    DeadLettered: AboutMessages, Counted, AboutDeadLetters => |it| Wanted::of(it).check();
    /// No messages are in the dead-letter queue once the namespace is idle.
    NotDeadLettered: AboutMessages, AboutDeadLetters => |it| Wanted::of(it).check_none();
}

impl Expectation<Attached> {
    async fn check(self) -> Result<(), AssertionFailed> {
        let failure = async |receivers: Vec<Receiver>| {
            let report = Report::of(&self.client).await;
            let hint = hint::connecting(&report);
            report.hinted_failure(&self.sentence(&receivers), hint)
        };
        let is_expected = |receivers: &Vec<Receiver>| self.is_expected(receivers);
        self.expect(|| self.look(), is_expected, failure).await
    }

    async fn look(&self) -> Result<Vec<Receiver>, ProbeError> {
        Ok(self.client.try_receivers().await?)
    }

    fn is_expected(&self, found: &[Receiver]) -> bool {
        let meant = found.iter().filter(|receiver| {
            let mut target = self.target.iter();
            target.all(|text| text.matches(Some(&receiver.client)))
        });
        self.number.is(meant.count() as u64)
    }

    fn sentence(&self, found: &[Receiver]) -> String {
        let (Number::AtLeast(number) | Number::Exactly(number)) = self.number;
        let wanted = text::count(usize::try_from(number).unwrap_or(usize::MAX), "receiver");
        let target = self.target.as_ref().map(|text| format!(" of {text}"));
        let target = target.unwrap_or_default();
        let within = text::seconds(self.within);
        let found = match found {
            [] => "none".to_owned(),
            found => {
                Vec::from_iter(found.iter().map(|receiver| receiver.client.as_str())).join(", ")
            }
        };
        format!("expected {wanted}{target} to be attached, found {found} within {within}")
    }
}
