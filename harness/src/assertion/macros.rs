//! The assertions as sentences.
//!
//! Each macro takes a queue, subscription or topic and named expectations, which are the methods of the assertion of its name,
//! and a message for people in the end, as `assert_eq!` does. It evaluates them at once and yields a future; the panic is at
//! the line of the test.

/// Asserts that clients of the code under test receive here: a receiver is attached and has asked for messages, or waits for
/// a session.
///
/// ```no_run
/// # use servicebus_harness::prelude::*;
/// # async fn test(servicebus: ServiceBus) {
/// assert_attached!(servicebus.queue("orders"), to = "worker-1", "after {} restarts", 2).await;
/// # }
/// ```
///
/// Takes `to` (the client), `count` (of receivers) and `within`; without `count` one is enough.
#[macro_export]
macro_rules! assert_attached {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Attached, $queue $(, $($rest)*)?)
    };
}

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
/// Without `count` one message is enough. Takes `reason`, `description`, [what messages are like](crate::assertion#which-messages),
/// `count` and `within`.
#[macro_export]
macro_rules! assert_dead_lettered {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(DeadLettered, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no message is in the dead-letter queue once the namespace is idle.
///
/// Takes `reason`, `description`, [what messages are like](crate::assertion#which-messages) and `within`; with them only
/// such messages matter.
#[macro_export]
macro_rules! assert_not_dead_lettered {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotDeadLettered, $queue $(, $($rest)*)?)
    };
}

/// Asserts that the queue holds no message, of whatever state; dead letters are not in it.
///
/// Takes `within`.
#[macro_export]
macro_rules! assert_empty {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Empty, $queue $(, $($rest)*)?)
    };
}

/// Asserts exact numbers of messages.
///
/// ```no_run
/// # use servicebus_harness::prelude::*;
/// # async fn test(servicebus: ServiceBus) {
/// assert_message_count!(servicebus.queue("orders"), active = 2, dead_letter = 1, scheduled = 0).await;
/// # }
/// ```
///
/// Without a number it would assert nothing, so it does not compile:
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
#[macro_export]
macro_rules! assert_message_count {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(MessageCount, $queue $(, $($rest)*)?)
    };
}

/// Asserts that messages were completed.
///
/// Without `count` one is enough. Takes [what messages are like](crate::assertion#which-messages), `count` and `within`.
#[macro_export]
macro_rules! assert_completed {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Completed, $queue $(, $($rest)*)?)
    };
}

/// Asserts that messages were delivered to receivers, with a lock or without.
///
/// Without `times` once is enough. Takes [what messages are like](crate::assertion#which-messages), `to` (the client),
/// `times`, `at_least` and `within`.
#[macro_export]
macro_rules! assert_delivered {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Delivered, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no message was delivered to a receiver once the namespace is idle.
///
/// Takes [what messages are like](crate::assertion#which-messages), `to` (the client) and `within`; with them only such
/// deliveries matter.
#[macro_export]
macro_rules! assert_not_delivered {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotDelivered, $queue $(, $($rest)*)?)
    };
}

/// Asserts that deliveries were abandoned.
///
/// Without `times` once is enough. Takes [what messages are like](crate::assertion#which-messages), `times`, `at_least` and
/// `within`.
#[macro_export]
macro_rules! assert_abandoned {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Abandoned, $queue $(, $($rest)*)?)
    };
}

/// Asserts that locks were renewed.
///
/// Without `times` once is enough. Takes [what messages are like](crate::assertion#which-messages), `times`, `at_least` and
/// `within`.
#[macro_export]
macro_rules! assert_lock_renewed {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(LockRenewed, $queue $(, $($rest)*)?)
    };
}

/// Asserts that messages in the queue are deferred.
///
/// Without `count` one is enough. Takes [what messages are like](crate::assertion#which-messages), `count` and `within`.
#[macro_export]
macro_rules! assert_deferred {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Deferred, $queue $(, $($rest)*)?)
    };
}

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
/// Without `count` one is enough. Takes `at` or `due_in`, `tolerance` (ten seconds unless said otherwise),
/// [what messages are like](crate::assertion#which-messages), `count` and `within`.
#[macro_export]
macro_rules! assert_scheduled {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Scheduled, $queue $(, $($rest)*)?)
    };
}

/// Asserts that messages expired, whether they were dropped or dead-lettered.
///
/// Without `count` one is enough. Takes [what messages are like](crate::assertion#which-messages), `count` and `within`.
#[macro_export]
macro_rules! assert_expired {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Expired, $queue $(, $($rest)*)?)
    };
}

/// Asserts that messages were forwarded to another queue.
///
/// Without `count` one is enough. Takes `to`, [what messages are like](crate::assertion#which-messages), `count` and
/// `within`.
#[macro_export]
macro_rules! assert_forwarded {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(Forwarded, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no message was completed once the namespace is idle.
///
/// Takes [what messages are like](crate::assertion#which-messages) and `within`; with them only such
/// messages matter.
#[macro_export]
macro_rules! assert_not_completed {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotCompleted, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no delivery was abandoned once the namespace is idle.
///
/// Takes [what messages are like](crate::assertion#which-messages) and `within`; with them only such
/// messages matter.
#[macro_export]
macro_rules! assert_not_abandoned {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotAbandoned, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no lock was renewed once the namespace is idle.
///
/// Takes [what messages are like](crate::assertion#which-messages) and `within`; with them only such
/// messages matter.
#[macro_export]
macro_rules! assert_lock_not_renewed {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(LockNotRenewed, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no message in the queue is deferred once the namespace is idle.
///
/// Takes [what messages are like](crate::assertion#which-messages) and `within`; with them only such
/// messages matter.
#[macro_export]
macro_rules! assert_not_deferred {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotDeferred, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no message in the queue is scheduled once the namespace is idle.
///
/// Takes `at` or `due_in`, `tolerance` (ten seconds unless said otherwise),
/// [what messages are like](crate::assertion#which-messages) and `within`; with them only such messages matter.
#[macro_export]
macro_rules! assert_not_scheduled {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotScheduled, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no message expired once the namespace is idle.
///
/// Takes [what messages are like](crate::assertion#which-messages) and `within`; with them only such
/// messages matter.
#[macro_export]
macro_rules! assert_not_expired {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotExpired, $queue $(, $($rest)*)?)
    };
}

/// Asserts that no message was forwarded to another queue once the namespace is idle.
///
/// Takes `to`, [what messages are like](crate::assertion#which-messages) and `within`; with them only such
/// messages matter.
#[macro_export]
macro_rules! assert_not_forwarded {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(NotForwarded, $queue $(, $($rest)*)?)
    };
}

/// Asserts how many sends ever waited for their outcome at once, over all connections to the queue or topic.
///
/// ```no_run
/// # use servicebus_harness::prelude::*;
/// # async fn test(servicebus: ServiceBus) {
/// assert_unsettled_sends!(servicebus.queue("orders"), at_most = 10).await;
/// # }
/// ```
///
/// Counts what came over AMQP and was not sent settled. Takes `count`, `at_least`, `at_most` and `within`;
/// without any, one is enough.
#[macro_export]
macro_rules! assert_unsettled_sends {
    ($queue:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(UnsettledSends, $queue $(, $($rest)*)?)
    };
}

/// Asserts that a session holds exactly these messages, in this order; deferred ones or wait for their time
/// are not among them.
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
}

/// Asserts that something is kept with a session.
///
/// ```no_run
/// # use servicebus_harness::prelude::*;
/// # async fn test(servicebus: ServiceBus) {
/// assert_session_state!(servicebus.queue("carts"), session = "cart-7", text = "paid").await;
/// # }
/// ```
///
/// Takes one of `bytes`, `text`, `json` and `set`, and `within`; without any, any state will do.
#[macro_export]
macro_rules! assert_session_state {
    ($queue:expr, session = $session:expr $(, $($rest:tt)*)?) => {
        $crate::__assert!(SessionState, $queue; $session $(, $($rest)*)?)
    };
}

/// What the sentences have in common.
#[doc(hidden)]
#[macro_export]
macro_rules! __assert {
    (
        $expectation:ident, $queue:expr $(; $session:expr)?
        $(, $field:ident = $value:expr)* $(, $message:literal $(, $argument:expr)*)? $(,)?
    ) => {{
        let expectation =
            $crate::assertion::$expectation::of(&$queue $(, $session)?)$(.$field($value))*;
        let message: ::std::option::Option<::std::string::String> =
            $crate::__message!($($message $(, $argument)*)?);
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

/// What a test says of an assertion that fails.
#[doc(hidden)]
#[macro_export]
macro_rules! __message {
    () => {
        ::std::option::Option::None
    };
    ($message:literal $(, $argument:expr)*) => {
        ::std::option::Option::Some(::std::format!($message $(, $argument)*))
    };
}
