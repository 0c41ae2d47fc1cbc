//! The kinds of expectations: marker types, and the conditions that each takes.

use bytes::Bytes;
use serde_json::Value;
use servicebus_assertions::{ExpectedState, Kind as AssertionKind, Text};

use super::expectation::{
    AboutDeadLetters, AboutMessages, Counted, Expectation, Kind, Repeated, Targeted, Timed,
};
use crate::clients::{EntityClient, SubQueueClient};

/// Defines marker types with their conditions, and the methods that begin an expectation of each.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $begin:ident: $($takes:ident),*;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl $name {
                /// Begins an expectation about this queue, subscription or topic.
                pub fn of(client: &impl EntityClient) -> Expectation<Self> {
                    Expectation::new(client, AssertionKind::$name)
                }
            }

            impl Kind for $name {}

            $(impl $takes for $name {})*
        )+

        impl SubQueueClient {
            $(
                /// Begins this expectation:
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
    Abandoned, expect_abandoned: AboutMessages, Repeated;
    /// No deliveries were abandoned once the namespace is idle.
    NotAbandoned, expect_not_abandoned: AboutMessages;
    /// Messages were completed.
    Completed, expect_completed: AboutMessages, Counted;
    /// No messages were completed once the namespace is idle.
    NotCompleted, expect_not_completed: AboutMessages;
    /// Messages were delivered to receivers.
    Delivered, expect_delivered: AboutMessages, Repeated, Targeted;
    /// No messages were delivered to receivers once the namespace is idle.
    NotDelivered, expect_not_delivered: AboutMessages, Targeted;
    /// Messages expired, dropped or dead-lettered.
    Expired, expect_expired: AboutMessages, Counted;
    /// No messages expired once the namespace is idle.
    NotExpired, expect_not_expired: AboutMessages;
    /// Messages were forwarded to another entity.
    Forwarded, expect_forwarded: AboutMessages, Counted, Targeted;
    /// No messages were forwarded once the namespace is idle.
    NotForwarded, expect_not_forwarded: AboutMessages, Targeted;
    /// Locks were renewed.
    LockRenewed, expect_lock_renewed: AboutMessages, Repeated;
    /// No locks were renewed once the namespace is idle.
    LockNotRenewed, expect_lock_not_renewed: AboutMessages;
    /// Messages in the queue are deferred.
    Deferred, expect_deferred: AboutMessages, Counted;
    /// No messages in the queue are deferred once the namespace is idle.
    NotDeferred, expect_not_deferred: AboutMessages;
    /// Messages in the queue are scheduled.
    Scheduled, expect_scheduled: AboutMessages, Counted, Timed;
    /// No messages in the queue are scheduled once the namespace is idle.
    NotScheduled, expect_not_scheduled: AboutMessages, Timed;
    /// Clients of the code under test receive from the queue.
    Attached, expect_attached: Counted, Targeted;
    /// Messages are in the dead-letter queue.
    DeadLettered, expect_dead_lettered: AboutMessages, Counted, AboutDeadLetters;
    /// No messages are in the dead-letter queue once the namespace is idle.
    NotDeadLettered, expect_not_dead_lettered: AboutMessages, AboutDeadLetters;
    /// Expects that a queue or dead-letter queue holds no message in any state.
    Empty, expect_empty: ;
    /// Expects limits of the largest number of sends that awaited their outcome at once; at least one unless set.
    UnsettledSends, expect_unsettled_sends: ;
}

/// Expects exact numbers of messages; numbers that are not set do not matter.
#[derive(Debug, Clone)]
pub struct MessageCount(());

/// An expectation of numbers of messages of which none is set yet; it cannot be awaited.
#[derive(Debug, Clone)]
pub struct NoCount;

/// Expects a session to hold exactly these messages, in this order.
#[derive(Debug, Clone)]
pub struct SessionOrder(());

/// Expects a session to have a state; any state unless set.
#[derive(Debug, Clone)]
pub struct SessionState(());

/// Kinds that take numbers of messages.
pub trait CountsMessages {}

impl Kind for MessageCount {}
impl Kind for SessionOrder {}
impl Kind for SessionState {}
impl CountsMessages for NoCount {}
impl CountsMessages for MessageCount {}

impl MessageCount {
    /// Begins an expectation of message counts, which the next methods set.
    pub fn of(client: &impl EntityClient) -> Expectation<NoCount> {
        Expectation::new(client, AssertionKind::MessageCount)
    }
}

impl SessionOrder {
    /// Begins an expectation about this session: that it holds no messages, unless bodies are set.
    pub fn of(client: &impl EntityClient, session: impl Into<String>) -> Expectation<Self> {
        Expectation::new(client, AssertionKind::SessionOrder).of_session(session.into())
    }
}

impl SessionState {
    /// Begins an expectation about this session.
    pub fn of(client: &impl EntityClient, session: impl Into<String>) -> Expectation<Self> {
        Expectation::new(client, AssertionKind::SessionState).of_session(session.into())
    }
}

impl SubQueueClient {
    /// Expects exact numbers of messages.
    pub fn expect_message_count(&self) -> Expectation<NoCount> {
        MessageCount::of(self)
    }

    /// Expects messages of a session in the queue, in order.
    pub fn expect_session_order(&self, session: impl Into<String>) -> Expectation<SessionOrder> {
        SessionOrder::of(self, session)
    }

    /// Expects a session to have a state.
    pub fn expect_session_state(&self, session: impl Into<String>) -> Expectation<SessionState> {
        SessionState::of(self, session)
    }
}

impl<K> Expectation<K> {
    fn of_session(mut self, session: String) -> Self {
        self.assertion.session = session;
        self
    }
}

impl Expectation<UnsettledSends> {
    /// Expects exactly this number.
    pub fn count(self, number: u64) -> Self {
        self.at_least(number).at_most(number)
    }

    /// Expects at least this number.
    pub fn at_least(mut self, number: u64) -> Self {
        self.assertion.least = Some(number);
        self
    }

    /// Expects at most this number up to now.
    pub fn at_most(mut self, number: u64) -> Self {
        self.assertion.most = Some(number);
        self
    }
}

impl<K: CountsMessages> Expectation<K> {
    /// Expects this number of active messages, locked and deferred ones included.
    pub fn active(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("active", number)
    }

    /// Expects this number of messages in the dead-letter queue.
    pub fn dead_letter(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("dead_letter", number)
    }

    /// Expects this number of messages in the transfer dead-letter queue.
    pub fn transfer_dead_letter(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("transfer_dead_letter", number)
    }

    /// Expects this number of scheduled messages.
    pub fn scheduled(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("scheduled", number)
    }

    /// Expects this number of locked messages.
    pub fn locked(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("locked", number)
    }

    /// Expects this number of deferred messages.
    pub fn deferred(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("deferred", number)
    }

    /// Expects this number of messages that wait to be forwarded.
    pub fn transfer(self, number: u64) -> Expectation<MessageCount> {
        self.wanting("transfer", number)
    }

    fn wanting(self, name: &'static str, number: u64) -> Expectation<MessageCount> {
        let mut expectation = self.of_kind();
        expectation.assertion.counts.push((name, number));
        expectation
    }
}

impl Expectation<SessionOrder> {
    /// Expects messages with exactly these bodies, the oldest first.
    pub fn bodies<T: Into<Text>>(mut self, bodies: impl IntoIterator<Item = T>) -> Self {
        self.assertion.bodies = bodies.into_iter().map(Into::into).collect();
        self
    }
}

impl Expectation<SessionState> {
    /// Expects exactly these bytes.
    pub fn bytes(self, bytes: impl Into<Bytes>) -> Self {
        self.having(ExpectedState::Bytes(bytes.into()))
    }

    /// Expects this text.
    pub fn text(self, text: impl Into<Text>) -> Self {
        self.having(ExpectedState::Text(text.into()))
    }

    /// Expects this JSON value, in any formatting.
    pub fn json(self, value: impl Into<Value>) -> Self {
        self.having(ExpectedState::Json(value.into()))
    }

    /// Expects any state if `set`, else no state.
    pub fn set(self, set: bool) -> Self {
        self.having(match set {
            true => ExpectedState::Any,
            false => ExpectedState::None,
        })
    }

    fn having(mut self, wanted: ExpectedState) -> Self {
        self.assertion.state = wanted;
        self
    }
}
