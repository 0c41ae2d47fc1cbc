//! Reads message bodies concurrently with writes: from the journal until the checkpoint, then from the database.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::{Database, ReadTransaction, ReadableDatabase as _, StorageBackend};
use servicebus_broker::BodyId;

use super::file::{BODIES, disk_error};
use super::journal::{Journal, JournalBodies, PinnedBody};
use super::{Bodies, LoadError, Snapshot};

/// Has weak references only: it does not keep the directory open when its store is closed.
pub(super) struct BodyReader {
    database: Arc<Mutex<Weak<Database>>>,
    journal: Arc<JournalBodies>,
    journal_file: Weak<dyn StorageBackend>,
}

struct BodySnapshot {
    transaction: ReadTransaction,
    _database: Arc<Database>,
    journal: BTreeMap<BodyId, Arc<PinnedBody>>,
    journal_file: Arc<dyn StorageBackend>,
}

impl BodyReader {
    pub(super) fn new(database: &Arc<Mutex<Weak<Database>>>, journal: &Journal) -> Self {
        let (bodies, file) = journal.bodies();
        Self {
            database: Arc::clone(database),
            journal: Arc::clone(bodies),
            journal_file: Arc::downgrade(file),
        }
    }
}

impl Bodies for BodyReader {
    fn snapshot(&self, bodies: &[BodyId]) -> Result<Box<dyn Snapshot>, LoadError> {
        // Before the database: a body that a checkpoint moves in between is in both.
        let journal = self.journal.pin(bodies);
        let database = self.database.lock().upgrade();
        let files = database.zip(self.journal_file.upgrade());
        let (database, journal_file) =
            files.ok_or_else(|| disk_error("the data directory is closed"))?;
        Ok(Box::new(BodySnapshot {
            transaction: database.begin_read().map_err(disk_error)?,
            _database: database,
            journal,
            journal_file,
        }))
    }
}

impl Snapshot for BodySnapshot {
    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError> {
        if let Some(pinned) = self.journal.get(&body) {
            return pinned
                .read(&*self.journal_file)
                .map(Some)
                .map_err(disk_error);
        }
        let key = body.0.get().to_be_bytes();
        let found = self.transaction.open_table(BODIES).map_err(disk_error)?;
        let found = found.get(&key[..]).map_err(disk_error)?;
        Ok(found.map(|bytes| Bytes::copy_from_slice(bytes.value())))
    }
}
