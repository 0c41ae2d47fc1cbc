//! Accepts messages from a sender or from another queue.

use super::queue::{ModelMessage, State};
use super::{Reference, name};
use crate::event::{ModelKind, session_text};
use crate::history::{Draft, EncodedMessage, Properties};
use servicebus_broker::SubQueue::Active;

/// Why a message was not accepted: the dead letter's reason, and the sender's error.
pub(crate) struct Refused {
    pub(crate) reason: &'static str,
    pub(crate) text: String,
}

impl Reference {
    pub(crate) fn send(
        &mut self,
        q: usize,
        parcels: &[EncodedMessage],
        batch: bool,
    ) -> Result<Vec<u64>, String> {
        let mut numbers = Vec::new();
        if !batch {
            for parcel in parcels {
                numbers.push(self.send_one(q, parcel)?);
            }
            return Ok(numbers);
        }
        self.begin(q);
        let size = parcels
            .iter()
            .map(|parcel| self.needed(q, &parcel.draft, parcel.payload.len() as u64));
        let size = size.sum();
        self.check_quota(q, size).map_err(|r| r.text)?;
        for parcel in parcels {
            self.check_session(q, &parcel.draft)?;
        }
        let mut keys = Vec::new();
        for parcel in parcels {
            keys.extend(self.key(q, &parcel.draft).map_err(|r| r.text)?);
        }
        if let Some(other) = keys.iter().find(|&key| *key != keys[0]) {
            return Err(format!(
                "Batching brokered messages with distinct SessionId, PartitionKey or, where duplicates are \
                 detected, MessageId is not supported for an entity with partitioning enabled: found '{}' and \
                 '{other}'.",
                keys[0]
            ));
        }
        let partition = self.partition(q, keys.into_iter().next());
        for parcel in parcels {
            numbers.push(self.accept(q, parcel, partition));
        }
        Ok(numbers)
    }

    fn send_one(&mut self, q: usize, parcel: &EncodedMessage) -> Result<u64, String> {
        self.begin(q);
        let size = self.needed(q, &parcel.draft, parcel.payload.len() as u64);
        self.check_quota(q, size).map_err(|r| r.text)?;
        self.check_session(q, &parcel.draft)?;
        let key = self.key(q, &parcel.draft).map_err(|r| r.text)?;
        let partition = self.partition(q, key);
        let number = self.accept(q, parcel, partition);
        self.serve(q);
        Ok(number)
    }

    pub(crate) fn check_quota(&mut self, q: usize, bytes: u64) -> Result<(), Refused> {
        if !self.is_there(q) {
            let text = format!(
                "The messaging entity '{}' could not be found. To know more visit \
                 https://aka.ms/sbResourceMgrExceptions.",
                name(q)
            );
            let reason = "MessagingEntityNotFoundException";
            return Err(Refused { reason, text });
        }
        let queue = self.at(q);
        let (size, max) = (queue.size(), queue.max_size());
        if !queue.description.status.can_send() {
            let text = format!(
                "Messaging entity '{}' is currently disabled. For more information please see \
                 https://aka.ms/ServiceBusExceptions .",
                name(q)
            );
            let reason = "MessagingEntityDisabledException";
            return Err(Refused { reason, text });
        }
        if bytes > 0 && size + bytes > max {
            let text = format!(
                "The maximum entity size has been reached or exceeded for Queue: '{}'. Size of entity in \
                 bytes:{size}, Max entity size in bytes:{max}.",
                name(q)
            );
            let reason = "QuotaExceededException";
            return Err(Refused { reason, text });
        }
        Ok(())
    }

    /// The key of the partition.
    pub(crate) fn key(&mut self, q: usize, draft: &Draft) -> Result<Option<String>, Refused> {
        let description = &self.at(q).description;
        if let (Some(session), Some(key)) = (draft.session, draft.key)
            && session != key
        {
            let (key, session) = (session_text(key), session_text(session));
            let text = format!(
                "The partition key '{key}' and the session id '{session}' of a message must be equal when both \
                 are set."
            );
            let reason = "InvalidOperationException";
            return Err(Refused { reason, text });
        }
        if !description.enable_partitioning {
            return Ok(None);
        }
        let key = draft.session.or(draft.key).map(session_text);
        let id = description.requires_duplicate_detection;
        Ok(key.or_else(|| id.then(|| format!("m{}", draft.id))))
    }

    fn accept(&mut self, q: usize, parcel: &EncodedMessage, partition: u64) -> u64 {
        let draft = parcel.draft;
        let delay = draft.delay.filter(|&delay| delay > 0).unwrap_or(0);
        let at = self.now + delay;
        if self.is_duplicate(q, &draft, at, true) {
            return 0;
        }
        let lifetime = self.at(q).lifetime(&draft);
        let number = self.store(q, Active).last + 1;
        let bytes = parcel.payload.len() as u64;
        let message = ModelMessage {
            number,
            partition,
            enqueued_number: number | partition << 48,
            is_moved: false,
            was_scheduled: false,
            draft,
            bytes,
            enqueued_at: self.now,
            expires_at: lifetime.map(|lifetime| at + lifetime),
            count: 0,
            hops: 0,
            stays: false,
            source: None,
            former: None,
            properties: Properties::default(),
            size: bytes,
            state: State::Ready,
        };
        if delay == 0 {
            self.enqueue(q, self.now, message, true);
        } else {
            self.store(q, Active).last = number;
            let state = State::Scheduled(at);
            self.push((q, Active), ModelMessage { state, ..message });
            self.note(
                (q, Active),
                number,
                ModelKind::Scheduled(draft.id, bytes, at),
            );
        }
        number | partition << 48
    }

    /// Begins the life of a message, under the next sequence number.
    pub(crate) fn enqueue(
        &mut self,
        q: usize,
        at: i64,
        message: ModelMessage,
        by_client: bool,
    ) -> u64 {
        let lifetime = self.at(q).lifetime(&message.draft);
        let store = self.store(q, Active);
        store.last += 1;
        let number = store.last;
        let expires_at = lifetime.map(|lifetime| at + lifetime);
        let what = ModelKind::Enqueued(message.draft.id, message.size, expires_at);
        let message = ModelMessage {
            number,
            enqueued_at: at,
            expires_at,
            state: State::Ready,
            ..message
        };
        self.push((q, Active), message);
        self.write(at, (q, Active), number, by_client, what);
        number
    }

    /// How many bytes of a message must fit: none of a duplicate.
    pub(crate) fn needed(&self, q: usize, draft: &Draft, bytes: u64) -> u64 {
        let is_seen = self.queue(q).is_some_and(|queue| {
            let description = &queue.description;
            let window = description.duplicate_detection_history_time_window;
            let id = seen_as(draft, description.enable_partitioning);
            let mut seen = queue.seen.iter();
            let is_seen = seen
                .any(|(other, since)| *other == id && since + window.as_millis() as i64 > self.now);
            description.requires_duplicate_detection && is_seen
        });
        if is_seen { 0 } else { bytes }
    }

    /// Whether an id was seen within its window; if not, it is remembered now.
    pub(crate) fn is_duplicate(
        &mut self,
        q: usize,
        draft: &Draft,
        since: i64,
        client: bool,
    ) -> bool {
        self.forget_ids(q);
        let now = self.now;
        let queue = self.at(q);
        if !queue.description.requires_duplicate_detection {
            return false;
        }
        let id = seen_as(draft, queue.description.enable_partitioning);
        if !queue.seen.iter().any(|(seen, _)| *seen == id) {
            queue.seen.push((id, since));
            return false;
        }
        self.write(now, (q, Active), 0, client, ModelKind::Duplicate(draft.id));
        true
    }

    pub(crate) fn forget_ids(&mut self, q: usize) {
        let now = self.now;
        let queue = self.at(q);
        let window = queue.description.duplicate_detection_history_time_window;
        let window = window.as_millis() as i64;
        queue.seen.retain(|&(_, since)| since + window > now);
    }

    /// One of sixteen in a partitioned queue: by key, or in turns.
    pub(crate) fn partition(&mut self, q: usize, key: Option<String>) -> u64 {
        let queue = self.at(q);
        if !queue.description.enable_partitioning {
            return 0;
        }
        let Some(key) = key else {
            queue.spread += 1;
            return queue.spread % 16;
        };
        // FNV-1a.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in key.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash % 16
    }
}

pub(crate) fn seen_as(draft: &Draft, partitioned: bool) -> String {
    let key = draft.session.or(draft.key).filter(|_| partitioned);
    format!("{} {key:?}", draft.id)
}
