//! One session: its links by handle, its windows and its unsettled deliveries. It neither reads nor writes frames. Links are
//! sorted by handle, so that their memory depends on their number and not on the peer's handles.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::Config;
use crate::error::condition;
use crate::ids;
use crate::ids::{LinkId, LinkRole, SessionId};
use crate::link::Link;
use crate::unsettled::Unsettled;
use crate::wire::cold::SessionBegin;
use crate::wire::flow::SessionPart;
use crate::wire::reply::OUTGOING_WINDOW;
use crate::wire::transfer::Head;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Sorted by handle.
    links: Vec<(u32, Box<Link>)>,
    /// The handle of the latest link of a role and name.
    handles: BTreeMap<(LinkRole, Arc<str>), u32>,
    /// Expected id of the peer's next transfer; counted by frame, never enforced (spec/wire.md §1.5).
    pub(crate) next_incoming_id: u32,
    /// Frames that the peer may still send, as far as it knows.
    pub(crate) incoming_window: u32,
    pub(crate) next_outgoing_id: u32,
    /// Frames that this side may still send.
    pub(crate) remote_window: u32,
    /// The incoming and outgoing window of the peer's begin.
    pub(crate) windows_at_begin: (u32, u32),
    /// Full form of the next delivery id; starts above 2^32 so that every id on the wire has one.
    pub(crate) next_delivery: u64,
    pub(crate) unsettled: Unsettled,
    /// The first id after the deliveries of links that this side has detached.
    forgotten: u64,
    /// Condition and text for unknown deliveries, by the owner.
    pub(crate) unknown: Option<(&'static str, &'static str)>,
    /// A delivery that the window interrupted.
    pub(crate) backlog: Option<Box<Backlog>>,
    /// Whether the next flush writes a flow for this session.
    pub(crate) is_flow_pending: bool,
    /// Highest handle that both sides allow.
    pub(crate) handle_max: u32,
    /// Memory of the links in bytes without their deliveries.
    links_held: usize,
}

/// Condition and text for unknown deliveries, in the words of the service (semantics §20.2): to a client an unknown delivery is
/// the same as a lost lock.
pub(crate) const UNKNOWN: (&str, &str) = (condition::MESSAGE_LOCK_LOST, LOCK_LOST);
const LOCK_LOST: &str = "The lock supplied is invalid. Either the lock expired, or the message has already been \
                         removed from the queue. For more information please see \
                         https://aka.ms/ServiceBusExceptions .";

/// The rest of a delivery, to be sent when the window opens.
#[derive(Debug)]
pub(crate) struct Backlog {
    pub(crate) link: LinkId,
    pub(crate) head: Head,
    /// The owner's encoded part, then the shared one.
    pub(crate) first: Bytes,
    pub(crate) tail: Bytes,
}

impl Session {
    /// Creates the session for a peer's begin.
    pub(crate) fn new(id: SessionId, begin: &SessionBegin, config: &Config) -> Self {
        Self {
            id,
            links: Vec::new(),
            handles: BTreeMap::new(),
            next_incoming_id: begin.next_outgoing_id,
            incoming_window: config.session_window,
            next_outgoing_id: 0,
            remote_window: begin.incoming_window,
            windows_at_begin: (begin.incoming_window, begin.outgoing_window),
            next_delivery: 1 << 32,
            unsettled: Unsettled::default(),
            forgotten: 0,
            unknown: None,
            backlog: None,
            is_flow_pending: false,
            handle_max: config.handle_max.min(begin.handle_max),
            links_held: 0,
        }
    }

    pub(crate) fn link(&mut self, handle: u32) -> Option<&mut Link> {
        let index = self.position(handle).ok()?;
        Some(&mut self.links[index].1)
    }

    pub(crate) fn get(&self, id: LinkId) -> Option<&Link> {
        let index = self.position(id.handle()).ok()?;
        Some(&*self.links[index].1).filter(|link| link.id == id)
    }

    /// Returns the link, unless another one has its handle by now.
    pub(crate) fn link_by_id(&mut self, id: LinkId) -> Option<&mut Link> {
        self.link(id.handle()).filter(|link| link.id == id)
    }

    /// Returns the link of this role and name, unless it is detaching.
    pub(crate) fn link_named(&mut self, role: LinkRole, name: &str) -> Option<&mut Link> {
        let handle = *self.handles.get(&(role, name.into()))?;
        self.link(handle).filter(|link| !link.is_detaching())
    }

    pub(crate) fn links(&self) -> impl ExactSizeIterator<Item = &Link> {
        self.links.iter().map(|(_, link)| &**link)
    }

    pub(crate) fn links_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Link> {
        self.links.iter_mut().map(|(_, link)| &mut **link)
    }

    /// Adds a link whose handle is free.
    pub(crate) fn insert(&mut self, link: Link) {
        let handle = link.id.handle();
        if let Err(index) = self.position(handle) {
            self.links_held += link.held();
            let name = (link.role(), Arc::clone(&link.name));
            self.handles.insert(name, handle);
            self.links.insert(index, (handle, Box::new(link)));
        }
    }

    pub(crate) fn remove(&mut self, handle: u32) -> Option<Box<Link>> {
        let index = self.position(handle).ok()?;
        let link = self.links.remove(index).1;
        self.links_held -= link.held();
        let name = (link.role(), Arc::clone(&link.name));
        if self.handles.get(&name) == Some(&handle) {
            self.handles.remove(&name);
        }
        Some(link)
    }

    /// Returns the memory of the session in bytes without incomplete deliveries.
    pub(crate) fn held(&self) -> usize {
        let backlog = self.backlog.as_ref();
        let backlog = backlog.map_or(0, |backlog| backlog.first.len() + backlog.tail.len());
        size_of::<Self>() + self.links_held + self.unsettled.held() + backlog
    }

    /// Forgets the deliveries of a link that is gone, and its unsent rest; returns how many places were visited.
    pub(crate) fn forget(&mut self, link: &mut Link) -> usize {
        self.discard_backlog(link.id);
        let has_delivered = link
            .outgoing()
            .is_some_and(|outgoing| outgoing.delivery_count > 0);
        match has_delivered {
            true => {
                if link.is_detaching() {
                    self.forgotten = self.next_delivery;
                }
                self.unsettled.forget_link(link.id)
            }
            false => 0,
        }
    }

    /// Returns the first id of which an unknown delivery is refused.
    pub(crate) fn first_refused(&self) -> u64 {
        match self.has_open_link() {
            true => self.forgotten,
            false => 0,
        }
    }

    pub(crate) fn has_open_link(&self) -> bool {
        self.links().any(|link| !link.is_detaching())
    }

    /// Drops the unsent rest of a delivery on a link that is detaching.
    pub(crate) fn discard_backlog(&mut self, link: LinkId) {
        if self
            .backlog
            .as_ref()
            .is_some_and(|backlog| backlog.link == link)
        {
            self.backlog = None;
        }
    }

    /// Applies the window of a peer's flow or begin. A missing id means that this side's begin has not arrived.
    pub(crate) fn set_remote_window(&mut self, next_incoming_id: Option<u32>, window: u32) {
        let base = next_incoming_id.unwrap_or(0);
        self.remote_window = ids::remaining(base, window, self.next_outgoing_id);
    }

    /// Counts sent frames.
    pub(crate) fn sent(&mut self, frames: u32) {
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(frames);
        self.remote_window = self.remote_window.saturating_sub(frames);
    }

    /// Returns the session's part of a flow that is about to be written.
    pub(crate) fn flow(&mut self, window: u32) -> SessionPart {
        self.incoming_window = window;
        self.is_flow_pending = false;
        SessionPart {
            next_incoming_id: self.next_incoming_id,
            incoming_window: window,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: OUTGOING_WINDOW,
        }
    }

    /// Returns the index of the link, or where to insert it. SDKs number from 0 or 1 without gaps.
    fn position(&self, handle: u32) -> Result<usize, usize> {
        let likely = handle as usize;
        for index in [likely, likely.wrapping_sub(1)] {
            if self
                .links
                .get(index)
                .is_some_and(|(found, _)| *found == handle)
            {
                return Ok(index);
            }
        }
        self.links
            .binary_search_by_key(&handle, |(found, _)| *found)
    }
}
