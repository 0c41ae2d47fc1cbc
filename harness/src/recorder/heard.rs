//! Everything that went through one recorder, in an order that is the same in every run.
//!
//! Within a link the order is that of its operations. Links, connections and requests of several clients go on beside
//! each other, so they are sorted by what they are and what happened on them.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Side, budget::Budget, tap::Tap};
use crate::comparison::{Observation, normalised};

/// What every observation of the wire begins with.
const ON_WIRE: &str = "on the wire:";

/// The connections of one bus.
#[derive(Debug, Default)]
pub(super) struct Heard {
    budget: Arc<Budget>,
    connections: Mutex<Vec<Arc<Mutex<Tap>>>>,
}

/// Listens to one connection, if there is room for it.
pub(super) struct Ear(Option<Arc<Mutex<Tap>>>);

impl Heard {
    /// Begins to listen to another connection.
    pub(super) fn connection(&self) -> Ear {
        Ear(self.budget.take().then(|| {
            let tap = Arc::new(Mutex::new(Tap::new(Arc::clone(&self.budget))));
            let mut all = self
                .connections
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.push(Arc::clone(&tap));
            tap
        }))
    }

    /// Tells everything.
    pub(super) fn told(&self) -> Vec<Observation> {
        let connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let told = connections
            .iter()
            .flat_map(|tap| tap.lock().unwrap_or_else(PoisonError::into_inner).told());
        let mut parts = Vec::from_iter(told.map(|(what, operations)| {
            let operations = operations.iter().map(|operation| alike(operation));
            (alike(&what), Vec::from_iter(operations))
        }));
        parts.extend(
            self.budget
                .exceeded()
                .map(|told| ("recording".to_owned(), vec![told])),
        );
        parts.sort();
        let observations = parts.into_iter().flat_map(|(what, operations)| {
            operations.into_iter().map(move |value| Observation {
                what: format!("{ON_WIRE} {what}"),
                value,
                on_wire: true,
                ..Observation::default()
            })
        });
        observations.collect()
    }
}

/// The same by whichever door a client came: SDKs name it in the addresses of links.
fn alike(text: &str) -> String {
    normalised(text).replace("amqps://", "amqp://")
}

impl Ear {
    /// Takes what a side said next.
    pub(super) fn heard(&self, side: Side, bytes: &[u8]) {
        if let Some(tap) = &self.0 {
            let mut tap = tap.lock().unwrap_or_else(PoisonError::into_inner);
            tap.heard(side, bytes);
        }
    }
}
