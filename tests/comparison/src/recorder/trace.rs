//! Everything that went through one recorder, in an order that is the same in every run.
//!
//! Within a link the order is that of its operations. Links, connections and requests of several clients go on beside
//! each other, so they are sorted by what they are and what happened on them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use super::{Side, decoder::Decoder};
use crate::{Observation, normalised};

/// What every observation of the wire begins with.
const ON_WIRE: &str = "on the wire:";
/// Most operations that are kept of one namespace. What comes after is passed on and not recorded.
const MAX_RECORDED: usize = 1_000;

/// The connections of one namespace.
#[derive(Debug)]
pub(super) struct Trace {
    /// As clients name the service.
    host: String,
    budget: Arc<Budget>,
    connections: Mutex<Vec<Arc<Mutex<Decoder>>>>,
}

/// Listens to one connection, if there is room for it.
pub(super) struct Sink(Option<Arc<Mutex<Decoder>>>);

impl Trace {
    pub(super) fn new(host: String) -> Self {
        Self {
            host,
            budget: Arc::default(),
            connections: Mutex::default(),
        }
    }

    /// Begins to listen to another connection.
    pub(super) fn connection(&self) -> Sink {
        Sink(self.budget.take().then(|| {
            let decoder = Arc::new(Mutex::new(Decoder::new(Arc::clone(&self.budget))));
            let mut all = self.connections.lock();
            all.push(Arc::clone(&decoder));
            decoder
        }))
    }

    /// Renders everything.
    pub(super) fn render(&self) -> Vec<Observation> {
        let connections = self.connections.lock();
        let rendered = connections
            .iter()
            .flat_map(|decoder| decoder.lock().render());
        let mut parts = Vec::from_iter(rendered.map(|(what, operations)| {
            let operations = operations
                .iter()
                .map(|operation| self.normalize_hosts(operation));
            (self.normalize_hosts(&what), Vec::from_iter(operations))
        }));
        parts.extend(
            self.budget
                .exceeded()
                .map(|rendered| ("recording".to_owned(), vec![rendered])),
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

    /// The same by whichever port a client came, to whichever host: SDKs name both in the addresses of links.
    fn normalize_hosts(&self, text: &str) -> String {
        let text = text.replace("amqps://", "amqp://");
        normalised(&text.replace(&format!("//{}", self.host), "//<host>"))
    }
}

impl Sink {
    /// Takes the next bytes of one side.
    pub(super) fn push(&self, side: Side, bytes: &[u8]) {
        if let Some(decoder) = &self.0 {
            let mut decoder = decoder.lock();
            decoder.push(side, bytes);
        }
    }
}

/// How much of it is left.
#[derive(Debug, Default)]
pub(super) struct Budget {
    taken: AtomicUsize,
}

impl Budget {
    /// Takes room for one operation, session or link, if there is any.
    pub(super) fn take(&self) -> bool {
        self.taken.fetch_add(1, Ordering::Relaxed) < MAX_RECORDED
    }

    /// Says that something was left out.
    pub(super) fn exceeded(&self) -> Option<String> {
        let is_exceeded = self.taken.load(Ordering::Relaxed) > MAX_RECORDED;
        is_exceeded.then(|| format!("only the first {MAX_RECORDED} operations are recorded"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_normalized() {
        let trace = Trace::new("bus.example".to_owned());
        for text in ["amqps://bus.example/orders", "amqp://127.64.3.9/orders"] {
            assert_eq!(trace.normalize_hosts(text), "amqp://<host>/orders");
        }
    }

    #[test]
    fn connections_are_rendered_in_a_stable_order() {
        let rendered = |paths: [&str; 2]| {
            let trace = Trace::new("bus.example".to_owned());
            for path in paths {
                let request = format!("GET {path} HTTP/1.1\r\n\r\n");
                trace.connection().push(Side::Client, request.as_bytes());
            }
            trace.render()
        };
        assert_eq!(rendered(["/a", "/b"]), rendered(["/b", "/a"]));
        assert_eq!(rendered(["/a", "/b"])[1].what, "on the wire: HTTP");
    }
}
