//! The assertion macros.
//!
//! Each macro takes a queue, subscription or topic, named conditions, which are the methods of the assertion of its name,
//! and an optional message at the end, as `assert_eq!` does. It evaluates its arguments at once and returns a future, which
//! panics at the line of the test.

/// Defines the assertion macro of each kind. Its first argument is a `$`, which begins the variables of those macros.
macro_rules! assertions {
    ($d:tt $($(#[$doc:meta])+ $name:ident: $kind:ident;)+) => {$(
        $(#[$doc])+
        #[macro_export]
        macro_rules! $name {
            ($d queue:expr $d(, $d($d rest:tt)*)?) => {
                $crate::__assert!($kind, $d queue $d(, $d($d rest)*)?)
            };
        }
        pub use $name;
    )+};
}

assertions! {
    $
    /// Asserts that clients of the code under test receive here: a receiver is attached and has credit, or waits for a
    /// session.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// assert_attached!(servicebus.queue("orders"), to = "worker-1", "after {} restarts", 2).await;
    /// # }
    /// ```
    ///
    /// Takes `to` (the client), `count` (of receivers; at least one without it) and `within`.
    assert_attached: Attached;
    /// Asserts that messages are in the dead-letter queue, or in that of `queue.transfer_dead_letters()`.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// let orders = servicebus.queue("orders");
    /// assert_dead_lettered!(orders, reason = "MaxDeliveryCountExceeded").await;
    /// assert_dead_lettered!(orders, reason = "Rejected", description = contains("total"), count = 2).await;
    /// # }
    /// ```
    ///
    /// A text without a name is the test's own message, not a reason: `assert_dead_lettered!(orders, "Rejected")` holds for
    /// any reason.
    ///
    /// Takes `reason`, `description`, [conditions on messages](crate::assertion#which-messages), `count` (at least one
    /// without it) and `within`.
    assert_dead_lettered: DeadLettered;
    /// Asserts that no message is in the dead-letter queue once the namespace is idle.
    ///
    /// Takes `reason`, `description`, [conditions on messages](crate::assertion#which-messages) and `within`.
    assert_not_dead_lettered: NotDeadLettered;
    /// Asserts that the queue holds no message in any state, its dead-letter queue aside.
    ///
    /// Takes `within`.
    assert_empty: Empty;
    /// Asserts exact numbers of messages.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// assert_message_count!(servicebus.queue("orders"), active = 2, dead_letter = 1, scheduled = 0).await;
    /// # }
    /// ```
    ///
    /// It does not compile without a number:
    ///
    /// ```compile_fail
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// assert_message_count!(servicebus.queue("orders")).await;
    /// # }
    /// ```
    ///
    /// Takes `active`, `dead_letter`, `transfer_dead_letter`, `scheduled`, `locked`, `deferred`, `transfer` and
    /// `within`.
    assert_message_count: MessageCount;
    /// Asserts that messages were completed.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages), `count` (at least one without it) and `within`.
    assert_completed: Completed;
    /// Asserts that messages were delivered to receivers, with a lock or without.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages), `to` (the client), `times` (at least once
    /// without it), `at_least` and `within`.
    assert_delivered: Delivered;
    /// Asserts that no message was delivered to a receiver once the namespace is idle.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages), `to` (the client) and `within`.
    assert_not_delivered: NotDelivered;
    /// Asserts that deliveries were abandoned.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages), `times` (at least once without it), `at_least`
    /// and `within`.
    assert_abandoned: Abandoned;
    /// Asserts that locks were renewed.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages), `times` (at least once without it), `at_least`
    /// and `within`.
    assert_lock_renewed: LockRenewed;
    /// Asserts that messages in the queue are deferred.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages), `count` (at least one without it) and `within`.
    assert_deferred: Deferred;
    /// Asserts that messages in the queue are scheduled.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// assert_scheduled!(servicebus.queue("orders"), due_in = Duration::from_secs(600), count = 1).await;
    /// # }
    /// ```
    ///
    /// Takes `at` or `due_in`, `tolerance` (10 s unless set), [conditions on
    /// messages](crate::assertion#which-messages), `count` (at least one without it) and `within`.
    assert_scheduled: Scheduled;
    /// Asserts that messages expired, whether they were dropped or dead-lettered.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages), `count` (at least one without it) and `within`.
    assert_expired: Expired;
    /// Asserts that messages were forwarded to another queue.
    ///
    /// Takes `to`, [conditions on messages](crate::assertion#which-messages), `count` (at least one without it) and
    /// `within`.
    assert_forwarded: Forwarded;
    /// Asserts that no message was completed once the namespace is idle.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages) and `within`.
    assert_not_completed: NotCompleted;
    /// Asserts that no delivery was abandoned once the namespace is idle.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages) and `within`.
    assert_not_abandoned: NotAbandoned;
    /// Asserts that no lock was renewed once the namespace is idle.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages) and `within`.
    assert_lock_not_renewed: LockNotRenewed;
    /// Asserts that no message in the queue is deferred once the namespace is idle.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages) and `within`.
    assert_not_deferred: NotDeferred;
    /// Asserts that no message in the queue is scheduled once the namespace is idle.
    ///
    /// Takes `at` or `due_in`, `tolerance` (10 s unless set), [conditions on messages](crate::assertion#which-messages)
    /// and `within`.
    assert_not_scheduled: NotScheduled;
    /// Asserts that no message expired once the namespace is idle.
    ///
    /// Takes [conditions on messages](crate::assertion#which-messages) and `within`.
    assert_not_expired: NotExpired;
    /// Asserts that no message was forwarded to another queue once the namespace is idle.
    ///
    /// Takes `to`, [conditions on messages](crate::assertion#which-messages) and `within`.
    assert_not_forwarded: NotForwarded;
    /// Asserts the largest number of sends that awaited their outcome at once, over all connections to the queue or
    /// topic.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// assert_unsettled_sends!(servicebus.queue("orders"), at_most = 10).await;
    /// # }
    /// ```
    ///
    /// Counts messages that arrived unsettled over AMQP. Takes `count`, `at_least`, `at_most` and `within`; expects at
    /// least one without them.
    assert_unsettled_sends: UnsettledSends;
}

/// Asserts that a session holds exactly these messages, in this order, its deferred and scheduled messages aside.
///
/// ```no_run
/// # use servicebus_harness::prelude::*;
/// # async fn test(servicebus: ServiceBus) {
/// assert_session_order!(servicebus.queue("carts"), session = "cart-7", bodies = ["add", "pay"]).await;
/// # }
/// ```
///
/// Takes `bodies` and `within`.
#[macro_export]
macro_rules! assert_session_order {
    ($queue:expr, session = $session:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(SessionOrder, $queue; $session $(, $($rest)*)?)
    };
    ($queue:expr, bodies = $bodies:expr, session = $session:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(SessionOrder, $queue; $session, bodies = $bodies $(, $($rest)*)?)
    };
    ($($other:tt)*) => {
        ::std::compile_error!(
            "assert_session_order! needs the session right after the queue or subscription: assert_session_order!(queue, session = \"…\", bodies = […])"
        )
    };
}
pub use assert_session_order;

/// Asserts that a session has a state.
///
/// ```no_run
/// # use servicebus_harness::prelude::*;
/// # async fn test(servicebus: ServiceBus) {
/// assert_session_state!(servicebus.queue("carts"), session = "cart-7", text = "paid").await;
/// # }
/// ```
///
/// Takes one of `bytes`, `text`, `json` and `set`, and `within`; expects any state without them.
#[macro_export]
macro_rules! assert_session_state {
    ($queue:expr, session = $session:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(SessionState, $queue; $session $(, $($rest)*)?)
    };
    ($($other:tt)*) => {
        ::std::compile_error!(
            "assert_session_state! needs the session right after the queue or subscription: assert_session_state!(queue, session = \"…\", text = \"…\")"
        )
    };
}
pub use assert_session_state;

/// The expansion that all assertion macros share.
#[doc(hidden)]
#[macro_export]
macro_rules! __assert {
    (
        $expectation:ident, $queue:expr $(; $session:expr)?
        $(, $field:ident = $value:expr)* $(, $($message:literal $($argument:tt)*)?)?
    ) => {{
        let expectation =
            $crate::assertion::$expectation::of(&$queue $(, $session)?)$(.$field($value))*;
        let message: ::std::option::Option<::std::string::String> =
            $crate::__message!($($($message $($argument)*)?)?);
        async move {
            if let ::std::result::Result::Err(failure) =
                $crate::assertion::checking(expectation).await
            {
                match message {
                    ::std::option::Option::Some(message) => ::std::panic!("{message}\n{failure}"),
                    ::std::option::Option::None => ::std::panic!("{failure}"),
                }
            }
        }
    }};
}

/// Formats the message that a test adds to a failed assertion.
#[doc(hidden)]
#[macro_export]
macro_rules! __message {
    () => {
        ::std::option::Option::None
    };
    ($message:literal $($argument:tt)*) => {
        ::std::option::Option::Some(::std::format!($message $($argument)*))
    };
}
