//! Partitioned entities: which partition a message belongs to, and how its number shows it (decision D18).
//!
//! One store holds all partitions: the lower 48 bits of a number count over the whole entity, so that they are
//! unique and ascending within every partition, and browsing goes in the order of arrival.

use crate::entity::operation::send::SendError;
use crate::ids::Offset;
use crate::store::entry::Entry;
use crate::{Message, SequenceNumber};

/// As many as the service makes.
const PARTITIONS: u64 = 16;
/// Where the partition begins in a number (semantics §8).
const SHIFT: u32 = 48;

/// What decides about the partition of a message: session id, else partition key, else message id where duplicates
/// are detected (semantics §15).
pub(crate) fn key(message: &Message, by_message_id: bool) -> Result<Option<String>, SendError> {
    let session_id = message.session_id();
    let partition_key = message.partition_key();
    if let (Some(session_id), Some(partition_key)) = (&session_id, &partition_key)
        && session_id != partition_key
    {
        return Err(SendError::KeysDiffer {
            session_id: session_id.clone().into_owned(),
            partition_key: partition_key.clone().into_owned(),
        });
    }
    let key = session_id.or(partition_key);
    let key = key.or_else(|| by_message_id.then(|| message.id()));
    Ok(key.map(|key| key.into_owned()))
}

/// The key of a batch: messages of it that have keys have the same, and all go to one partition (semantics §17.1).
pub(crate) fn key_of_batch(keys: &[Option<String>]) -> Result<Option<&str>, SendError> {
    let mut given = keys.iter().flatten();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    match given.find(|&other| other != first) {
        Some(other) => Err(SendError::BatchKeysDiffer(first.clone(), other.clone())),
        None => Ok(Some(first)),
    }
}

/// The partition of a key; without one, partitions take turns.
pub(crate) fn of(key: Option<&str>, turn: u64) -> u8 {
    // FNV-1a: the same in every run and on every machine.
    let hash = |key: &str| {
        key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    (key.map_or(turn, hash) % PARTITIONS) as u8
}

/// What makes two messages the same for duplicate detection (semantics §9).
pub(crate) fn duplicate_key(message: &Message, partitioned: bool) -> String {
    let id = message.id();
    let key = message.session_id().or_else(|| message.partition_key());
    match key.filter(|_| partitioned) {
        Some(key) => format!("{id}\u{0}{key}"),
        None => id.into_owned(),
    }
}

impl Entry {
    /// The number of the entry at this offset.
    pub(crate) fn number(&self, offset: Offset) -> SequenceNumber {
        offset.in_partition(self.partition)
    }
}

impl Offset {
    /// The number of a message at this offset.
    pub(crate) fn in_partition(self, partition: u8) -> SequenceNumber {
        SequenceNumber(self.0 | u64::from(partition) << SHIFT)
    }
}

impl SequenceNumber {
    /// Where a message with this number stands in its store.
    pub(crate) fn offset(self) -> Offset {
        Offset(self.0 & ((1 << SHIFT) - 1))
    }
}
