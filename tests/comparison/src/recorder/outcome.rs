//! Delivery states and errors, as the specification names them.

use fe2o3_amqp::types::primitives::Value;

use super::value::{self, composite, described, field, text};

/// Tells the state of a delivery.
pub(super) fn state(state: &Value) -> String {
    let Some((code, fields)) = composite(state) else {
        return match state {
            Value::Null => "settled without an outcome".to_owned(),
            other => described(other),
        };
    };
    match code {
        0x23 => "received".to_owned(),
        0x24 => "accepted".to_owned(),
        0x25 => match field(fields, 0) {
            Value::Null => "rejected".to_owned(),
            reason => format!("rejected with {}", error(reason)),
        },
        0x26 => "released".to_owned(),
        0x27 => format!("modified ({})", modified(fields)),
        0x33 => "declared".to_owned(),
        0x34 => match field(fields, 1) {
            Value::Null => "in a transaction".to_owned(),
            outcome => format!("in a transaction, {}", self::state(outcome)),
        },
        _ => described(state),
    }
}

/// Whether it is the plain outcome of what went well.
pub(super) fn is_accepted(state: &Value) -> bool {
    matches!(composite(state), Some((0x24, _)))
}

/// Whether an answer to a settlement says no more than that it is as the client wanted.
pub(super) fn confirms(wanted: &Value, answer: &Value) -> bool {
    match (composite(wanted), composite(answer)) {
        (Some((0x34, wanted)), Some((0x34, answer))) => {
            confirms(field(wanted, 1), field(answer, 1))
        }
        (Some((0x25, _)), Some((0x25, answer))) => *field(answer, 0) == Value::Null,
        (Some((wanted, _)), Some((answer, _))) => wanted == answer,
        _ => wanted == answer,
    }
}

/// Tells an error: its condition, description and what else it says.
pub(super) fn error(error: &Value) -> String {
    let Some((0x1d, fields)) = composite(error) else {
        return described(error);
    };
    let condition = text(field(fields, 0)).unwrap_or("no condition");
    let description = match field(fields, 1) {
        Value::Null => String::new(),
        description => format!(": {}", described(description)),
    };
    let info = match field(fields, 2) {
        Value::Null => String::new(),
        info => format!(", info {}", described(info)),
    };
    format!("{condition}{description}{info}")
}

fn modified(fields: &[Value]) -> String {
    let names = ["delivery-failed", "undeliverable-here", "annotations"];
    value::named(&names, fields)
}

#[cfg(test)]
mod tests {
    use servicebus_codec::Reader;

    use super::*;

    #[test]
    fn an_error_is_rendered_with_its_description() {
        let rejected =
            b"\x00\x53\x25\xc0\x13\x01\x00\x53\x1d\xc0\x0d\x03\xa3\x03a:b\xa1\x04gone\x40";
        let rejected = value::take(&mut Reader::new(rejected)).unwrap();
        assert_eq!(state(&rejected), "rejected with a:b: \"gone\"");
        let accepted = value::take(&mut Reader::new(b"\x00\x53\x24\x45")).unwrap();
        assert_eq!(state(&accepted), "accepted");
        assert!(confirms(&accepted, &accepted));
        assert!(!confirms(&rejected, &rejected));
        assert!(!confirms(&accepted, &rejected));
    }
}
