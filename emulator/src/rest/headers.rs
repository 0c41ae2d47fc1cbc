//! Converts between headers and application properties, and reads request bodies within limits.
//!
//! Instants and durations have the forms of the API: `Sun, 06 Nov 1994 08:49:37 GMT`, and `d.hh:mm:ss.fffffff`.

use std::collections::HashMap;
use std::error::Error as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{HeaderMap, HeaderName};
use axum::http::{HeaderValue, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};
use tokio::time::timeout;

use super::context::Rejection;
use super::value;
use super::value::PropertyValue;
use crate::nodes::Condition;

/// The header of the properties that Service Bus defines.
pub(crate) const BROKER_PROPERTIES: HeaderName = HeaderName::from_static("brokerproperties");
/// Headers of HTTP, its proxies, browsers and tracing; the documentation excludes "restricted" ones without a list.
const RESTRICTED: [HeaderName; 48] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::ACCEPT_RANGES,
    header::AGE,
    header::ALLOW,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONNECTION,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::DNT,
    header::ETAG,
    header::EXPECT,
    header::EXPIRES,
    header::FORWARDED,
    header::FROM,
    header::HOST,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::LAST_MODIFIED,
    header::LOCATION,
    header::ORIGIN,
    header::PRAGMA,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::REFERER,
    header::SERVER,
    header::SET_COOKIE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::USER_AGENT,
    header::VARY,
    header::VIA,
    BROKER_PROPERTIES,
];

/// Prefixes of further restricted names.
const RESTRICTED_FAMILIES: [&str; 8] = [
    "x-ms-",
    "x-forwarded-",
    "access-control-",
    "sec-",
    "servicebus",
    "traceparent",
    "tracestate",
    "keep-alive",
];

/// Returns the headers of a request that are application properties, under their names as sent, if known. Several headers of
/// one name are joined by commas.
pub(crate) fn application_properties(
    headers: &HeaderMap,
    names: &HashMap<String, String>,
) -> Result<Vec<(String, PropertyValue)>, Rejection> {
    let mut properties = Vec::new();
    for name in headers.keys().filter(|name| !is_restricted(name)) {
        let mut written = Vec::new();
        for value in headers.get_all(name) {
            written.push(std::str::from_utf8(value.as_bytes()).map_err(|_| {
                let text = format!("The value of the HTTP header '{name}' is not UTF-8.");
                Rejection::bad_request(text)
            })?);
        }
        let value = PropertyValue::of_header(&written.join(","));
        let sent = names.get(name.as_str());
        let name = sent.map_or_else(|| name.as_str().to_owned(), String::clone);
        properties.push((name, value));
    }
    Ok(properties)
}

/// Adds the header of an application property, if its name is valid in HTTP and its value has a form; returns whether it was
/// added. The last of several names that differ only in case wins.
pub(crate) fn put_property(headers: &mut HeaderMap, name: &str, encoded: &[u8]) -> bool {
    let name = HeaderName::from_bytes(name.as_bytes());
    let Some(name) = name.ok().filter(|name| !is_restricted(name)) else {
        return false;
    };
    let value = value::header_of(encoded);
    let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) else {
        return false;
    };
    headers.insert(name, value);
    true
}

fn is_restricted(name: &HeaderName) -> bool {
    let begins = |family: &&str| name.as_str().starts_with(*family);
    RESTRICTED.contains(name) || RESTRICTED_FAMILIES.iter().any(begins)
}

/// How long a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A body, or the unread rest of it.
#[derive(Debug)]
pub(crate) struct Content(Body);

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is longer than allowed; so many bytes of it were seen or announced.
    TooLong(u64),
    Refused(Rejection),
}

impl From<Rejection> for ReadError {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(rejection)
    }
}

impl Content {
    pub(crate) fn new(body: Body) -> Self {
        Self(body)
    }

    /// Reads the whole body, if it has no more than `limit` bytes.
    pub(crate) async fn read(&mut self, limit: u64) -> Result<Bytes, ReadError> {
        let announced = self.0.size_hint().lower();
        if announced > limit {
            return Err(ReadError::TooLong(announced));
        }
        in_time(self.gather(limit, announced as usize)).await
    }

    /// Reads to the end of the body and keeps nothing.
    pub(crate) async fn skip(&mut self) -> Result<(), Rejection> {
        let skip = async {
            while let Some(frame) = self.0.frame().await {
                frame.map_err(|error| unreadable(&error))?;
            }
            Ok::<_, Rejection>(())
        };
        in_time(skip).await
    }

    async fn gather(&mut self, limit: u64, announced: usize) -> Result<Bytes, ReadError> {
        let mut gathered = BytesMut::with_capacity(announced);
        while let Some(frame) = self.0.frame().await {
            let frame = frame.map_err(|error| unreadable(&error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            gathered.extend_from_slice(&data);
            if gathered.len() as u64 > limit {
                return Err(ReadError::TooLong(gathered.len() as u64));
            }
        }
        Ok(gathered.freeze())
    }
}

async fn in_time<T, E: From<Rejection>>(read: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    timeout(TIMEOUT, read).await.unwrap_or_else(|_| {
        let text = format!(
            "The body did not come within {} seconds.",
            TIMEOUT.as_secs()
        );
        let status = StatusCode::REQUEST_TIMEOUT;
        Err(Rejection::new(status, Condition::ArgumentError, text).into())
    })
}

fn unreadable(error: &axum::Error) -> Rejection {
    let mut text = format!("The body cannot be read: {error}");
    // The library's error only says that there is one; what is wrong is in its sources.
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    Rejection::bad_request(text + ".")
}

static PARSER: DateTimeParser = DateTimeParser::new();
static PRINTER: DateTimePrinter = DateTimePrinter::new();

/// Formats milliseconds since the Unix epoch as in RFC 2616; `None` if the calendar has no such year.
pub(crate) fn http_date(milliseconds: i64) -> Option<String> {
    let instant = Timestamp::from_millisecond(milliseconds).ok()?;
    PRINTER.timestamp_to_rfc9110_string(&instant).ok()
}

/// Parses the format of [`http_date`].
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let text = text.trim();
    text.ends_with("GMT").then(|| parse_date(text))?
}

/// Parses the same with any offset, and RFC 3339: clients format instants with their own libraries.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let parsed = PARSER.parse_timestamp(text).ok();
    let instant = parsed.or_else(|| text.parse::<Timestamp>().ok())?;
    Some(instant.as_millisecond())
}

/// Parses a .NET time span, `[d.]hh:mm:ss[.fffffff]`, into milliseconds.
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
    fn http_dates_are_parsed_and_formatted() {
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
    fn time_spans_of_dotnet_are_parsed() {
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
        fn random_dates_and_time_spans_do_not_panic(text in "\\PC*", digits in "[0-9.:]*") {
            for text in [text, digits] {
                let _ = (parse_date(&text), parse_http_date(&text), parse_time_span(&text));
            }
        }
    }
}
