//! Durations in ISO 8601, as in configuration files and the admin API: `P1DT2H3M4.5S`.
//!
//! A year is 365 days and a month 30, as in .NET's `XmlConvert`. Service Bus writes the maximum of .NET,
//! `P10675199DT2H48M5.4775807S`, for an unlimited duration; longer ones are cut to it.

use std::time::Duration;

use thiserror::Error;

/// .NET's `TimeSpan.MaxValue`, by which the service means unlimited.
pub const FOREVER: Duration = Duration::new(922_337_203_685, 477_580_700);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The units before the `T` in seconds, in order.
const DATE_UNITS: [(char, u64); 4] = [
    ('Y', 365 * DAY),
    ('M', 30 * DAY),
    ('W', 7 * DAY),
    ('D', DAY),
];
/// The units after the `T` in seconds, in order.
const TIME_UNITS: [(char, u64); 3] = [('H', HOUR), ('M', MINUTE), ('S', 1)];

/// The text is not an ISO 8601 duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not an ISO 8601 duration")]
pub struct DurationError;

/// Parses a duration; at most [`FOREVER`].
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let body = text.strip_prefix('P').ok_or(DurationError)?;
    let (date, time) = match body.split_once('T') {
        Some((_, "")) => return Err(DurationError),
        Some((date, time)) => (date, time),
        None => (body, ""),
    };
    if date.is_empty() && time.is_empty() {
        return Err(DurationError);
    }
    let whole = parse_part(date, &DATE_UNITS)?;
    let rest = parse_part(time, &TIME_UNITS)?;
    Ok(whole.saturating_add(rest).min(FOREVER))
}

/// Returns a duration that ends; `None` if it means unlimited. Clients lose fractions of [`FOREVER`], but none of its seconds
/// (admin-http.md §5.3).
pub fn ending(duration: Duration) -> Option<Duration> {
    Some(duration).filter(|duration| duration.as_secs() < FOREVER.as_secs())
}

/// Formats a duration as the service does, in days, hours, minutes and seconds.
pub fn format(duration: Duration) -> String {
    if duration.is_zero() {
        return "PT0S".to_owned();
    }
    let seconds = duration.as_secs();
    let mut text = "P".to_owned();
    push(&mut text, seconds / DAY, 'D');
    if !seconds.is_multiple_of(DAY) || duration.subsec_nanos() > 0 {
        text.push('T');
    }
    push(&mut text, seconds % DAY / HOUR, 'H');
    push(&mut text, seconds % HOUR / MINUTE, 'M');
    if duration.subsec_nanos() == 0 {
        push(&mut text, seconds % MINUTE, 'S');
    } else {
        let fraction = format!("{:09}", duration.subsec_nanos());
        let fraction = fraction.trim_end_matches('0');
        text.push_str(&format!("{}.{fraction}S", seconds % MINUTE));
    }
    text
}

fn push(text: &mut String, count: u64, unit: char) {
    if count > 0 {
        text.push_str(&count.to_string());
        text.push(unit);
    }
}

fn parse_part(mut text: &str, mut units: &[(char, u64)]) -> Result<Duration, DurationError> {
    let mut total = Duration::ZERO;
    while let Some(end) = text.find(|c: char| c.is_ascii_alphabetic()) {
        let (number, rest) = text.split_at(end);
        let index = units.iter().position(|(unit, _)| rest.starts_with(*unit));
        let index = index.ok_or(DurationError)?;
        let (unit, seconds) = units[index];
        total = total.saturating_add(parse_number(number, unit, seconds)?);
        text = &rest[1..];
        units = &units[index + 1..];
    }
    if text.is_empty() {
        Ok(total)
    } else {
        Err(DurationError)
    }
}

/// Parses digits; seconds may have a fraction.
fn parse_number(text: &str, unit: char, seconds: u64) -> Result<Duration, DurationError> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if unit == 'S' && is_digits(fraction) => (whole, fraction),
        Some(_) => return Err(DurationError),
        None => (text, ""),
    };
    if !is_digits(whole) {
        return Err(DurationError);
    }
    // Digits that cannot be parsed are too large.
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    let nanoseconds = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let duration = Duration::from_secs(whole.saturating_mul(seconds));
    Ok(duration.saturating_add(Duration::from_nanos(nanoseconds)))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_8601_durations_are_parsed() {
        let table = [
            ("PT1M", Duration::from_secs(60)),
            ("P14D", Duration::from_secs(14 * DAY)),
            ("P1DT2H3M4.5S", Duration::from_millis(93_784_500)),
            ("PT0S", Duration::ZERO),
            ("PT0.0000001S", Duration::from_nanos(100)),
            ("PT1.0000000009S", Duration::from_secs(1)),
            ("P1Y2M", Duration::from_secs(425 * DAY)),
            ("P2W", Duration::from_secs(14 * DAY)),
            ("P10675199DT2H48M5.4775807S", FOREVER),
            ("P99999999999999999999999D", FOREVER),
            ("P18446744073709551615YT18446744073709551615S", FOREVER),
        ];
        for (text, duration) in table {
            assert_eq!(parse(text), Ok(duration), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_refused() {
        let table = [
            "", "P", "PT", "P1DT", "1M", "PT1", "T1M", "PTM", "PT1M1H", "PT1M1M", "P1H", "PT1D",
            "-PT1M", "PT-1M", "PT+1M", "pt1m", "PT1.5M", "PT.5S", "PT1.S", "PT1,5S", "PT1.5.5S",
            "00:01:00", " PT1M", "PT1M ", "PT1é", "P1ÉD", "PT١M",
        ];
        for text in table {
            assert_eq!(parse(text), Err(DurationError), "{text:?}");
        }
    }

    #[test]
    fn durations_are_written_as_the_service_does() {
        for text in [
            "PT0S",
            "PT1M",
            "P14D",
            "P1DT2H3M4.5S",
            "PT0.001S",
            "PT26S",
            "P10675199DT2H48M5.4775807S",
        ] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_formatted_duration_parses_to_itself(seconds in 0..900_000_000_000_u64, nanoseconds in 0..1_000_000_000_u32) {
            let duration = Duration::new(seconds, nanoseconds);
            proptest::prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn random_texts_for_durations_do_not_panic(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn random_duration_like_texts_do_not_panic(text in "P[0-9.TYMWDHS]{0,12}") {
            let _ = parse(&text);
        }
    }
}
