use super::*;
use crate::xml::{CONNECT, INSTANCE, read};

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
fn a_value_comes_back_as_it_was_given() {
    for (given, text, shown) in [
        ("l28:string", " a b ", "d6p1:string\">| a b |"),
        ("l28:int", "5", "d6p1:int\">|5|"),
        ("l28:int", "5000000000", "d6p1:long\">|5000000000|"),
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
fn what_is_not_of_its_type_is_refused() {
    for (given, text) in [
        ("l28:int", "x"),
        ("l28:int", "99999999999999999999"),
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
