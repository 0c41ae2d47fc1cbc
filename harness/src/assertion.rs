//! Sentences about a bus that are true, or fail with the reason.
//!
//! Each assertion is a value that is built, awaited, and yields a `Result`; the macros await it and panic at
//! the line of the test. Each looks again and again up to a deadline in real time, and asks only what any
//! client could: a negative one first waits for the bus to come to rest.
//!
//! # Which messages
//!
//! Assertions about messages take what these are like, and are about all of them without: `message_id` and `body`, each
//! a text that is compared exactly, with [`contains`](crate::contains) or [`satisfies`](crate::satisfies); `body_json`, a
//! value of which objects may have more than is expected; `matching`, a predicate of the message as it came in.
//!
//! ```no_run
//! # use servicebus_harness::prelude::*;
//! # use serde_json::json;
//! # async fn test(servicebus: ServiceBus) {
//! let orders = servicebus.queue("orders");
//! assert_delivered!(orders, body_json = json!({"total": 3}), times = 1).await;
//! assert_not_completed!(orders, body = contains("poison")).await;
//! assert_dead_lettered!(orders, matching = |order| order.body.len() > 1000).await;
//! # }
//! ```

mod abandoned;
mod completed;
mod dead_lettered;
mod deferred;
mod delivered;
mod empty;
mod expired;
mod failure;
mod forwarded;
mod held;
mod hint;
mod in_flight;
mod in_order;
mod left_behind;
mod lock_renewed;
mod macros;
mod message_count;
mod never;
mod not_dead_lettered;
mod recorded;
mod scheduled;
mod session_state;
mod which;

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::{Duration, Instant},
};

use crate::{
    comparison::{UNCHECKABLE, observe},
    control::ControlError,
    mailbox::{CountsError, Mailbox, PeekError, SessionsError, TimelineError, UnknownEntity},
    settled::SettledError,
};

pub use abandoned::{Abandoned, NotAbandoned};
pub use completed::{Completed, NotCompleted};
pub use dead_lettered::DeadLettered;
pub use deferred::{Deferred, NotDeferred};
pub use delivered::{Delivered, NeverDelivered};
pub use empty::Empty;
pub use expired::{Expired, NotExpired};
pub use failure::AssertionFailed;
pub use forwarded::{Forwarded, NotForwarded};
pub use in_flight::InFlight;
pub use in_order::InOrder;
pub use lock_renewed::{LockNotRenewed, LockRenewed};
pub use message_count::MessageCount;
pub use not_dead_lettered::NotDeadLettered;
pub use scheduled::{NotScheduled, Scheduled};
pub use session_state::SessionState;

use failure::Report;
pub(crate) use left_behind::left_behind;

/// How long an assertion waits in real time, unless it says otherwise.
const WITHIN: Duration = Duration::from_secs(5);
/// The pauses between two looks: short at first, for most things have happened already.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

impl Mailbox {
    /// Expects messages in the dead-letter queue.
    pub fn expect_dead_lettered(&self) -> DeadLettered {
        DeadLettered::of(self)
    }

    /// Expects no messages in the dead-letter queue once the bus is at rest.
    pub fn expect_not_dead_lettered(&self) -> NotDeadLettered {
        NotDeadLettered::of(self)
    }

    /// Expects no messages in the queue or subscription; dead letters may be.
    pub fn expect_empty(&self) -> Empty {
        Empty::of(self)
    }

    /// Expects exact numbers of messages.
    pub fn expect_message_count(&self) -> MessageCount {
        MessageCount::of(self)
    }

    /// Expects messages to have been settled as done, by anyone.
    pub fn expect_completed(&self) -> Completed {
        Completed::of(self)
    }

    /// Expects no messages to have been settled as done once the bus is at rest.
    pub fn expect_not_completed(&self) -> NotCompleted {
        NotCompleted::of(self)
    }

    /// Expects messages to have gone to consumers, with a lock or without.
    pub fn expect_delivered(&self) -> Delivered {
        Delivered::of(self)
    }

    /// Expects no messages to have gone to consumers once the bus is at rest.
    pub fn expect_never_delivered(&self) -> NeverDelivered {
        NeverDelivered::of(self)
    }

    /// Expects deliveries to have been given back as failed, by anyone.
    pub fn expect_abandoned(&self) -> Abandoned {
        Abandoned::of(self)
    }

    /// Expects no deliveries to have been given back as failed once the bus is at rest.
    pub fn expect_not_abandoned(&self) -> NotAbandoned {
        NotAbandoned::of(self)
    }

    /// Expects locks to have been prolonged, by anyone.
    pub fn expect_lock_renewed(&self) -> LockRenewed {
        LockRenewed::of(self)
    }

    /// Expects no locks to have been prolonged once the bus is at rest.
    pub fn expect_lock_not_renewed(&self) -> LockNotRenewed {
        LockNotRenewed::of(self)
    }

    /// Expects messages in the queue that were put aside.
    pub fn expect_deferred(&self) -> Deferred {
        Deferred::of(self)
    }

    /// Expects no messages in the queue that were put aside once the bus is at rest.
    pub fn expect_not_deferred(&self) -> NotDeferred {
        NotDeferred::of(self)
    }

    /// Expects messages in the queue that become active later.
    pub fn expect_scheduled(&self) -> Scheduled {
        Scheduled::of(self)
    }

    /// Expects no messages in the queue that become active later once the bus is at rest.
    pub fn expect_not_scheduled(&self) -> NotScheduled {
        NotScheduled::of(self)
    }

    /// Expects messages to have expired, dropped or dead-lettered.
    pub fn expect_expired(&self) -> Expired {
        Expired::of(self)
    }

    /// Expects no messages to have expired once the bus is at rest.
    pub fn expect_not_expired(&self) -> NotExpired {
        NotExpired::of(self)
    }

    /// Expects messages to have gone on to another queue.
    pub fn expect_forwarded(&self) -> Forwarded {
        Forwarded::of(self)
    }

    /// Expects no messages to have gone on to another queue once the bus is at rest.
    pub fn expect_not_forwarded(&self) -> NotForwarded {
        NotForwarded::of(self)
    }

    /// Expects bounds of how many sends ever waited for their outcome at once.
    pub fn expect_in_flight(&self) -> InFlight {
        InFlight::of(self)
    }

    /// Expects messages of a session in the queue, in an order.
    pub fn expect_in_order(&self, session: impl Into<String>) -> InOrder {
        InOrder::of(self, session)
    }

    /// Expects something to be kept with a session.
    pub fn expect_session_state(&self, session: impl Into<String>) -> SessionState {
        SessionState::of(self, session)
    }
}

/// What every assertion can do.
pub(crate) trait Expectation: Sized + Send + 'static {
    /// Returns what it is about.
    fn mailbox(&self) -> &Mailbox;

    /// Returns what is found when it is true, where its name does not say that.
    fn expected(&self) -> String {
        String::new()
    }

    /// Looks until it is true or the time is over.
    fn check(self) -> impl Future<Output = Result<(), AssertionFailed>> + Send;

    /// Looks on the background runtime, where time is real.
    fn into_check(self, mailbox: Mailbox) -> Checking {
        Box::pin(async move {
            let what = format!("{} of {mailbox}", name::<Self>());
            let expected = self.expected();
            let checked = mailbox.run(|_| self.check()).await;
            if let Some(value) = observed(&checked, &expected) {
                observe(what, value);
            }
            checked
        })
    }
}

/// The name of an assertion, as it is told in a comparison.
fn name<T>() -> &'static str {
    let path = std::any::type_name::<T>();
    path.rsplit("::").next().unwrap_or(path)
}

/// What a comparison is told: that it holds, or in the first line why not; nothing where nobody could look.
fn observed(checked: &Result<(), AssertionFailed>, expected: &str) -> Option<String> {
    match checked {
        Ok(()) => Some(format!("holds{expected}")),
        Err(failure) => {
            let text = failure.to_string();
            let told = text.lines().next().unwrap_or_default();
            (!told.contains(UNCHECKABLE)).then(|| told.to_owned())
        }
    }
}

/// The future of an assertion.
pub type Checking = Pin<Box<dyn Future<Output = Result<(), AssertionFailed>> + Send>>;

/// Lets each assertion be awaited as it stands.
macro_rules! awaitable {
    ($($expectation:ty),+) => {$(
        impl IntoFuture for $expectation {
            type Output = Result<(), AssertionFailed>;
            type IntoFuture = Checking;

            fn into_future(self) -> Checking {
                let mailbox = self.mailbox().clone();
                self.into_check(mailbox)
            }
        }
    )+};
}

awaitable!(
    Abandoned,
    Completed,
    DeadLettered,
    Deferred,
    Delivered,
    Empty,
    Expired,
    Forwarded,
    InFlight,
    InOrder,
    LockNotRenewed,
    LockRenewed,
    MessageCount,
    NeverDelivered,
    NotAbandoned,
    NotCompleted,
    NotDeadLettered,
    NotDeferred,
    NotExpired,
    NotForwarded,
    NotScheduled,
    Scheduled,
    SessionState
);

/// Looks until `look` finds what is expected; else returns what it found last.
async fn poll<T, F>(
    within: Duration,
    look: impl Fn() -> F,
    is_expected: impl Fn(&T) -> bool,
) -> Result<Looked<T>, ProbeError>
where
    F: Future<Output = Result<T, ProbeError>>,
{
    let started = Instant::now();
    let [mut pause, longest] = PAUSES;
    loop {
        let found = look().await?;
        if is_expected(&found) {
            return Ok(Looked::Expected);
        }
        if started.elapsed() >= within {
            return Ok(Looked::Otherwise(found));
        }
        tokio::time::sleep(pause.min(within)).await;
        pause = (pause * 2).min(longest);
    }
}

/// How looking ended.
enum Looked<T> {
    Expected,
    Otherwise(T),
}

/// Why an assertion could not look.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error(transparent)]
    Peek(#[from] PeekError),
    #[error(transparent)]
    Counts(#[from] CountsError),
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    #[error(transparent)]
    Sessions(#[from] SessionsError),
    #[error(transparent)]
    Settled(#[from] SettledError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    #[error("this emulator does not count unsettled sends")]
    NoSends,
    #[error(
        "this emulator keeps no messages, so that only their ids are known of those that are gone; start it with `--record-messages`, as the harness does"
    )]
    NoMessages,
}

/// Fails at once when the queue or subscription does not exist, with the names of those that do.
async fn known(mailbox: &Mailbox) -> Result<(), ProbeError> {
    match mailbox.unknown_if(true).await {
        Some(unknown) => Err(unknown.into()),
        None => Ok(()),
    }
}
