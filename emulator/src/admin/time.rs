//! Times in the forms of the service (admin-http.md §5.3).

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
}
