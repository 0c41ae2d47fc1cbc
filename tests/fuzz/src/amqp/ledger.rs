//! What the owner of a connection knows, against which its events are held.

use std::collections::{HashMap, HashSet};

use servicebus_amqp::{DeliveryNumber, Event, LinkId, LinkRole};

/// A link as its events tell it.
#[derive(Debug)]
struct Link {
    role: LinkRole,
    /// Whether it was detached by either side.
    is_detached: bool,
    /// Whether its peer was told so, or has said so: nothing may come any more.
    is_closed_by_peer: bool,
}

/// Links, deliveries and the end.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    links: HashMap<LinkId, Link>,
    outstanding: HashMap<(LinkId, DeliveryNumber), [u8; 16]>,
    answered: HashSet<[u8; 16]>,
    tags: u64,
    is_closed: bool,
}

impl Ledger {
    /// A tag that no other delivery has.
    pub(super) fn next_tag(&mut self) -> [u8; 16] {
        self.tags += 1;
        u128::from(self.tags).to_be_bytes()
    }

    pub(super) fn delivered(&mut self, link: LinkId, number: DeliveryNumber, tag: [u8; 16]) {
        self.outstanding.insert((link, number), tag);
    }

    /// The peer was answered, and may state another outcome.
    pub(super) fn confirmed(&mut self, tag: [u8; 16]) {
        self.answered.remove(&tag);
    }

    pub(super) fn settled_by_owner(&mut self, link: LinkId, number: DeliveryNumber) {
        self.outstanding.remove(&(link, number));
    }

    pub(super) fn detached_by_owner(&mut self, link: LinkId) {
        self.links
            .get_mut(&link)
            .expect("it is attached")
            .is_detached = true;
    }

    /// Holds an event against what came before.
    pub(super) fn record(&mut self, event: &Event) {
        assert!(!self.is_closed, "behind the end: {event:?}");
        match event {
            Event::Attach { link, attach } => {
                let fresh = Link {
                    role: attach.role(),
                    is_detached: false,
                    is_closed_by_peer: false,
                };
                assert!(
                    self.links.insert(*link, fresh).is_none(),
                    "twice: {event:?}"
                );
            }
            Event::Transfer(transfer) => self.expect(transfer.link, LinkRole::Sender, event),
            Event::TransferTooLarge {
                link, size, limit, ..
            } => {
                self.expect(*link, LinkRole::Sender, event);
                assert!(size > limit, "{event:?}");
            }
            Event::Credit { link, .. } => {
                self.expect(*link, LinkRole::Receiver, event);
                assert!(!self.links[link].is_detached, "after a detach: {event:?}");
            }
            // Also of a link that the engine has closed, until its peer has heard of it.
            Event::Settle(settlement) => {
                let role = self.links.get(&settlement.link).map(|link| link.role);
                assert_eq!(role, Some(LinkRole::Receiver), "{event:?}");
                assert!(self.answered.insert(settlement.tag), "twice: {event:?}");
                let tag = self
                    .outstanding
                    .get(&(settlement.link, settlement.delivery));
                assert_eq!(tag, Some(&settlement.tag), "{event:?}");
            }
            Event::Detached { link, .. } => {
                let link = self.links.get_mut(link).expect("it was attached");
                assert!(!link.is_closed_by_peer, "twice: {event:?}");
                (link.is_detached, link.is_closed_by_peer) = (true, true);
            }
            Event::Closed { .. } => self.is_closed = true,
            Event::Sasl { .. }
            | Event::Opened(_)
            | Event::TransferDropped { .. }
            | Event::Refused(_) => {}
        }
    }

    fn expect(&self, link: LinkId, role: LinkRole, event: &Event) {
        let link = self
            .links
            .get(&link)
            .unwrap_or_else(|| panic!("of no link: {event:?}"));
        assert!(
            link.role == role && !link.is_closed_by_peer,
            "{link:?}: {event:?}"
        );
    }
}
