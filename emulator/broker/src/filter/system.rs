//! System properties: the names in the scope `sys.`, and the broker's values of a message.

use std::time::Duration;

use uuid::Uuid;

use crate::ids::SequenceNumber;
use crate::time::Timestamp;

/// Declares the system properties, each with the type of its values, and whether a sender can set it.
macro_rules! properties {
    ($(#[$documentation:meta] $property:ident: $type:ident, $writable:literal;)+) => {
        /// A property in the scope `sys.` (semantics §13.3).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SystemProperty {
            $(#[$documentation] $property,)+
        }

        impl SystemProperty {
            /// All system properties, ordered by name.
            pub const ALL: &'static [Self] = &[$(Self::$property),+];

            /// Returns its name, as the documentation spells it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$property => stringify!($property),)+
                }
            }

            /// Returns whether an action may set or remove it, which holds for the properties that a sender can set.
            pub fn is_writable(self) -> bool {
                match self {
                    $(Self::$property => $writable,)+
                }
            }

            pub(crate) fn value_type(self) -> SystemType {
                match self {
                    $(Self::$property => SystemType::$type,)+
                }
            }
        }
    };
}

properties! {
    /// `content-type`.
    ContentType: Symbol, true;
    /// `correlation-id`.
    CorrelationId: Text, true;
    /// The source of a forwarded dead letter.
    DeadLetterSource: Text, false;
    /// Failed deliveries so far.
    DeliveryCount: Number, false;
    /// The sequence number where the message first entered.
    EnqueuedSequenceNumber: Number, false;
    /// When the message was accepted.
    EnqueuedTimeUtc: Instant, false;
    /// When its time to live ends.
    ExpiresAtUtc: Instant, false;
    /// The `durable` field of the header, a relic of the first SDKs.
    ForcePersistence: Flag, true;
    /// `subject`.
    Label: Text, true;
    /// When its lock ends.
    LockedUntilUtc: Instant, false;
    /// The token of its lock.
    LockToken: Guid, false;
    /// `message-id`.
    MessageId: Id, true;
    /// `x-opt-partition-key`.
    PartitionKey: Id, true;
    /// `reply-to`.
    ReplyTo: Text, true;
    /// `reply-to-group-id`.
    ReplyToSessionId: Id, true;
    /// `x-opt-scheduled-enqueue-time`.
    ScheduledEnqueueTimeUtc: Instant, true;
    /// The sequence number in its store.
    SequenceNumber: Number, false;
    /// `group-id`.
    SessionId: Id, true;
    /// Size of the message in bytes.
    Size: Number, false;
    /// Active, deferred or scheduled: 0, 1, 2.
    State: Number, false;
    /// The time to live.
    TimeToLive: Span, true;
    /// `to`.
    To: Text, true;
    /// `x-opt-via-partition-key`.
    ViaPartitionKey: Id, true;
}

/// The type of a system property, to which assigned values are converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemType {
    Text,
    Symbol,
    Id,
    Number,
    Instant,
    Span,
    Flag,
    Guid,
}

/// Names of today's SDKs that differ from the language's.
const OTHER_NAMES: [(&str, SystemProperty); 8] = [
    ("Subject", SystemProperty::Label),
    ("EnqueuedTime", SystemProperty::EnqueuedTimeUtc),
    ("ExpiresAt", SystemProperty::ExpiresAtUtc),
    ("LockedUntil", SystemProperty::LockedUntilUtc),
    (
        "ScheduledEnqueueTime",
        SystemProperty::ScheduledEnqueueTimeUtc,
    ),
    ("TransactionPartitionKey", SystemProperty::ViaPartitionKey),
    ("GroupId", SystemProperty::SessionId),
    ("ReplyToGroupId", SystemProperty::ReplyToSessionId),
];

impl SystemProperty {
    /// Returns the property of that name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|property| property.name().eq_ignore_ascii_case(name))
    }

    /// Returns the property that an unknown name may have meant.
    pub(crate) fn similar_to(name: &str) -> Option<Self> {
        let mut others = OTHER_NAMES.into_iter();
        let (_, property) = others.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        Some(property)
    }
}

/// The broker's values of a message, which its sections do not have. Absent values are null.
#[derive(Debug, Clone, Copy, Default)]
pub struct System<'a> {
    /// The sequence number in its store.
    pub sequence_number: Option<SequenceNumber>,
    /// The sequence number where the message first entered.
    pub enqueued_sequence_number: Option<SequenceNumber>,
    /// When it was accepted.
    pub enqueued_at: Option<Timestamp>,
    /// When its time to live ends.
    pub expires_at: Option<Timestamp>,
    /// When its lock ends.
    pub locked_until: Option<Timestamp>,
    /// The token of its lock.
    pub lock_token: Option<Uuid>,
    /// Failed deliveries so far.
    pub delivery_count: u32,
    /// 0 active, 1 deferred, 2 scheduled.
    pub state: i32,
    /// Size of the message in bytes.
    pub size: u64,
    /// The effective time to live.
    pub time_to_live: Option<Duration>,
    /// The source of a forwarded dead letter.
    pub dead_letter_source: Option<&'a str>,
    /// The `durable` field of the header.
    pub force_persistence: bool,
}
