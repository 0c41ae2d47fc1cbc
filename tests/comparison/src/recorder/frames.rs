//! Where the frames of one direction begin and end.

use bytes::{Buf as _, Bytes, BytesMut};

/// The header of a frame without its extended part, and of a protocol.
const HEADER: usize = 8;
/// Longest frame that is decoded, in bytes; clients agree on 64 KiB, or on 1 MiB.
const MAX_FRAME: usize = 2 * 1024 * 1024;

/// The bytes of one direction that are not a whole frame yet.
#[derive(Debug, Default)]
pub(super) struct Frames {
    left: BytesMut,
}

/// One whole frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// 0 for AMQP, 1 for SASL.
    pub(super) kind: u8,
    pub(super) channel: u16,
    pub(super) body: Bytes,
}

impl Frames {
    /// Takes what was trace next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.left.extend_from_slice(bytes);
    }

    /// Returns the next whole frame, or why there will be none.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, String> {
        while self.left.starts_with(b"AMQP") && self.left.len() >= HEADER {
            self.left.advance(HEADER);
        }
        let Some(&[a, b, c, d, offset, kind, high, low]) = self.left.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        let body = usize::from(offset) * 4;
        if size > MAX_FRAME || body < HEADER || body > size {
            return Err(format!(
                "a frame of {size} bytes whose body begins at {body}; decoded are {HEADER} to {MAX_FRAME}"
            ));
        }
        if self.left.len() < size {
            return Ok(None);
        }
        Ok(Some(Frame {
            kind,
            channel: u16::from_be_bytes([high, low]),
            body: self.left.split_to(size).freeze().slice(body..),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_split_at_any_read_boundary() {
        let stream = b"AMQP\x00\x01\x00\x00\0\0\0\x09\x02\0\0\x05x\0\0\0\x08\x02\x01\0\0";
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for byte in stream {
            frames.push(&[*byte]);
            found.extend(frames.next().unwrap());
        }
        let frame = |kind, channel, body: &'static [u8]| Frame {
            kind,
            channel,
            body: Bytes::from_static(body),
        };
        assert_eq!(found, [frame(0, 5, b"x"), frame(1, 0, b"")]);
    }

    #[test]
    fn a_frame_beyond_the_limit_is_an_error() {
        for wrong in [b"\x7f\0\0\0\x02\0\0\0", b"\0\0\0\x08\x01\0\0\0"] {
            let mut frames = Frames::default();
            frames.push(wrong);
            assert!(frames.next().is_err());
        }
    }
}
