//! The format of a journal record: a header of length, generation and checksum, and the encoded batch; and the errors of a journal
//! that does not have it.

use std::io;
use std::num::NonZeroU64;

use bytes::{Buf as _, Bytes};
use servicebus_broker::BodyId;

use super::super::Batch;

/// Bytes of the header.
pub(super) const HEADER: usize = 20;

/// A body in a record: its offset and its length.
pub(super) type Part = (BodyId, u64, usize);

/// The inner error of a damaged journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DamagedJournal {
    #[error("a record is damaged")]
    Record,
    /// Bytes that the file has, and that it must have at least.
    #[error("it was cut: it has {0} bytes instead of {1}")]
    Cut(u64, u64),
}

/// Encodes a batch behind an empty header; returns where its bodies are.
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
    out.resize(HEADER, 0);
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

pub(super) fn write_header(record: &mut [u8], generation: u64, lap: u32) {
    let length = (record.len() - HEADER) as u64;
    let checksum = checksum(&record[HEADER..], lap);
    record[..8].copy_from_slice(&length.to_be_bytes());
    record[8..16].copy_from_slice(&generation.to_be_bytes());
    record[16..HEADER].copy_from_slice(&checksum.to_be_bytes());
}

/// The length of the payload and the generation of a header.
pub(super) fn length_and_generation(header: &[u8]) -> (u64, u64) {
    let (numbers, _) = header.as_chunks();
    (
        u64::from_be_bytes(numbers[0]),
        u64::from_be_bytes(numbers[1]),
    )
}

/// Whether the checksum of a record is the one of its payload and this lap.
pub(super) fn is_valid(record: &[u8], lap: u32) -> bool {
    record[16..HEADER] == checksum(&record[HEADER..], lap).to_be_bytes()
}

/// Decodes a payload of [`encode`]; none if it has another form.
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

pub(crate) fn damaged(reason: DamagedJournal) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

pub(crate) fn damaged_record() -> io::Error {
    damaged(DamagedJournal::Record)
}

/// The factor makes neighbouring laps differ in many bits: one flipped bit does not turn one lap into the other.
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
