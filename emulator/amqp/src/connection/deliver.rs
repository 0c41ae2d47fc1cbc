//! Deliveries to the peer, split into frames and limited by the session window.

use bytes::Bytes;

use super::Connection;
use super::outbox::Outbox;
use crate::ids::{DeliveryNumber, LinkId};
use crate::session::{Backlog, Session};
use crate::unsettled::Entry;
use crate::wire::transfer::{self, Head};

/// Payloads above this size are sent by reference; copying smaller ones is cheaper.
const COPY_BYTES: usize = 16 * 1024;

/// An outgoing message.
#[derive(Debug, Clone)]
pub struct Delivery<'a> {
    /// Delivery tag: the lock token in .NET byte order (spec/wire.md §4.2).
    pub tag: [u8; 16],
    /// Whether the delivery is settled, so that no outcome is expected.
    pub settled: bool,
    /// Zero for a message.
    pub message_format: u32,
    /// First part of the encoded message; copied.
    pub head: &'a [u8],
    /// Second part; copied up to 16 KiB, else shared.
    pub tail: Bytes,
}

impl Connection {
    /// Sends a message on a link whose peer receives; returns its delivery number.
    ///
    /// Returns `None` and sends nothing if [`Connection::credit`] is zero. A message that needs more frames than the session
    /// window allows is finished when the window opens.
    pub fn deliver(&mut self, link: LinkId, delivery: Delivery<'_>) -> Option<DeliveryNumber> {
        let session = self.sessions.of_mut(link)?;
        if session.remote_window == 0 || session.backlog.is_some() {
            return None;
        }
        let found = session
            .link_by_id(link)
            .filter(|found| found.is_attached())?;
        let outgoing = found.outgoing().filter(|outgoing| outgoing.credit > 0)?;
        outgoing.credit -= 1;
        outgoing.drained_credit = 0;
        outgoing.delivery_count = outgoing.delivery_count.wrapping_add(1);
        let id = session.next_delivery;
        session.next_delivery += 1;
        if !delivery.settled {
            let entry = Entry {
                link,
                tag: delivery.tag,
                notified: false,
            };
            session.unsettled.insert(id, entry);
        }
        let head = Head {
            channel: link.channel(),
            handle: link.handle(),
            delivery_id: id as u32,
            tag: delivery.tag,
            message_format: delivery.message_format,
            settled: delivery.settled,
            more: false,
        };
        let payload = delivery.head.len() + delivery.tail.len();
        if payload + transfer::OVERHEAD <= self.outbox.max_frame_size {
            session.sent(1);
            let out = self.outbox.buffer();
            transfer::write(out, &head, payload);
            out.extend_from_slice(delivery.head);
            append(&mut self.outbox, delivery.tail);
        } else {
            let frame = self.outbox.max_frame_size - transfer::OVERHEAD;
            let left = send_frames(
                session,
                &mut self.outbox,
                head,
                delivery.head,
                delivery.tail,
                frame,
            );
            session.backlog = left.map(|left| {
                Box::new(Backlog {
                    link,
                    head,
                    first: Bytes::copy_from_slice(left.of(delivery.head)),
                    tail: left.tail,
                })
            });
        }
        Some(DeliveryNumber(id as u32))
    }

    /// Continues the delivery that the window has interrupted.
    pub(crate) fn resume(&mut self, channel: u16) {
        let frame = self.outbox.max_frame_size - transfer::OVERHEAD;
        let Some(session) = self.sessions.on(channel) else {
            return;
        };
        let Some(mut backlog) = session.backlog.take() else {
            return;
        };
        let left = send_frames(
            session,
            &mut self.outbox,
            backlog.head,
            &backlog.first,
            backlog.tail,
            frame,
        );
        if let Some(left) = left {
            backlog.first = backlog.first.slice_ref(left.of(&backlog.first));
            backlog.tail = left.tail;
            session.backlog = Some(backlog);
        }
    }
}

/// The rest of an interrupted delivery.
struct Remainder {
    /// Bytes of the first part.
    first: usize,
    tail: Bytes,
}

impl Remainder {
    fn of<'a>(&self, first: &'a [u8]) -> &'a [u8] {
        &first[first.len() - self.first..]
    }
}

/// Sends as many frames of at most `frame` bytes of payload as the window allows; returns the rest.
fn send_frames(
    session: &mut Session,
    outbox: &mut Outbox,
    mut head: Head,
    mut first: &[u8],
    mut tail: Bytes,
    frame: usize,
) -> Option<Remainder> {
    // A payload that is shared must not be copied because its last frame is short.
    let share = tail.len() > COPY_BYTES;
    while session.remote_window > 0 {
        let copied = first.len().min(frame);
        let rest = tail.len().min(frame - copied);
        head.more = copied + rest < first.len() + tail.len();
        session.sent(1);
        let out = outbox.buffer();
        transfer::write(out, &head, copied + rest);
        out.extend_from_slice(&first[..copied]);
        first = &first[copied..];
        let piece = tail.split_to(rest);
        match share {
            true => outbox.output().share(piece),
            false => outbox.buffer().extend_from_slice(&piece),
        }
        if !head.more {
            return None;
        }
    }
    Some(Remainder {
        first: first.len(),
        tail,
    })
}

fn append(outbox: &mut Outbox, tail: Bytes) {
    if tail.len() > COPY_BYTES {
        outbox.output().share(tail);
    } else {
        outbox.buffer().extend_from_slice(&tail);
    }
}
