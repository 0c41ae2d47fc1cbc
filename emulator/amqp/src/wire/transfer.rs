//! The transfer performative (AMQP 1.0 §2.7.5).
//!
//! Written in one fixed layout with all eleven fields, because some Python versions take the payload for the twelfth
//! element.

use servicebus_codec::{DecodeError, Reader};

/// Bytes of an outgoing frame before its payload.
pub(crate) const OVERHEAD: usize = 54;

/// The fields of an incoming transfer that the engine needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer<'a> {
    pub(crate) handle: u32,
    /// Absent in continuations.
    pub(crate) delivery_id: Option<u32>,
    /// Absent in continuations.
    pub(crate) tag: Option<&'a [u8]>,
    pub(crate) message_format: Option<u32>,
    pub(crate) settled: bool,
    pub(crate) more: bool,
    /// The encoded delivery state.
    pub(crate) state: Option<&'a [u8]>,
    pub(crate) aborted: bool,
    /// Offset of the payload in the body.
    pub(crate) payload: usize,
}

/// Reads the performative at the start of a frame's body.
#[inline]
pub(crate) fn read(body: &[u8]) -> Result<Transfer<'_>, DecodeError> {
    let mut reader = Reader::new(body);
    reader.descriptor()?;
    let mut fields = reader.fields()?;
    let handle = fields
        .u32()?
        .ok_or(DecodeError::Missing { field: "handle" })?;
    let delivery_id = fields.u32()?;
    let tag = fields.binary()?;
    let message_format = fields.u32()?;
    let settled = fields.bool()?.unwrap_or(false);
    let more = fields.bool()?.unwrap_or(false);
    let _settle_mode = fields.u32()?;
    let state = fields.raw()?;
    let _resume = fields.bool()?;
    let aborted = fields.bool()?.unwrap_or(false);
    Ok(Transfer {
        handle,
        delivery_id,
        tag,
        message_format,
        settled,
        more,
        state,
        aborted,
        payload: reader.position(),
    })
}

/// One outgoing frame. Continuations repeat id, tag and format, as go-amqp allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) channel: u16,
    pub(crate) handle: u32,
    pub(crate) delivery_id: u32,
    pub(crate) tag: [u8; 16],
    pub(crate) message_format: u32,
    pub(crate) settled: bool,
    pub(crate) more: bool,
}

const FALSE: u8 = 0x42;
const TRUE: u8 = 0x41;
const NULL: u8 = 0x40;

/// Appends the frame up to its payload of `payload` bytes, which the caller appends.
pub(crate) fn write(out: &mut Vec<u8>, head: &Head, payload: usize) {
    let flag = |value| if value { TRUE } else { FALSE };
    let [s0, s1, s2, s3] = ((OVERHEAD + payload) as u32).to_be_bytes();
    let [c0, c1] = head.channel.to_be_bytes();
    let [h0, h1, h2, h3] = head.handle.to_be_bytes();
    let [d0, d1, d2, d3] = head.delivery_id.to_be_bytes();
    #[rustfmt::skip]
    let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, ta, tb, tc, td, te, tf] = head.tag;
    let [f0, f1, f2, f3] = head.message_format.to_be_bytes();
    #[rustfmt::skip]
    let frame: [u8; OVERHEAD] = [
        s0, s1, s2, s3, 2, 0, c0, c1, // size, offset, type, channel
        0x00, 0x53, 0x14, 0xc0, 41, 11, // transfer, list8
        0x70, h0, h1, h2, h3, // handle
        0x70, d0, d1, d2, d3, // delivery-id
        0xa0, 16, t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, ta, tb, tc, td, te, tf, // delivery-tag
        0x70, f0, f1, f2, f3, // message-format
        flag(head.settled), flag(head.more),
        NULL, NULL, FALSE, FALSE, FALSE, // settle mode, state, resume, aborted, batchable
    ];
    out.extend_from_slice(&frame);
}

#[cfg(test)]
mod tests {
    use servicebus_codec::Value;

    use super::*;

    const HEAD: Head = Head {
        channel: 3,
        handle: 700,
        delivery_id: u32::MAX,
        tag: *b"0123456789abcdef",
        message_format: 0x8001_3700,
        settled: true,
        more: true,
    };

    #[test]
    fn what_is_written_is_a_valid_transfer() {
        let mut out = Vec::new();
        write(&mut out, &HEAD, 2);
        out.extend_from_slice(&[1, 2]);
        assert_eq!(out[..8], [0, 0, 0, 56, 2, 0, 0, 3]);
        let read = read(&out[8..]).unwrap();
        assert_eq!(
            read,
            Transfer {
                handle: 700,
                delivery_id: Some(u32::MAX),
                tag: Some(&HEAD.tag),
                message_format: Some(0x8001_3700),
                settled: true,
                more: true,
                state: None,
                aborted: false,
                payload: OVERHEAD - 8,
            }
        );
    }

    #[test]
    fn the_tag_is_the_third_of_eleven_fields() {
        let mut out = Vec::new();
        write(&mut out, &HEAD, 0);
        let mut reader = Reader::new(&out[8..]);
        reader.descriptor().unwrap();
        let list = reader.list().unwrap();
        assert_eq!(list.count, 11);
        let mut items = list.items;
        let values: Vec<Value<'_>> = (0..11).map(|_| items.value().unwrap()).collect();
        assert_eq!(values[2], Value::Binary(&HEAD.tag));
        assert!(items.is_empty());
    }
}
