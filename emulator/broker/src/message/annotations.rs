//! Annotation maps: what the sender put there stays, what the broker owns is written afresh.

use servicebus_codec::{DecodeError, Reader, Writer};

use super::sections;

/// Annotations that only the broker sets; values that a sender put there are dropped (wire.md §7.1).
const OWNED: [&str; 8] = [
    "x-opt-sequence-number",
    "x-opt-enqueued-time",
    "x-opt-locked-until",
    "x-opt-enqueue-sequence-number",
    "x-opt-message-state",
    "x-opt-deadletter-source",
    "x-opt-partition-id",
    "x-opt-lock-token",
];

/// Writes an annotation section: the sender's entries, then those that `add` appends (it says how many).
/// A null is left out, which means the same: some SDKs cast the values they know (wire.md §7.1).
pub(super) fn write(
    code: u64,
    sent: &[u8],
    out: &mut Writer<'_>,
    add: impl FnOnce(&mut Writer<'_>) -> u32,
) -> Result<(), DecodeError> {
    out.descriptor(code as u8);
    let mark = out.begin_map();
    let mut entries = 0;
    if !sent.is_empty() {
        let map = sections::content(sent)?.map()?;
        let mut items = map.items;
        for _ in 0..map.count / 2 {
            let (key, value) = (items.skip()?, items.skip()?);
            if !is_owned(key)? && !Reader::new(value).take_null() {
                out.raw(key);
                out.raw(value);
                entries += 1;
            }
        }
    }
    entries += add(out);
    out.end(mark, entries * 2);
    Ok(())
}

fn is_owned(key: &[u8]) -> Result<bool, DecodeError> {
    let name = Reader::new(key).value()?.as_text();
    Ok(name.is_some_and(|name| OWNED.contains(&name)))
}
