//! An assertion as data: its subject, and what it expects.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::Value;

use crate::{Kind, address::EntityAddress, matcher::Text, selector::Selector};

/// The default tolerance of times: a busy machine takes a while between two readings of its clock.
const TOLERANCE: Duration = Duration::from_secs(10);

/// An assertion about a queue, subscription or topic. Its kind defines which fields apply.
#[derive(Debug, Clone)]
pub struct Assertion {
    /// The kind of expectation.
    pub kind: Kind,
    /// The queue, topic, subscription or sub-queue.
    pub address: EntityAddress,
    /// The messages; all by default.
    pub which: Selector,
    /// The reason of dead-lettered messages.
    pub reason: Option<Text>,
    /// The description of dead-lettered messages.
    pub description: Option<Text>,
    /// The target entity or client.
    pub to: Option<Text>,
    /// When scheduled messages are due.
    pub due: Option<ScheduledEnqueueTime>,
    /// The tolerance of that time.
    pub tolerance: Duration,
    /// The expected number of messages or occurrences.
    pub number: Number,
    /// The minimum of unsettled sends.
    pub least: Option<u64>,
    /// The maximum of unsettled sends.
    pub most: Option<u64>,
    /// Message counts, by their names in [`Counts`](servicebus_control_api::Counts).
    pub counts: Vec<(&'static str, u64)>,
    /// The id of a session.
    pub session: String,
    /// The bodies of the session's messages, in order.
    pub bodies: Vec<Text>,
    /// The state of the session.
    pub state: ExpectedState,
    /// How long to wait, in real time, for what is expected, or for the namespace to become idle if nothing is expected.
    pub within: Duration,
}

impl Assertion {
    /// Creates an assertion with the defaults of its kind.
    pub fn new(kind: Kind, address: EntityAddress, within: Duration) -> Self {
        Self {
            kind,
            address,
            which: Selector::default(),
            reason: None,
            description: None,
            to: None,
            due: None,
            tolerance: TOLERANCE,
            number: Number::AtLeast(1),
            least: None,
            most: None,
            counts: Vec::new(),
            session: String::new(),
            bodies: Vec::new(),
            state: ExpectedState::Any,
            within,
        }
    }
}

/// When a scheduled message becomes active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledEnqueueTime {
    /// At this time of the client's clock.
    At(SystemTime),
    /// After this delay, but no later than the end of the year 9999.
    In(Duration),
}

impl ScheduledEnqueueTime {
    /// Returns that time; a delay counts from now.
    #[doc(hidden)]
    pub fn instant(self) -> SystemTime {
        match self {
            Self::At(instant) => instant,
            Self::In(delay) => {
                let instant = SystemTime::now().checked_add(delay);
                instant.map_or_else(latest, |instant| instant.min(latest()))
            }
        }
    }
}

/// Returns the last second that the service can represent, at the end of the year 9999; longer delays are cut to it.
fn latest() -> SystemTime {
    const SECONDS: u64 = 253_402_300_799;
    SystemTime::UNIX_EPOCH + Duration::from_secs(SECONDS)
}

impl From<SystemTime> for ScheduledEnqueueTime {
    fn from(instant: SystemTime) -> Self {
        Self::At(instant)
    }
}

impl From<Duration> for ScheduledEnqueueTime {
    fn from(delay: Duration) -> Self {
        Self::In(delay)
    }
}

/// An expected number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// At least this number.
    AtLeast(u64),
    /// Exactly this number.
    Exactly(u64),
}

impl Number {
    pub(crate) fn is(self, found: u64) -> bool {
        match self {
            Self::AtLeast(number) => found >= number,
            Self::Exactly(number) => found == number,
        }
    }

    pub(crate) fn exact(self) -> Option<u64> {
        match self {
            Self::AtLeast(_) => None,
            Self::Exactly(number) => Some(number),
        }
    }
}

/// An expected session state.
#[derive(Debug, Clone)]
pub enum ExpectedState {
    /// Any state.
    Any,
    /// No state.
    None,
    /// These bytes.
    Bytes(Bytes),
    /// This text.
    Text(Text),
    /// This JSON value, in any formatting.
    Json(Value),
}
