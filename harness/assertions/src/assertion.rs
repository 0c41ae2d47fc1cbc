//! An assertion as data: what it is about, and what is expected.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::Value;

use crate::{kind::Kind, matcher::Text, place::Place, selector::Selector};

/// By how much a time may differ, unless said otherwise: a busy machine takes a while from the one look at its clock to
/// the other.
const TOLERANCE: Duration = Duration::from_secs(10);

/// An assertion about a queue, subscription or topic. Of its fields those count that its kind takes.
#[derive(Debug, Clone)]
pub struct Assertion {
    /// What is expected.
    pub kind: Kind,
    /// Of what.
    pub place: Place,
    /// Of which messages; of all unless it says more.
    pub which: Selector,
    /// The reason of dead letters.
    pub reason: Option<Text>,
    /// The description of dead letters.
    pub description: Option<Text>,
    /// The entity or client to which something goes.
    pub to: Option<Text>,
    /// When scheduled messages are due.
    pub due: Option<ScheduledEnqueueTime>,
    /// By how much that may differ.
    pub tolerance: Duration,
    /// How many, or how often.
    pub number: Number,
    /// How many unsettled sends there are at least.
    pub least: Option<u64>,
    /// How many there are at most.
    pub most: Option<u64>,
    /// Numbers of messages, by the names that [`Counts`](servicebus_control_api::Counts) has for them.
    pub counts: Vec<(&'static str, u64)>,
    /// The id of a session.
    pub session: String,
    /// The bodies of its messages, in order.
    pub bodies: Vec<Text>,
    /// What is kept with it.
    pub state: WantedState,
    /// How long to wait in real time: for what is expected, or for the namespace to become idle where nothing is.
    pub within: Duration,
}

impl Assertion {
    /// Expects what the kind does without saying more.
    pub fn new(kind: Kind, place: Place, within: Duration) -> Self {
        Self {
            kind,
            place,
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
            state: WantedState::Something,
            within,
        }
    }
}

/// When a scheduled message is to become active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledEnqueueTime {
    /// At this time of the client's clock.
    At(SystemTime),
    /// So long from now, and no later than the end of the year 9999.
    In(Duration),
}

impl ScheduledEnqueueTime {
    /// Returns that time; what is to be in a while is counted from now.
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

/// The last second that the service has a time for, at the end of the year 9999: what is to be in a longer while is to be then.
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

/// How often something is to have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// So often or more.
    AtLeast(u64),
    /// Exactly so often.
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

/// What is to be kept with a session.
#[derive(Debug, Clone)]
pub enum WantedState {
    /// Any state.
    Something,
    /// None.
    Nothing,
    /// These bytes.
    Bytes(Bytes),
    /// This text.
    Text(Text),
    /// This value in JSON, however it is written.
    Json(Value),
}
