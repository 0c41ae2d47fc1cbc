//! Converts the body of a message into that of a response.
//!
//! Data is returned as it is. A value that is text or binary is returned as its bytes; every other value and sequence has no
//! form of its own over HTTP and is returned as JSON.
//!
//! A response is at most some ten times as long as its message: a map whose keys are not scalars becomes an array of pairs,
//! because JSON in names would be escaped once more at each level.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value as Json;
use servicebus_codec::{Array, Compound, DecodeError, MAX_DEPTH, Reader, Value};

use super::headers::http_date;

/// The first byte of a described value.
const DESCRIBED: u8 = 0x00;
const CHAR: u8 = 0x73;

/// The body so far, section by section.
#[derive(Debug, Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    /// The elements of sequences: each section is a part of the same array.
    elements: Option<Vec<u8>>,
}

impl Body {
    /// Adds a data section.
    pub(crate) fn put_data(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.bytes.extend_from_slice(content.binary()?);
        Ok(())
    }

    /// Adds a value section.
    pub(crate) fn put_value(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        let encoded = content.skip()?;
        match Reader::new(encoded).value()? {
            Value::Null => {}
            Value::String(text) | Value::Symbol(text) => self.bytes.extend(text.as_bytes()),
            Value::Binary(bytes) => self.bytes.extend(bytes),
            Value::Bool(_)
            | Value::Unsigned(_)
            | Value::Signed(_)
            | Value::Float(_)
            | Value::Timestamp(_)
            | Value::Uuid(_)
            | Value::Other(_) => put_json(encoded, MAX_DEPTH, &mut self.bytes)?,
        }
        Ok(())
    }

    /// Adds a sequence section.
    pub(crate) fn put_sequence(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        let elements = self.elements.get_or_insert_default();
        put_items(content.list()?, MAX_DEPTH, elements)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self.elements {
            Some(elements) => [b"[", &*elements, b"]"].concat(),
            None => self.bytes,
        }
    }
}

/// Appends a value as JSON, with at most `depth` more levels of nesting.
fn put_json(encoded: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let value = Reader::new(encoded).value()?;
    if !matches!(value, Value::Other(_)) {
        out.extend(scalar(value).to_string().into_bytes());
        return Ok(());
    }
    let depth = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
    let mut reader = Reader::new(encoded);
    if reader.peek() == Some(DESCRIBED) {
        let mut described = Reader::new(&encoded[1..]);
        described.skip()?;
        put_json(described.rest(), depth, out)
    } else if let Ok(list) = reader.clone().list() {
        put_enclosed(b"[]", out, |out| put_items(list, depth, out))
    } else if let Ok(elements) = reader.clone().elements() {
        put_enclosed(b"[]", out, |out| put_elements(elements, depth, out))
    } else if let Ok(map) = reader.map() {
        put_map(map, depth, out)
    } else {
        out.extend(character(encoded).to_string().into_bytes());
        Ok(())
    }
}

fn put_enclosed(
    brackets: &[u8; 2],
    out: &mut Vec<u8>,
    put: impl FnOnce(&mut Vec<u8>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut content = Vec::new();
    put(&mut content)?;
    out.push(brackets[0]);
    out.append(&mut content);
    out.push(brackets[1]);
    Ok(())
}

/// Appends the elements after the existing ones, without brackets.
fn put_items(list: Compound<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let mut items = list.items;
    for _ in 0..list.count {
        separate(out);
        put_json(items.skip()?, depth, out)?;
    }
    Ok(())
}

fn put_elements(
    mut elements: Array<'_>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut element = Vec::new();
    while elements.next_into(&mut element)? {
        separate(out);
        put_json(&element, depth, out)?;
    }
    Ok(())
}

fn put_map(map: Compound<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let is_name = |key: &[u8]| Reader::new(key).next_is_primitive();
    let has_names = map
        .raw_entries()
        .all(|entry| entry.is_ok_and(|(key, _)| is_name(key)));
    let brackets = if has_names { b"{}" } else { b"[]" };
    put_enclosed(brackets, out, |out| {
        for entry in map.raw_entries() {
            let (key, value) = entry?;
            separate(out);
            if has_names {
                put_name(key, depth, out)?;
                out.push(b':');
                put_json(value, depth, out)?;
            } else {
                put_enclosed(b"[]", out, |out| {
                    put_json(key, depth, out)?;
                    out.push(b',');
                    put_json(value, depth, out)
                })?;
            }
        }
        Ok(())
    })
}

/// Appends a scalar of any type as the name of a member, in quotes.
fn put_name(key: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let mut name = Vec::new();
    put_json(key, depth, &mut name)?;
    if name.first() == Some(&b'"') {
        out.append(&mut name);
        return Ok(());
    }
    out.push(b'"');
    out.append(&mut name);
    out.push(b'"');
    Ok(())
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

fn scalar(value: Value<'_>) -> Json {
    match value {
        Value::Null | Value::Other(_) => Json::Null,
        Value::Bool(flag) => flag.into(),
        Value::Unsigned(number) => number.into(),
        Value::Signed(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Timestamp(milliseconds) => {
            http_date(milliseconds).map_or_else(|| milliseconds.into(), Json::from)
        }
        Value::Uuid(uuid) => uuid.to_string().into(),
        Value::Binary(bytes) => BASE64_STANDARD.encode(bytes).into(),
        Value::String(text) | Value::Symbol(text) => text.into(),
    }
}

/// Returns a character; decimals have no form.
fn character(encoded: &[u8]) -> Json {
    match *encoded {
        [CHAR, a, b, c, d] => {
            let character = char::from_u32(u32::from_be_bytes([a, b, c, d]));
            character.map_or(Json::Null, |character| character.to_string().into())
        }
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use servicebus_codec::Writer;

    use super::*;

    fn sequence(numbers: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        let list = writer.begin_list();
        numbers.iter().for_each(|&number| writer.long(number));
        writer.end(list, numbers.len() as u32);
        out
    }

    #[test]
    fn sections_of_one_kind_are_joined_to_one_body() {
        let mut body = Body::default();
        for bytes in [&b"a"[..], b"", b"bc"] {
            let mut out = Vec::new();
            Writer::new(&mut out).binary(bytes);
            assert_eq!(body.put_data(&mut Reader::new(&out)), Ok(()));
        }
        assert_eq!(body.into_bytes(), b"abc");

        let mut body = Body::default();
        for numbers in [&[1, 2][..], &[], &[3]] {
            let encoded = sequence(numbers);
            assert_eq!(body.put_sequence(&mut Reader::new(&encoded)), Ok(()));
        }
        assert_eq!(body.into_bytes(), b"[1,2,3]");
        assert_eq!(Body::default().into_bytes(), b"");
    }

    fn shown(encoded: &[u8]) -> String {
        let mut reader = Reader::new(encoded);
        assert_eq!(reader.validate(), Ok(()));
        let mut body = Body::default();
        assert_eq!(body.put_value(&mut Reader::new(encoded)), Ok(()));
        String::from_utf8(body.into_bytes()).expect("text")
    }

    #[test]
    fn values_of_every_type_are_rendered() {
        for (encoded, json) in [
            // A descriptor that is described itself.
            (&[0x00, 0x00, 0x53, 1, 0x53, 2, 0x54, 7][..], "7"),
            (&[0xe0, 2, 4, 0x41], "[true,true,true,true]"),
            (
                &[0xe0, 9, 2, 0x00, 0xa3, 1, b'x', 0xa1, 1, b'a', 0],
                r#"["a",""]"#,
            ),
            (&[0x45], "[]"),
            (&[0x73, 0, 1, 0xf6, 0], "\"\u{1f600}\""),
            // An invalid character, and a decimal.
            (&[0x73, 0, 0, 0xd8, 0], "null"),
            (&[0x74, 0, 0, 0, 1], "null"),
            (
                &[0xc1, 6, 4, 0x54, 1, 0x41, 0x40, 0x42],
                r#"{"1":true,"null":false}"#,
            ),
            (&[0xc1, 4, 2, 0x45, 0x54, 5], "[[[],5]]"),
        ] {
            assert_eq!(shown(encoded), json);
        }
    }

    #[test]
    fn nested_maps_as_keys_are_rendered_in_limited_size() {
        let mut encoded = vec![0xa1, 4, b'"', b'"', b'"', b'"'];
        for _ in 1..MAX_DEPTH {
            let content = [&[2], &*encoded, &[0x40]].concat();
            encoded = [&[0xc1, content.len() as u8], &*content].concat();
        }
        let shown = shown(&encoded);
        assert!(shown.len() < 10 * encoded.len(), "{}", shown.len());
        let read: Json = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(read[0][1], Json::Null);
    }
}
