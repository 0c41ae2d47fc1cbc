//! One link of a session: its name, its state and the credit that flows over it. It neither reads nor
//! writes frames. A link is [`LinkState::Attached`] only between the owner's acceptance and a detach.

use std::sync::Arc;

use crate::ids::{DeliveryNumber, LinkId, LinkRole};

/// What a link costs here and in its owner beside what its attach holds, rounded up.
const LINK_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) name: Arc<str>,
    pub(crate) stage: LinkState,
    pub(crate) side: Side,
    /// Whether the next flush writes a flow for this link.
    pub(crate) is_flow_pending: bool,
    /// Bytes that its attach had.
    pub(crate) attach_size: usize,
}

/// What the answer to an attach repeats. Kept until the owner has decided.
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
    /// Both attaches are on the wire.
    Attached,
    /// Our detach is on the wire, the peer's is not; what arrives is dropped.
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
    /// Deliveries seen, counted from the peer's initial delivery count.
    pub(crate) delivery_count: u32,
    /// Deliveries the peer may still send, as far as it knows.
    pub(crate) credit: u32,
    /// Largest message in bytes.
    pub(crate) limit: u64,
    /// A delivery of which frames are missing.
    pub(crate) partial: Option<Box<Partial>>,
}

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Deliveries sent or given up by draining.
    pub(crate) delivery_count: u32,
    /// Deliveries the peer still wants.
    pub(crate) credit: u32,
    /// Whether the peer waits for an answer to its drain.
    pub(crate) drain: bool,
    /// Credit that the last drain used up, until the peer shows that it knows.
    pub(crate) drained_credit: u32,
    /// Whether a credit event is in the queue.
    pub(crate) announced: bool,
}

/// The frames of a delivery so far.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) delivery: DeliveryNumber,
    pub(crate) tag: Box<[u8]>,
    pub(crate) settled: bool,
    pub(crate) message_format: u32,
    pub(crate) transaction: Option<Box<[u8]>>,
    /// A copy of what came, as a slice of the block that was read would keep all of it; nothing once the limit is passed.
    pub(crate) data: Vec<u8>,
    /// Bytes seen.
    pub(crate) size: u64,
}

impl Partial {
    /// Bytes that it keeps.
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

    /// Which end the peer is.
    pub(crate) fn role(&self) -> LinkRole {
        match self.side {
            Side::Incoming(_) => LinkRole::Sender,
            Side::Outgoing(_) => LinkRole::Receiver,
        }
    }

    /// Bytes kept of a delivery of which frames are missing.
    pub(crate) fn reassembling(&self) -> usize {
        match &self.side {
            Side::Incoming(incoming) => incoming.partial.as_ref().map_or(0, |p| p.held()),
            Side::Outgoing(_) => 0,
        }
    }

    /// Bytes that the link costs for as long as it is there, apart from deliveries.
    pub(crate) fn held(&self) -> usize {
        LINK_BYTES + self.attach_size
    }

    /// Gives up a delivery of which frames are missing, and says how many bytes that frees.
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
