//! Times and durations in the forms of the service (admin-http.md §5.3).

use std::time::Duration;

use servicebus_broker::Timestamp;

use crate::clock;
use crate::namespace::Namespace;

/// The Unix epoch in ticks of 100 ns since the year 1, where .NET begins to count.
const EPOCH: i64 = 621_355_968_000_000_000;
const TICKS_PER_MILLISECOND: i64 = 10_000;

pub(crate) const NEVER: &str = "0001-01-01T00:00:00Z";

/// How a namespace's times are converted for its clients' clocks (decision D20).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Milliseconds that the namespace's clock is ahead.
    pub(crate) ahead: i64,
}

impl Frame {
    pub(crate) fn of(namespace: &Namespace) -> Self {
        Self {
            ahead: namespace.clock.ahead(),
        }
    }

    /// Formats in whole seconds, as for `published` and `updated`.
    pub(crate) fn seconds(self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%dT%H:%M:%SZ")
    }

    /// Formats with three digits, as for queues and topics.
    pub(crate) fn milliseconds(self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%dT%H:%M:%S.%3fZ")
    }

    /// Formats with seven digits, as for subscriptions and rules.
    pub(crate) fn ticks(self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%dT%H:%M:%S.%3f0000Z")
    }

    fn format(self, at: Timestamp, form: &str) -> String {
        let at = clock::from_millis(self.shown(at));
        at.strftime(form).to_string()
    }

    fn shown(self, at: Timestamp) -> i64 {
        at.as_millis().saturating_sub(self.ahead)
    }
}

/// Returns the `ETag` of an entity that was last changed at this instant. Clients compare it and do not show it, so that it
/// follows no clock.
pub(crate) fn tag(at: Timestamp) -> String {
    let ticks = at.as_millis().saturating_mul(TICKS_PER_MILLISECOND);
    ticks.saturating_add(EPOCH).to_string()
}

/// Formats a duration as .NET prints it: `[d.]hh:mm:ss[.fffffff]`.
pub(crate) fn time_span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!(
        "{:02}:{:02}:{:02}",
        rest / 3600,
        rest % 3600 / 60,
        rest % 60
    );
    let ticks = duration.subsec_nanos() / 100;
    let fraction = match ticks {
        0 => String::new(),
        ticks => format!(".{ticks:07}"),
    };
    match days {
        0 => format!("{clock}{fraction}"),
        days => format!("{days}.{clock}{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_the_precision_of_their_element() {
        let frame = Frame { ahead: 60_000 };
        let at = Timestamp::from_millis(1_633_046_866_040);
        assert_eq!(frame.seconds(at), "2021-10-01T00:06:46Z");
        assert_eq!(frame.milliseconds(at), "2021-10-01T00:06:46.040Z");
        assert_eq!(frame.ticks(at), "2021-10-01T00:06:46.0400000Z");
        assert_eq!(tag(at), "637686436660400000");
    }

    #[test]
    fn time_spans_are_formatted_as_by_dotnet() {
        for (duration, text) in [
            (Duration::from_secs(20), "00:00:20"),
            (Duration::from_secs(25 * 86_400), "25.00:00:00"),
            (Duration::from_millis(3_723_500), "01:02:03.5000000"),
        ] {
            assert_eq!(time_span(duration), text);
        }
    }
}
