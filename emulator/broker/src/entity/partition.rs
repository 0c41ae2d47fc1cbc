//! Partitioned entities: the partition of a message, and its place in the sequence number (decision D18).
//!
//! One store holds all partitions: the lower 48 bits of a sequence number count over the whole entity, so that they are
//! unique and ascending within every partition, and browsing goes in the order of arrival.

use crate::description::PARTITIONS;
use crate::entity::Entity;
use crate::entity::operation::send::SendError;
use crate::message::Message;

impl Entity {
    /// Returns the key that determines a message's partition: session id, else partition key, else message id with duplicate
    /// detection (semantics §15). `None` without partitions.
    pub(crate) fn partition_key(&self, message: &Message) -> Result<Option<String>, SendError> {
        check_keys(message)?;
        if !self.description.enable_partitioning {
            return Ok(None);
        }
        let key = message.session_id().or_else(|| message.partition_key());
        let key = key.or_else(|| self.history.is_some().then(|| message.id()));
        Ok(key.map(|key| key.into_owned()))
    }

    /// Returns the partition of a message with this key; without a key, partitions take turns. 0 without partitions.
    pub(crate) fn partition(&mut self, key: Option<&str>) -> u8 {
        if !self.description.enable_partitioning {
            return 0;
        }
        self.round_robin += u64::from(key.is_none());
        // FNV-1a: the same in every run and on every machine.
        let hash = |key: &str| {
            key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        (key.map_or(self.round_robin, hash) % PARTITIONS) as u8
    }

    /// Returns the partition of a batch with these keys.
    pub(crate) fn partition_of_batch(&mut self, keys: &[Option<String>]) -> Result<u8, SendError> {
        Ok(self.partition(key_of_batch(keys)?))
    }
}

/// Refuses a session id and a partition key that differ, at every entity (semantics §15; azure-sdk-for-net 13811).
pub(crate) fn check_keys(message: &Message) -> Result<(), SendError> {
    let Some(partition_key) = message.partition_key() else {
        return Ok(());
    };
    match message.session_id().filter(|id| *id != partition_key) {
        Some(session_id) => Err(SendError::KeysDiffer {
            session_id: session_id.into_owned(),
            partition_key: partition_key.into_owned(),
        }),
        None => Ok(()),
    }
}

/// Returns the key of a batch: its messages that have keys must have the same, and all go to one partition (semantics
/// §17.1).
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
