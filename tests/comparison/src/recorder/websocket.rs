//! The bytes within the frames of one direction of a WebSocket (RFC 6455 §5.2).

use bytes::{Buf as _, BytesMut};

/// The shortest header.
const HEADER: usize = 2;
/// Frames of control have an operation code from here on, and no bytes of the stream.
const CONTROL: u8 = 8;

/// What is not decoded yet.
#[derive(Debug, Default)]
pub(super) struct Unframed {
    left: BytesMut,
    frame: Option<Open>,
}

/// A frame whose bytes are coming.
#[derive(Debug)]
struct Open {
    length: u64,
    mask: Option<[u8; 4]>,
    /// How many bytes have come, which says where the mask is.
    come: usize,
    is_control: bool,
}

impl Unframed {
    /// Takes what was trace next; the bytes of the stream in it.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.left.extend_from_slice(bytes);
        let mut stream = Vec::new();
        while let Some(mut frame) = self.frame.take().or_else(|| header(&mut self.left)) {
            let there = usize::try_from(frame.length).unwrap_or(usize::MAX);
            let part = self.left.split_to(there.min(self.left.len()));
            if !frame.is_control {
                stream.extend(part.iter().enumerate().map(|(index, byte)| {
                    let mask = frame.mask.map_or(0, |mask| mask[(frame.come + index) % 4]);
                    byte ^ mask
                }));
            }
            frame.come += part.len();
            frame.length -= part.len() as u64;
            if frame.length > 0 {
                self.frame = Some(frame);
                break;
            }
        }
        stream
    }
}

/// Takes a header, once it is whole.
fn header(left: &mut BytesMut) -> Option<Open> {
    let &[first, second] = left.first_chunk::<HEADER>()?;
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let is_masked = second & 0x80 != 0;
    let size = HEADER + extended + if is_masked { 4 } else { 0 };
    if left.len() < size {
        return None;
    }
    left.advance(HEADER);
    let length = match extended {
        0 => u64::from(second & 0x7f),
        2 => u64::from(left.get_u16()),
        _ => left.get_u64(),
    };
    Some(Open {
        length,
        mask: is_masked.then(|| left.get_u32().to_be_bytes()),
        come: 0,
        is_control: first & 0x0f >= CONTROL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_masks_are_removed() {
        let mut stream = b"\x82\x85".to_vec();
        stream.extend([1, 2, 3, 4]);
        let masked = b"hello".iter().enumerate();
        stream.extend(masked.map(|(index, byte)| byte ^ (index as u8 % 4 + 1)));
        stream.extend(b"\x89\x01p\x82\x7e\x00\x02, \x80\x01w");
        for piece in [1, 3, 100] {
            let mut unframed = Unframed::default();
            let trace = stream.chunks(piece).flat_map(|piece| unframed.push(piece));
            assert_eq!(Vec::from_iter(trace), b"hello, w");
        }
    }
}
