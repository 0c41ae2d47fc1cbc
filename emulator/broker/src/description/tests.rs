use super::*;

fn path(text: &str) -> EntityPath {
    text.parse().unwrap()
}

fn texts(description: &EntityDescription, tier: Tier) -> Vec<String> {
    let problems = description.problems(EntityKind::Queue, tier);
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn defaults_are_legal_in_every_tier() {
    for tier in [Tier::Basic, Tier::Standard, Tier::Premium] {
        assert_eq!(texts(&EntityDescription::of_tier(tier), tier), [""; 0]);
    }
}

#[test]
fn every_problem_is_reported_at_once() {
    let description = EntityDescription {
        lock_duration: Duration::from_secs(301),
        max_delivery_count: 0,
        default_message_time_to_live: Some(Duration::from_millis(999)),
        dead_lettering_on_message_expiration: true,
        duplicate_detection_history_time_window: Duration::from_secs(4),
        forward_to: Some(path("ORDERS")),
        auto_delete_on_idle: Some(Duration::from_secs(299)),
        max_size_in_megabytes: 0,
        max_message_size_in_kilobytes: Some(1023),
        ..EntityDescription::default()
    };
    assert_eq!(
        texts(&description, Tier::Standard),
        [
            "LockDuration is 301 s; allowed: 5 s (PT5S) to 5 min (PT5M)",
            "MaxSizeInMegabytes is 0; allowed: 1 to 81920",
            "DefaultMessageTimeToLive is 0.999 s; allowed: 1 s (PT1S) or longer",
            "DuplicateDetectionHistoryTimeWindow is 4 s; allowed: 5 s (PT5S) to 7 days (P7D)",
            "MaxDeliveryCount is 0; allowed: 1 to 2147483647",
            "AutoDeleteOnIdle is 299 s; allowed: 5 min (PT5M) or longer",
            "MaxMessageSizeInKilobytes is 1023; allowed: none: only the premium tier has large messages",
        ]
    );
}

#[test]
fn the_basic_tier_has_less() {
    let description = EntityDescription {
        requires_duplicate_detection: true,
        default_message_time_to_live: Some(Duration::from_secs(15 * 86_400)),
        forward_to: Some(path("next")),
        auto_delete_on_idle: Some(Duration::from_secs(300)),
        forward_dead_lettered_messages_to: Some(path("dead")),
        ..EntityDescription::default()
    };
    assert_eq!(texts(&description, Tier::Standard), [""; 0]);
    assert_eq!(
        texts(&description, Tier::Basic),
        [
            "RequiresDuplicateDetection is true; allowed: false: the basic tier has no duplicate detection",
            "DefaultMessageTimeToLive is 15 days; allowed: 1 s (PT1S) to 14 days (P14D) in the basic tier",
            "ForwardTo is next; allowed: none: the basic tier does not forward",
            "ForwardDeadLetteredMessagesTo is dead; allowed: none: the basic tier does not forward",
            "AutoDeleteOnIdle is 300 s; allowed: never: the basic tier does not delete idle entities",
        ]
    );
}

#[test]
fn what_is_fixed_at_creation_stays() {
    let plain = EntityDescription::default();
    let changed = EntityDescription {
        requires_duplicate_detection: true,
        enable_partitioning: true,
        max_delivery_count: 3,
        ..EntityDescription::default()
    };
    let problems = plain.fixed_problems(&changed);
    let texts: Vec<String> = problems.iter().map(Problem::to_string).collect();
    assert_eq!(
        texts,
        [
            "RequiresDuplicateDetection is true; allowed: false, as it was created",
            "EnablePartitioning is true; allowed: false, as it was created",
        ]
    );
    assert_eq!(plain.fixed_problems(&plain), []);
}
