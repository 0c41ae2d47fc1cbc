//! The entities of the simulated namespace, and where a message that is sent to one of them ends.

/// An entity that holds messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestEntity {
    pub(crate) address: &'static str,
    pub(crate) lock: i64,
    pub(crate) max_delivery: u32,
    /// Whether it has sessions.
    pub(crate) sessions: bool,
    /// Time to live of its messages.
    pub(crate) ttl: Option<i64>,
    /// Whether what expires is gone.
    pub(crate) drops_expired: bool,
    /// Its dead letters go there.
    pub(crate) dead_letters_to: Option<usize>,
}

const fn test_entity(address: &'static str, lock: i64, max_delivery: u32) -> TestEntity {
    TestEntity {
        address,
        lock,
        max_delivery,
        sessions: false,
        ttl: None,
        drops_expired: false,
        dead_letters_to: None,
    }
}

pub(crate) const ORDERS: usize = 0;
pub(crate) const SESSIONS: usize = 1;
pub(crate) const UNIQUE: usize = 2;
pub(crate) const SHORT_LOCK: usize = 3;
pub(crate) const EXPIRING: usize = 4;
pub(crate) const TARGET: usize = 5;
pub(crate) const WORK: usize = 6;
pub(crate) const DEAD_LETTERS: usize = 7;
pub(crate) const ALL: usize = 8;
pub(crate) const RED: usize = 9;
/// Where a chain of forwards is too long.
pub(crate) const HOP_LIMIT: usize = 10;
/// What it forwards to takes nothing.
pub(crate) const FULL_TARGET: usize = 11;

pub(crate) const ENTITIES: [TestEntity; 12] = [
    test_entity("orders", 5_000, 5),
    TestEntity {
        sessions: true,
        ..test_entity("sessions", 10_000, 10)
    },
    test_entity("unique", 5_000, 5),
    TestEntity {
        ttl: Some(8_000),
        ..test_entity("brief", 5_000, 10)
    },
    TestEntity {
        ttl: Some(8_000),
        drops_expired: true,
        ..test_entity("fleeting", 5_000, 10)
    },
    test_entity("target", 5_000, 10),
    TestEntity {
        dead_letters_to: Some(DEAD_LETTERS),
        ..test_entity("work", 5_000, 2)
    },
    test_entity("failures", 5_000, 10),
    test_entity("news/subscriptions/all", 5_000, 10),
    test_entity("news/subscriptions/red", 5_000, 3),
    test_entity("fifth", 5_000, 10),
    test_entity("stuck", 5_000, 10),
];

/// What can be sent to.
pub(crate) const ADDRESSES: [&str; 11] = [
    "orders", "sessions", "unique", "brief", "fleeting", "source", "target", "work", "news",
    "first", "stuck",
];

/// Where copies of a message end that is sent to this address, in this colour.
pub(crate) fn destinations(address: &str, colour: Colour) -> Vec<usize> {
    match address {
        "source" => vec![TARGET],
        "first" => vec![HOP_LIMIT],
        "news" => match colour {
            Colour::Red => vec![ALL, RED],
            Colour::Blue => vec![ALL, TARGET],
        },
        direct => vec![
            ENTITIES
                .iter()
                .position(|place| place.address == direct)
                .unwrap_or_else(|| panic!("{direct} is not a place")),
        ],
    }
}

/// What filters select by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Blue,
}

pub(crate) const CONFIGURATION: &str = r#"{"UserConfig": {"Namespaces": [{"Name": "simulated",
"Emulator": {"Tier": "premium"},
"Queues": [
  {"Name": "orders", "Properties": {"LockDuration": "PT5S", "MaxDeliveryCount": 5}},
  {"Name": "sessions", "Properties": {"LockDuration": "PT10S", "MaxDeliveryCount": 10, "RequiresSession": true}},
  {"Name": "unique", "Properties": {"LockDuration": "PT5S", "MaxDeliveryCount": 5,
    "RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT1H"}},
  {"Name": "brief", "Properties": {"LockDuration": "PT5S", "DefaultMessageTimeToLive": "PT8S",
    "DeadLetteringOnMessageExpiration": true}},
  {"Name": "fleeting", "Properties": {"LockDuration": "PT5S", "DefaultMessageTimeToLive": "PT8S"}},
  {"Name": "source", "Properties": {"ForwardTo": "target"}},
  {"Name": "target", "Properties": {"LockDuration": "PT5S"}},
  {"Name": "work", "Properties": {"LockDuration": "PT5S", "MaxDeliveryCount": 2,
    "ForwardDeadLetteredMessagesTo": "failures"}},
  {"Name": "failures", "Properties": {"LockDuration": "PT5S"}},
  {"Name": "first", "Properties": {"ForwardTo": "second"}},
  {"Name": "second", "Properties": {"ForwardTo": "third"}},
  {"Name": "third", "Properties": {"ForwardTo": "fourth"}},
  {"Name": "fourth", "Properties": {"ForwardTo": "fifth"}},
  {"Name": "fifth", "Properties": {"ForwardTo": "sixth"}},
  {"Name": "sixth"},
  {"Name": "stuck", "Properties": {"ForwardTo": "closed"}},
  {"Name": "closed", "Properties": {"Status": "SendDisabled"}}
],
"Topics": [{"Name": "news", "Subscriptions": [
  {"Name": "all", "Properties": {"LockDuration": "PT5S"}},
  {"Name": "red", "Properties": {"LockDuration": "PT5S", "MaxDeliveryCount": 3},
    "Rules": [{"Name": "red", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "colour = 'red'"}}}]},
  {"Name": "blue", "Properties": {"LockDuration": "PT5S", "ForwardTo": "target"},
    "Rules": [{"Name": "blue", "Properties": {"FilterType": "Correlation",
      "CorrelationFilter": {"Properties": {"colour": "blue"}}}}]}
]}]
}]}}"#;
