//! Instants in values: with or without a time zone (admin-http.md §6.2).

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{DateTime, datetime};

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
const NANOSECONDS_PER_TICK: i128 = 100;

/// An instant as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// Ticks of 100 ns since the Unix epoch.
    pub ticks: i64,
    /// Whether it has no time zone and is therefore in UTC.
    pub is_zoneless: bool,
}

impl Instant {
    /// Parses an instant with or without a time zone; `None` if it is not one.
    pub fn read(text: &str) -> Option<Self> {
        let other_zone = || Some(text.parse::<jiff::Timestamp>().ok()?.as_nanosecond());
        // By the calendar, because jiff's timestamps end two days before the year 9999 does, where .NET ends.
        let utc = |text: &str| {
            Some(
                text.parse::<DateTime>()
                    .ok()?
                    .duration_since(EPOCH)
                    .as_nanos(),
            )
        };
        let with_zone = text.strip_suffix(['Z', 'z']).and_then(utc);
        let with_zone = with_zone.or_else(other_zone);
        let nanoseconds = with_zone.or_else(|| utc(text))?;
        Some(Self {
            ticks: i64::try_from(nanoseconds.div_euclid(NANOSECONDS_PER_TICK)).ok()?,
            is_zoneless: with_zone.is_none(),
        })
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = SignedDuration::from_nanos_i128(i128::from(self.ticks) * NANOSECONDS_PER_TICK);
        let at = EPOCH.saturating_add(since);
        match self.is_zoneless {
            true => write!(formatter, "{at}"),
            false => write!(formatter, "{at}Z"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_of_dotnet_are_parsed_and_formatted() {
        for text in [
            "0001-01-01T00:00:00Z",
            "1970-01-01T00:00:00.0000001Z",
            "2026-02-03T04:05:06.7",
            "9999-12-31T23:59:59.9999999Z",
            "9999-12-31T23:59:59.9999999",
        ] {
            let read = Instant::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.to_string(), text);
            assert_eq!(read.is_zoneless, !text.ends_with('Z'));
        }
        let read = |text| Instant::read(text).map(|read| read.to_string());
        let in_zone = read("2026-02-03T04:05:06+01:00");
        assert_eq!(in_zone.as_deref(), Some("2026-02-03T03:05:06Z"));
        assert_eq!(read("9999-12-31").as_deref(), Some("9999-12-31T00:00:00"));
        assert_eq!((read("soon"), read("2026-13-01")), (None, None));
    }
}
