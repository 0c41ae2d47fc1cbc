//! Rewrites the filter set of an encoded source and leaves every other byte as the peer wrote it.
//!
//! Needed for session receivers: the granted session id goes where the request for it was
//! (spec/wire.md §0.5), while the address must stay exactly what was sent.

use serde_amqp::Value;
use servicebus_codec::{DecodeError, Reader, Writer};

use super::{code, value};

/// Fields of a source (AMQP 1.0 §3.5.3).
const FIELDS: usize = 11;
const FILTER: usize = 7;

/// The source with the values of `filter` in place of those that have the same keys, or added.
pub(crate) fn with_filter(
    source: &[u8],
    filter: &[(String, Value)],
) -> Result<Vec<u8>, DecodeError> {
    let mut reader = Reader::new(source);
    reader.descriptor()?;
    let mut fields = reader.fields()?;
    let mut raw = [None; FIELDS];
    for field in &mut raw {
        *field = fields.raw()?;
    }
    let mut out = Vec::with_capacity(source.len() + 64);
    let mut writer = Writer::new(&mut out);
    writer.descriptor(code::SOURCE);
    let list = writer.begin_list();
    for (index, field) in raw.into_iter().enumerate() {
        match field {
            _ if index == FILTER => merged(&mut writer, field, filter)?,
            Some(encoded) => writer.raw(encoded),
            None => writer.null(),
        }
    }
    writer.end(list, FIELDS as u32);
    Ok(out)
}

fn merged(
    writer: &mut Writer<'_>,
    asked: Option<&[u8]>,
    filter: &[(String, Value)],
) -> Result<(), DecodeError> {
    let map = writer.begin_map();
    let mut count = 0;
    if let Some(asked) = asked {
        let asked = Reader::new(asked).map()?;
        let mut items = asked.items;
        for _ in 0..asked.count / 2 {
            let (key, value) = (items.skip()?, items.skip()?);
            let name = Reader::new(key).value()?.as_text();
            if filter
                .iter()
                .any(|(replaced, _)| Some(replaced.as_str()) == name)
            {
                continue;
            }
            writer.raw(key);
            writer.raw(value);
            count += 2;
        }
    }
    for (key, granted) in filter {
        writer.symbol(key);
        value::write(writer, granted);
        count += 2;
    }
    writer.end(map, count);
    Ok(())
}
