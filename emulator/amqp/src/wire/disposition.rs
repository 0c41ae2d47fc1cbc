//! The disposition performative (AMQP 1.0 §2.7.6).

use servicebus_codec::{DecodeError, Reader};

use super::{code, frame, state};
use crate::error::{Fault, condition};
use crate::unsettled::{DeliveryState, Outcome};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disposition<'a> {
    /// Whether the peer is the receiver of these deliveries.
    pub(crate) from_receiver: bool,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) settled: bool,
    /// The encoded delivery state.
    pub(crate) state: Option<&'a [u8]>,
}

impl Disposition<'_> {
    /// Checks that `last` does not precede `first` in serial numbers (AMQP 1.0 §2.7.6, RFC 1982).
    pub(crate) fn check_range(&self) -> Result<(), Fault> {
        let (first, last) = (self.first, self.last);
        if last.wrapping_sub(first) <= i32::MAX as u32 {
            return Ok(());
        }
        let description = format!(
            "the disposition has last {last}, which precedes first {first}; it must be at most {} later",
            i32::MAX
        );
        Err(Fault::session(condition::INVALID_FIELD, description))
    }
}

/// Reads the performative at the start of a frame's body.
pub(crate) fn read(body: &[u8]) -> Result<Disposition<'_>, DecodeError> {
    let mut reader = Reader::new(body);
    reader.descriptor()?;
    let mut fields = reader.fields()?;
    let from_receiver = fields
        .bool()?
        .ok_or(DecodeError::Missing { field: "role" })?;
    let first = fields
        .u32()?
        .ok_or(DecodeError::Missing { field: "first" })?;
    let last = fields.u32()?.unwrap_or(first);
    let settled = fields.bool()?.unwrap_or(false);
    let state = fields.raw()?;
    Ok(Disposition {
        from_receiver,
        first,
        last,
        settled,
        state,
    })
}

/// Appends a disposition. Every SDK treats only settled ones as final (spec/wire.md §3.4, §10a.7).
pub(crate) fn write(
    out: &mut Vec<u8>,
    channel: u16,
    from_receiver: bool,
    (first, last): (u32, u32),
    settled: bool,
    state: &DeliveryState,
) {
    let start = frame::begin(out, frame::AMQP, channel);
    out.extend_from_slice(&[0x00, 0x53, code::DISPOSITION]);
    let list = out.len();
    let short = matches!(
        state,
        DeliveryState::Outcome(Outcome::Accepted | Outcome::Released)
    );
    if short {
        out.extend_from_slice(&[0xc0, 18, 6]);
    } else {
        out.extend_from_slice(&[0xd0, 0, 0, 0, 0, 0, 0, 0, 6]);
    }
    let [a, b, c, d] = first.to_be_bytes();
    let [e, f, g, h] = last.to_be_bytes();
    let bool = |value| if value { 0x41 } else { 0x42 };
    let (role, settled) = (bool(from_receiver), bool(settled));
    out.extend_from_slice(&[role, 0x70, a, b, c, d, 0x70, e, f, g, h, settled]);
    state::write_state(out, state);
    out.push(0x42);
    if !short {
        let size = (out.len() - list - 5) as u32;
        out[list + 1..list + 5].copy_from_slice(&size.to_be_bytes());
    }
    frame::end(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_written_disposition_decodes_to_its_values() {
        let outcomes = [
            Outcome::Accepted,
            Outcome::Released,
            Outcome::Rejected { error: None },
            Outcome::from(Error::new("a:b", "c".repeat(300))),
        ];
        for outcome in outcomes {
            for (from_receiver, settled) in [(false, true), (true, true), (false, false)] {
                let mut out = Vec::new();
                let written = outcome.clone().into();
                write(&mut out, 2, from_receiver, (u32::MAX, 1), settled, &written);
                assert_eq!(out[..4], (out.len() as u32).to_be_bytes());
                let mut reader = Reader::new(&out[8..]);
                reader.validate().unwrap();
                assert!(reader.is_empty());
                let read = read(&out[8..]).unwrap();
                assert_eq!(read.from_receiver, from_receiver);
                assert_eq!((read.first, read.last), (u32::MAX, 1));
                assert_eq!(read.settled, settled);
                let state = state::read(read.state.unwrap()).unwrap();
                assert_eq!(state.outcome, Some(outcome.clone()));
            }
        }
    }
}
