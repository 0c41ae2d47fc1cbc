//! The flow performative (AMQP 1.0 §2.7.4).

use servicebus_codec::{DecodeError, Reader, Writer};

use super::{code, frame};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) next_incoming_id: Option<u32>,
    pub(crate) incoming_window: u32,
    pub(crate) handle: Option<u32>,
    pub(crate) delivery_count: Option<u32>,
    pub(crate) link_credit: Option<u32>,
    pub(crate) drain: bool,
    pub(crate) echo: bool,
}

/// Reads the performative at the start of a frame's body.
pub(crate) fn read(body: &[u8]) -> Result<Flow, DecodeError> {
    let mut reader = Reader::new(body);
    reader.descriptor()?;
    let mut fields = reader.fields()?;
    let next_incoming_id = fields.u32()?;
    let incoming_window = fields.u32()?.ok_or(DecodeError::Missing {
        field: "incoming-window",
    })?;
    let _next_outgoing_id = fields.u32()?;
    let _outgoing_window = fields.u32()?;
    let handle = fields.u32()?;
    let delivery_count = fields.u32()?;
    let link_credit = fields.u32()?;
    let _available = fields.u32()?;
    let drain = fields.bool()?.unwrap_or(false);
    let echo = fields.bool()?.unwrap_or(false);
    Ok(Flow {
        next_incoming_id,
        incoming_window,
        handle,
        delivery_count,
        link_credit,
        drain,
        echo,
    })
}

/// The session's part of an outgoing flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionPart {
    pub(crate) next_incoming_id: u32,
    pub(crate) incoming_window: u32,
    pub(crate) next_outgoing_id: u32,
    pub(crate) outgoing_window: u32,
}

/// The link's part of an outgoing flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkPart {
    pub(crate) handle: u32,
    pub(crate) delivery_count: u32,
    pub(crate) link_credit: u32,
    pub(crate) drain: bool,
}

/// Appends a flow with all eleven fields; never asks for an echo (spec/wire.md §10.25).
pub(crate) fn write(out: &mut Vec<u8>, channel: u16, session: SessionPart, link: Option<LinkPart>) {
    let start = frame::begin(out, frame::AMQP, channel);
    out.extend_from_slice(&[0x00, 0x53, code::FLOW, 0xc0, 0, 11]);
    let list = out.len() - 1;
    let mut writer = Writer::new(out);
    writer.uint(session.next_incoming_id);
    writer.uint(session.incoming_window);
    writer.uint(session.next_outgoing_id);
    writer.uint(session.outgoing_window);
    match link {
        Some(link) => {
            writer.uint(link.handle);
            writer.uint(link.delivery_count);
            writer.uint(link.link_credit);
            writer.uint(0);
        }
        None => (0..4).for_each(|_| writer.null()),
    }
    writer.bool(link.is_some_and(|link| link.drain));
    writer.bool(false);
    writer.null();
    // Eight numbers of at most five bytes and four of one: always a list8.
    out[list - 1] = (out.len() - list) as u8;
    frame::end(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_flow_decodes_to_its_values() {
        let session = SessionPart {
            next_incoming_id: u32::MAX,
            incoming_window: 5000,
            next_outgoing_id: 0,
            outgoing_window: u32::MAX,
        };
        let link = LinkPart {
            handle: 1,
            delivery_count: 300,
            link_credit: 0,
            drain: true,
        };
        let mut out = Vec::new();
        write(&mut out, 7, session, Some(link));
        assert_eq!(out[..4], (out.len() as u32).to_be_bytes());
        let flow = read(&out[8..]).unwrap();
        assert_eq!(flow.next_incoming_id, Some(u32::MAX));
        assert_eq!(flow.handle, Some(1));
        assert_eq!(flow.delivery_count, Some(300));
        assert_eq!(flow.link_credit, Some(0));
        assert!(flow.drain && !flow.echo);

        out.clear();
        write(&mut out, 7, session, None);
        assert_eq!(read(&out[8..]).unwrap().handle, None);
        let mut reader = Reader::new(&out[8..]);
        reader.validate().unwrap();
        assert!(reader.is_empty());
    }
}
