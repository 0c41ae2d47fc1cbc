//! What the builder writes, and that the emulator takes it.

use std::time::Duration;

use serde_json::{Value, json};
use servicebus_emulator::config::Config;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// The namespace that is written for a topology.
fn namespace(topology: &Topology) -> Value {
    let document: Value = serde_json::from_str(&document::text(topology)).expect("JSON is written");
    document["UserConfig"]["Namespaces"][0].clone()
}

fn problems(topology: &Topology) -> Vec<String> {
    match topology.resolve() {
        Err(TopologyError::Invalid(error)) => {
            error.to_string().lines().map(str::to_owned).collect()
        }
        other => panic!("this topology is not legal: {other:?}"),
    }
}

/// A topology in which everything is set.
fn full() -> Topology {
    let orders = Queue::new("orders")
        .max_delivery_count(3)
        .lock_duration(MINUTE / 2)
        .default_time_to_live(60 * MINUTE)
        .dead_lettering_on_message_expiration(true)
        .requires_duplicate_detection(true)
        .duplicate_detection_window(5 * MINUTE)
        .forward_dead_lettered_messages_to("dead")
        .auto_delete_on_idle(10 * MINUTE)
        .status(EntityStatus::SendDisabled)
        .max_size_in_megabytes(1)
        .max_message_size_in_kilobytes(2048)
        .enable_partitioning(true);
    Topology::new()
        .queue(orders)
        .queue(Queue::new("inbox").forward_to("orders"))
        .queue(Queue::new("dead"))
        .expiry(Expiry::OnReceive)
        .locks_on_detach(LocksOnDetach::Release)
        .failed_forwards(FailedForwards::DeadLetter)
        .tier(Tier::Premium)
}

#[test]
fn the_builder_writes_the_official_format() {
    let namespace = namespace(&full());
    assert_eq!(namespace["Name"], "sbemulatorns");
    assert_eq!(
        namespace["Queues"],
        json!([
            { "Name": "orders", "Properties": {
                "MaxDeliveryCount": 3,
                "LockDuration": "PT30S",
                "DefaultMessageTimeToLive": "PT1H",
                "DeadLetteringOnMessageExpiration": true,
                "RequiresDuplicateDetection": true,
                "DuplicateDetectionHistoryTimeWindow": "PT5M",
                "ForwardDeadLetteredMessagesTo": "dead",
                "AutoDeleteOnIdle": "PT10M",
                "Status": "SendDisabled",
                "MaxSizeInMegabytes": 1,
                "MaxMessageSizeInKilobytes": 2048,
                "EnablePartitioning": true,
            }},
            { "Name": "inbox", "Properties": { "ForwardTo": "orders" } },
            { "Name": "dead", "Properties": {} },
        ])
    );
    assert_eq!(
        namespace["Emulator"],
        json!({
            "Expiry": "on-receive",
            "LocksOnDetach": "release",
            "FailedForwards": "dead-letter",
            "Tier": "premium",
        })
    );
}

#[test]
fn what_is_written_is_accepted() {
    let resolved = full().resolve().expect("everything is legal");
    assert_eq!(resolved.config.namespaces[0].queues.len(), 3);
}

#[test]
fn every_word_is_accepted() {
    let statuses = [
        EntityStatus::Active,
        EntityStatus::Disabled,
        EntityStatus::SendDisabled,
        EntityStatus::ReceiveDisabled,
    ];
    let mut topology = Topology::new();
    for (number, status) in statuses.into_iter().enumerate() {
        topology = topology.queue(Queue::new(format!("queue-{number}")).status(status));
    }
    for tier in [Tier::Basic, Tier::Standard, Tier::Premium] {
        for failed in [
            FailedForwards::TransferDeadLetter,
            FailedForwards::DeadLetter,
        ] {
            for locks in [LocksOnDetach::Keep, LocksOnDetach::Release] {
                for expiry in [Expiry::Eager, Expiry::OnReceive] {
                    let topology = topology.clone().tier(tier).failed_forwards(failed);
                    let resolved = topology.locks_on_detach(locks).expiry(expiry).resolve();
                    assert!(resolved.is_ok(), "{resolved:?}");
                }
            }
        }
    }
}

#[test]
fn the_defaults_are_those_of_the_emulator() {
    let written = Topology::new()
        .expiry(Expiry::default())
        .locks_on_detach(LocksOnDetach::default())
        .failed_forwards(FailedForwards::default())
        .tier(Tier::default())
        .queue(Queue::new("queue.1").status(EntityStatus::default()));
    let resolved = written.resolve().expect("defaults are legal");
    assert_eq!(resolved.config, Config::default());
}

#[test]
fn settings_left_alone_are_not_written() {
    assert_eq!(namespace(&Topology::new()).get("Emulator"), None);
}

#[test]
fn mistakes_have_the_words_of_a_file() {
    let topology = Topology::new()
        .queue(
            Queue::new("orders")
                .forward_to("biling")
                .max_message_size_in_kilobytes(2048),
        )
        .queue(Queue::new("billing").max_size_in_megabytes(u64::MAX));
    let mut found = problems(&topology);
    found.sort();
    let at = "configuration: UserConfig.Namespaces[0].Queues";
    assert_eq!(
        found,
        [
            format!(
                r#"{at}[0].Properties.ForwardTo: "biling" is not allowed; allowed: another queue of the namespace; the nearest name is "billing""#
            ),
            format!(
                "{at}[0].Properties.MaxMessageSizeInKilobytes: 2048 is not allowed; allowed: none: only the premium tier has large messages"
            ),
            format!(
                "{at}[1].Properties.MaxSizeInMegabytes: 18446744073709551615 is not allowed; allowed: 1 to 81920"
            ),
        ]
    );
}

#[test]
fn a_file_cannot_be_extended() {
    let extended = [
        Topology::file("a.json").queue(Queue::new("q")),
        Topology::file("a.json").tier(Tier::Basic),
        Topology::file("a.json").failed_forwards(FailedForwards::DeadLetter),
    ];
    for topology in extended {
        let result = topology.resolve();
        assert!(
            matches!(result, Err(TopologyError::Extended { .. })),
            "{result:?}"
        );
    }
}
