//! Accepts messages, and activates or cancels scheduled ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::context::Context;
use crate::description::EntityKind;
use crate::duplicates;
use crate::entity::{AutoDelete, Entity};
use crate::event::EventKind;
use crate::ids::{EntityPath, Offset, SequenceNumber, SessionName};
use crate::message::Message;
use crate::store::Entry;
use crate::store::sessions::Slot;
use crate::time::Timestamp;

/// Why messages were not accepted; none of them was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendError {
    /// The entity does not exist, or is about to be deleted because it is idle (semantics §5, §20.2).
    #[error(
        "The messaging entity '{0}' could not be found. To know more visit \
         https://aka.ms/sbResourceMgrExceptions."
    )]
    NotFound(EntityPath),
    /// The entity accepts no messages now (semantics §14).
    #[error(
        "Messaging entity '{0}' is currently disabled. For more information please see \
         https://aka.ms/ServiceBusExceptions ."
    )]
    Disabled(EntityPath),
    /// The entity is full, dead letters included (semantics §20.2).
    #[error(
        "The maximum entity size has been reached or exceeded for {kind}: '{path}'. Size of entity in \
         bytes:{size}, Max entity size in bytes:{max}."
    )]
    QuotaExceeded {
        /// A queue or a topic.
        kind: EntityKind,
        /// Its path.
        path: EntityPath,
        /// Its size in bytes.
        size: u64,
        /// Its maximum size in bytes.
        max: u64,
    },
    /// The data directory has no space for more messages.
    #[error(
        "The {kind} '{path}' accepts no more: the disk of the emulator's data directory is full. Receive messages, or make \
         room on the disk."
    )]
    NoRoom {
        /// A queue or a topic.
        kind: EntityKind,
        /// Its path.
        path: EntityPath,
    },
    /// A message has no session id, and the queue requires sessions (semantics §20.2).
    #[error(
        "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have session \
         support enabled can only receive messages that have the SessionId set to a valid value."
    )]
    NoSession,
    /// A session id and a partition key that differ (semantics §15).
    #[error(
        "The partition key '{partition_key}' and the session id '{session_id}' of a message must be equal \
         when both are set."
    )]
    KeysDiffer {
        /// The session id.
        session_id: String,
        /// The partition key.
        partition_key: String,
    },
    /// The messages of a batch belong to several partitions (semantics §17.1), in the words of the service
    /// (azure-service-bus 103).
    #[error(
        "Batching brokered messages with distinct SessionId, PartitionKey or, where duplicates are detected, MessageId \
         is not supported for an entity with partitioning enabled: found '{0}' and '{1}'."
    )]
    BatchKeysDiffer(String, String),
    /// An operation on the entity failed internally.
    #[error(
        "The entity '{path}' failed and its messages are lost: {reason}. Delete it, or reset the namespace."
    )]
    Broken {
        /// Its path.
        path: EntityPath,
        /// The failure.
        reason: Arc<str>,
    },
}

impl Entity {
    /// Accepts a message and returns its sequence number, by which it can be received, or cancelled while it is scheduled. A
    /// duplicate is accepted and dropped, without a sequence number (semantics §9).
    ///
    /// Parsing finds the errors that do not depend on the entity.
    pub fn send(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
    ) -> Result<Option<SequenceNumber>, SendError> {
        self.client_operation(cx, |entity, cx| {
            entity.check_sent(cx, std::slice::from_ref(&message))?;
            entity.check_room(cx)?;
            let key = entity.own_key(&message)?;
            let partition = entity.partition(key.as_deref());
            Ok(entity.accept(cx, message, partition))
        })
    }

    /// Accepts messages in this order, all or none, and returns their sequence numbers.
    pub fn send_batch(
        &mut self,
        cx: &mut Context<'_>,
        messages: Vec<Message>,
    ) -> Result<Vec<Option<SequenceNumber>>, SendError> {
        self.client_operation(cx, |entity, cx| {
            entity.check_sent(cx, &messages)?;
            entity.check_room(cx)?;
            if messages.iter().any(|message| entity.lacks_session(message)) {
                return Err(SendError::NoSession);
            }
            let keys = messages.iter().map(|message| entity.partition_key(message));
            let keys = keys.collect::<Result<Vec<_>, _>>()?;
            let partition = entity.partition_of_batch(&keys)?;
            let messages = messages.into_iter();
            Ok(messages.map(|m| entity.accept(cx, m, partition)).collect())
        })
    }

    /// Checks whether the entity has room for messages. Duplicates need none: they are dropped.
    pub(crate) fn check_sent(
        &self,
        cx: &Context<'_>,
        messages: &[Message],
    ) -> Result<(), SendError> {
        let checked = self.check_quota(messages.iter().map(Message::size).sum());
        let (Err(SendError::QuotaExceeded { .. }), Some(history)) = (&checked, &self.history)
        else {
            return checked;
        };
        let is_new = |message: &&Message| {
            let id = duplicates::key(message, self.description.enable_partitioning);
            !history.contains(&id, cx.now)
        };
        match messages.iter().filter(is_new).map(Message::size).sum() {
            0 => Ok(()),
            bytes => self.check_size(bytes),
        }
    }

    /// Checks whether the entity has room for so many bytes.
    pub(crate) fn check_quota(&self, bytes: u64) -> Result<(), SendError> {
        self.check_not_broken()?;
        if matches!(self.auto_delete, AutoDelete::Deleting | AutoDelete::Deleted) {
            // It has asked to be deleted: new messages would be lost with it.
            return Err(SendError::NotFound(self.path.clone()));
        }
        if !self.description.status.can_send() {
            return Err(SendError::Disabled(self.path.clone()));
        }
        self.check_size(bytes)
    }

    pub(crate) fn check_size(&self, bytes: u64) -> Result<(), SendError> {
        let (size, max) = (self.whole_size(), self.max_size());
        if size + bytes > max {
            return Err(SendError::QuotaExceeded {
                kind: self.kind(),
                path: self.path.clone(),
                size,
                max,
            });
        }
        Ok(())
    }

    /// Checks whether the data directory has space for what clients send.
    pub(crate) fn check_room(&self, cx: &Context<'_>) -> Result<(), SendError> {
        match cx.has_room {
            true => Ok(()),
            false => Err(SendError::NoRoom {
                kind: self.kind(),
                path: self.path.clone(),
            }),
        }
    }

    /// Returns the partition key of a message that stays here, if the entity accepts it.
    pub(crate) fn own_key(&self, message: &Message) -> Result<Option<String>, SendError> {
        match self.lacks_session(message) {
            true => Err(SendError::NoSession),
            false => self.partition_key(message),
        }
    }

    /// Returns whether a message has no session although the entity requires one.
    pub(crate) fn lacks_session(&self, message: &Message) -> bool {
        let belongs = || {
            message
                .session_id()
                .is_some_and(|id| SessionName::fits(&id))
        };
        self.active.policy().has_sessions() && !belongs()
    }

    /// Stores a checked message and returns its sequence number; `None` for a duplicate.
    pub(crate) fn accept(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
        partition: u8,
    ) -> Option<SequenceNumber> {
        let activates_at = message.scheduled_at().filter(|&at| at > cx.now);
        let since = activates_at.unwrap_or(cx.now);
        if self.is_duplicate(cx, &message, since) {
            return None;
        }
        let number = self.active.next_offset().in_partition(partition);
        let entry = Entry::new(message, cx.now, number).in_partition(partition);
        let session = self.active.session_of(entry.message());
        match activates_at {
            Some(at) => self.schedule(cx, entry, at, session),
            None => self.enqueue(cx, entry, session),
        }
        Some(number)
    }

    /// Returns whether a message is a duplicate, which is recorded; otherwise remembers its id.
    pub(crate) fn is_duplicate(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        since: Timestamp,
    ) -> bool {
        let Some(history) = &mut self.history else {
            return false;
        };
        let id = duplicates::key(message, self.description.enable_partitioning);
        if history.admit(&id, cx.now, since) {
            return false;
        }
        let message_id = cx.events.text(&message.id());
        let kind = EventKind::DuplicateDropped { message_id };
        self.active.record_as(cx, None, kind);
        true
    }

    pub(crate) fn schedule(
        &mut self,
        cx: &mut Context<'_>,
        entry: Entry,
        at: Timestamp,
        session: Option<Slot>,
    ) {
        let offset = self.active.reserve_offset();
        self.schedule_as(cx, offset, entry, at, session);
    }

    /// Stores an entry at its reserved offset until it becomes active.
    pub(crate) fn schedule_as(
        &mut self,
        cx: &mut Context<'_>,
        offset: Offset,
        entry: Entry,
        at: Timestamp,
        session: Option<Slot>,
    ) {
        let kind = EventKind::Scheduled {
            message_id: cx.events.text(&entry.message().id()),
            bytes: u32::try_from(entry.message().size()).unwrap_or(u32::MAX),
            activates_at: at,
        };
        self.active.record_as(cx, entry.number(offset), kind);
        self.active.schedule(offset, entry, at, session);
    }

    /// Stores an entry as active, in its session if the entity has sessions.
    pub(crate) fn enqueue(&mut self, cx: &mut Context<'_>, entry: Entry, session: Option<Slot>) {
        #[cfg(feature = "panics")]
        self.panic_for_test(entry.message());
        let lifetime = self.active.policy().lifetime(entry.time_to_live());
        let kind = EventKind::Enqueued {
            message_id: cx.events.text(&entry.message().id()),
            bytes: u32::try_from(entry.message().size()).unwrap_or(u32::MAX),
            expires_at: lifetime.map(|lifetime| cx.now + lifetime),
        };
        let number = entry.number(self.active.next_offset());
        self.active.record_as(cx, number, kind);
        self.active.append(cx.now, entry, session);
    }
}

/// Converts a lifetime into milliseconds for a header.
pub(crate) fn milliseconds(lifetime: Duration) -> u64 {
    u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX)
}

/// Why messages were not cancelled; none of them was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CancelError {
    /// These are not scheduled: unknown, active by now, or cancelled before (semantics §20.2).
    #[error("Messages not found. Missing sequence numbers: {}", list(.0))]
    NotFound(Vec<SequenceNumber>),
    /// This number occurs twice (semantics §20.2).
    #[error("The scheduled message with SequenceNumber = {0} is already being cancelled.")]
    Twice(SequenceNumber),
}

impl Entity {
    /// Cancels scheduled messages, all or none. Duplicate detection remembers their ids for a window from their acceptance.
    pub fn cancel_scheduled(
        &mut self,
        cx: &mut Context<'_>,
        numbers: &[SequenceNumber],
    ) -> Result<(), CancelError> {
        self.client_operation(cx, |entity, cx| {
            let store = &entity.active;
            let is_scheduled = |number: &SequenceNumber| {
                let entry = store.get(number.offset());
                entry.is_some_and(|entry| {
                    entry.activates_at().is_some() && entry.number(number.offset()) == *number
                })
            };
            let missing = numbers.iter().copied().filter(|n| !is_scheduled(n));
            let missing: Vec<_> = missing.collect();
            if !missing.is_empty() {
                return Err(CancelError::NotFound(missing));
            }
            let mut named = BTreeSet::new();
            if let Some(&twice) = numbers.iter().find(|&number| !named.insert(number)) {
                return Err(CancelError::Twice(twice));
            }
            for &number in numbers {
                entity.restart_duplicate_window(number.offset(), None);
                if entity.active.remove(number.offset()).is_some() {
                    entity.active.record_as(cx, number, EventKind::Cancelled);
                }
            }
            Ok(())
        })
    }

    /// Restarts the duplicate window of a scheduled message that will not become active at its time: from `since`, or from
    /// when it was accepted.
    pub(crate) fn restart_duplicate_window(&mut self, offset: Offset, since: Option<Timestamp>) {
        // Those via this entity take no part in its duplicate detection.
        let is_addressed = self.active.forwards().destination(offset).is_some();
        if let Some(history) = self.history.as_mut().filter(|_| !is_addressed)
            && let Some(entry) = self.active.get(offset)
        {
            let id = duplicates::key(entry.message(), self.description.enable_partitioning);
            history.restart(&id, since.unwrap_or_else(|| entry.enqueued_at()));
        }
    }

    /// Activates a scheduled message under a new sequence number; its time to live begins (semantics §8).
    pub(crate) fn activate(&mut self, cx: &mut Context<'_>, offset: Offset) {
        let destination = self.active.take_destination(offset);
        let Some(entry) = self.active.remove(offset) else {
            return;
        };
        let next = self.active.next_offset();
        let moved_to = entry.number(next);
        self.active
            .record_as(cx, entry.number(offset), EventKind::Activated { moved_to });
        // Until now it has kept the entity from being idle (semantics §5); the idle time begins here.
        self.used_at = self.used_at.max(cx.now);
        // A forwarded message keeps the sequence number of its origin.
        let enqueued_number = entry.number_of_origin().unwrap_or(moved_to);
        let entry = entry.into_active(cx.now, enqueued_number);
        let session = match destination {
            Some(destination) => {
                self.active.address(next, destination);
                None
            }
            None => self.active.session_of(entry.message()),
        };
        self.enqueue(cx, entry, session);
    }
}

fn list(numbers: &[SequenceNumber]) -> String {
    let numbers: Vec<String> = numbers.iter().map(SequenceNumber::to_string).collect();
    numbers.join(",")
}
