//! Instants as values are written: with a zone, or without one (admin-http.md §6.2).

use std::fmt;

const NANOSECONDS_PER_TICK: i128 = 100;

/// An instant as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// Ticks of 100 ns since the Unix epoch.
    pub ticks: i64,
    /// Whether it had no zone: then it is one of UTC.
    pub is_zoneless: bool,
}

impl Instant {
    /// Reads one, with its zone or without; none where it is no instant.
    pub fn read(text: &str) -> Option<Self> {
        let with_zone = text.parse::<jiff::Timestamp>().ok();
        let utc = || {
            let civil = text.parse::<jiff::civil::DateTime>().ok()?;
            jiff::tz::Offset::UTC.to_timestamp(civil).ok()
        };
        let at = with_zone.or_else(utc)?;
        Some(Self {
            ticks: i64::try_from(at.as_nanosecond().div_euclid(NANOSECONDS_PER_TICK)).ok()?,
            is_zoneless: with_zone.is_none(),
        })
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = i128::from(self.ticks) * NANOSECONDS_PER_TICK;
        let at = jiff::Timestamp::from_nanosecond(nanoseconds).unwrap_or_default();
        let text = at.to_string();
        formatter.write_str(match self.is_zoneless {
            true => text.trim_end_matches('Z'),
            false => &text,
        })
    }
}
