//! Management locks: created, listed, deleted and enforced.

use serde_json::{Value, json};

use super::{Refusal, member};
use crate::resource_state::{ManagementLock, ResourceState, is_within};
use axum::http::StatusCode;

const MAX_LOCKS: usize = 1_000;
/// Longest notes of a lock, in characters.
const MAX_NOTES: usize = 512;

impl ManagementLock {
    fn json(&self) -> Value {
        let level = if self.is_read_only {
            "ReadOnly"
        } else {
            "CanNotDelete"
        };
        json!({
            "id": self.id,
            "name": self.name,
            "type": "Microsoft.Authorization/locks",
            "properties": { "level": level, "notes": self.notes },
        })
    }
}

impl ResourceState {
    pub(crate) fn put_lock(&self, scope: &str, name: &str, body: &Value) -> Result<Value, Refusal> {
        let properties = member(body, "properties").unwrap_or(&Value::Null);
        let level = member(properties, "level")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_read_only = match level.to_ascii_lowercase().as_str() {
            "cannotdelete" => false,
            "readonly" => true,
            _ => {
                let text = format!(
                    "The lock level '{level}' is not allowed; allowed: CanNotDelete, ReadOnly."
                );
                return Err(Refusal::bad_request("InvalidLockLevel", text));
            }
        };
        let notes = member(properties, "notes").and_then(Value::as_str);
        let lock = ManagementLock {
            id: lock_id(scope, name),
            scope: scope.to_ascii_lowercase(),
            name: name.to_owned(),
            is_read_only,
            notes: notes.map(|notes| notes.chars().take(MAX_NOTES).collect()),
        };
        let shown = lock.json();
        let key = lock.id.to_ascii_lowercase();
        let mut locks = self.locks.lock();
        if locks.len() >= MAX_LOCKS && !locks.contains_key(&key) {
            let text = format!("There are {MAX_LOCKS} locks already.");
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "LockLimitReached",
                text,
            ));
        }
        locks.insert(key, lock);
        drop(locks);
        self.keep();
        Ok(shown)
    }

    pub(crate) fn lock(&self, scope: &str, name: &str) -> Option<Value> {
        let id = lock_id(scope, name).to_ascii_lowercase();
        self.locks.lock().get(&id).map(ManagementLock::json)
    }

    /// Deletes a lock; returns whether it existed.
    pub(crate) fn delete_lock(&self, scope: &str, name: &str) -> bool {
        let id = lock_id(scope, name).to_ascii_lowercase();
        let was_there = self.locks.lock().remove(&id).is_some();
        self.keep();
        was_there
    }

    /// Returns the locks on a scope and below.
    pub(crate) fn locks(&self, scope: &str) -> Vec<Value> {
        let scope = scope.to_ascii_lowercase();
        let locks = self.locks.lock();
        let within = locks.values().filter(|lock| is_within(&lock.scope, &scope));
        within.map(ManagementLock::json).collect()
    }

    /// Fails if a lock on the resource, on its parents or, for a deletion, on its children forbids the operation. Only Azure
    /// Resource Manager enforces locks.
    pub(crate) fn check(&self, id: &str, deletes: bool) -> Result<(), Refusal> {
        let target = id.to_ascii_lowercase();
        let locks = self.locks.lock();
        let mut standing = locks.values().filter(|lock| {
            let above = is_within(&target, &lock.scope) && (deletes || lock.is_read_only);
            above || deletes && is_within(&lock.scope, &target)
        });
        let Some(lock) = standing.next() else {
            return Ok(());
        };
        let verb = if deletes { "delete" } else { "write" };
        let text = format!(
            "The scope '{id}' cannot perform {verb} operation because following scope(s) are locked: '{}'. Please remove the \
             lock and try again.",
            lock.scope
        );
        Err(Refusal::new(StatusCode::CONFLICT, "ScopeLocked", text))
    }
}

fn lock_id(scope: &str, name: &str) -> String {
    format!("{scope}/providers/Microsoft.Authorization/locks/{name}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn at_the_limit_management_locks_can_be_changed_but_not_added() {
        let state = ResourceState::default();
        let put = |name: &str, notes: &str| {
            let body = json!({"properties": {"level": "ReadOnly", "notes": notes}});
            state.put_lock("/subscriptions/s", name, &body)
        };
        for index in 0..MAX_LOCKS {
            put(&format!("lock-{index}"), "first").unwrap();
        }
        let refusal = put("one-more", "").unwrap_err();
        assert_eq!(refusal.code, "LockLimitReached");
        put("LOCK-7", "second").unwrap();
        let changed = state.lock("/subscriptions/s", "lock-7").unwrap();
        assert_eq!(changed["properties"]["notes"], "second");
        assert_eq!(state.locks("/subscriptions/s").len(), MAX_LOCKS);
    }
}
