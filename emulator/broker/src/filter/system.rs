//! System properties: the names in the scope `sys.`, and the broker's values of a message.

use std::time::Duration;

use uuid::Uuid;

use crate::ids::SequenceNumber;
use crate::time::Timestamp;

/// A property in the scope `sys.` (semantics §13.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SystemProperty {
    /// `content-type`.
    ContentType,
    /// `correlation-id`.
    CorrelationId,
    /// The source of a forwarded dead letter.
    DeadLetterSource,
    /// Failed deliveries so far.
    DeliveryCount,
    /// The sequence number where the message first entered.
    EnqueuedSequenceNumber,
    /// When the message was accepted.
    EnqueuedTimeUtc,
    /// When its time to live ends.
    ExpiresAtUtc,
    /// The `durable` field of the header, a relic of the first SDKs.
    ForcePersistence,
    /// `subject`.
    Label,
    /// When its lock ends.
    LockedUntilUtc,
    /// The token of its lock.
    LockToken,
    /// `message-id`.
    MessageId,
    /// `x-opt-partition-key`.
    PartitionKey,
    /// `reply-to`.
    ReplyTo,
    /// `reply-to-group-id`.
    ReplyToSessionId,
    /// `x-opt-scheduled-enqueue-time`.
    ScheduledEnqueueTimeUtc,
    /// The sequence number in its store.
    SequenceNumber,
    /// `group-id`.
    SessionId,
    /// Size of the message in bytes.
    Size,
    /// Active, deferred or scheduled: 0, 1, 2.
    State,
    /// The time to live.
    TimeToLive,
    /// `to`.
    To,
    /// `x-opt-via-partition-key`.
    ViaPartitionKey,
}

/// The type of a system property, to which assigned values are converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemType {
    Text,
    Id,
    Number,
    Instant,
    Span,
    Flag,
    Guid,
}

const COUNT: usize = 23;

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
    /// All system properties, ordered by name.
    pub const ALL: [Self; COUNT] = [
        Self::ContentType,
        Self::CorrelationId,
        Self::DeadLetterSource,
        Self::DeliveryCount,
        Self::EnqueuedSequenceNumber,
        Self::EnqueuedTimeUtc,
        Self::ExpiresAtUtc,
        Self::ForcePersistence,
        Self::Label,
        Self::LockedUntilUtc,
        Self::LockToken,
        Self::MessageId,
        Self::PartitionKey,
        Self::ReplyTo,
        Self::ReplyToSessionId,
        Self::ScheduledEnqueueTimeUtc,
        Self::SequenceNumber,
        Self::SessionId,
        Self::Size,
        Self::State,
        Self::TimeToLive,
        Self::To,
        Self::ViaPartitionKey,
    ];

    /// Returns the property of that name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|property| property.name().eq_ignore_ascii_case(name))
    }

    /// Returns the property that an unknown name may have meant.
    pub(crate) fn similar_to(name: &str) -> Option<Self> {
        let mut others = OTHER_NAMES.into_iter();
        let (_, property) = others.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        Some(property)
    }

    /// Returns its name, as the documentation spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContentType => "ContentType",
            Self::CorrelationId => "CorrelationId",
            Self::DeadLetterSource => "DeadLetterSource",
            Self::DeliveryCount => "DeliveryCount",
            Self::EnqueuedSequenceNumber => "EnqueuedSequenceNumber",
            Self::EnqueuedTimeUtc => "EnqueuedTimeUtc",
            Self::ExpiresAtUtc => "ExpiresAtUtc",
            Self::ForcePersistence => "ForcePersistence",
            Self::Label => "Label",
            Self::LockedUntilUtc => "LockedUntilUtc",
            Self::LockToken => "LockToken",
            Self::MessageId => "MessageId",
            Self::PartitionKey => "PartitionKey",
            Self::ReplyTo => "ReplyTo",
            Self::ReplyToSessionId => "ReplyToSessionId",
            Self::ScheduledEnqueueTimeUtc => "ScheduledEnqueueTimeUtc",
            Self::SequenceNumber => "SequenceNumber",
            Self::SessionId => "SessionId",
            Self::Size => "Size",
            Self::State => "State",
            Self::TimeToLive => "TimeToLive",
            Self::To => "To",
            Self::ViaPartitionKey => "ViaPartitionKey",
        }
    }

    /// Returns whether an action may set or remove it, which holds for the properties that a sender can set.
    pub fn is_writable(self) -> bool {
        match self {
            Self::ContentType
            | Self::CorrelationId
            | Self::ForcePersistence
            | Self::Label
            | Self::MessageId
            | Self::PartitionKey
            | Self::ReplyTo
            | Self::ReplyToSessionId
            | Self::ScheduledEnqueueTimeUtc
            | Self::SessionId
            | Self::TimeToLive
            | Self::To
            | Self::ViaPartitionKey => true,
            Self::DeadLetterSource
            | Self::DeliveryCount
            | Self::EnqueuedSequenceNumber
            | Self::EnqueuedTimeUtc
            | Self::ExpiresAtUtc
            | Self::LockedUntilUtc
            | Self::LockToken
            | Self::SequenceNumber
            | Self::Size
            | Self::State => false,
        }
    }

    pub(crate) fn value_type(self) -> SystemType {
        match self {
            Self::MessageId
            | Self::SessionId
            | Self::ReplyToSessionId
            | Self::PartitionKey
            | Self::ViaPartitionKey => SystemType::Id,
            Self::ContentType
            | Self::CorrelationId
            | Self::DeadLetterSource
            | Self::Label
            | Self::ReplyTo
            | Self::To => SystemType::Text,
            Self::DeliveryCount
            | Self::EnqueuedSequenceNumber
            | Self::SequenceNumber
            | Self::Size
            | Self::State => SystemType::Number,
            Self::EnqueuedTimeUtc
            | Self::ExpiresAtUtc
            | Self::LockedUntilUtc
            | Self::ScheduledEnqueueTimeUtc => SystemType::Instant,
            Self::TimeToLive => SystemType::Span,
            Self::ForcePersistence => SystemType::Flag,
            Self::LockToken => SystemType::Guid,
        }
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
