//! Instants as dates. The calendar of RFC 3339 ends with the year 9999, the time of a namespace does not: what lies beyond
//! is shown as the last instant.

use std::time::SystemTime;

use jiff::Timestamp as Date;
use servicebus_broker::Timestamp;

/// The date of an instant; the last one there is for what comes after it.
pub(crate) fn date(instant: Timestamp) -> Date {
    from_millis(instant.as_millis())
}

/// The same as the standard library has it.
pub(crate) fn system_time(instant: Timestamp) -> SystemTime {
    date(instant).into()
}

/// The same of milliseconds since the Unix epoch.
pub(crate) fn from_millis(millis: i64) -> Date {
    let beyond = if millis < 0 { Date::MIN } else { Date::MAX };
    Date::from_millisecond(millis).unwrap_or(beyond)
}

/// The last instant that has a date.
pub(crate) fn last() -> Timestamp {
    Timestamp::from_millis(Date::MAX.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_date_is_shown_as_the_nearest() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (i64::MAX, "9999-12-30T22:00:00.999999999Z"),
            (last().as_millis() + 1, "9999-12-30T22:00:00.999999999Z"),
            (last().as_millis(), "9999-12-30T22:00:00.999999999Z"),
            (i64::MIN, "-009999-01-02T01:59:59Z"),
        ] {
            assert_eq!(from_millis(millis).to_string(), text);
        }
    }
}
