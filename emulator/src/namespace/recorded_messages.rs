//! The messages behind the record, if the command line asks for them.
//!
//! A timeline names messages by their ids, which suffices for people. Tests also ask for bodies of messages that are gone,
//! so that with `--record-messages` each message is kept as it arrived, up to a number of bytes; the oldest are removed
//! first. Without it nothing is kept and nothing is looked up.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::{
    BrokerProperties, Entity, EntityId, Event, EventKind, Events, Message, SequenceNumber, SubQueue,
};

use super::Namespace;
use crate::lock_order::{Ordered, Rank, take};

/// Maximum bytes of the kept messages of a namespace.
const CAPACITY: u64 = 64 * 1024 * 1024;
/// The cost of a message beside its own bytes.
const OVERHEAD: u64 = 256;

/// Where a message arrived.
pub(crate) type Location = (EntityId, SubQueue, Option<SequenceNumber>);

/// The kept messages of one namespace.
#[derive(Debug)]
pub(crate) struct RecordedMessages(Option<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    /// A hash table would move tens of megabytes within one operation whenever it grows.
    by_location: BTreeMap<Location, (BrokerProperties, Message)>,
    /// Oldest first.
    order: VecDeque<Location>,
    bytes: u64,
}

impl RecordedMessages {
    /// Creates the store; keeps messages if `is_enabled`.
    pub(crate) fn new(is_enabled: bool) -> Self {
        Self(is_enabled.then(Mutex::default))
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps the messages that arrived by these events; must be called before a receiver can have taken them.
    pub(super) fn keep(&self, entity: &Entity, events: &Events, namespace: &Namespace) {
        let Some(mut recorded) = self.recorded() else {
            return;
        };
        for event in events
            .iter()
            .filter(|event| event.entity == entity.id() && is_arrival(event))
        {
            let Some(number) = event.number() else {
                continue;
            };
            let here = entity.snapshot(event.store, number).next();
            let own =
                here.filter(|(broker_properties, _)| broker_properties.sequence_number == number);
            if let Some((broker_properties, message)) = own {
                let place = (event.entity, event.store, Some(number));
                recorded.insert(place, (broker_properties, namespace.whole(message)));
            }
        }
    }

    /// Returns the message that arrived at a location, if it is still kept.
    pub(crate) fn recorded_at(&self, place: &Location) -> Option<(BrokerProperties, Message)> {
        self.recorded()?.by_location.get(place).cloned()
    }

    pub(super) fn clear(&self) {
        if let Some(mut recorded) = self.recorded() {
            *recorded = Recorded::default();
        }
    }

    fn recorded(&self) -> Option<Ordered<MutexGuard<'_, Recorded>>> {
        let recorded = self.0.as_ref()?;
        Some(take(Rank::Inner, || recorded.lock()))
    }
}

impl Recorded {
    fn insert(
        &mut self,
        place: Location,
        (broker_properties, message): (BrokerProperties, Message),
    ) {
        self.bytes += cost(&message);
        self.by_location.insert(place, (broker_properties, message));
        self.order.push_back(place);
        while self.bytes > CAPACITY {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some((_, message)) = self.by_location.remove(&oldest) {
                self.bytes -= cost(&message);
            }
        }
    }
}

fn cost(message: &Message) -> u64 {
    message.size() + OVERHEAD
}

fn is_arrival(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::Enqueued { .. } | EventKind::Scheduled { .. }
    )
}
