//! Constructors of AMQP values.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{Binary, OrderedMap, Symbol, Timestamp};
use uuid::Uuid;

/// A string.
pub fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// A symbol.
pub fn symbol(name: &str) -> Value {
    Value::Symbol(Symbol::from(name))
}

/// A `uint`.
pub fn uint(number: u32) -> Value {
    Value::Uint(number)
}

/// A `ulong`.
pub fn ulong(number: u64) -> Value {
    Value::Ulong(number)
}

/// A `long`.
pub fn long(number: i64) -> Value {
    Value::Long(number)
}

/// Bytes.
pub fn binary(bytes: &[u8]) -> Value {
    Value::Binary(Binary::from(bytes.to_vec()))
}

/// A UUID.
pub fn uuid(uuid: Uuid) -> Value {
    Value::Uuid(uuid.into_bytes().into())
}

/// A timestamp in milliseconds since the Unix epoch.
pub fn timestamp(milliseconds: i64) -> Value {
    Value::Timestamp(Timestamp::from_milliseconds(milliseconds))
}

/// A list.
pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(items.into_iter().collect())
}

/// A map in this order.
pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
    Value::Map(entries.into_iter().collect::<OrderedMap<_, _>>())
}

/// The properties of the attach to a sender: the maximum batch size in bytes (spec/observed.md 49).
pub fn batch_limit(bytes: i64) -> Value {
    map([(symbol("com.microsoft:max-message-batch-size"), long(bytes))])
}

/// Nested lists of this depth.
pub fn nested(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| list([inner]))
}

/// A described list.
pub fn composite(code: u64, fields: impl IntoIterator<Item = Value>) -> Value {
    Value::Described(Box::new(Described {
        descriptor: Descriptor::Code(code),
        value: list(fields),
    }))
}

/// Returns code and fields of a described list.
pub fn described_list(value: &Value) -> (u64, &[Value]) {
    let Value::Described(described) = value else {
        panic!("not described: {value:?}");
    };
    match (&described.descriptor, &described.value) {
        (Descriptor::Code(code), Value::List(fields)) => (*code, fields),
        other => panic!("no list with a numeric descriptor: {other:?}"),
    }
}
