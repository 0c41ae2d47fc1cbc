//! The value of an application property in a header (Microsoft's "Message headers and properties").
//!
//! A value in quotes is a text, or an instant if it has that form. Without quotes it is `true`, `false`, a whole number or
//! another number. A quoted text is a JSON string, so that every character can be written.

use servicebus_codec::{Compound, Descriptor, Reader, Value as Amqp, Writer};

use super::headers::{http_date, parse_http_date};

/// Ticks of 100 ns in a second, the unit of .NET.
const TICKS: f64 = 10_000_000.0;
/// The descriptor of a duration in .NET SDKs (wire.md §7).
const TIME_SPAN: &str = "com.microsoft:timespan";

/// A value from a header or a JSON document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PropertyValue {
    Null,
    Text(String),
    Bool(bool),
    Long(i64),
    Double(f64),
    /// Milliseconds since the Unix epoch.
    Instant(i64),
}

impl PropertyValue {
    /// Infers the type of a header's value. A value that is neither in quotes nor a number is a text, too: the
    /// documentation's own examples send them.
    pub(crate) fn of_header(written: &str) -> Self {
        let written = written.trim();
        let quoted = written
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        if let Some(content) = quoted {
            if let Some(instant) = parse_http_date(content) {
                return Self::Instant(instant);
            }
            let text = serde_json::from_str(written);
            return Self::Text(text.unwrap_or_else(|_| content.to_owned()));
        }
        match written {
            "true" => return Self::Bool(true),
            "false" => return Self::Bool(false),
            _ => {}
        }
        if let Ok(number) = written.parse() {
            return Self::Long(number);
        }
        match written.parse::<f64>() {
            Ok(number) if is_number(number, written) => Self::Double(number),
            _ => Self::Text(written.to_owned()),
        }
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::Null => out.null(),
            Self::Text(text) => out.string(text),
            Self::Bool(flag) => out.bool(*flag),
            Self::Long(number) => out.long(*number),
            Self::Double(number) => out.double(*number),
            Self::Instant(milliseconds) => out.timestamp(*milliseconds),
        }
    }
}

/// Rust parses `inf`, `nan` and numbers that are too large as numbers; as values of properties, such as the hash `8e12345`,
/// they are texts.
fn is_number(number: f64, text: &str) -> bool {
    matches!(text, "NaN" | "Infinity" | "-Infinity")
        || number.is_finite()
            && text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
            && text.contains(|c: char| c.is_ascii_digit())
}

/// Returns the header's value for an encoded property; `None` for the types that the API leaves out: null, binary, URIs,
/// instants with an offset, decimals and everything else without a form in HTTP.
pub(crate) fn header_of(encoded: &[u8]) -> Option<String> {
    let mut reader = Reader::new(encoded);
    let value = reader.value().ok()?;
    if let Amqp::Other(encoded) = value {
        return time_span(encoded);
    }
    scalar(value)
}

fn scalar(value: Amqp<'_>) -> Option<String> {
    match value {
        Amqp::Bool(flag) => Some(flag.to_string()),
        Amqp::Unsigned(number) => Some(number.to_string()),
        Amqp::Signed(number) => Some(number.to_string()),
        Amqp::Float(number) => Some(float(number)),
        Amqp::Timestamp(milliseconds) => http_date(milliseconds).map(|date| format!("\"{date}\"")),
        Amqp::Uuid(uuid) => Some(format!("\"{uuid}\"")),
        Amqp::String(text) | Amqp::Symbol(text) => Some(ascii_json(text)),
        Amqp::Null | Amqp::Binary(_) | Amqp::Other(_) => None,
    }
}

/// Formats a number so that it is parsed as one.
fn float(number: f64) -> String {
    match number {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        // With a decimal point: without one it would be parsed as a whole number.
        _ => format!("{number:?}"),
    }
}

fn time_span(encoded: &[u8]) -> Option<String> {
    let mut reader = Reader::new(encoded);
    match reader.descriptor().ok()? {
        Descriptor::Symbol(TIME_SPAN) => {}
        Descriptor::Symbol(_) | Descriptor::Code(_) => return None,
    }
    let ticks = reader.value().ok()?.as_i64()?;
    Some(float(ticks as f64 / TICKS))
}

/// Encodes a text as a JSON string in ASCII, since header values are limited to that.
pub(crate) fn ascii_json(text: &str) -> String {
    to_ascii(&serde_json::Value::from(text).to_string())
}

/// Escapes everything beyond ASCII in JSON.
pub(crate) fn to_ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            ascii.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            ascii.push_str(&format!("\\u{unit:04x}"));
        }
    }
    ascii
}

/// Returns the entries of a map whose keys are texts, with their encoded values.
pub(crate) fn text_entries(map: Compound<'_>) -> impl Iterator<Item = (&str, &[u8])> {
    let entries = map.raw_entries().filter_map(Result::ok);
    entries.filter_map(|(key, value)| Some((Reader::new(key).value().ok()?.as_text()?, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &PropertyValue) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut Writer::new(&mut out));
        out
    }

    #[test]
    fn the_type_of_an_application_property_header_is_inferred() {
        use PropertyValue::{Bool, Double, Instant, Long, Text};
        let text = |text: &str| Text(text.to_owned());
        for (written, value) in [
            (r#""world""#, text("world")),
            (r#""42""#, text("42")),
            (r#""This \"should\" work""#, text("This \"should\" work")),
            (r#""a "b" c""#, text("a \"b\" c")),
            (r#""\u00e9""#, text("é")),
            (
                r#""Wed, 14 Dec 2011 00:00:00 GMT""#,
                Instant(1_323_820_800_000),
            ),
            ("\"", text("\"")),
            ("\"\"", text("")),
            ("", text("")),
            ("true", Bool(true)),
            ("False", text("False")),
            ("42", Long(42)),
            ("-8555111000", Long(-8_555_111_000)),
            ("2.75", Double(2.75)),
            ("1e3", Double(1000.0)),
            ("9223372036854775808", Double(9_223_372_036_854_775_808.0)),
            ("Infinity", Double(f64::INFINITY)),
            ("8e12345", Text("8e12345".to_owned())),
            ("inf", text("inf")),
            ("-inf", text("-inf")),
            ("12345,ABC", text("12345,ABC")),
            ("Windows 7 Ultimate", text("Windows 7 Ultimate")),
        ] {
            assert_eq!(PropertyValue::of_header(written), value, "{written}");
        }
    }

    #[test]
    fn a_formatted_header_value_parses_to_itself() {
        use PropertyValue::{Bool, Double, Instant, Long, Text};
        for value in [
            Text("plain".into()),
            Text("with \"quotes\", \\ and é\u{1f600}\r\n\u{7f}".into()),
            Text(String::new()),
            Bool(true),
            Long(i64::MIN),
            Double(3.0),
            Double(-0.1),
            Double(f64::NEG_INFINITY),
            Double(1e300),
            Instant(1_323_820_800_000),
        ] {
            let written = header_of(&encoded(&value)).expect("a header");
            assert!(written.is_ascii(), "{written}");
            assert_eq!(PropertyValue::of_header(&written), value, "{written}");
        }
        assert_eq!(header_of(&encoded(&PropertyValue::Null)), None);
    }

    #[test]
    fn property_types_without_a_header_form_are_omitted() {
        let described = |name: &str, ticks: i64| {
            let mut out = vec![0];
            let mut writer = Writer::new(&mut out);
            writer.symbol(name);
            writer.long(ticks);
            out
        };
        let span = header_of(&described(TIME_SPAN, 15_000_000));
        assert_eq!(span.as_deref(), Some("1.5"));
        assert_eq!(
            header_of(&described("com.microsoft:datetime-offset", 1)),
            None
        );
        let mut binary = Vec::new();
        Writer::new(&mut binary).binary(b"x");
        assert_eq!(header_of(&binary), None);
        let mut uuid = Vec::new();
        Writer::new(&mut uuid).uuid(uuid::Uuid::nil());
        let text = header_of(&uuid);
        assert_eq!(
            text.as_deref(),
            Some("\"00000000-0000-0000-0000-000000000000\"")
        );
        assert_eq!(header_of(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn random_header_values_do_not_panic(text in "\\PC*", encoded: Vec<u8>) {
            let _ = PropertyValue::of_header(&text);
            let _ = header_of(&encoded);
        }
    }
}
