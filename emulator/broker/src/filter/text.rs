//! Values as text: what `+` appends to a string, and what error messages show.
//!
//! Concatenation follows .NET's `ToString` in the invariant culture.

use std::time::Duration;

use uuid::fmt::Hyphenated;

use super::value::{TICKS, Value};

/// Characters of a value in an error message.
const SHOWN: usize = 80;
const TICKS_PER_SECOND: i64 = 1_000 * TICKS;
const SECONDS_PER_DAY: i64 = 86_400;

impl Value<'_> {
    /// Returns the text that .NET would append to a string; `None` if that is only the name of the type.
    pub(crate) fn concatenated(&self) -> Option<String> {
        Some(match self {
            Self::Text(text) => text.clone().into_owned(),
            Self::Bool(flag) => if *flag { "True" } else { "False" }.to_owned(),
            Self::Signed(number) => number.to_string(),
            Self::Unsigned(number) => number.to_string(),
            Self::Float(number) => float(*number),
            Self::Instant(ticks) => instant(*ticks),
            Self::Span(ticks) => span(*ticks),
            Self::Guid(uuid) => Hyphenated::from_uuid(*uuid).to_string(),
            Self::Null | Self::Binary(_) | Self::Other(_) => return None,
        })
    }

    /// Returns the text for error messages: the value and, where it is ambiguous, its type.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Text(text) => {
                let shown: String = text.chars().take(SHOWN).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                format!("'{shown}{more}'")
            }
            Self::Bool(flag) => flag.to_string(),
            Self::Signed(number) => number.to_string(),
            Self::Unsigned(number) => number.to_string(),
            Self::Float(number) => format!("{number:?}"),
            Self::Instant(_) | Self::Span(_) | Self::Guid(_) => {
                format!(
                    "{} ({})",
                    self.concatenated().unwrap_or_default(),
                    self.kind()
                )
            }
            Self::Binary(bytes) => format!("{} bytes of binary", bytes.len()),
            Self::Other(_) => self.kind().to_owned(),
        }
    }
}

/// Returns the shortest digits that read back, with an exponent from 1E+15 and below 0.0001.
fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) {
        let scientific = format!("{number:E}");
        let (digits, exponent) = scientific.split_once('E').unwrap_or((&scientific, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}E{sign}{exponent:0>2}");
    }
    number.to_string()
}

/// Returns `MM/dd/yyyy HH:mm:ss`, the general long form of the invariant culture.
fn instant(ticks: i64) -> String {
    let seconds = ticks.div_euclid(TICKS_PER_SECOND);
    let (day, second) = (
        seconds.div_euclid(SECONDS_PER_DAY),
        seconds.rem_euclid(SECONDS_PER_DAY),
    );
    let (year, month, day) = civil(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{second:02}")
}

/// Returns year, month and day of a day since the epoch (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns `[-][d.]hh:mm:ss[.fffffff]`, the constant form of a time span.
fn span(ticks: i64) -> String {
    let (size, second) = (ticks.unsigned_abs(), TICKS_PER_SECOND as u64);
    let sign = if ticks < 0 { "-" } else { "" };
    let size = Duration::new(size / second, (size % second) as u32 * 100);
    format!("{sign}{}", time_span(size))
}

/// Formats a duration as .NET does: `[d.]hh:mm:ss[.fffffff]`.
pub fn time_span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    let mut text = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    let days = seconds / 86_400;
    if days > 0 {
        text = format!("{days}.{text}");
    }
    match duration.subsec_nanos() / 100 {
        0 => text,
        ticks => format!("{text}.{ticks:07}"),
    }
}

/// Parses the constant form of a time span into ticks.
pub(crate) fn parse_span(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut parts = text.split(':');
    let (first, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let (days, hours) = first.split_once('.').unwrap_or(("0", first));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if parts.next().is_some() || fraction.len() > 7 || !digits(fraction) {
        return None;
    }
    let part = |text: &str, below: i64| {
        let number = text.parse::<i64>().ok().filter(|_| digits(text))?;
        (number < below).then_some(number)
    };
    let (days, hours) = (part(days, 10_675_200)?, part(hours, 24)?);
    let (minutes, seconds) = (part(minutes, 60)?, part(seconds, 60)?);
    let fraction: i64 = format!("{fraction:0<7}").parse().ok()?;
    let whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    Some(sign * whole.checked_mul(TICKS_PER_SECOND)?.checked_add(fraction)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_as_by_dotnet() {
        for (number, text) in [
            (2.0, "2"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (0.0, "0"),
            (1e15, "1E+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (0.0001, "0.0001"),
            (0.000_01, "1E-05"),
            (1.5e300, "1.5E+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn instants_are_formatted_in_the_invariant_culture() {
        assert_eq!(instant(0), "01/01/1970 00:00:00");
        assert_eq!(
            instant(951_868_799 * TICKS_PER_SECOND),
            "02/29/2000 23:59:59"
        );
        assert_eq!(instant(-1), "12/31/1969 23:59:59");
        assert_eq!(
            instant(1_735_689_600 * TICKS_PER_SECOND),
            "01/01/2025 00:00:00"
        );
    }

    #[test]
    fn a_time_span_is_formatted_as_by_dotnet() {
        for (milliseconds, written) in [
            (0, "00:00:00"),
            (65_000, "00:01:05"),
            (59_980, "00:00:59.9800000"),
            (3_723_500, "01:02:03.5000000"),
            (100_000_000, "1.03:46:40"),
            (25 * 86_400_000, "25.00:00:00"),
        ] {
            assert_eq!(time_span(Duration::from_millis(milliseconds)), written);
        }
    }

    #[test]
    fn spans_are_written_and_read_in_the_constant_form() {
        for (ticks, text) in [
            (0, "00:00:00"),
            (10 * TICKS_PER_SECOND, "00:00:10"),
            (90_061 * TICKS_PER_SECOND + 5, "1.01:01:01.0000005"),
            (-60 * TICKS_PER_SECOND, "-00:01:00"),
        ] {
            assert_eq!(span(ticks), text);
            assert_eq!(parse_span(text), Some(ticks));
        }
        assert_eq!(parse_span("00:01"), Some(60 * TICKS_PER_SECOND));
        assert_eq!(parse_span("00:00:00.5"), Some(TICKS_PER_SECOND / 2));
        for wrong in [
            "",
            "5",
            "24:00:00",
            "00:60",
            "00:00:00.12345678",
            "a:b",
            "1:2:3:4",
            "+1:00",
        ] {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
    }
}
