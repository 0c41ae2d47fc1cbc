//! What a connection tells its owner, in the order in which the peer's frames caused it.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use crate::attach::AttachRequest;
use crate::error::Error;
use crate::ids::{DeliveryNumber, LinkId};
use crate::unsettled::Outcome;
use crate::wire::cold::PeerOpen;

/// What a peer shows to authenticate, as bytes. It may be a password, and so is not in the `Debug` of an event.
#[derive(Clone, PartialEq, Eq)]
pub struct SaslResponse(Vec<u8>);

impl From<Vec<u8>> for SaslResponse {
    fn from(response: Vec<u8>) -> Self {
        Self(response)
    }
}

impl Deref for SaslResponse {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SaslResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SaslResponse({} bytes)", self.0.len())
    }
}

/// Something the owner may want to act on.
#[derive(Debug)]
pub enum Event {
    /// The peer authenticates; answer with [`crate::Connection::sasl_outcome`].
    Sasl {
        /// Mechanism chosen from those offered (or another one; the owner decides).
        mechanism: String,
        /// Initial response, empty if there was none.
        response: SaslResponse,
        /// Host name the peer thinks it talks to.
        hostname: Option<String>,
    },
    /// The peer's `open` has arrived and ours has been written.
    Opened(Box<PeerOpen>),
    /// The peer wants a link; answer with [`crate::Connection::accept_attach`] or
    /// [`crate::Connection::refuse_attach`], now or later.
    Attach {
        /// Name of the link from now on.
        link: LinkId,
        /// What the peer asked for.
        attach: Box<AttachRequest>,
    },
    /// A whole delivery on a link whose peer sends. May precede the answer to the attach.
    Transfer(Transfer),
    /// A delivery above the link's maximum message size has ended; its bytes were dropped.
    TransferTooLarge {
        /// Link it came on.
        link: LinkId,
        /// Its number, to be answered with [`crate::Connection::outcome`] unless settled.
        delivery: DeliveryNumber,
        /// Whether the peer has settled it already.
        settled: bool,
        /// Bytes of payload that arrived.
        size: u64,
        /// Bytes that were allowed.
        limit: u64,
    },
    /// The credit of a link whose peer receives has changed, or deliveries that the session window
    /// held back may go on. Several changes before the owner looks are one event.
    Credit {
        /// The link.
        link: LinkId,
        /// Deliveries that the peer still wants.
        credit: u32,
        /// Whether the peer waits for [`crate::Connection::drained`].
        drain: bool,
    },
    /// The peer has stated the outcome of a delivery. At most once for each delivery, and once more after each
    /// [`crate::Connection::confirm_unsettled`].
    Settle(Settlement),
    /// The link is gone by the peer's doing; everything the wire needs has been written.
    Detached {
        /// The link, whose id will not come back.
        link: LinkId,
        /// Whether the peer has closed it, so that nothing of it is to stay (AMQP 1.0 §2.6.6).
        closed: bool,
    },
    /// The engine itself has refused something; this is the error that the peer gets.
    Refused(Box<Error>),
    /// The connection is over; the events of its links came before. Raised once.
    Closed {
        /// Why: the peer's error if the peer closed, ours if we did.
        error: Option<Box<Error>>,
    },
}

/// A whole delivery from the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Link it came on.
    pub link: LinkId,
    /// Its number, for [`crate::Connection::outcome`].
    pub delivery: DeliveryNumber,
    /// Whether the peer wants no answer.
    pub settled: bool,
    /// Zero for a message, 0x80013700 for a Service Bus batch.
    pub message_format: u32,
    /// The encoded message: a slice of the block it was read into, or, of several frames, memory of its own.
    pub payload: Bytes,
    /// The transaction it belongs to, if the transfer's state was transactional.
    pub transaction: Option<Box<[u8]>>,
}

/// The peer's word on one delivery of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Link it was delivered on.
    pub link: LinkId,
    /// Its number, for [`crate::Connection::settle`].
    pub delivery: DeliveryNumber,
    /// The tag it was delivered with.
    pub tag: [u8; 16],
    /// What became of it. A delivery settled without an outcome counts as released.
    pub outcome: Outcome,
    /// Whether the peer has forgotten it; if not, it waits for [`crate::Connection::settle`].
    pub settled: bool,
    /// The transaction it belongs to, if the state was transactional.
    pub transaction: Option<Box<[u8]>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events are moved several times, which for nearly all of them is most of their cost.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn they_are_small() {
        assert!(size_of::<Event>() <= 80, "{} bytes", size_of::<Event>());
        let outcome = size_of::<Outcome>();
        assert!(outcome <= 24, "{outcome} bytes");
    }
}
