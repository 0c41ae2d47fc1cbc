//! Everything that went through one recorder, in an order that is the same in every run.
//!
//! Within a link the order is that of its operations. Links, connections and requests of several clients go on beside
//! each other, so they are sorted by what they are and what happened on them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Side, budget::Budget, tap::Tap};
use crate::comparison::{Observation, normalised};

/// What every observation of the wire begins with.
const ON_WIRE: &str = "on the wire:";

/// The connections of one bus.
#[derive(Debug)]
pub(super) struct Heard {
    /// As clients name the service.
    host: String,
    budget: Arc<Budget>,
    connections: Mutex<Vec<Arc<Mutex<Tap>>>>,
}

/// Listens to one connection, if there is room for it.
pub(super) struct Ear(Option<Arc<Mutex<Tap>>>);

impl Heard {
    pub(super) fn new(host: String) -> Self {
        Self {
            host,
            budget: Arc::default(),
            connections: Mutex::default(),
        }
    }

    /// Begins to listen to another connection.
    pub(super) fn connection(&self) -> Ear {
        Ear(self.budget.take().then(|| {
            let tap = Arc::new(Mutex::new(Tap::new(Arc::clone(&self.budget))));
            let mut all = self.connections.lock();
            all.push(Arc::clone(&tap));
            tap
        }))
    }

    /// Tells everything.
    pub(super) fn told(&self) -> Vec<Observation> {
        let connections = self.connections.lock();
        let told = connections.iter().flat_map(|tap| tap.lock().told());
        let mut parts = Vec::from_iter(told.map(|(what, operations)| {
            let operations = operations.iter().map(|operation| self.alike(operation));
            (self.alike(&what), Vec::from_iter(operations))
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

    /// The same by whichever door a client came, to whichever host: SDKs name both in the addresses of links.
    fn alike(&self, text: &str) -> String {
        let text = text.replace("amqps://", "amqp://");
        normalised(&text.replace(&format!("//{}", self.host), "//<host>"))
    }
}

impl Ear {
    /// Takes what a side said next.
    pub(super) fn heard(&self, side: Side, bytes: &[u8]) {
        if let Some(tap) = &self.0 {
            let mut tap = tap.lock();
            tap.heard(side, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_doors_are_alike() {
        let heard = Heard::new("bus.example".to_owned());
        for text in ["amqps://bus.example/orders", "amqp://127.64.3.9/orders"] {
            assert_eq!(heard.alike(text), "amqp://<host>/orders");
        }
    }

    #[test]
    fn connections_are_told_in_an_order_of_their_own() {
        let told = |paths: [&str; 2]| {
            let heard = Heard::new("bus.example".to_owned());
            for path in paths {
                let request = format!("GET {path} HTTP/1.1\r\n\r\n");
                heard.connection().heard(Side::Client, request.as_bytes());
            }
            heard.told()
        };
        assert_eq!(told(["/a", "/b"]), told(["/b", "/a"]));
        assert_eq!(told(["/a", "/b"])[1].what, "on the wire: HTTP");
    }
}
