//! The replacement of traces without the feature `otlp`.

use servicebus_broker::{Entity, Events};

use crate::clock::NamespaceClock;

#[derive(Debug, Default)]
pub(crate) struct Traces(());

#[derive(Debug, Default)]
pub(crate) struct FollowedMessages(());

pub(crate) type Metric = (&'static str, &'static str, u64);

impl Traces {
    pub(crate) fn of_namespace(&self, _: &str) -> FollowedMessages {
        FollowedMessages(())
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    #[expect(clippy::unused_async, reason = "with traces it waits")]
    pub(crate) async fn stop(&self) {}
}

impl FollowedMessages {
    pub(crate) fn note(&self, _: &Entity, _: &Events, _: &NamespaceClock) {}

    pub(crate) fn clear(&self) {}
}
