//! Bodies that are in the journal and not in the database yet, and the snapshots that read them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::StorageBackend;
use servicebus_broker::BodyId;

/// Bodies per lock of the index: snapshots wait for a few microseconds.
const CHUNK: usize = 256;

/// The place of a body in the journal file.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLocation {
    pub(super) record: u64,
    pub(super) offset: u64,
    pub(super) length: usize,
}

/// The places of bodies that the database does not have.
#[derive(Debug, Default)]
pub(crate) struct JournalBodies(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    locations: BTreeMap<BodyId, BodyLocation>,
    pinned: Vec<Weak<PinnedBody>>,
}

/// A body of a snapshot.
#[derive(Debug)]
pub(crate) struct PinnedBody {
    location: BodyLocation,
    /// A copy, from when its place in the file may be overwritten.
    copy: Mutex<Option<Bytes>>,
}

impl JournalBodies {
    /// Adds and removes bodies as a record did.
    pub(super) fn update(&self, written: &[(BodyId, BodyLocation)], removed: &[BodyId]) {
        for some in written.chunks(CHUNK) {
            self.0.lock().locations.extend(some.iter().copied());
        }
        self.remove(removed);
    }

    pub(super) fn has(&self, body: BodyId) -> bool {
        self.0.lock().locations.contains_key(&body)
    }

    pub(super) fn bytes(&self) -> usize {
        let state = self.0.lock();
        state.locations.values().map(|body| body.length).sum()
    }

    /// Those of these bodies that are in the journal; they stay readable until they are dropped. Waits for no disk.
    pub(crate) fn pin(&self, bodies: &[BodyId]) -> BTreeMap<BodyId, Arc<PinnedBody>> {
        let mut state = self.0.lock();
        let State { locations, pinned } = &mut *state;
        let found = bodies.iter().filter_map(|body| {
            let location = *locations.get(body)?;
            let copy = Mutex::default();
            Some((*body, Arc::new(PinnedBody { location, copy })))
        });
        let found = BTreeMap::from_iter(found);
        if !found.is_empty() {
            if pinned.len() == pinned.capacity() {
                pinned.retain(|body| body.strong_count() > 0);
            }
            pinned.extend(found.values().map(Arc::downgrade));
        }
        found
    }

    /// Removes bodies that a checkpoint has moved to the database, and copies the pinned ones of records before `record`, which may
    /// be overwritten from then on.
    pub(super) fn remove_moved(
        &self,
        bodies: &[BodyId],
        record: u64,
        file: &dyn StorageBackend,
    ) -> io::Result<()> {
        self.remove(bodies);
        let pinned = Vec::from_iter(self.0.lock().pinned.iter().filter_map(Weak::upgrade));
        for body in pinned.iter().filter(|body| body.location.record < record) {
            let mut copy = body.copy.lock();
            if copy.is_none() {
                *copy = Some(body.location.read(file)?);
            }
        }
        Ok(())
    }

    fn remove(&self, bodies: &[BodyId]) {
        for some in bodies.chunks(CHUNK) {
            let mut state = self.0.lock();
            for body in some {
                state.locations.remove(body);
            }
        }
    }
}

impl BodyLocation {
    fn read(&self, file: &dyn StorageBackend) -> io::Result<Bytes> {
        let mut bytes = vec![0; self.length];
        file.read(self.offset, &mut bytes)?;
        Ok(bytes.into())
    }
}

impl PinnedBody {
    pub(crate) fn read(&self, file: &dyn StorageBackend) -> io::Result<Bytes> {
        let read = self.location.read(file);
        // Checked after the read: another record may have been written there before it.
        match &*self.copy.lock() {
            Some(copy) => Ok(copy.clone()),
            None => read,
        }
    }
}
