//! One AMQP value as JSON, and back.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Number, Value, json};
use servicebus_arm_template::collected;
use servicebus_codec::{DecodeError, Reader, Value as Amqp, Writer};
use uuid::Uuid;

/// The AMQP name of the type that plain JSON values have at a position.
pub(crate) type PlainType = &'static str;

/// JavaScript reads whole numbers below this one exactly. It reads this one as the next one, too, so that others are texts.
const EXACT: i128 = 1 << 53;

/// Converts a validated value into JSON.
pub(crate) fn to_json(encoded: &[u8], plain: &str) -> Result<Value, DecodeError> {
    let code = encoded.first().copied().unwrap_or_default();
    let mut reader = Reader::new(encoded);
    let bare: Value = match reader.value()? {
        Amqp::Null => return Ok(Value::Null),
        Amqp::Bool(flag) => return Ok(flag.into()),
        Amqp::Unsigned(number) => whole(number.into()),
        Amqp::Signed(number) => whole(number.into()),
        Amqp::Timestamp(milliseconds) => whole(milliseconds.into()),
        // JavaScript would write -0.0 as 0.
        Amqp::Float(number) => match Number::from_f64(number) {
            Some(shown) if number != 0.0 || number.is_sign_positive() => shown.into(),
            _ => number.to_string().into(),
        },
        Amqp::Uuid(uuid) => uuid.to_string().into(),
        Amqp::Binary(bytes) => BASE64_STANDARD.encode(bytes).into(),
        Amqp::String(text) | Amqp::Symbol(text) => text.into(),
        Amqp::Other(encoded) => return other(code, encoded),
    };
    let name = name(code);
    Ok(match name == plain {
        true => bare,
        false => object(name, bare),
    })
}

fn object(name: &str, value: Value) -> Value {
    Value::Object(collected([(name.to_owned(), value)]))
}

fn whole(number: i128) -> Value {
    match i64::try_from(number) {
        Ok(small) if number.abs() < EXACT => small.into(),
        _ => number.to_string().into(),
    }
}

/// Returns the type of a primitive by its constructor; for other constructors that of a text.
pub(crate) fn name(code: u8) -> &'static str {
    match code {
        0x41 | 0x42 | 0x56 => "boolean",
        0x00 | 0x45 | 0xc0 | 0xd0 => "list",
        0xc1 | 0xd1 => "map",
        0x50 => "ubyte",
        0x60 => "ushort",
        0x43 | 0x52 | 0x70 => "uint",
        0x44 | 0x53 | 0x80 => "ulong",
        0x51 => "byte",
        0x61 => "short",
        0x54 | 0x71 => "int",
        0x55 | 0x81 => "long",
        0x72 => "float",
        0x82 => "double",
        0x83 => "timestamp",
        0x98 => "uuid",
        0xa0 | 0xb0 => "binary",
        0xa3 | 0xb3 => "symbol",
        _ => "string",
    }
}

/// Converts values that are not primitives, and rare primitives.
fn other(code: u8, encoded: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Reader::new(encoded);
    Ok(match code {
        0x00 => {
            reader = Reader::new(&encoded[1..]);
            let descriptor = to_json(reader.skip()?, "string")?;
            json!({ "described": [descriptor, to_json(reader.rest(), "string")?] })
        }
        0x45 | 0xc0 | 0xd0 => {
            let list = reader.list()?;
            let (mut items, mut shown) = (list.items, Vec::new());
            for _ in 0..list.count {
                shown.push(to_json(items.skip()?, "string")?);
            }
            object("list", shown.into())
        }
        0xc1 | 0xd1 => {
            let mut pairs = Vec::new();
            for entry in reader.map()?.raw_entries() {
                let (key, value) = entry?;
                pairs.push(json!([to_json(key, "string")?, to_json(value, "string")?]));
            }
            object("map", pairs.into())
        }
        0x73 if encoded.len() == 5 => {
            let code = encoded[1..].iter();
            let code = code.fold(0, |code, &byte| code << 8 | u32::from(byte));
            match char::from_u32(code) {
                Some(character) => object("char", character.to_string().into()),
                None => raw(encoded),
            }
        }
        _ => raw(encoded),
    })
}

fn raw(encoded: &[u8]) -> Value {
    object("encoded", BASE64_STANDARD.encode(encoded).into())
}

/// Returns whether two JSON values are the same value of AMQP: JavaScript writes 10.0 as 10, which differs in `{"double":10}`
/// for serde_json alone.
pub(crate) fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| is_same(Some(one), Some(other)))
        }
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let is_float = one.len() == 1;
            let is_same = |(name, own): (&String, &Value)| match (own, other.get(name)) {
                (Value::Number(own), Some(Value::Number(number)))
                    if is_float && matches!(name.as_str(), "float" | "double") =>
                {
                    own.as_f64() == number.as_f64()
                }
                (own, number) => number.is_some() && is_same(Some(own), number),
            };
            one.len() == other.len() && one.iter().all(is_same)
        }
        (one, other) => one == other,
    }
}

/// Appends the value of a JSON value.
pub(crate) fn write(value: &Value, plain: &str, out: &mut Vec<u8>) -> Result<(), String> {
    match value {
        Value::Null => Writer::new(out).null(),
        Value::Bool(flag) => Writer::new(out).bool(*flag),
        Value::String(_) => {
            let is_text = matches!(plain, "symbol" | "binary");
            let name = if is_text { plain } else { "string" };
            return write_typed(name, value, out);
        }
        Value::Number(number) => {
            let is_number = matches!(plain, "ubyte" | "uint" | "timestamp");
            let name = match (is_number, number.is_f64()) {
                (true, _) => plain,
                (false, false) => "long",
                (false, true) => "double",
            };
            return write_typed(name, value, out);
        }
        Value::Object(members) if members.len() == 1 => {
            for (name, value) in members {
                write_typed(name, value, out)?;
            }
        }
        Value::Object(_) | Value::Array(_) => {
            return Err(
                "a value that is not text, number, boolean or null is an object with one member, named by \
                 its AMQP type"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

fn write_typed(name: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), String> {
    let refused = || format!("{value} is not of the type {name}");
    let text = || value.as_str().ok_or_else(refused);
    let bytes = || BASE64_STANDARD.decode(text()?).map_err(|_| refused());
    let writer = &mut Writer::new(out);
    match name {
        "ubyte" => writer.ubyte(number(name, value)?),
        "ushort" => writer.ushort(number(name, value)?),
        "uint" => writer.uint(number(name, value)?),
        "ulong" => writer.ulong(number(name, value)?),
        "byte" => writer.raw(&[0x51, number::<i8>(name, value)? as u8]),
        "short" => {
            writer.raw(&[0x61]);
            writer.raw(&number::<i16>(name, value)?.to_be_bytes());
        }
        "int" => writer.int(number(name, value)?),
        "long" => writer.long(number(name, value)?),
        "float" => {
            writer.raw(&[0x72]);
            writer.raw(&(float(name, value)? as f32).to_be_bytes());
        }
        "double" => writer.double(float(name, value)?),
        "timestamp" => writer.timestamp(number(name, value)?),
        "char" => {
            let mut characters = text()?.chars();
            let (Some(character), None) = (characters.next(), characters.next()) else {
                return Err(refused());
            };
            writer.raw(&[0x73]);
            writer.raw(&u32::from(character).to_be_bytes());
        }
        "uuid" => writer.uuid(Uuid::parse_str(text()?).map_err(|_| refused())?),
        "binary" => writer.binary(&bytes()?),
        "string" => writer.string(text()?),
        "symbol" => writer.symbol(text()?),
        "encoded" => {
            let encoded = bytes()?;
            let mut reader = Reader::new(&encoded);
            if reader.skip().is_err() || !reader.is_empty() {
                return Err(refused());
            }
            writer.raw(&encoded);
        }
        _ => return write_compound(name, value, out),
    }
    Ok(())
}

fn write_compound(name: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match name {
        "described" if items.len() == 2 => out.push(0),
        "list" | "map" if value.is_array() => {}
        _ => {
            return Err(format!(
                "there is no AMQP type {name:?} with a value {value}"
            ));
        }
    }
    if name == "described" {
        return items.iter().try_for_each(|item| write(item, "string", out));
    }
    let mark = match name {
        "list" => Writer::new(out).begin_list(),
        _ => Writer::new(out).begin_map(),
    };
    let mut count = 0;
    for item in items {
        let pair = item.as_array().filter(|_| name == "map");
        let parts = match pair {
            Some(pair) if pair.len() == 2 => pair.as_slice(),
            _ if name == "list" => std::slice::from_ref(item),
            _ => return Err(format!("{item} is not a pair of a key and a value")),
        };
        count += parts.len() as u32;
        parts
            .iter()
            .try_for_each(|part| write(part, "string", out))?;
    }
    Writer::new(out).end(mark, count);
    Ok(())
}

fn number<T: TryFrom<i128>>(name: &str, value: &Value) -> Result<T, String> {
    let number = match value {
        Value::Number(number) => number.as_i128(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("{value} is not of the type {name}"))
}

fn float(name: &str, value: &Value) -> Result<f64, String> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.ok_or_else(|| format!("{value} is not of the type {name}"))
}
