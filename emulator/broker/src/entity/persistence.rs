//! Storage beyond the process: an entity reports the changes of operations, and is restored from them.

use std::sync::Arc;

use bytes::Bytes;

use crate::changes::{BodyId, BodyReference, Changes, DamagedRow, Fields, RowKey};
use crate::context::Context;
use crate::entity::{AutoDelete, Entity, Role};
use crate::filter::Rule;
use crate::ids::{EntityPath, Offset, SessionName, SubQueue};
use crate::store::changed_entries::EntryChange;
use crate::store::row::body_of;
use crate::store::sessions::SessionState;
use crate::time::Timestamp;

/// The state of an entity beside its messages that was last reported.
#[derive(Debug)]
pub(crate) struct RecordedState {
    /// As last written.
    counters: Option<Counters>,
    /// Whether the description or the rules may have changed since.
    pub(crate) definition: bool,
}

/// The next sequence numbers, and the time of the entity's last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    next: [u64; 3],
    round_robin: u64,
    used_at: Timestamp,
    /// Whether a receiver waits, which counts as use all the time.
    is_awaited: bool,
}

impl Counters {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(41);
        for number in self.next.into_iter().chain([self.round_robin]) {
            out.extend(number.to_be_bytes());
        }
        out.extend(self.used_at.as_millis().to_be_bytes());
        out.push(u8::from(self.is_awaited));
        out
    }

    fn decode(row: &[u8]) -> Result<Self, DamagedRow> {
        let mut fields = Fields(row);
        let counters = Self {
            next: [fields.u64()?, fields.u64()?, fields.u64()?],
            round_robin: fields.u64()?,
            used_at: Timestamp::from_millis(fields.i64()?),
            is_awaited: fields.byte()? != 0,
        };
        fields.end()?;
        Ok(counters)
    }

    /// Returns whether at most the time of the last use differs.
    fn differs_only_in_last_use(&self, other: &Self) -> bool {
        (self.next, self.round_robin) == (other.next, other.round_robin)
    }
}

impl Entity {
    /// Records changes from now on, beginning with the whole state. An entity records nothing before this call.
    pub fn record_changes(&mut self) {
        self.persistence = Some(Box::new(RecordedState {
            counters: None,
            definition: true,
        }));
        for kind in SubQueue::ALL {
            self.store_mut(kind).record_changes();
        }
        if let Some(history) = &mut self.history {
            history.record_changes();
        }
    }

    /// Records that the description or the rules may have changed.
    pub fn definition_changed(&mut self) {
        if let Some(persistence) = &mut self.persistence {
            persistence.definition = true;
        }
    }

    /// Takes the changes since the last call; `None` if there are none. `next_body` returns ids that were never used before.
    pub fn take_changes(&mut self, next_body: &mut dyn FnMut() -> BodyId) -> Option<Changes> {
        self.persistence.as_ref()?;
        let mut changes = Changes {
            entity: self.id(),
            rows: Vec::new(),
            gained: Vec::new(),
            lost: Vec::new(),
            definition: false,
            deleted: self.auto_delete == AutoDelete::Deleted,
            is_awaited: true,
        };
        for kind in SubQueue::ALL {
            if self.store(kind).policy().kind() == kind {
                self.take_messages(kind, next_body, &mut changes);
            }
        }
        if changes.deleted {
            // Later changes of a deleted entity do not count.
            changes.rows.clear();
            self.persistence = None;
            return Some(changes);
        }
        self.take_sessions_and_ids(&mut changes);
        let counters = self.counters();
        let persistence = self.persistence.as_mut()?;
        let before = persistence.counters.replace(counters);
        changes.definition = std::mem::take(&mut persistence.definition);
        let counts_on = !before.is_some_and(|before| before.differs_only_in_last_use(&counters));
        changes.is_awaited = counts_on || changes.definition || !changes.rows.is_empty();
        if before != Some(counters) {
            changes
                .rows
                .push((RowKey::Counters, Some(counters.encode())));
        }
        (changes.definition || !changes.rows.is_empty()).then_some(changes)
    }

    fn take_messages(
        &mut self,
        kind: SubQueue,
        next_body: &mut dyn FnMut() -> BodyId,
        changes: &mut Changes,
    ) {
        let store = self.store_mut(kind);
        for (offset, change) in store.take_changed() {
            let key = RowKey::message(kind, offset);
            if let EntryChange::Removed(body) = change {
                changes.lost.extend(body);
                changes.rows.push((key, None));
                continue;
            }
            store.name_body(offset, next_body);
            let Some(entry) = store.get(offset) else {
                continue;
            };
            if change == EntryChange::Added
                && let Some(body) = entry.message().body_id()
            {
                changes.gained.push(BodyReference {
                    body,
                    bytes: entry.message().payload().cloned(),
                    place: (kind, offset.0),
                });
            }
            changes.rows.push((key, Some(store.row(offset, entry))));
        }
    }

    fn take_sessions_and_ids(&mut self, changes: &mut Changes) {
        if let Some(sessions) = self.active.sessions_mut() {
            for name in sessions.take_changed() {
                let found = sessions.find(&name);
                let state = found.and_then(|(_, session)| session.state());
                let row = state.map(|state| {
                    let set_at = state.set_at.as_millis().to_be_bytes();
                    [&set_at, &state.bytes[..]].concat()
                });
                changes
                    .rows
                    .push((RowKey::Session(name.as_str().into()), row));
            }
        }
        if let Some(history) = &mut self.history {
            for (id, since) in history.take_changes() {
                let row = since.map(|since| since.as_millis().to_be_bytes().to_vec());
                changes.rows.push((RowKey::Seen((*id).into()), row));
            }
        }
    }

    fn counters(&self) -> Counters {
        Counters {
            next: SubQueue::ALL.map(|kind| self.store(kind).next_offset().0),
            round_robin: self.round_robin,
            used_at: self.used_at,
            is_awaited: self.has_waiting_receiver(),
        }
    }
}

/// An entity is created from its description, then restored from its rows in any order, then [recovered](Entity::recover).
impl Entity {
    /// Returns the body that the row of a message refers to, and whether its bytes are needed to restore the message.
    pub fn body_of(row: &[u8]) -> Result<(BodyId, bool), DamagedRow> {
        body_of(row)
    }

    /// Restores a row; `payload` has the bytes of a message's body if [`Entity::body_of`] says that they are needed, and
    /// else is empty.
    pub fn restore(&mut self, key: &RowKey, row: &[u8], payload: Bytes) -> Result<(), DamagedRow> {
        match key {
            RowKey::Counters => self.restore_counters(Counters::decode(row)?),
            &RowKey::Message(kind, offset) => {
                let store = self.store_mut(kind);
                match store.policy().kind() == kind {
                    true => store.restore(Offset(offset), row, payload)?,
                    false => return Err(DamagedRow),
                }
            }
            RowKey::Session(name) => self.restore_session(name, row)?,
            RowKey::Seen(id) => {
                let since = row.try_into().map_err(|_| DamagedRow)?;
                let since = Timestamp::from_millis(i64::from_be_bytes(since));
                // The configuration may have removed duplicate detection meanwhile.
                if let Some(history) = &mut self.history {
                    history.restore(id, since);
                }
            }
        }
        Ok(())
    }

    /// Drops the stored body of a message from memory, if the message is still at this offset of a store; from then on it
    /// must be [filled](crate::Message::fill) before it is encoded.
    pub fn drop_body(&mut self, (kind, offset): (SubQueue, u64), body: BodyId) {
        self.store_mut(kind).drop_body(Offset(offset), body);
    }

    /// Restores the rules of the subscriptions of a topic.
    pub fn restore_rules(&mut self, rules: impl IntoIterator<Item = (EntityPath, Vec<Rule>)>) {
        if let Role::Topic { rules: set, .. } = &mut self.role {
            let set = Arc::make_mut(set);
            for (subscription, rules) in rules {
                set.subscribe(&subscription);
                for rule in rules {
                    set.add(&subscription, rule);
                }
            }
        }
    }

    fn restore_counters(&mut self, counters: Counters) {
        for (kind, next) in SubQueue::ALL.into_iter().zip(counters.next) {
            self.store_mut(kind).restore_next(Offset(next));
        }
        self.round_robin = counters.round_robin;
        self.used_at = counters.used_at;
        self.persistence = Some(Box::new(RecordedState {
            counters: Some(counters),
            definition: false,
        }));
    }

    fn restore_session(&mut self, name: &str, row: &[u8]) -> Result<(), DamagedRow> {
        let (set_at, bytes) = row.split_first_chunk().ok_or(DamagedRow)?;
        let state = SessionState {
            bytes: Bytes::copy_from_slice(bytes),
            set_at: Timestamp::from_millis(i64::from_be_bytes(*set_at)),
        };
        if !SessionName::fits(name) {
            return Err(DamagedRow);
        }
        let sessions = self.active.sessions_mut().ok_or(DamagedRow)?;
        let slot = sessions.find_or_create(name).ok_or(DamagedRow)?;
        sessions.set_state(slot, Some(state));
        Ok(())
    }

    /// Continues from the stored state: runs what became due meanwhile, each deadline at its own instant, and ends every
    /// lock, as an update of the service does. Records changes from now on.
    pub fn recover(&mut self, cx: &mut Context<'_>) {
        let written = self
            .persistence
            .take()
            .and_then(|persistence| persistence.counters);
        self.record_changes();
        if let Some(persistence) = &mut self.persistence {
            persistence.counters = written;
            persistence.definition = written.is_none();
        }
        let cx = &mut cx.at(cx.now);
        self.run_due(cx);
        if written.is_some_and(|counters| counters.is_awaited) {
            // Receivers waited until the process ended.
            self.used_at = self.used_at.max(cx.now);
        }
        for kind in SubQueue::ALL {
            for offset in self.store(kind).locked_offsets() {
                self.expire_lock(cx, kind, offset);
            }
        }
        self.handle_timeout(cx);
        self.reserve(cx);
    }
}
