//! What names sessions, links and deliveries of a connection.

/// A session, unique in the life of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u64);

/// A link, unique in the life of its connection. Ordered by the time of attaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u64);

impl From<LinkId> for u64 {
    fn from(id: LinkId) -> Self {
        id.0
    }
}

/// The delivery-id of a delivery on its session (AMQP 1.0 §2.8.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryNumber(pub u32);

impl LinkId {
    /// The link that came `generation`-th, on this channel and handle.
    pub(crate) fn new(generation: u32, channel: u16, handle: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(channel) << 16 | u64::from(handle as u16))
    }

    pub(crate) fn channel(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(crate) fn handle(self) -> u32 {
        u32::from(self.0 as u16)
    }
}

/// Which end of a link the peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkRole {
    /// The peer sends to us.
    Sender,
    /// The peer receives from us.
    Receiver,
}
