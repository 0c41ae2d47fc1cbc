//! Changes of entities as rows and bodies that are committed together.

use std::collections::BTreeMap;

use bytes::Bytes;
use servicebus_broker::BodyId;

use super::Rows;
use super::bodies::CachedBody;

/// Changes that are committed together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Key prefixes whose rows are removed before `rows` are written.
    pub(crate) removed: Vec<Vec<u8>>,
    pub(crate) rows: Rows,
    pub(crate) bodies: BTreeMap<BodyId, Option<Bytes>>,
    /// The messages in memory that have the bodies of this batch.
    pub(super) cached: Vec<CachedBody>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.rows.is_empty() && self.bodies.is_empty()
    }

    pub(super) fn put(&mut self, key: Vec<u8>, row: Vec<u8>) {
        self.rows.insert(key, Some(row.into()));
    }

    pub(super) fn remove(&mut self, prefix: Vec<u8>) {
        remove_prefix(&mut self.rows, &prefix);
        // Each entity of a removed namespace removes the namespace again.
        if self.removed.last() != Some(&prefix) {
            self.removed.push(prefix);
        }
    }
}

pub(super) fn remove_prefix<T>(rows: &mut BTreeMap<Vec<u8>, T>, prefix: &[u8]) {
    let range = prefix.to_vec()..end_of(prefix);
    rows.extract_if(range, |_, _| true).for_each(drop);
}

/// Returns the first key behind all that begin with `prefix`, which must have a byte below 0xFF.
pub(super) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}
