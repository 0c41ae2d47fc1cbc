//! Bytes of messages are read while others are written: of the journal, where they stand there alone, or of the database.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::{Database, ReadTransaction, ReadableDatabase as _, StorageBackend};
use servicebus_broker::BodyId;

use super::file::{BODIES, told};
use super::journal::{Journal, JournalBodies, SeenBody};
use super::{Bodies, LoadError, Snapshot};

/// Keeps no directory: what it reads is open for as long as its store is.
pub(super) struct BodyReader {
    database: Arc<Mutex<Weak<Database>>>,
    journal: Arc<JournalBodies>,
    journal_file: Weak<dyn StorageBackend>,
}

/// What there was at one instant; nothing can be read of it when its database is closed.
struct Seen {
    transaction: ReadTransaction,
    _database: Arc<Database>,
    journal: BTreeMap<BodyId, Arc<SeenBody>>,
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
        // What is taken in meanwhile is seen in the database.
        let journal = self.journal.see(bodies);
        let database = self.database.lock().upgrade();
        let files = database.zip(self.journal_file.upgrade());
        let (database, journal_file) = files.ok_or_else(|| told("the data directory is closed"))?;
        Ok(Box::new(Seen {
            transaction: database.begin_read().map_err(told)?,
            _database: database,
            journal,
            journal_file,
        }))
    }
}

impl Snapshot for Seen {
    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError> {
        if let Some(seen) = self.journal.get(&body) {
            return seen.read(&*self.journal_file).map(Some).map_err(told);
        }
        let key = body.0.get().to_be_bytes();
        let found = self.transaction.open_table(BODIES).map_err(told)?;
        let found = found.get(&key[..]).map_err(told)?;
        Ok(found.map(|bytes| Bytes::copy_from_slice(bytes.value())))
    }
}
