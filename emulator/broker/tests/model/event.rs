//! Events in a form that the real queues and the reference share.

use servicebus_broker::{ClientId, Event, EventKind, Events, SubQueue, Timestamp};

use crate::history::NAMES;
use crate::world::CLIENT;

/// An event with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelEvent {
    pub(crate) at: i64,
    pub(crate) queue: usize,
    pub(crate) store: SubQueue,
    pub(crate) number: u64,
    /// Returns whether a client caused it, not the broker itself.
    pub(crate) by_client: bool,
    pub(crate) what: ModelKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelKind {
    Enqueued(u8, u64, Option<i64>),
    Scheduled(u8, u64, i64),
    Activated(u64),
    Cancelled,
    Duplicate(u8),
    Delivered(u32, i64),
    ReceivedAndDeleted,
    Completed,
    Abandoned(u32),
    Deferred,
    Released,
    Renewed(i64),
    LockExpired(u32),
    DeadLettered(u64, String, String),
    TransferFailed(u64, String, String),
    Forwarded(usize),
    Expired,
    Deleted,
    Removed,
    SessionAccepted(u8, i64),
    SessionRenewed(u8, i64),
    SessionExpired(u8),
    SessionReleased(u8),
    StateSet(u8, Option<u64>),
}

impl ModelEvent {
    pub(crate) fn of(event: &Event, events: &Events) -> Self {
        assert!(event.client == CLIENT || event.client == ClientId::BROKER);
        Self {
            at: event.at.as_millis(),
            queue: event.entity.0 as usize - 1,
            store: event.store,
            number: event.number().map_or(0, |number| number.0),
            by_client: event.client == CLIENT,
            what: ModelKind::of(&event.kind, events),
        }
    }
}

impl ModelKind {
    fn of(kind: &EventKind, events: &Events) -> Self {
        let read = |text| events.read(text);
        let name = |text| session_of(&read(text));
        match *kind {
            EventKind::Enqueued {
                message_id,
                bytes,
                expires_at,
            } => {
                let until = expires_at.map(Timestamp::as_millis);
                Self::Enqueued(id_of(&read(message_id)), bytes.into(), until)
            }
            EventKind::Scheduled {
                message_id,
                bytes,
                activates_at,
            } => {
                let id = id_of(&read(message_id));
                Self::Scheduled(id, bytes.into(), activates_at.as_millis())
            }
            EventKind::Activated { moved_to } => Self::Activated(moved_to.0),
            EventKind::Cancelled => Self::Cancelled,
            EventKind::DuplicateDropped { message_id } => Self::Duplicate(id_of(&read(message_id))),
            EventKind::Delivered {
                delivery,
                locked_until,
            } => Self::Delivered(delivery, locked_until.as_millis()),
            EventKind::ReceivedAndDeleted => Self::ReceivedAndDeleted,
            EventKind::Completed => Self::Completed,
            EventKind::Abandoned { delivery_count } => Self::Abandoned(delivery_count),
            EventKind::Deferred => Self::Deferred,
            EventKind::Released => Self::Released,
            EventKind::LockRenewed { locked_until } => Self::Renewed(locked_until.as_millis()),
            EventKind::LockExpired { delivery_count } => Self::LockExpired(delivery_count),
            EventKind::DeadLettered {
                moved_to,
                reason,
                description,
            } => Self::DeadLettered(moved_to.0, read(reason), read(description)),
            EventKind::TransferFailed {
                moved_to,
                reason,
                description,
            } => Self::TransferFailed(moved_to.0, read(reason), read(description)),
            EventKind::Forwarded { to } => Self::Forwarded(queue_of(&read(to)).expect("a queue")),
            EventKind::Expired => Self::Expired,
            EventKind::Deleted => Self::Deleted,
            EventKind::Removed => Self::Removed,
            EventKind::SessionAccepted {
                session,
                locked_until,
            } => Self::SessionAccepted(name(session), locked_until.as_millis()),
            EventKind::SessionLockRenewed {
                session,
                locked_until,
            } => Self::SessionRenewed(name(session), locked_until.as_millis()),
            EventKind::SessionLockExpired { session } => Self::SessionExpired(name(session)),
            EventKind::SessionReleased { session } => Self::SessionReleased(name(session)),
            EventKind::SessionStateSet { session, size } => Self::StateSet(name(session), size),
            EventKind::Matched { .. }
            | EventKind::Published
            | EventKind::SendEnlisted { .. }
            | EventKind::SettlementEnlisted { .. }
            | EventKind::TransactionCommitted { .. }
            | EventKind::TransactionRolledBack { .. }
            | EventKind::EntityDeleted
            | EventKind::ClockAdvanced { .. }
            | EventKind::Fault { .. }
            | EventKind::Refused { .. } => panic!("no topics, transactions or shell: {kind:?}"),
        }
    }
}

/// Messages are called `m0` to `m9`.
pub(crate) fn id_of(text: &str) -> u8 {
    text.as_bytes()[1] - b'0'
}

/// Sessions, and partition keys, are called `1` to `9`; the first one has the empty id (observed 14).
pub(crate) fn session_of(text: &str) -> u8 {
    text.bytes().next().map_or(0, |digit| digit - b'0')
}

/// What a session, or a partition key, is called.
pub(crate) fn session_text(session: u8) -> String {
    match session {
        0 => String::new(),
        other => other.to_string(),
    }
}

pub(crate) fn queue_of(name: &str) -> Option<usize> {
    NAMES.iter().position(|&known| known == name)
}
