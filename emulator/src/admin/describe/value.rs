//! Parses typed values of parameters and properties from XML (admin-http.md §6.2).

use std::collections::BTreeSet;

use servicebus_broker::filter::{Encoded, Value};
use servicebus_config::descriptions::{ENTRY, Instant};

use super::super::refusal::ServiceError;
use crate::config::duration;
use crate::nodes::quote;
use crate::xml::{Element, Space};

/// The maximum length of a property of a message.
const MAX_PROPERTY_BYTES: usize = 32 * 1024;
const ALLOWED: &str = "string, int, long, boolean, double, dateTime, duration";

/// Parses `<KeyValueOfstringanyType><Key/><Value/></…>…` in the order written.
pub(crate) fn read_values(list: Option<&Element>) -> Result<Vec<(String, Encoded)>, ServiceError> {
    let entries = list.into_iter().flat_map(|list| list.parts(ENTRY));
    let mut keys = BTreeSet::new();
    entries
        .map(|entry| {
            let key = entry.part("Key").map(|key| key.text.clone());
            let key = key.filter(|key| !key.is_empty());
            let key = key.ok_or_else(|| {
                ServiceError::bad_request("A parameter or property has no 'Key'.")
            })?;
            short(&key, "Key", &key)?;
            if !keys.insert(key.clone()) {
                let text = format!("'{key}' is given more than once; allowed: one value.");
                return Err(ServiceError::parameter(text, "Key", &key));
            }
            let value = entry.part("Value");
            let missing = || ServiceError::bad_request(format!("'{key}' has no 'Value'."));
            let value = value.ok_or_else(missing)?;
            short(&key, "Value", &value.text)?;
            let value = read_value(&key, value)?;
            Ok((key, value))
        })
        .collect()
}

/// Refuses a text that is longer than the properties of a message (semantics §1), which it could never equal.
pub(crate) fn short(name: &str, part: &str, text: &str) -> Result<(), ServiceError> {
    if text.len() <= MAX_PROPERTY_BYTES {
        return Ok(());
    }
    let (name, length) = (quote(name), text.len());
    let message = format!(
        "The {part} of '{name}' has {length} bytes; allowed: at most {MAX_PROPERTY_BYTES}."
    );
    Err(ServiceError::parameter(message, part, text))
}

fn read_value(key: &str, element: &Element) -> Result<Encoded, ServiceError> {
    let (text, name) = match &element.xsi_type {
        None => return Ok(Encoded::from(element.text.as_str())),
        Some(found) => match found.space {
            Space::Schema | Space::Serialization => (element.text.trim(), found.name.as_str()),
            Space::Atom | Space::Connect | Space::Other => (element.text.trim(), ""),
        },
    };
    let wrong = || {
        let message = format!("The value of '{key}' is not of the type {name}.");
        ServiceError::parameter(message, key, text)
    };
    let value = match name {
        "string" => return Ok(Encoded::from(element.text.as_str())),
        // Go writes every whole number as an int, but does not read a long.
        "int" => {
            return text
                .parse()
                .map(|number: i32| Encoded::from(number))
                .map_err(|_| wrong());
        }
        "long" => text.parse().ok().map(Value::Signed),
        "boolean" => boolean(text).map(Value::Bool),
        "double" => double(text).map(Value::Float),
        "dateTime" => {
            let at = Instant::read(text).ok_or_else(wrong)?;
            return Ok(Encoded::instant(at.ticks, at.is_zoneless));
        }
        "duration" => span(text).map(Value::Span),
        _ => {
            let found = element.xsi_type.as_ref().map_or("", |found| &found.name);
            let text = format!("The type of '{key}' is not known; allowed: {ALLOWED}.");
            return Err(ServiceError::parameter(text, key, found));
        }
    };
    value.map(|value| Encoded::from(&value)).ok_or_else(wrong)
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}

fn double(text: &str) -> Option<f64> {
    match text {
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

fn span(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text),
    };
    let span = duration::parse(text).ok()?;
    let ticks = i64::try_from(span.as_nanos() / 100).ok()?;
    Some(sign * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::{CONNECT, INSTANCE, SCHEMA, SERIALIZATION, Writer, read};
    use servicebus_config::descriptions::write_values;

    fn values(inner: &str) -> Result<Vec<(String, Encoded)>, ServiceError> {
        let text = format!(
            "<P xmlns=\"{CONNECT}\" xmlns:i=\"{INSTANCE}\" xmlns:l28=\"{SCHEMA}\" xmlns:z=\"{SERIALIZATION}\">{inner}</P>"
        );
        let element = read(text.as_bytes());
        let element = element.unwrap_or_else(|error| panic!("{error}: {text}"));
        read_values(Some(&element))
    }

    fn entry(attributes: &str, text: &str) -> String {
        format!("<{ENTRY}><Key>k</Key><Value {attributes}>{text}</Value></{ENTRY}>")
    }

    #[test]
    fn a_typed_value_is_returned_as_given() {
        for (given, text, shown) in [
            ("l28:string", " a b ", "d6p1:string\">| a b |"),
            ("l28:int", "5", "d6p1:int\">|5|"),
            ("l28:long", "5", "d6p1:long\">|5|"),
            ("l28:boolean", "true", "d6p1:boolean\">|true|"),
            ("l28:double", "1.5", "d6p1:double\">|1.5|"),
            ("l28:double", "5", "d6p1:double\">|5|"),
            ("l28:double", "-INF", "d6p1:double\">|-INF|"),
            (
                "l28:dateTime",
                "2021-07-05T11:12:13.5Z",
                "d6p1:dateTime\">|2021-07-05T11:12:13.5Z|",
            ),
            (
                "l28:dateTime",
                "2021-07-05T11:12:13+01:00",
                "d6p1:dateTime\">|2021-07-05T10:12:13Z|",
            ),
            (
                "l28:dateTime",
                "2021-07-05T11:12:13",
                "d6p1:dateTime\">|2021-07-05T11:12:13|",
            ),
            (
                "l28:dateTime",
                "2021-07-05T11:12:13.1234567Z",
                "d6p1:dateTime\">|2021-07-05T11:12:13.1234567Z|",
            ),
            (
                "l28:dateTime",
                "1921-07-05T11:12:13.0000001",
                "d6p1:dateTime\">|1921-07-05T11:12:13.0000001|",
            ),
            (
                "l28:duration",
                "P1DT2H3M4.5S",
                "d6p1:duration\">|P1DT2H3M4.5S|",
            ),
            ("z:duration", "-PT1M", "d6p1:duration\">|-PT1M|"),
        ] {
            let read = values(&entry(&format!("i:type=\"{given}\""), text)).unwrap();
            let mut out = Writer::new();
            write_values(
                "P",
                read.iter().map(|(k, v)| (k.as_str(), v)),
                "d6p1",
                &mut out,
            );
            let space = if given.ends_with("duration") {
                SERIALIZATION
            } else {
                SCHEMA
            };
            let (head, rest) = shown.split_once("\">|").unwrap();
            let expected = format!(
                "<P><{ENTRY}><Key>k</Key><Value i:type=\"{head}\" xmlns:d6p1=\"{space}\">{}</Value></{ENTRY}></P>",
                rest.trim_end_matches('|')
            );
            assert_eq!(out.finish(), expected, "{given} {text}");
        }
        let untyped = values(&entry("", "x")).unwrap();
        assert_eq!(untyped[0].1, Encoded::from("x"));
    }

    #[test]
    fn a_value_that_does_not_match_its_type_is_refused() {
        for (given, text) in [
            ("l28:int", "x"),
            ("l28:int", "5000000000"),
            ("l28:long", "1.5"),
            ("l28:boolean", "yes"),
            ("l28:double", "inf"),
            ("l28:dateTime", "yesterday"),
            ("l28:duration", "1m"),
            ("l28:String", "x"),
            ("l28:base64Binary", "AA=="),
            ("i:string", "x"),
        ] {
            let refused = values(&entry(&format!("i:type=\"{given}\""), text));
            assert!(refused.is_err(), "{given} {text}: {refused:?}");
        }
        assert!(values(&format!("<{ENTRY}><Value>x</Value></{ENTRY}>")).is_err());
        assert!(values(&format!("<{ENTRY}><Key>x</Key></{ENTRY}>")).is_err());
    }

    #[test]
    fn a_repeated_key_is_refused() {
        let twice = entry("i:type=\"l28:int\"", "5").repeat(2);
        let refused = format!("{:?}", values(&twice));
        assert!(refused.contains("'k' is given more than once"), "{refused}");
    }
}
