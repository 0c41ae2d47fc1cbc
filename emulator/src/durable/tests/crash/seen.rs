//! The state of a namespace as seen from outside, after a restart.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use servicebus_broker::{InspectedMessage, MessageState, SequenceNumber, SubQueue};

use crate::durable::Definition;
use crate::namespace::Namespace;

/// The value of `x-opt-message-state` of a message that is deferred, whether it is locked or not.
const DEFERRED: i32 = 1;

/// Returns a line for every item, as it is after a restart: locks are lost, and their deliveries count.
pub(super) fn seen(namespace: &Namespace) -> Vec<String> {
    let mut lines = Vec::new();
    for shared in namespace.entities() {
        namespace.read(&shared, |entity| {
            let path = entity.path();
            let definition = shared
                .metadata(|metadata| Definition::row(entity, metadata, shared.is_temporary()));
            lines.push(format!("{path}: {}", String::from_utf8_lossy(&definition)));
            for kind in SubQueue::ALL {
                let all = entity.inspect(kind, SequenceNumber(0), false, 0);
                lines.extend(all.map(|mut message| {
                    message.message = namespace.whole(&message.message);
                    format!("{path} {kind:?}: {}", line(message))
                }));
            }
            for session in entity.snapshot_sessions() {
                if let Some(state) = session.state {
                    let name = session.name.as_str();
                    lines.push(format!("{path}: the state of {name:?} is {state:?}"));
                }
            }
        });
    }
    lines
}

fn line(message: InspectedMessage) -> String {
    let InspectedMessage {
        mut broker_properties,
        message,
        state,
        expires_at,
        activates_at,
        ..
    } = message;
    broker_properties.lock = None;
    let is_locked = state == MessageState::Locked;
    broker_properties.delivery_count += u32::from(is_locked);
    let state = match broker_properties.state.take() {
        Some(DEFERRED) if is_locked => MessageState::Deferred,
        _ if is_locked => MessageState::Active,
        _ => state,
    };
    let mut bytes = Vec::new();
    let rest = message.encode(&broker_properties, 0, &mut bytes);
    bytes.extend_from_slice(&rest.expect("it was sent"));
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!(
        "{:?} {state:?} delivered {} expires {expires_at:?} activates {activates_at:?} enqueued {:?} bytes {:x}",
        broker_properties.sequence_number,
        broker_properties.delivery_count,
        broker_properties.enqueued_at,
        hasher.finish()
    )
}
