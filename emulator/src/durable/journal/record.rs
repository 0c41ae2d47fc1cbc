//! A record of the journal: a batch as bytes, behind its length, generation and checksum.

use std::num::NonZeroU64;

use bytes::{Buf as _, Bytes};
use servicebus_broker::BodyId;

use super::super::Batch;

/// What stands before the payload of a record: its length, generation and checksum.
pub(super) const HEAD: usize = 20;

/// The bytes of a message in a record: where they begin in it, and how many they are.
pub(super) type Part = (BodyId, u64, usize);

/// Writes a batch behind the room for its head; returns where the bytes of messages are.
pub(super) fn encode(batch: &Batch, out: &mut Vec<u8>) -> Vec<Part> {
    let part = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(bytes);
    };
    let value = |out: &mut Vec<u8>, value: &Option<Bytes>| {
        out.push(u8::from(value.is_some()));
        part(out, value.as_deref().unwrap_or_default());
    };
    out.clear();
    out.resize(HEAD, 0);
    out.extend((batch.removed.len() as u32).to_be_bytes());
    batch.removed.iter().for_each(|prefix| part(out, prefix));
    out.extend((batch.rows.len() as u32).to_be_bytes());
    for (key, row) in &batch.rows {
        part(out, key);
        value(out, row);
    }
    let mut parts = Vec::with_capacity(batch.bodies.len());
    for (body, bytes) in &batch.bodies {
        out.extend_from_slice(&body.0.get().to_be_bytes());
        value(out, bytes);
        if let Some(bytes) = bytes {
            parts.push((*body, (out.len() - bytes.len()) as u64, bytes.len()));
        }
    }
    parts
}

/// Writes the head of a record.
pub(super) fn seal(record: &mut [u8], generation: u64, lap: u32) {
    let length = (record.len() - HEAD) as u64;
    let checksum = checksum(&record[HEAD..], lap);
    record[..8].copy_from_slice(&length.to_be_bytes());
    record[8..16].copy_from_slice(&generation.to_be_bytes());
    record[16..HEAD].copy_from_slice(&checksum.to_be_bytes());
}

/// How long the payload behind a head is, and of which generation.
pub(super) fn length_and_generation(head: &[u8]) -> (u64, u64) {
    let (numbers, _) = head.as_chunks();
    (
        u64::from_be_bytes(numbers[0]),
        u64::from_be_bytes(numbers[1]),
    )
}

/// Whether a record is whole, and was written in this lap.
pub(super) fn is_of(record: &[u8], lap: u32) -> bool {
    record[16..HEAD] == checksum(&record[HEAD..], lap).to_be_bytes()
}

/// What [`encode`] wrote, without the head; none where that cannot be.
pub(super) fn decode(mut payload: Bytes) -> Option<Batch> {
    let rest = &mut payload;
    let mut batch = Batch::default();
    for _ in 0..number(rest)? {
        batch.removed.push(part(rest)?.to_vec());
    }
    for _ in 0..number(rest)? {
        let key = part(rest)?.to_vec();
        batch.rows.insert(key, value(rest)?);
    }
    while !rest.is_empty() {
        let body = NonZeroU64::new(rest.try_get_u64().ok()?)?;
        batch.bodies.insert(BodyId(body), value(rest)?);
    }
    Some(batch)
}

/// Laps beside each other differ in many bits: a single one that was flipped does not make one the other.
fn checksum(payload: &[u8], lap: u32) -> u32 {
    crc32fast::hash(payload) ^ lap.wrapping_mul(0x9e37_79b1)
}

fn number(rest: &mut Bytes) -> Option<u32> {
    rest.try_get_u32().ok()
}

fn part(rest: &mut Bytes) -> Option<Bytes> {
    let length = number(rest)? as usize;
    (length <= rest.len()).then(|| rest.split_to(length))
}

fn value(rest: &mut Bytes) -> Option<Option<Bytes>> {
    let is_there = rest.try_get_u8().ok()? != 0;
    let bytes = part(rest)?;
    Some(is_there.then_some(bytes))
}
