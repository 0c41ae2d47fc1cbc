//! Spans for a collector that speaks OpenTelemetry's protocol: how long messages wait, and how long receivers have them.
//!
//! Built with the feature `otlp`, and started where the environment names a collector. Operations hand ended spans to a queue
//! that they never wait for; one task sends them. Messages that no sampler takes are not followed.

use std::sync::Arc;

mod environment;
mod export;
mod follow;
mod parent;
mod protobuf;

pub use environment::TraceOptions;
use export::Exporter;
use follow::Followed;
pub(crate) use follow::FollowedMessages;

/// The traces of a process; none where no collector is named.
#[derive(Debug, Default)]
pub(crate) struct Traces(Option<Arc<Exporter>>);

/// A metric: its name, what it is, and its value.
pub(crate) type Metric = (&'static str, &'static str, u64);

impl Traces {
    /// Begins to export if that is asked for; within a tokio runtime.
    pub(crate) fn start(options: Option<TraceOptions>) -> Self {
        Self(options.map(|options| Arc::new(Exporter::start(options))))
    }

    /// What follows the messages of a namespace.
    pub(crate) fn of_namespace(&self, name: &str) -> FollowedMessages {
        let followed = self.0.as_ref();
        followed.map_or_else(FollowedMessages::default, |exporter| {
            FollowedMessages::new(Followed::new(name, Arc::clone(exporter)))
        })
    }

    /// What became of spans: counters, none where there are no traces.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        self.0.as_ref().map_or_else(Vec::new, |it| it.metrics())
    }

    /// Sends what waits, for as long as that may take at the end.
    pub(crate) async fn stop(&self) {
        if let Some(exporter) = &self.0 {
            exporter.stop().await;
        }
    }
}
