//! Exports spans over OpenTelemetry's protocol (OTLP): how long messages wait, and how long receivers hold them.
//!
//! Built with the feature `otlp`, and started where the environment names a collector. Operations put ended spans into a
//! queue without waiting; one task sends them. Messages that the sampler does not select are not followed.

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

/// The span exporter of a process; `None` without a collector.
#[derive(Debug, Default)]
pub(crate) struct Traces(Option<Arc<Exporter>>);

/// A metric: its name, its description and its value.
pub(crate) type Metric = (&'static str, &'static str, u64);

impl Traces {
    /// Starts the exporter if the options ask for it; needs a tokio runtime.
    pub(crate) fn start(options: Option<TraceOptions>) -> Self {
        Self(options.map(|options| Arc::new(Exporter::start(options))))
    }

    pub(crate) fn of_namespace(&self, name: &str) -> FollowedMessages {
        let followed = self.0.as_ref();
        followed.map_or_else(FollowedMessages::default, |exporter| {
            FollowedMessages::new(Followed::new(name, Arc::clone(exporter)))
        })
    }

    /// Returns counters of exported and lost spans; empty without a collector.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        self.0.as_ref().map_or_else(Vec::new, |it| it.metrics())
    }

    /// Sends the pending spans, within a time limit.
    pub(crate) async fn stop(&self) {
        if let Some(exporter) = &self.0 {
            exporter.stop().await;
        }
    }
}
