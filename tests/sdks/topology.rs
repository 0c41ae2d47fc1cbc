//! The entities the cases use; every case has all of them to itself.

use std::time::Duration;

use servicebus_harness::prelude::*;

use crate::driver::{Entities, Settings};

/// A namespace with those entities, under the settings of a case.
pub(crate) fn topology(settings: Settings) -> Topology {
    match settings.entities {
        Entities::Queues => queues(settings),
        Entities::Topics => Topology::file("tests/sdks/topics.json"),
        Entities::Sessions => Topology::file("tests/sdks/sessions.json"),
        Entities::Observed => Topology::file("tests/sdks/observed.json"),
        Entities::OtherReadings => Topology::new()
            .forward_to_disabled(ForwardToDisabled::Deliver)
            .batch_limit(BatchLimit::Messages)
            .queue(Queue::new("orders"))
            .queue(Queue::new("inbox").forward_to("orders")),
        Entities::Orders => Topology::new()
            .tier(settings.tier)
            .queue(Queue::new("orders")),
    }
}

fn queues(settings: Settings) -> Topology {
    let topology = Topology::new()
        .expiry(settings.expiry)
        .locks_on_detach(settings.locks_on_detach)
        .tier(settings.tier)
        .queue(Queue::new("orders"))
        .queue(Queue::new("limited").max_delivery_count(3))
        .queue(Queue::new("expiring").dead_lettering_on_message_expiration(true))
        .queue(
            Queue::new("fleeting")
                .dead_lettering_on_message_expiration(true)
                .default_time_to_live(Duration::from_secs(300)),
        )
        .queue(
            Queue::new("unique")
                .requires_duplicate_detection(true)
                .duplicate_detection_window(Duration::from_secs(300)),
        )
        .queue(Queue::new("partitioned").enable_partitioning(true))
        .queue(Queue::new("idle").auto_delete_on_idle(Duration::from_secs(300)))
        .queue(Queue::new("tiny").max_size_in_megabytes(1));
    match settings.tier {
        Tier::Premium => {
            forwarding(topology).queue(Queue::new("large").max_message_size_in_kilobytes(10 * 1024))
        }
        Tier::Basic | Tier::Standard => forwarding(topology),
    }
}

/// Adds the queues that forward.
fn forwarding(topology: Topology) -> Topology {
    let topology = topology
        .queue(Queue::new("inbox").forward_to("orders"))
        .queue(Queue::new("to-tiny").forward_to("tiny"))
        .queue(
            Queue::new("complaints")
                .max_delivery_count(1)
                .forward_dead_lettered_messages_to("orders"),
        )
        .queue(Queue::new("hop6"));
    (1..=5).fold(topology, |topology, hop| {
        let next = format!("hop{}", hop + 1);
        topology.queue(Queue::new(format!("hop{hop}")).forward_to(next))
    })
}
