//! The timeline as JSON, with the names of the control API.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Event, Timeline};

impl Timeline {
    /// Returns the timeline as JSON, for tools and for files beside a failed run.
    ///
    /// `entity`, `dropped`, `counters` and `events`, each event with the fields of the control API: instants are texts
    /// in RFC 3339, and what does not apply is null.
    pub fn to_json(&self) -> Value {
        json!({
            "entity": self.entity,
            "dropped": self.dropped,
            "counters": self.counters,
            "events": Vec::from_iter(self.events.iter().map(Event::to_json)),
        })
    }
}

impl Event {
    /// Returns the event as JSON, with the fields of the control API.
    pub fn to_json(&self) -> Value {
        json!({
            "at": rfc3339(self.at),
            "offset": self.offset,
            "kind": self.kind.name(),
            "entity": self.entity,
            "sequence_number": self.sequence_number,
            "message_id": self.message_id,
            "client": self.client,
            "delivery_count": self.delivery_count,
            "locked_until": self.locked_until.map(rfc3339),
            "reason": self.reason,
            "detail": self.detail,
            "session": self.session,
        })
    }
}

fn rfc3339(instant: SystemTime) -> Value {
    match jiff::Timestamp::try_from(instant) {
        Ok(timestamp) => timestamp.to_string().into(),
        // Beyond the year 9999.
        Err(_) => Value::Null,
    }
}
