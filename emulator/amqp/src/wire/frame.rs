//! The boundaries of frames (AMQP 1.0 §2.3), in both directions.

use servicebus_codec::{DecodeError, Descriptor, Reader};

use crate::error::Fault;

/// The frame header without the extended part.
const HEADER: usize = 8;

/// The largest frame that every peer accepts (AMQP 1.0 §2.3.1).
pub(crate) const SMALLEST_LIMIT: usize = 512;

/// The frame type of everything but SASL.
pub(crate) const AMQP: u8 = 0;
/// The frame type of the SASL layer.
pub(crate) const SASL: u8 = 1;

/// One frame, as offsets into its block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) channel: u16,
    /// Offset of the body.
    pub(crate) body: usize,
    /// Offset of the end.
    pub(crate) end: usize,
}

/// Returns how many bytes of `input` are complete frames, each of at most `max` bytes.
///
/// Stops before a frame with an impossible size, so that the valid ones before it are handled; the next call then starts at
/// that frame and fails.
pub(crate) fn complete(input: &[u8], max: u32) -> Result<usize, Fault> {
    let mut end = 0;
    while let Some(&size) = input[end..].first_chunk::<4>() {
        let size = u32::from_be_bytes(size);
        if !(HEADER as u32..=max).contains(&size) {
            if end > 0 {
                break;
            }
            return Err(Fault::framing(format!(
                "a frame of {size} bytes is outside of {HEADER} to {max}"
            )));
        }
        if input.len() - end < size as usize {
            break;
        }
        end += size as usize;
    }
    Ok(end)
}

/// Returns the size of the complete frame at the start of `input`.
pub(crate) fn size(input: &[u8]) -> usize {
    let size = input.first_chunk::<4>().copied().unwrap_or_default();
    u32::from_be_bytes(size) as usize
}

/// Reads the header of the complete frame at `start`.
pub(crate) fn parse(block: &[u8], start: usize) -> Result<Frame, Fault> {
    let Some(&[a, b, c, d, offset, kind, high, low]) = block[start..].first_chunk::<HEADER>()
    else {
        return Err(Fault::framing("frame header is cut off"));
    };
    let size = u32::from_be_bytes([a, b, c, d]) as usize;
    let body = usize::from(offset) * 4;
    if body < HEADER || body > size {
        return Err(Fault::framing(format!(
            "data offset {offset} does not fit a frame of {size} bytes"
        )));
    }
    Ok(Frame {
        kind,
        channel: u16::from_be_bytes([high, low]),
        body: start + body,
        end: start + size,
    })
}

/// Returns the code of the performative at the start of `body`.
pub(crate) fn performative(body: &[u8]) -> Result<u8, Fault> {
    if let Some(&[0x00, 0x53, code]) = body.first_chunk::<3>() {
        return Ok(code);
    }
    let code = match Reader::new(body).descriptor()? {
        Descriptor::Code(code) => u8::try_from(code).ok(),
        Descriptor::Symbol(name) => named(name),
    };
    code.ok_or_else(|| {
        DecodeError::Unexpected {
            expected: "a performative",
            code: 0,
        }
        .into()
    })
}

/// Returns the numeric code of a performative that is named by symbol. No known client does this.
fn named(name: &str) -> Option<u8> {
    const NAMES: [&str; 9] = [
        "amqp:open:list",
        "amqp:begin:list",
        "amqp:attach:list",
        "amqp:flow:list",
        "amqp:transfer:list",
        "amqp:disposition:list",
        "amqp:detach:list",
        "amqp:end:list",
        "amqp:close:list",
    ];
    let index = NAMES.iter().position(|known| *known == name)?;
    Some(super::code::OPEN + index as u8)
}

/// Starts a frame at the end of `out`; pass the result to [`end`].
pub(crate) fn begin(out: &mut Vec<u8>, kind: u8, channel: u16) -> usize {
    let start = out.len();
    let [high, low] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, 2, kind, high, low]);
    start
}

/// Ends the frame that began at `start`.
pub(crate) fn end(out: &mut [u8], start: usize) {
    let size = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_frames_count() {
        let mut input = vec![0, 0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 9, 2, 0, 0, 0];
        assert_eq!(complete(&input, 512).unwrap(), 8);
        input.push(0);
        assert_eq!(complete(&input, 512).unwrap(), 17);
        assert_eq!(complete(&input[..7], 512).unwrap(), 0);
        assert_eq!(complete(&input[..3], 512).unwrap(), 0);
    }

    #[test]
    fn complete_frames_before_an_invalid_size_are_read_first() {
        let input = [0, 0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 7];
        assert_eq!(complete(&input, 512).unwrap(), 8);
        assert!(complete(&input[8..], 512).is_err());
        assert!(complete(&[0, 0, 2, 1], 512).is_err());
    }

    #[test]
    fn a_data_offset_outside_the_frame_is_an_error() {
        assert!(parse(&[0, 0, 0, 8, 1, 0, 0, 0], 0).is_err());
        assert!(parse(&[0, 0, 0, 8, 3, 0, 0, 0], 0).is_err());
        let frame = parse(&[0, 0, 0, 12, 3, 0, 1, 2, 9, 9, 9, 9], 0).unwrap();
        assert_eq!((frame.channel, frame.body, frame.end), (0x102, 12, 12));
    }
}
