//! What faults have done to a connection that lasts, and what is seen of an operation on which they may take effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::{Event, LinkId};
use servicebus_broker::LockToken;

use super::later::{Due, Parked, Pause, PutOff};
use crate::faults::MatchContext;
use crate::namespace::SharedEntity;

/// What faults have done to a connection that lasts.
#[derive(Debug, Default)]
pub(crate) struct ConnectionFaults {
    pub(crate) muted: Muted,
    /// Events that wait for their time, by that and by the order in which they came.
    pub(crate) parked: BTreeMap<(Due, u64), Parked>,
    pub(crate) parked_ever: u64,
    /// Bytes of messages among them.
    pub(crate) parked_bytes: usize,
    /// The connection rests until then.
    pub(crate) pause: Option<Pause>,
    /// Receivers whose next delivery is put off.
    pub(crate) receivers: BTreeMap<LinkId, PutOff>,
    /// Deliveries that are confirmed in vain.
    pub(crate) in_vain: BTreeSet<LockToken>,
    /// Links whose attach must not be answered.
    pub(crate) unanswered: BTreeSet<LinkId>,
    /// There and back together.
    pub(crate) round_trip: Duration,
    pub(crate) end: End,
    /// The connection is open, and counts as that when it is known whose it is.
    pub(crate) awaits_party: bool,
}

impl ConnectionFaults {
    /// Whether the next delivery of a link is put off.
    pub(crate) fn puts_off(&self, link: LinkId) -> bool {
        let put_off = self.receivers.get(&link);
        put_off.is_some_and(|put_off| put_off.due.is_some())
    }
}

/// Which answers are not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Muted {
    #[default]
    Nothing,
    /// To transfers, settlements and attaches.
    Outcomes,
    /// To requests, whose transfers are accepted all the same.
    Replies,
}

/// Whether a fault has ended the connection; what the client sent behind it is not carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    None,
    /// In good order.
    Closed,
    /// Without a word.
    Dropped,
}

/// An operation that is about to happen, and the entities whose timelines tell of its faults.
pub(crate) struct Seen<'a> {
    pub(crate) context: MatchContext<'a>,
    pub(crate) entities: Vec<Arc<SharedEntity>>,
}

impl<'a> Seen<'a> {
    /// An operation at one entity.
    pub(crate) fn at(entity: Arc<SharedEntity>, context: MatchContext<'a>) -> Self {
        Self {
            context,
            entities: vec![entity],
        }
    }
}

/// The link that an event is about.
pub(crate) fn link_of(event: &Event) -> Option<LinkId> {
    match event {
        Event::Transfer(transfer) => Some(transfer.link),
        Event::Settle(settlement) => Some(settlement.link),
        Event::Attach { link, .. } => Some(*link),
        Event::Sasl { .. }
        | Event::Opened(_)
        | Event::TransferTooLarge { .. }
        | Event::Credit { .. }
        | Event::Detached { .. }
        | Event::Refused(_)
        | Event::Closed { .. } => None,
    }
}
