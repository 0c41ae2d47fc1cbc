//! Messages as JSON with the type of every AMQP value, and back (see `AmqpMessage` of the control API).
//!
//! AMQP has several encodings of one value. A message that is read together with its encoding keeps that of every unchanged
//! section, so that it is the same bit for bit.

mod value;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use servicebus_codec::{DecodeError, Descriptor, ElementBudget, Reader, Writer};
use servicebus_control_api::AmqpMessage;

use value::{PlainType, write};

/// Sections in their order.
const SECTIONS: [&str; 7] = [
    "header",
    "delivery_annotations",
    "message_annotations",
    "properties",
    "application_properties",
    "body",
    "footer",
];
const BODY: usize = 5;
const DATA: u8 = 0x75;
const SEQUENCE: u8 = 0x76;
const VALUE: u8 = 0x77;
const FOOTER: u8 = 0x78;

/// The fields of the header, with their AMQP types.
const HEADER_FIELDS: &[(&str, PlainType)] = &[
    ("durable", "boolean"),
    ("priority", "ubyte"),
    ("time_to_live", "uint"),
    ("first_acquirer", "boolean"),
    ("delivery_count", "uint"),
];
/// The fields of the properties, with their AMQP types.
const PROPERTY_FIELDS: &[(&str, PlainType)] = &[
    ("message_id", "string"),
    ("user_id", "binary"),
    ("to", "string"),
    ("subject", "string"),
    ("reply_to", "string"),
    ("correlation_id", "string"),
    ("content_type", "symbol"),
    ("content_encoding", "symbol"),
    ("absolute_expiry_time", "timestamp"),
    ("creation_time", "timestamp"),
    ("group_id", "string"),
    ("group_sequence", "uint"),
    ("reply_to_group_id", "string"),
];

/// The types of ids.
const IDS: [PlainType; 4] = ["string", "ulong", "uuid", "binary"];

/// The form of a section.
enum Form {
    /// A list of fields.
    List(&'static [(&'static str, PlainType)]),
    /// A map with keys of this type.
    Map(PlainType),
}

/// Why a message cannot be encoded.
pub(crate) type MessageProblem = String;

pub(crate) use value::to_json as value_to_json;

/// Converts a message into JSON, without its encoding.
pub(crate) fn to_json(encoded: &[u8]) -> Result<AmqpMessage, DecodeError> {
    Ok(Parts::read(encoded)?.json())
}

/// Encodes the message in JSON.
pub(crate) fn encode(message: &AmqpMessage) -> Result<Vec<u8>, MessageProblem> {
    let original = message.amqp.as_deref().map(Parts::read).transpose();
    let original = original.map_err(|error| format!("amqp: {error}"))?;
    let original = original.unwrap_or_default();
    let wanted = [
        &message.header,
        &message.delivery_annotations,
        &message.message_annotations,
        &message.properties,
        &message.application_properties,
        &message.body,
        &message.footer,
    ];
    let mut out = Vec::new();
    for (index, wanted) in wanted.into_iter().enumerate() {
        match wanted {
            _ if value::is_same(wanted.as_ref(), original.shown[index].as_ref()) => {
                out.extend_from_slice(&original.encoded[index]);
            }
            None | Some(Value::Null) => {}
            Some(wanted) if index == BODY => write_body(wanted, &mut out)?,
            Some(wanted) => write_section(index, wanted, &mut out)?,
        }
    }
    Ok(out)
}

/// Returns the contents of a body: the bytes of its data, else the text or the JSON of its value.
pub(crate) fn body(content: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let parts = Parts::read(content)?;
    if !parts.data.is_empty() {
        return Ok(parts.data.concat());
    }
    let body = parts.shown[BODY].as_ref();
    let value = body.and_then(|body| body.get("value")).or(body);
    Ok(match value {
        None => Vec::new(),
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(value) => match value.get("binary").and_then(Value::as_str) {
            Some(text) => BASE64_STANDARD.decode(text).unwrap_or_default(),
            None => value.to_string().into_bytes(),
        },
    })
}

/// Applies changes: sections and members of sections are replaced, null removes them; a body is replaced as a whole.
pub(crate) fn edit(message: &mut AmqpMessage, changes: &Value) -> Result<(), MessageProblem> {
    let changes = changes.as_object();
    for (name, change) in changes.ok_or("edit: it must be an object")? {
        let index = SECTIONS.iter().position(|known| known == name);
        let index = index.ok_or_else(|| format!("edit: {name:?} is not a section of a message"))?;
        let section = &mut *sections_mut(message)[index];
        match (change, section.take()) {
            (Value::Null, _) => {}
            (Value::Object(change), members @ (None | Some(Value::Object(_))))
                if name != "body" =>
            {
                let members = members.unwrap_or_else(|| json!({}));
                *section = Some(merged(members, change)).filter(|members| *members != json!({}));
            }
            (Value::Object(_), Some(_)) if name != "body" => {
                return Err(format!(
                    "edit: {name} has no names by which it could be changed; give it as an array of pairs"
                ));
            }
            (change, _) => *section = Some(change.clone()),
        }
    }
    Ok(())
}

fn sections_mut(message: &mut AmqpMessage) -> [&mut Option<Value>; SECTIONS.len()] {
    [
        &mut message.header,
        &mut message.delivery_annotations,
        &mut message.message_annotations,
        &mut message.properties,
        &mut message.application_properties,
        &mut message.body,
        &mut message.footer,
    ]
}

fn merged(mut members: Value, changes: &Map<String, Value>) -> Value {
    if let Value::Object(members) = &mut members {
        for (name, change) in changes {
            match change.is_null() {
                true => members.remove(name),
                false => members.insert(name.clone(), change.clone()),
            };
        }
    }
    members
}

/// A parsed message: the encoded sections, and their JSON.
#[derive(Default)]
struct Parts<'a> {
    encoded: [Vec<u8>; SECTIONS.len()],
    shown: [Option<Value>; SECTIONS.len()],
    data: Vec<&'a [u8]>,
    sequences: Vec<Value>,
}

impl<'a> Parts<'a> {
    fn read(encoded: &'a [u8]) -> Result<Self, DecodeError> {
        let mut parts = Self::default();
        let mut reader = Reader::new(encoded);
        let mut budget = ElementBudget::default();
        while !reader.is_empty() {
            let start = reader.rest();
            let code = section_code(reader.descriptor()?)?;
            let mut content = reader;
            // Its nesting is limited from here on.
            reader.validate_within(&mut budget)?;
            let length = start.len() - reader.rest().len();
            let index = usize::from(code - 0x70).min(BODY) + usize::from(code == FOOTER);
            parts.encoded[index].extend_from_slice(&start[..length]);
            let shown = match code {
                DATA => {
                    parts.data.push(content.binary()?);
                    continue;
                }
                SEQUENCE => {
                    let shown = value::to_json(content.rest(), "string")?;
                    parts.sequences.push(shown["list"].clone());
                    continue;
                }
                VALUE => json!({ "value": value::to_json(content.rest(), "string")? }),
                _ => shown(&mut content, &form(index))?,
            };
            parts.shown[index] = Some(shown);
        }
        if !parts.data.is_empty() {
            parts.shown[BODY] = Some(shown_data(&parts.data));
        }
        if !parts.sequences.is_empty() {
            parts.shown[BODY] = Some(json!({ "sequences": parts.sequences }));
        }
        Ok(parts)
    }

    fn json(self) -> AmqpMessage {
        let mut message = AmqpMessage::default();
        let sections = sections_mut(&mut message).into_iter();
        sections
            .zip(self.shown)
            .for_each(|(section, shown)| *section = shown);
        message
    }
}

fn section_code(descriptor: Descriptor<'_>) -> Result<u8, DecodeError> {
    let code = u8::try_from(descriptor.section()).ok();
    code.filter(|code| (0x70..=FOOTER).contains(code))
        .ok_or(DecodeError::Unexpected {
            expected: "a section of a message",
            code: 0,
        })
}

fn form(index: usize) -> Form {
    match index {
        0 => Form::List(HEADER_FIELDS),
        3 => Form::List(PROPERTY_FIELDS),
        4 => Form::Map("string"),
        _ => Form::Map("symbol"),
    }
}

fn shown(content: &mut Reader<'_>, form: &Form) -> Result<Value, DecodeError> {
    let mut members = Map::new();
    match form {
        Form::List(names) => {
            let mut fields = content.fields()?;
            for (name, plain) in *names {
                if let Some(field) = fields.raw()? {
                    members.insert((*name).to_owned(), value::to_json(field, plain)?);
                }
            }
        }
        Form::Map(key) => {
            let mut pairs = Vec::new();
            for entry in content.map()?.raw_entries() {
                let (name, content) = entry?;
                let pair = (
                    value::to_json(name, key)?,
                    value::to_json(content, "string")?,
                );
                if let Value::String(name) = &pair.0 {
                    members.insert(name.clone(), pair.1.clone());
                }
                pairs.push(pair);
            }
            if members.len() < pairs.len() {
                return Ok(json!(pairs));
            }
        }
    }
    Ok(members.into())
}

fn shown_data(data: &[&[u8]]) -> Value {
    if let [only] = data
        && let Ok(text) = std::str::from_utf8(only)
    {
        return json!({ "text": text });
    }
    let data = data.iter().map(|part| BASE64_STANDARD.encode(part));
    json!({ "data": Vec::from_iter(data) })
}

fn write_section(index: usize, wanted: &Value, out: &mut Vec<u8>) -> Result<(), MessageProblem> {
    let name = SECTIONS[index];
    let code = if index > BODY {
        FOOTER
    } else {
        0x70 + index as u8
    };
    Writer::new(out).descriptor(code);
    match form(index) {
        Form::List(fields) => {
            let members = wanted.as_object();
            let members = members.ok_or_else(|| format!("{name}: it must be an object"))?;
            let known = |member: &&String| fields.iter().any(|(name, _)| name == member);
            if let Some(unknown) = members.keys().find(|member| !known(member)) {
                let fields: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
                let fields = fields.join(", ");
                return Err(format!("{name}: {unknown:?} is none of {fields}"));
            }
            let list = Writer::new(out).begin_list();
            for (field, plain) in fields {
                let value = members.get(*field).unwrap_or(&Value::Null);
                let start = out.len();
                write(value, plain, out).map_err(|error| format!("{name}.{field}: {error}"))?;
                let written = value::name(out[start]);
                if !value.is_null() && !is_allowed(field, plain, written) {
                    let allowed = allowed(field, plain);
                    return Err(format!("{name}.{field}: it must be {allowed}, not {value}"));
                }
            }
            Writer::new(out).end(list, fields.len() as u32);
        }
        Form::Map(key) => {
            let pairs = pairs(wanted).ok_or_else(|| {
                format!("{name}: it must be an object or an array of pairs of a key and a value")
            })?;
            let map = Writer::new(out).begin_map();
            for (member, value) in &pairs {
                write(member, key, out).map_err(|error| format!("{name}: {error}"))?;
                write(value, "string", out)
                    .map_err(|error| format!("{name}, {member}: {error}"))?;
            }
            Writer::new(out).end(map, 2 * pairs.len() as u32);
        }
    }
    Ok(())
}

/// Returns whether a field may have a value of a type; ids may have those of AMQP 1.0 §3.2.11 to §3.2.14.
fn is_allowed(field: &str, plain: PlainType, written: &str) -> bool {
    written == plain || is_id(field) && IDS.contains(&written)
}

fn allowed(field: &str, plain: PlainType) -> String {
    match is_id(field) {
        true => format!("one of {}", IDS.join(", ")),
        false => format!("of the type {plain}"),
    }
}

fn is_id(field: &str) -> bool {
    matches!(field, "message_id" | "correlation_id")
}

fn pairs(wanted: &Value) -> Option<Vec<(Value, Value)>> {
    if let Value::Object(members) = wanted {
        let members = members.iter();
        let members = members.map(|(name, value)| (name.as_str().into(), value.clone()));
        return Some(members.collect());
    }
    let pair = |pair: &Value| match pair.as_array()?.as_slice() {
        [key, value] => Some((key.clone(), value.clone())),
        _ => None,
    };
    wanted.as_array()?.iter().map(pair).collect()
}

fn write_body(wanted: &Value, out: &mut Vec<u8>) -> Result<(), MessageProblem> {
    const ALLOWED: &str =
        "body: it must be an object with one member: text, data, value or sequences";
    let members = wanted.as_object().filter(|members| members.len() == 1);
    let member = members.and_then(|members| members.iter().next());
    let (kind, value) = member.ok_or(ALLOWED)?;
    let list = || value.as_array().ok_or(ALLOWED);
    match kind.as_str() {
        "text" => {
            let text = value.as_str().ok_or("body: the text must be a string")?;
            data(text.as_bytes(), out);
        }
        "data" => {
            for part in list()? {
                let bytes = part
                    .as_str()
                    .and_then(|part| BASE64_STANDARD.decode(part).ok());
                let bytes = bytes.ok_or("body: the parts of data must be base64")?;
                data(&bytes, out);
            }
        }
        "value" => {
            Writer::new(out).descriptor(VALUE);
            write(value, "string", out).map_err(|error| format!("body: {error}"))?;
        }
        "sequences" => {
            for sequence in list()? {
                Writer::new(out).descriptor(SEQUENCE);
                let sequence = json!({ "list": sequence });
                write(&sequence, "string", out).map_err(|error| format!("body: {error}"))?;
            }
        }
        _ => return Err(ALLOWED.to_owned()),
    }
    Ok(())
}

fn data(bytes: &[u8], out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.descriptor(DATA);
    writer.binary(bytes);
}

/// Returns the message with its encoding, for [`edit`] and [`encode`].
pub(crate) fn editable(encoded: Vec<u8>) -> Result<AmqpMessage, DecodeError> {
    let json = to_json(&encoded)?;
    Ok(AmqpMessage {
        amqp: Some(Bytes::from(encoded)),
        ..json
    })
}

#[cfg(test)]
mod tests;
