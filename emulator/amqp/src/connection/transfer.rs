//! Deliveries from the peer (AMQP 1.0 §2.6.14): reassembled, counted and passed to the owner.

use std::collections::VecDeque;

use bytes::Bytes;

use super::attach::unattached;
use super::flow::{request_link_flow, request_session_flow};
use super::{Connection, PendingFlow};
use crate::error::{Fault, condition};
use crate::event::{Event, Transfer};
use crate::ids::{DeliveryNumber, LinkId};
use crate::link::{Incoming, Link, Partial};
use crate::wire::frame::Frame;
use crate::wire::{state, transfer};

/// Smaller payloads are moved into memory of their exact size. The excess of larger ones was never touched, and moving them
/// takes long.
const SHRUNK_BYTES: usize = 1024 * 1024;
/// Bytes that are kept of a delivery above the limit, so that the owner can answer a request.
const HEAD_BYTES: usize = 4096;

impl Connection {
    pub(crate) fn on_transfer(&mut self, block: &Bytes, frame: Frame) -> Result<(), Fault> {
        let transfer = transfer::read(&block[frame.body..frame.end])
            .map_err(|error| Fault::decoding("transfer", error))?;
        let Some(session) = self.sessions.live(frame.channel)? else {
            return Ok(());
        };
        session.next_incoming_id = session.next_incoming_id.wrapping_add(1);
        session.incoming_window = session.incoming_window.saturating_sub(1);
        if session.incoming_window <= self.config.session_window / 2 {
            request_session_flow(&mut self.pending_flows, frame.channel, session);
        }
        let handle = transfer.handle;
        let link = session
            .link(handle)
            .ok_or_else(|| unattached(frame.channel, handle))?;
        let id = link.id;
        if link.is_detaching() {
            if let Some(transaction) = transaction(&transfer)? {
                self.events.push_back(Event::TransferDropped {
                    link: id,
                    settled: transfer.settled,
                    transaction,
                });
            }
            return Ok(());
        }
        let Some(incoming) = link.incoming() else {
            let description = "transfers go the other way on this link";
            return Err(Fault::link(handle, condition::NOT_ALLOWED, description));
        };
        let payload = block.slice(frame.body + transfer.payload..frame.end);
        if incoming.partial.is_none() && !transfer.more && !transfer.aborted {
            let size = payload.len();
            if whole(id, incoming.limit, &transfer, payload, &mut self.events)? {
                self.unreported += size;
            }
        } else {
            let event = part(id, incoming, &transfer, payload, &mut self.reassembly)?;
            if let Some(Event::Transfer(transfer)) = &event {
                self.unreported += transfer.payload.len();
            }
            self.events.extend(event);
        }
        if !transfer.more || transfer.aborted {
            count(link, &mut self.pending_flows, self.config.incoming_credit);
        }
        Ok(())
    }
}

/// Handles a delivery in one frame; returns whether the link accepts it. The event is built in place, since moving it costs
/// more than reading it.
#[inline]
fn whole(
    link: LinkId,
    limit: u64,
    transfer: &transfer::Transfer<'_>,
    payload: Bytes,
    events: &mut VecDeque<Event>,
) -> Result<bool, Fault> {
    let delivery = delivery_id(link, transfer)?;
    let transaction = transaction(transfer)?;
    let size = payload.len() as u64;
    if size > limit {
        events.push_back(Event::TransferTooLarge {
            link,
            delivery,
            settled: transfer.settled,
            size,
            limit,
            head: payload[..payload.len().min(HEAD_BYTES)].into(),
            transaction,
        });
        return Ok(false);
    }
    events.push_back(Event::Transfer(Transfer {
        link,
        delivery,
        settled: transfer.settled,
        message_format: transfer.message_format.unwrap_or(0),
        payload,
        transaction,
    }));
    Ok(true)
}

/// Handles one frame of a delivery in several. Returns the event of the last one.
fn part(
    link: LinkId,
    incoming: &mut Incoming,
    transfer: &transfer::Transfer<'_>,
    payload: Bytes,
    reassembly: &mut usize,
) -> Result<Option<Event>, Fault> {
    let limit = incoming.limit;
    let mut partial = match incoming.partial.take() {
        Some(partial) => {
            *reassembly -= partial.held();
            match continues(&partial, transfer) {
                true => partial,
                // go-amqp leaves a delivery unfinished if its send is cancelled, and begins the next one.
                false => Box::new(start(link, transfer)?),
            }
        }
        None => Box::new(start(link, transfer)?),
    };
    if transfer.aborted {
        return Ok(None);
    }
    partial.settled |= transfer.settled;
    if let Some(transaction) = transaction(transfer)? {
        partial.transaction = Some(transaction);
    }
    partial.append(&payload, limit);
    if !transfer.more {
        return Ok(Some(finished(link, *partial, limit)));
    }
    *reassembly += partial.held();
    incoming.partial = Some(partial);
    Ok(None)
}

/// Returns whether a frame belongs to the delivery in progress. fe2o3-amqp splits a message above the link's limit into
/// transfers with ids of their own; the tag stays the same.
fn continues(partial: &Partial, transfer: &transfer::Transfer<'_>) -> bool {
    let same_id = transfer
        .delivery_id
        .is_none_or(|id| id == partial.delivery.0);
    same_id || transfer.tag.is_none_or(|tag| *tag == *partial.tag)
}

fn start(link: LinkId, transfer: &transfer::Transfer<'_>) -> Result<Partial, Fault> {
    Ok(Partial {
        delivery: delivery_id(link, transfer)?,
        tag: transfer.tag.unwrap_or_default().into(),
        settled: false,
        message_format: transfer.message_format.unwrap_or(0),
        transaction: None,
        data: Vec::new(),
        size: 0,
    })
}

fn finished(link: LinkId, mut partial: Partial, limit: u64) -> Event {
    // It is cut if it exceeded the limit of a link that was not accepted yet.
    if partial.size > limit || partial.is_cut() {
        return Event::TransferTooLarge {
            link,
            delivery: partial.delivery,
            settled: partial.settled,
            size: partial.size,
            limit,
            head: partial.data.into(),
            transaction: partial.transaction,
        };
    }
    if partial.data.len() < SHRUNK_BYTES {
        partial.data.shrink_to_fit();
    }
    Event::Transfer(Transfer {
        link,
        delivery: partial.delivery,
        settled: partial.settled,
        message_format: partial.message_format,
        payload: partial.data.into(),
        transaction: partial.transaction,
    })
}

/// Uses one credit of the link and refills it at half. Python exceeds its credit (spec/wire.md §10.8), so it is not
/// enforced.
fn count(link: &mut Link, pending_flows: &mut Vec<PendingFlow>, credit: u32) {
    let attached = link.is_attached();
    let Some(incoming) = link.incoming() else {
        return;
    };
    incoming.delivery_count = incoming.delivery_count.wrapping_add(1);
    incoming.credit = incoming.credit.saturating_sub(1);
    if attached && incoming.credit <= credit / 2 {
        request_link_flow(pending_flows, link);
    }
}

fn delivery_id(link: LinkId, transfer: &transfer::Transfer<'_>) -> Result<DeliveryNumber, Fault> {
    transfer.delivery_id.map(DeliveryNumber).ok_or_else(|| {
        let description = "the first transfer of a delivery has no delivery-id";
        Fault::link(link.handle(), condition::INVALID_FIELD, description)
    })
}

fn transaction(transfer: &transfer::Transfer<'_>) -> Result<Option<Box<[u8]>>, Fault> {
    match transfer.state {
        Some(encoded) => match state::read(encoded) {
            Ok(state) => Ok(state.transaction),
            Err(error) => Err(Fault::decoding("transfer", error)),
        },
        None => Ok(None),
    }
}

impl Partial {
    /// Returns whether only its head was kept.
    fn is_cut(&self) -> bool {
        (self.data.len() as u64) < self.size
    }

    fn append(&mut self, payload: &[u8], limit: u64) {
        let was_whole = !self.is_cut();
        self.size += payload.len() as u64;
        if self.size <= limit && was_whole {
            self.data.extend_from_slice(payload);
            return;
        }
        let missing = HEAD_BYTES.saturating_sub(self.data.len());
        self.data
            .extend_from_slice(&payload[..missing.min(payload.len())]);
        self.data.truncate(HEAD_BYTES);
        self.data.shrink_to_fit();
    }
}
