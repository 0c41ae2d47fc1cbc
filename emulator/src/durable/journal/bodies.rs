//! Bytes of messages that stand in the journal alone, and who has seen them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::StorageBackend;
use servicebus_broker::BodyId;

/// Bytes whose places are forgotten while snapshots wait: a few microseconds.
const SOME: usize = 256;

/// Where bytes stand in the journal: in which record, and where in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) record: u64,
    pub(super) offset: u64,
    pub(super) length: usize,
}

/// Where the bytes of messages stand that the database has not.
#[derive(Debug, Default)]
pub(crate) struct JournalBodies(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    places: BTreeMap<BodyId, Place>,
    seen: Vec<Weak<SeenBody>>,
}

/// Bytes that a snapshot has seen.
#[derive(Debug)]
pub(crate) struct SeenBody {
    place: Place,
    /// What stood there, once another record may be written there.
    moved: Mutex<Option<Bytes>>,
}

impl JournalBodies {
    /// Takes in what one record did: which bytes it wrote, and which it removed.
    pub(super) fn merge(&self, written: &[(BodyId, Place)], removed: &[BodyId]) {
        for some in written.chunks(SOME) {
            self.0.lock().places.extend(some.iter().copied());
        }
        self.remove(removed);
    }

    /// Whether the bytes stand in the journal alone, and nothing has removed them since.
    pub(super) fn has(&self, body: BodyId) -> bool {
        self.0.lock().places.contains_key(&body)
    }

    /// Those of these bytes that stand in the journal; they can be read as long as what is returned is there. Waits for no disk.
    pub(crate) fn see(&self, bodies: &[BodyId]) -> BTreeMap<BodyId, Arc<SeenBody>> {
        let mut state = self.0.lock();
        let State { places, seen } = &mut *state;
        let found = bodies.iter().filter_map(|body| {
            let place = *places.get(body)?;
            let moved = Mutex::default();
            Some((*body, Arc::new(SeenBody { place, moved })))
        });
        let found = BTreeMap::from_iter(found);
        if !found.is_empty() {
            if seen.len() == seen.capacity() {
                seen.retain(|one| one.strong_count() > 0);
            }
            seen.extend(found.values().map(Arc::downgrade));
        }
        found
    }

    /// Forgets these bytes, which the database has; all that stands in records before `record` may be overwritten then.
    pub(super) fn forget(
        &self,
        bodies: &[BodyId],
        record: u64,
        file: &dyn StorageBackend,
    ) -> io::Result<()> {
        self.remove(bodies);
        let seen = Vec::from_iter(self.0.lock().seen.iter().filter_map(Weak::upgrade));
        for seen in seen.iter().filter(|seen| seen.place.record < record) {
            let mut moved = seen.moved.lock();
            if moved.is_none() {
                *moved = Some(seen.place.read(file)?);
            }
        }
        Ok(())
    }

    fn remove(&self, bodies: &[BodyId]) {
        for some in bodies.chunks(SOME) {
            let mut state = self.0.lock();
            for body in some {
                state.places.remove(body);
            }
        }
    }
}

impl Place {
    fn read(&self, file: &dyn StorageBackend) -> io::Result<Bytes> {
        let mut bytes = vec![0; self.length];
        file.read(self.offset, &mut bytes)?;
        Ok(bytes.into())
    }
}

impl SeenBody {
    pub(crate) fn read(&self, file: &dyn StorageBackend) -> io::Result<Bytes> {
        let read = self.place.read(file);
        // What was read is another record's if that was written there meanwhile.
        match &*self.moved.lock() {
            Some(moved) => Ok(moved.clone()),
            None => read,
        }
    }
}
