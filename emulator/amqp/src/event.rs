//! The events of a connection for its owner, in the order of the peer's frames that caused them.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use crate::attach::AttachRequest;
use crate::error::Error;
use crate::ids::{DeliveryNumber, LinkId};
use crate::unsettled::Outcome;
use crate::wire::cold::PeerOpen;

/// The credentials of a peer as bytes. They may be a password, so that the `Debug` of an event leaves them out.
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

/// An event that the owner may act on.
#[derive(Debug)]
pub enum Event {
    /// The peer authenticates; answer with [`crate::Connection::sasl_outcome`].
    Sasl {
        /// The mechanism, which need not be one of those offered; the owner decides.
        mechanism: String,
        /// Initial response, empty if there was none.
        response: SaslResponse,
        /// Host name that the peer connects to.
        hostname: Option<String>,
    },
    /// The peer's `open` has arrived, and this side's was written.
    Opened(Box<PeerOpen>),
    /// The peer attaches a link; answer with [`crate::Connection::accept_attach`] or [`crate::Connection::refuse_attach`],
    /// now or later.
    Attach {
        /// Id of the link from now on.
        link: LinkId,
        /// The request.
        attach: Box<AttachRequest>,
    },
    /// A complete delivery on a link whose peer sends. May precede the answer to the attach.
    Transfer(Transfer),
    /// A delivery above the link's maximum message size has ended; all but its first bytes were dropped.
    TransferTooLarge {
        /// Its link.
        link: LinkId,
        /// Its number, to be answered with [`crate::Connection::outcome`] unless settled.
        delivery: DeliveryNumber,
        /// Whether the peer has settled it already.
        settled: bool,
        /// Bytes of payload that arrived.
        size: u64,
        /// Maximum size in bytes.
        limit: u64,
        /// The first 4 KiB of payload, which usually have all sections before the body.
        head: Box<[u8]>,
        /// Its transaction, if the transfer's state is transactional.
        transaction: Option<Box<[u8]>>,
    },
    /// The peer sent in a transaction on a link that this side has detached; the delivery was dropped.
    TransferDropped {
        /// Its link.
        link: LinkId,
        /// Whether the peer expects no answer.
        settled: bool,
        /// Its transaction.
        transaction: Box<[u8]>,
    },
    /// The credit of a link whose peer receives has changed, or deliveries that the session window delayed can continue.
    /// Several changes before the owner polls are one event.
    Credit {
        /// The link.
        link: LinkId,
        /// Deliveries that the peer still accepts.
        credit: u32,
        /// Whether the peer waits for [`crate::Connection::drained`].
        drain: bool,
    },
    /// The peer has settled a delivery or stated its outcome. At most once for each delivery, and once more after each
    /// [`crate::Connection::confirm_unsettled`].
    Settle(Settlement),
    /// The peer has detached the link or ended its session; all necessary frames are written.
    Detached {
        /// The link, whose id is not reused.
        link: LinkId,
        /// Whether the peer has closed it, so that its terminus must not stay (AMQP 1.0 §2.6.6).
        closed: bool,
    },
    /// The engine itself has refused a request; this is the error for the peer.
    Refused(Box<Error>),
    /// The connection has ended; the events of its links came before. Raised once.
    Closed {
        /// The cause: the peer's error if the peer closed, this side's otherwise.
        error: Option<Box<Error>>,
    },
}

/// A complete delivery from the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Its link.
    pub link: LinkId,
    /// Its number, for [`crate::Connection::outcome`].
    pub delivery: DeliveryNumber,
    /// Whether the peer expects no answer.
    pub settled: bool,
    /// Zero for a message, 0x80013700 for a Service Bus batch.
    pub message_format: u32,
    /// The encoded message: a slice of the block it was read into, or memory of its own if it came in several frames.
    pub payload: Bytes,
    /// Its transaction, if the transfer's state is transactional.
    pub transaction: Option<Box<[u8]>>,
}

/// The peer's outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Its link.
    pub link: LinkId,
    /// Its number, for [`crate::Connection::settle`].
    pub delivery: DeliveryNumber,
    /// Its delivery tag.
    pub tag: [u8; 16],
    /// The outcome. A delivery that is settled without an outcome counts as released.
    pub outcome: Outcome,
    /// Whether the peer has forgotten the delivery; if not, it waits for [`crate::Connection::settle`].
    pub settled: bool,
    /// Its transaction, if the state is transactional.
    pub transaction: Option<Box<[u8]>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events are moved several times, which is most of their cost.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_types_are_small() {
        assert!(size_of::<Event>() <= 80, "{} bytes", size_of::<Event>());
        let outcome = size_of::<Outcome>();
        assert!(outcome <= 24, "{outcome} bytes");
    }
}
