//! The settings of a queue: defaults, bounds and legal combinations.
//!
//! Every door (configuration file, harness builder, later the admin API) fills one of these and asks
//! [`QueueDescription::problems`], so that all of them refuse with the same words. Limits: semantics §1
//! and decisions D15, D21.

use std::fmt;
use std::time::Duration;

/// Shortest and longest time that a message stays locked without renewal.
const LOCK_DURATION: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// Fewest and most deliveries before a message is dead-lettered.
const MAX_DELIVERY_COUNT: (u32, u32) = (1, i32::MAX as u32);
/// Shortest default time to live that an entity may have.
const MIN_TIME_TO_LIVE: Duration = Duration::from_secs(1);

/// What a queue is declared to be. Fields are public: what is not legal is found by
/// [`QueueDescription::problems`], all of it at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDescription {
    /// How long a received message stays locked; 5 s to 5 min, default 1 min.
    pub lock_duration: Duration,
    /// Deliveries that may fail before the message is dead-lettered; 1 to 2147483647, default 10.
    pub max_delivery_count: u32,
    /// Default and ceiling of a message's time to live; none means for ever.
    pub default_message_time_to_live: Option<Duration>,
    /// Whether expired messages are dead-lettered rather than dropped; default no.
    pub dead_lettering_on_message_expiration: bool,
}

impl Default for QueueDescription {
    fn default() -> Self {
        Self {
            lock_duration: Duration::from_secs(60),
            max_delivery_count: 10,
            default_message_time_to_live: None,
            dead_lettering_on_message_expiration: false,
        }
    }
}

/// One setting that is out of bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting by its official name, for example `LockDuration`.
    pub property: &'static str,
    /// The value found.
    pub value: String,
    /// What would have been legal.
    pub allowed: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            property,
            value,
            allowed,
        } = self;
        write!(formatter, "{property} is {value}; allowed: {allowed}")
    }
}

impl QueueDescription {
    /// Everything about the settings that is not legal; empty when they are.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let (shortest, longest) = LOCK_DURATION;
        if !(shortest..=longest).contains(&self.lock_duration) {
            problems.push(Problem {
                property: "LockDuration",
                value: seconds(self.lock_duration),
                allowed: "5 s (PT5S) to 5 min (PT5M)".into(),
            });
        }
        let (fewest, most) = MAX_DELIVERY_COUNT;
        if !(fewest..=most).contains(&self.max_delivery_count) {
            problems.push(Problem {
                property: "MaxDeliveryCount",
                value: self.max_delivery_count.to_string(),
                allowed: format!("{fewest} to {most}"),
            });
        }
        if let Some(time_to_live) = self.default_message_time_to_live
            && time_to_live < MIN_TIME_TO_LIVE
        {
            problems.push(Problem {
                property: "DefaultMessageTimeToLive",
                value: seconds(time_to_live),
                allowed: "1 s (PT1S) or longer".into(),
            });
        }
        problems
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_legal() {
        assert_eq!(QueueDescription::default().problems(), []);
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let description = QueueDescription {
            lock_duration: Duration::from_secs(301),
            max_delivery_count: 0,
            default_message_time_to_live: Some(Duration::from_millis(999)),
            dead_lettering_on_message_expiration: true,
        };
        let texts: Vec<String> = description
            .problems()
            .iter()
            .map(Problem::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "LockDuration is 301 s; allowed: 5 s (PT5S) to 5 min (PT5M)",
                "MaxDeliveryCount is 0; allowed: 1 to 2147483647",
                "DefaultMessageTimeToLive is 0.999 s; allowed: 1 s (PT1S) or longer",
            ]
        );
    }
}
