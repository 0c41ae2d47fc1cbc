//! Values of properties and parameters: what JSON has types for, and AMQP as it is encoded for all others.

use jsonc_parser::ast::Value as Json;
use servicebus_broker::filter::{Encoded, Value};

use crate::config::reader::{Located, Object, Place, Report, wrong_type};

/// The key of a value that JSON has no type for, in hexadecimal digits as AMQP encodes it.
pub(crate) const AMQP: &str = "Amqp";

/// The values of an object by their names; what is none is reported and left out.
pub(crate) fn named(object: Object<'_, '_>) -> Vec<(Box<str>, Encoded)> {
    let report = object.report();
    let entries = object.entries().into_iter();
    entries
        .filter_map(|(name, found)| Some((name.into(), value(report, found)?)))
        .collect()
}

fn value(report: &Report<'_>, found: Located<&Json<'_>>) -> Option<Encoded> {
    let Located { place, value } = found;
    match value {
        Json::StringLit(text) => Some(Encoded::from(&*text.value)),
        Json::BooleanLit(flag) => Some(Encoded::from(&Value::Bool(flag.value))),
        Json::NumberLit(digits) => number(report, &place, digits.value),
        Json::Object(_) => {
            let mut object = Object::of(report, value, place.path)?;
            let digits = object.required_string(AMQP);
            object.finish();
            encoded(report, digits?)
        }
        Json::Array(_) | Json::NullKeyword(_) => {
            wrong_type(report, &place, value, "a string, a number, true or false");
            None
        }
    }
}

fn number(report: &Report<'_>, place: &Place, digits: &str) -> Option<Encoded> {
    let is_whole = !digits.contains(['.', 'e', 'E']);
    let whole = || {
        let signed = digits.parse().map(Value::Signed);
        signed.or_else(|_| digits.parse().map(Value::Unsigned)).ok()
    };
    let float = || {
        let float = digits.parse().ok();
        float
            .filter(|float: &f64| float.is_finite())
            .map(Value::Float)
    };
    let value = if is_whole { whole() } else { float() };
    if value.is_none() {
        let message = format!("{} fits no number of AMQP", report.excerpt(place));
        let allowed = "64 bits, or a floating-point number".to_owned();
        report.problem(place, message, Some(allowed));
    }
    value.as_ref().map(Encoded::from)
}

fn encoded(report: &Report<'_>, digits: Located<String>) -> Option<Encoded> {
    let Located { place, value } = digits;
    let bytes = bytes(&value);
    let encoded = bytes.and_then(|bytes| Encoded::from_amqp(&bytes).ok());
    if encoded.is_none() {
        let message = format!("{} is no encoded value", report.excerpt(&place));
        let allowed = "hexadecimal digits of one primitive AMQP value".to_owned();
        report.problem(&place, message, Some(allowed));
    }
    encoded
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}
