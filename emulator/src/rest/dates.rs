//! Instants and durations as the API writes them: `Sun, 06 Nov 1994 08:49:37 GMT`, and `d.hh:mm:ss.fffffff`.

use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};

static PARSER: DateTimeParser = DateTimeParser::new();
static PRINTER: DateTimePrinter = DateTimePrinter::new();

/// Milliseconds since the Unix epoch as RFC 2616 has them; none where the calendar has no such year.
pub(crate) fn http_date(milliseconds: i64) -> Option<String> {
    let instant = Timestamp::from_millisecond(milliseconds).ok()?;
    PRINTER.timestamp_to_rfc9110_string(&instant).ok()
}

/// What [`http_date`] writes, read again.
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let text = text.trim();
    text.ends_with("GMT").then(|| parse_date(text))?
}

/// The same, with any offset, and RFC 3339: clients format instants by their own libraries.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let parsed = PARSER.parse_timestamp(text).ok();
    let instant = parsed.or_else(|| text.parse::<Timestamp>().ok())?;
    Some(instant.as_millisecond())
}

/// A .NET time span, `[d.]hh:mm:ss[.fffffff]`, in milliseconds.
pub(crate) fn parse_time_span(text: &str) -> Option<u64> {
    let (days, clock) = match text.trim().split_once(':')? {
        (first, _) if first.contains('.') => text.trim().split_once('.')?,
        _ => ("0", text.trim()),
    };
    let mut parts = clock.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let whole = |text: &str, most: u64| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| digits)?;
        (number <= most).then_some(number)
    };
    let (days, hours) = (whole(days, 10_675_199)?, whole(hours, 23)?);
    let (minutes, seconds) = (whole(minutes, 59)?, whole(seconds, 59)?);
    whole(fraction, 9_999_999)?;
    let thousandths = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    Some((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_http() {
        let text = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(parse_http_date(text), Some(784_111_777_000));
        assert_eq!(http_date(784_111_777_999).as_deref(), Some(text));
        assert_eq!(http_date(i64::MAX), None);
        for text in [
            " Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 10:49:37 +0200",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(parse_date(text), Some(784_111_777_000), "{text}");
        }
        for text in ["", "now", "Sun, 32 Nov 1994 08:49:37 GMT", "1994", "0"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert_eq!(parse_http_date("1994-11-06T08:49:37Z"), None);
    }

    #[test]
    fn time_spans_are_those_of_dotnet() {
        for (text, milliseconds) in [
            ("0.00:00:40", 40_000),
            ("00:00:40", 40_000),
            ("1.02:03:04.5", 93_784_500),
            ("00:00:00.0010000", 1),
            ("23:59:59.9999999", 86_399_999),
        ] {
            assert_eq!(parse_time_span(text), Some(milliseconds), "{text}");
        }
        for text in [
            "",
            ":",
            "::",
            "1",
            "1.5",
            "00:60:00",
            "24:00:00",
            "-00:00:01",
            "00:00:01.",
            "00:00:00:00",
            "99999999999.00:00:00",
            "00:00:0x",
            "1.1.00:00:00",
            "٠0:00:00",
        ] {
            assert_eq!(parse_time_span(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", digits in "[0-9.:]*") {
            for text in [text, digits] {
                let _ = (parse_date(&text), parse_http_date(&text), parse_time_span(&text));
            }
        }
    }
}
