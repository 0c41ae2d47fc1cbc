//! The properties of a queue: from the file to the broker's description.
//!
//! Bounds are the broker's: its problems are only led back to the places in the file.

use std::time::Duration;

use servicebus_broker::{QueueDescription, Tier};

use super::unsupported;
use crate::config::document::QueueProperties;
use crate::config::duration;
use crate::config::reader::{Located, Place, Report};

/// Longest and default time to live in the basic tier (semantics §4).
const BASIC_TIME_TO_LIVE: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Shortest and longest history of duplicate detection (decision D15).
const DUPLICATE_WINDOW: (Duration, Duration) = (
    Duration::from_secs(5),
    Duration::from_secs(7 * 24 * 60 * 60),
);

/// What a queue is when nothing is said about it.
pub(in crate::config) fn default_queue(tier: Tier) -> QueueDescription {
    QueueDescription {
        default_message_time_to_live: (tier == Tier::Basic).then_some(BASIC_TIME_TO_LIVE),
        ..QueueDescription::default()
    }
}

/// The effective settings; what is not legal is reported.
pub(super) fn description(
    report: &Report<'_>,
    properties: QueueProperties,
    tier: Tier,
) -> QueueDescription {
    report_unsupported(report, &properties);
    check_duplicate_window(report, &properties);
    let QueueProperties {
        dead_lettering_on_message_expiration,
        default_message_time_to_live,
        lock_duration,
        max_delivery_count,
        ..
    } = properties;
    let places = [
        (
            "DefaultMessageTimeToLive",
            place(&default_message_time_to_live),
        ),
        ("LockDuration", place(&lock_duration)),
        ("MaxDeliveryCount", place(&max_delivery_count)),
    ];
    let mut description = default_queue(tier);
    if let Some(written) = dead_lettering_on_message_expiration {
        description.dead_lettering_on_message_expiration = written.value;
    }
    if let Some(duration) = read_duration(report, lock_duration.as_ref()) {
        description.lock_duration = duration;
    }
    if let Some(written) = max_delivery_count {
        description.max_delivery_count = saturate(written.value);
    }
    if let Some(written) = &default_message_time_to_live
        && let Some(duration) = read_duration(report, Some(written))
    {
        description.default_message_time_to_live =
            (duration < duration::FOREVER).then_some(duration);
        check_tier(report, written, duration, tier);
    }
    report_problems(report, &description, &places);
    description
}

fn place<T>(located: &Option<Located<T>>) -> Option<Place> {
    located.as_ref().map(|located| located.place.clone())
}

/// Nearest number that fits: one that had to be moved is out of bounds either way.
fn saturate(number: i64) -> u32 {
    u32::try_from(number.clamp(0, i64::from(u32::MAX))).unwrap_or(u32::MAX)
}

fn read_duration(report: &Report<'_>, written: Option<&Located<String>>) -> Option<Duration> {
    let Located { place, value } = written?;
    let read = duration::parse(value);
    if let Err(error) = read {
        let message = format!("{} is {error}", report.excerpt(place));
        report.problem(
            place,
            message,
            Some("durations such as PT30S, PT5M or P14D".to_owned()),
        );
    }
    read.ok()
}

fn report_problems(
    report: &Report<'_>,
    description: &QueueDescription,
    places: &[(&str, Option<Place>)],
) {
    for problem in description.problems() {
        let written = places
            .iter()
            .find(|(property, _)| *property == problem.property);
        if let Some((_, Some(place))) = written {
            let message = format!("{} is not allowed", report.excerpt(place));
            report.problem(place, message, Some(problem.allowed));
        } else {
            // Defaults are legal, so this needs a property that the broker judges and no file can set.
            report.problem(&Place::at(0, 0), problem.to_string(), None);
        }
    }
}

fn check_tier(report: &Report<'_>, written: &Located<String>, duration: Duration, tier: Tier) {
    if tier == Tier::Basic && duration > BASIC_TIME_TO_LIVE {
        let message = format!(
            "{} is not allowed in the basic tier",
            report.excerpt(&written.place)
        );
        let allowed = "1 s (PT1S) to 14 days (P14D)".to_owned();
        report.problem(&written.place, message, Some(allowed));
    }
}

fn check_duplicate_window(report: &Report<'_>, properties: &QueueProperties) {
    let written = properties.duplicate_detection_history_time_window.as_ref();
    let (shortest, longest) = DUPLICATE_WINDOW;
    if let Some(window) = read_duration(report, written)
        && let Some(Located { place, .. }) = written
        && !(shortest..=longest).contains(&window)
    {
        let message = format!("{} is not allowed", report.excerpt(place));
        report.problem(
            place,
            message,
            Some("5 s (PT5S) to 7 days (P7D)".to_owned()),
        );
    }
}

fn report_unsupported(report: &Report<'_>, properties: &QueueProperties) {
    let flags = [
        (&properties.requires_session, "sessions"),
        (
            &properties.requires_duplicate_detection,
            "duplicate detection",
        ),
    ];
    for (flag, feature) in flags {
        if let Some(Located { place, value: true }) = flag {
            unsupported(report, place, feature);
        }
    }
    let targets = [
        &properties.forward_to,
        &properties.forward_dead_lettered_messages_to,
    ];
    for target in targets
        .into_iter()
        .flatten()
        .filter(|target| !target.value.is_empty())
    {
        unsupported(report, &target.place, "forwarding");
    }
}
