//! `BrokerProperties`: a JSON object with the properties that Service Bus defines.
//!
//! Senders may set some of them; others are ignored, as documented. Receivers get all.

use serde_json::{Map, Value};
use servicebus_broker::BrokerProperties;

use super::context::Rejection;
use super::headers::{http_date, parse_date, parse_time_span};
use crate::nodes::quote;

/// The longest time span of .NET, in seconds, for a message that never expires (recorded at the service).
const FOREVER: f64 = 922_337_203_685.477_5;

/// The sender's properties.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BrokerPropertiesHeader {
    pub(crate) content_type: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) message_id: Option<String>,
    pub(crate) partition_key: Option<String>,
    pub(crate) reply_to: Option<String>,
    pub(crate) reply_to_session_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) via_partition_key: Option<String>,
    /// In the client's time, in milliseconds since the Unix epoch.
    pub(crate) scheduled_at: Option<i64>,
    /// In milliseconds.
    pub(crate) time_to_live: Option<u64>,
    pub(crate) durable: Option<bool>,
    /// The names of other properties.
    pub(crate) ignored: Vec<String>,
}

/// The properties that a sender may set.
pub(crate) const SENT: [&str; 14] = [
    "ContentType",
    "CorrelationId",
    "ForcePersistence",
    "Label",
    "MessageId",
    "PartitionKey",
    "ReplyTo",
    "ReplyToSessionId",
    "ScheduledEnqueueTimeUtc",
    "SessionId",
    "TimeToLive",
    "TimeToLiveTimeSpan",
    "To",
    "ViaPartitionKey",
];

impl BrokerPropertiesHeader {
    /// Parses the header's value.
    pub(crate) fn parse(written: &str) -> Result<Self, Rejection> {
        match serde_json::from_str(written) {
            Ok(Value::Object(properties)) => Self::read(&properties),
            _ => {
                let written = quote(written);
                let text = format!(
                    "The value '{written}' of the HTTP header 'BrokerProperties' is invalid; allowed: a JSON object."
                );
                Err(Rejection::bad_request(text))
            }
        }
    }

    /// Parses the object.
    pub(crate) fn read(properties: &Map<String, Value>) -> Result<Self, Rejection> {
        let mut read = Self::default();
        for (name, value) in properties {
            let field = match name.as_str() {
                "ContentType" => &mut read.content_type,
                "CorrelationId" => &mut read.correlation_id,
                "Label" => &mut read.label,
                "MessageId" => &mut read.message_id,
                "PartitionKey" => &mut read.partition_key,
                "ReplyTo" => &mut read.reply_to,
                "ReplyToSessionId" => &mut read.reply_to_session_id,
                "SessionId" => &mut read.session_id,
                "To" => &mut read.to,
                "ViaPartitionKey" => &mut read.via_partition_key,
                _ => {
                    read.set_other(name, value)?;
                    continue;
                }
            };
            *field = text(value).map_err(|()| invalid(name, value, "a string"))?;
        }
        Ok(read)
    }

    fn set_other(&mut self, name: &str, value: &Value) -> Result<(), Rejection> {
        let written = text(value).unwrap_or_default();
        let written = written.as_deref();
        if value.is_null() {
            return Ok(());
        }
        match name {
            "TimeToLive" => {
                let seconds = written.and_then(|text| text.trim().parse().ok());
                let time = time_to_live(seconds.unwrap_or(f64::NAN));
                let allowed = "a number of seconds from 0.001";
                self.time_to_live = time.map_err(|()| invalid(name, value, allowed))?;
            }
            "TimeToLiveTimeSpan" => {
                let span = written.and_then(parse_time_span).filter(|&span| span > 0);
                let allowed = "a time span above zero as d.hh:mm:ss";
                self.time_to_live = finite(span.ok_or_else(|| invalid(name, value, allowed))?);
            }
            "ScheduledEnqueueTimeUtc" => {
                let instant = written.and_then(parse_date);
                let allowed = "an instant such as 'Sun, 06 Nov 1994 08:49:37 GMT', up to 'Thu, 30 Dec 9999 22:00:00 GMT'";
                self.scheduled_at = Some(instant.ok_or_else(|| invalid(name, value, allowed))?);
            }
            "ForcePersistence" => {
                let flag = written.and_then(|text| text.to_ascii_lowercase().parse().ok());
                self.durable = Some(flag.ok_or_else(|| invalid(name, value, "true or false"))?);
            }
            _ => self.ignored.push(name.to_owned()),
        }
        Ok(())
    }
}

/// Converts seconds into milliseconds; `None` for a time that never ends.
fn time_to_live(seconds: f64) -> Result<Option<u64>, ()> {
    if seconds.is_nan() || seconds < 0.001 {
        return Err(());
    }
    Ok(finite((seconds * 1000.0) as u64))
}

/// Returns milliseconds, or `None` where they are the longest time span: such a message never expires.
fn finite(milliseconds: u64) -> Option<u64> {
    Some(milliseconds).filter(|&milliseconds| (milliseconds as f64) < (FOREVER - 1.0) * 1000.0)
}

/// Returns the text of a string, number or flag, since clients write any of them for the others; `None` for null.
fn text(value: &Value) -> Result<Option<String>, ()> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(flag) => Ok(Some(flag.to_string())),
        Value::Array(_) | Value::Object(_) => Err(()),
    }
}

fn invalid(name: &str, value: &Value, allowed: &str) -> Rejection {
    let value = value.to_string();
    let text = format!(
        "The broker property '{name}' is {}; allowed: {allowed}.",
        quote(&value)
    );
    Rejection::bad_request(text)
}

/// Adds the broker's properties of a delivered message. `ahead` is how many milliseconds its clock is ahead of the client's
/// (decision D20). A message that was sent to this very entity has an enqueued sequence number of 0 (recorded).
pub(crate) fn put_broker_properties(
    properties: &mut Map<String, Value>,
    broker_properties: &BrokerProperties,
    ahead: i64,
) {
    let mut put = |name: &str, value: Value| properties.insert(name.to_owned(), value);
    put(
        "DeliveryCount",
        (broker_properties.delivery_count.saturating_add(1)).into(),
    );
    let enqueued = broker_properties.enqueued_sequence_number;
    put(
        "EnqueuedSequenceNumber",
        enqueued.map_or(0, |origin| origin.0).into(),
    );
    put("SequenceNumber", broker_properties.sequence_number.0.into());
    put("State", "Active".into());
    put("TimeToLive", seconds(broker_properties.time_to_live));
    let date = |instant: servicebus_broker::Timestamp| {
        http_date(instant.as_millis().saturating_sub(ahead)).map(Value::from)
    };
    if let Some(date) = date(broker_properties.enqueued_at) {
        put("EnqueuedTimeUtc", date);
    }
    if let Some((token, until)) = broker_properties.lock {
        put("LockToken", token.to_string().into());
        if let Some(date) = date(until) {
            put("LockedUntilUtc", date);
        }
    }
}

fn seconds(milliseconds: Option<u64>) -> Value {
    match milliseconds {
        None => FOREVER.into(),
        Some(whole) if whole % 1000 == 0 => (whole / 1000).into(),
        Some(milliseconds) => (milliseconds as f64 / 1000.0).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(written: &str) -> BrokerPropertiesHeader {
        BrokerPropertiesHeader::parse(written)
            .unwrap_or_else(|error| panic!("{written}: {error:?}"))
    }

    #[test]
    fn every_broker_property_of_a_sender_is_parsed() {
        let all = r#"{"CorrelationId":"c","SessionId":"s","MessageId":"m","Label":"l","ReplyTo":"r",
            "TimeToLive":4.444,"To":"t","ScheduledEnqueueTimeUtc":"Sun, 06 Nov 1994 08:49:37 GMT",
            "ReplyToSessionId":"rs","PartitionKey":"s","ViaPartitionKey":"v","ForcePersistence":false,
            "ContentType":"text/plain","State":"Active","SequenceNumber":7,"Other":{}}"#;
        let text = |text: &str| Some(text.to_owned());
        let expected = BrokerPropertiesHeader {
            content_type: text("text/plain"),
            correlation_id: text("c"),
            label: text("l"),
            message_id: text("m"),
            partition_key: text("s"),
            reply_to: text("r"),
            reply_to_session_id: text("rs"),
            session_id: text("s"),
            to: text("t"),
            via_partition_key: text("v"),
            scheduled_at: Some(784_111_777_000),
            time_to_live: Some(4444),
            durable: Some(false),
            ignored: ["Other", "SequenceNumber", "State"]
                .map(str::to_owned)
                .into(),
        };
        assert_eq!(parse(all), expected);
        let latest = parse(r#"{"ScheduledEnqueueTimeUtc":"Thu, 30 Dec 9999 22:00:00 GMT"}"#);
        assert_eq!(latest.scheduled_at, Some(253_402_207_200_000));
        assert_eq!(parse("{}"), BrokerPropertiesHeader::default());
        assert_eq!(
            parse(r#"{"Label":null,"TimeToLive":null}"#),
            BrokerPropertiesHeader::default()
        );
    }

    #[test]
    fn broker_properties_may_have_numbers_and_booleans_as_strings() {
        let read = parse(r#"{"TimeToLive":"10","ForcePersistence":"True","MessageId":5}"#);
        assert_eq!(read.time_to_live, Some(10_000));
        assert_eq!(read.durable, Some(true));
        assert_eq!(read.message_id.as_deref(), Some("5"));
        assert_eq!(
            parse(r#"{"TimeToLiveTimeSpan":"0.00:00:40"}"#).time_to_live,
            Some(40_000)
        );
        for forever in [
            r#"{"TimeToLive":922337203685.47754}"#,
            r#"{"TimeToLiveTimeSpan":"10675199.02:48:05.4775807"}"#,
        ] {
            assert_eq!(parse(forever).time_to_live, None, "{forever}");
        }
    }

    #[test]
    fn malformed_broker_properties_are_refused_with_the_allowed_values() {
        for (written, expected) in [
            ("", "a JSON object"),
            ("[]", "a JSON object"),
            (
                "{'Label': 'x'}",
                "The value '{'Label': 'x'}' of the HTTP header 'BrokerProperties' is invalid",
            ),
            (
                r#"{"Label":{}}"#,
                "The broker property 'Label' is {}; allowed: a string.",
            ),
            (r#"{"TimeToLive":0}"#, "a number of seconds from 0.001"),
            (r#"{"TimeToLive":-1}"#, "is -1; allowed"),
            (r#"{"TimeToLive":"NaN"}"#, "a number of seconds"),
            (r#"{"TimeToLive":"soon"}"#, "a number of seconds"),
            (r#"{"TimeToLive":[]}"#, "a number of seconds"),
            (
                r#"{"TimeToLiveTimeSpan":"00:00:00"}"#,
                "a time span above zero",
            ),
            (
                r#"{"ScheduledEnqueueTimeUtc":"Fri, 31 Dec 9999 23:59:59 GMT"}"#,
                "up to 'Thu, 30 Dec 9999 22:00:00 GMT'",
            ),
            (
                r#"{"ScheduledEnqueueTimeUtc":"tomorrow"}"#,
                "an instant such as",
            ),
            (r#"{"ForcePersistence":1}"#, "true or false"),
        ] {
            let refused = BrokerPropertiesHeader::parse(written).expect_err(written);
            assert!(
                refused.refusal.text.contains(expected),
                "{written}: {refused:?}"
            );
        }
    }
}
