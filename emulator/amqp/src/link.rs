//! One link of a session: its name, state and credit. It neither reads nor writes frames. A link is [`LinkState::Attached`]
//! only between the owner's acceptance and a detach.

use std::sync::Arc;

use crate::ids::{DeliveryNumber, LinkId, LinkRole};

/// Memory of a link here and in its owner beside the contents of its attach, rounded up.
const LINK_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) name: Arc<str>,
    pub(crate) stage: LinkState,
    pub(crate) side: Side,
    /// Whether the next flush writes a flow for this link.
    pub(crate) is_flow_pending: bool,
    pub(crate) attach_size: usize,
}

/// The fields of an attach that the answer repeats. Kept until the owner has decided.
#[derive(Debug)]
pub(crate) struct Echo {
    pub(crate) snd_settle_mode: u8,
    pub(crate) rcv_settle_mode: u8,
    pub(crate) source: Option<Box<[u8]>>,
    pub(crate) target: Option<Box<[u8]>>,
}

#[derive(Debug)]
pub(crate) enum LinkState {
    /// The owner has not answered the attach.
    Attaching(Box<Echo>),
    /// Both sides have sent their attach.
    Attached,
    /// This side has sent its detach, the peer has not; input is dropped.
    Detaching,
}

#[derive(Debug)]
pub(crate) enum Side {
    /// The peer sends.
    Incoming(Incoming),
    /// The peer receives.
    Outgoing(Outgoing),
}

#[derive(Debug)]
pub(crate) struct Incoming {
    /// Deliveries received, counted from the peer's initial delivery count.
    pub(crate) delivery_count: u32,
    /// Deliveries that the peer may still send, as far as it knows.
    pub(crate) credit: u32,
    /// Largest message in bytes.
    pub(crate) limit: u64,
    /// An incomplete delivery.
    pub(crate) partial: Option<Box<Partial>>,
}

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Deliveries sent or used up by draining.
    pub(crate) delivery_count: u32,
    /// Deliveries that the peer still accepts.
    pub(crate) credit: u32,
    /// Whether the peer waits for an answer to its drain.
    pub(crate) drain: bool,
    /// Credit that the last drain used up, until the peer shows that it knows.
    pub(crate) drained_credit: u32,
    /// Whether a credit event is in the queue.
    pub(crate) announced: bool,
}

/// The frames of an incomplete delivery.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) delivery: DeliveryNumber,
    pub(crate) tag: Box<[u8]>,
    pub(crate) settled: bool,
    pub(crate) message_format: u32,
    pub(crate) transaction: Option<Box<[u8]>>,
    /// A copy of the payload, since a slice would keep the whole read block; only its head once the limit is exceeded.
    pub(crate) data: Vec<u8>,
    /// Bytes received.
    pub(crate) size: u64,
}

impl Partial {
    /// Returns the bytes that it keeps.
    pub(crate) fn held(&self) -> usize {
        let transaction = self.transaction.as_ref().map_or(0, |id| id.len());
        size_of::<Self>() + self.data.len() + self.tag.len() + transaction
    }
}

impl Link {
    pub(crate) fn is_attached(&self) -> bool {
        matches!(self.stage, LinkState::Attached)
    }

    pub(crate) fn is_detaching(&self) -> bool {
        matches!(self.stage, LinkState::Detaching)
    }

    /// Returns the peer's end.
    pub(crate) fn role(&self) -> LinkRole {
        match self.side {
            Side::Incoming(_) => LinkRole::Sender,
            Side::Outgoing(_) => LinkRole::Receiver,
        }
    }

    /// Returns the bytes of an incomplete delivery.
    pub(crate) fn reassembling(&self) -> usize {
        match &self.side {
            Side::Incoming(incoming) => incoming.partial.as_ref().map_or(0, |p| p.held()),
            Side::Outgoing(_) => 0,
        }
    }

    /// Returns the memory of the link in bytes without its deliveries.
    pub(crate) fn held(&self) -> usize {
        LINK_BYTES + self.attach_size
    }

    /// Drops an incomplete delivery; returns how many bytes that frees.
    pub(crate) fn drop_partial(&mut self) -> usize {
        let freed = self.reassembling();
        if let Some(incoming) = self.incoming() {
            incoming.partial = None;
        }
        freed
    }

    pub(crate) fn outgoing(&mut self) -> Option<&mut Outgoing> {
        match &mut self.side {
            Side::Outgoing(outgoing) => Some(outgoing),
            Side::Incoming(_) => None,
        }
    }

    pub(crate) fn incoming(&mut self) -> Option<&mut Incoming> {
        match &mut self.side {
            Side::Incoming(incoming) => Some(incoming),
            Side::Outgoing(_) => None,
        }
    }
}
