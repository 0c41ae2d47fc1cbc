//! The engine: one peer's connection from its first byte to its last.
//!
//! Its state, and the calls that only look at it, are here; each verb of the protocol has a file of its own.
//! Invariant: after `ConnectionState::Closing` or `ConnectionState::Closed` is entered there are no sessions, so that every later intent finds nothing to act on.

mod attach;
mod close;
mod deliver;
mod disposition;
mod flow;
mod handshake;
mod outbox;
mod receive;
mod sessions;
mod transfer;

use std::collections::VecDeque;
use std::time::Duration;

use self::outbox::Outbox;
use self::sessions::Sessions;
use crate::config::Config;
use crate::event::Event;
use crate::ids::LinkId;
use crate::link::{Link, Side};
use crate::output::Output;

pub use deliver::Delivery;

#[cfg(test)]
mod tests;

/// The server side of one AMQP connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) config: Config,
    pub(crate) phase: ConnectionState,
    /// The latest time that the owner has given.
    pub(crate) now: Duration,
    pub(crate) last_received: Duration,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Highest channel that both sides allow.
    pub(crate) channel_max: u16,
    /// Largest frame that we may send.
    pub(crate) max_frame_size: usize,
    pub(crate) sessions: Sessions,
    /// Sessions and links made so far; the source of their ids.
    pub(crate) generation: u32,
    /// Links that exist, on all sessions.
    pub(crate) link_count: usize,
    /// Bytes of deliveries of which frames are missing.
    pub(crate) reassembly: usize,
    pub(crate) events: VecDeque<Event>,
    /// Bytes of the payloads in `events`.
    pub(crate) unreported: usize,
    pub(crate) outbox: Outbox,
    /// Flows to be written by the next flush.
    pub(crate) pending_flows: Vec<PendingFlow>,
    /// Deliveries and links that what is received may still be looked up among, before the owner's other peers have their turn.
    pub(crate) steps: usize,
}

/// How far the connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Nothing has been read.
    Header,
    /// Mechanisms have been offered.
    Sasl,
    /// The owner has the peer's credentials.
    SaslPending,
    /// Authenticated; the AMQP header is due.
    Secured,
    /// Headers are exchanged; the peer's open is due.
    Opening,
    /// Both opens are exchanged.
    Running,
    /// Our close is out; only the peer's is waited for, until this time.
    Closing(Duration),
    /// Nothing more is read.
    Closed,
}

/// When to say that we are alive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heartbeat {
    pub(crate) interval: Duration,
    pub(crate) next: Duration,
}

/// A flow to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PendingFlow {
    Session(u16),
    Link(LinkId),
}

impl Connection {
    /// A connection of which no byte has been read. `now` counts from any fixed origin.
    pub fn new(config: Config, now: Duration) -> Self {
        let config = config.bounded();
        Self {
            phase: ConnectionState::Header,
            now,
            last_received: now,
            heartbeat: None,
            channel_max: config.channel_max,
            max_frame_size: config.max_frame_size as usize,
            sessions: Sessions::new(&config.container_id),
            generation: 0,
            link_count: 0,
            reassembly: 0,
            events: VecDeque::new(),
            unreported: 0,
            outbox: Outbox::default(),
            pending_flows: Vec::new(),
            steps: 0,
            config,
        }
    }

    /// The next thing that happened, in the order of the peer's frames.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(event) = self.events.pop_front() {
            if let Event::Transfer(transfer) = &event {
                self.unreported -= transfer.payload.len();
            }
            let Event::Credit { link, .. } = event else {
                return Some(event);
            };
            if let Some(event) = self.current_credit(link) {
                return Some(event);
            }
        }
        None
    }

    /// The bytes to write. Call [`Connection::flush`] before.
    pub fn output(&mut self) -> &mut Output {
        self.outbox.output()
    }

    /// The bytes to write so far. To ask leaves a disposition open for the deliveries that come next; it is not counted.
    pub fn output_len(&self) -> usize {
        self.outbox.len()
    }

    /// Bytes that this side keeps because of what the peer did: deliveries of which frames are missing, sessions and
    /// links, unsettled deliveries, events that were not polled, and output that was not written. The engine holds no peer
    /// to a limit: that is for its owner, who may [`Connection::close`] it.
    pub fn held(&self) -> usize {
        let events = self.events.len() * size_of::<Event>() + self.unreported;
        self.reassembly + self.sessions.held() + events + self.output_len()
    }

    /// The name of our container in `open`.
    pub fn container_id(&self) -> &str {
        &self.config.container_id
    }

    /// Whether the peer's open has been read.
    pub fn is_opened(&self) -> bool {
        matches!(
            self.phase,
            ConnectionState::Running | ConnectionState::Closing(_) | ConnectionState::Closed
        )
    }

    /// Whether nothing more will be read or appended: write what is left and drop the socket.
    pub fn is_closed(&self) -> bool {
        self.phase == ConnectionState::Closed
    }

    /// What the peer calls a link.
    pub fn link_name(&self, link: LinkId) -> Option<&str> {
        Some(&self.sessions.of(link)?.get(link)?.name)
    }

    /// How many more deliveries this link may send now: what the peer wants and its window lets through.
    pub fn credit(&self, link: LinkId) -> u32 {
        let Some(session) = self.sessions.of(link) else {
            return 0;
        };
        if session.backlog.is_some() {
            return 0;
        }
        match session.get(link) {
            Some(found) if found.is_attached() => match &found.side {
                Side::Outgoing(outgoing) => outgoing.credit.min(session.remote_window),
                Side::Incoming(_) => 0,
            },
            _ => 0,
        }
    }

    /// How many bytes of messages surely go out at once when `deliveries` messages are delivered, the last of
    /// which may be longer: the engine finishes one delivery that its session's window cuts off, not two.
    ///
    /// Two frames a delivery are set aside: one that is not full, and one for what is added to a stored message.
    pub fn room(&self, link: LinkId, deliveries: u32) -> usize {
        let window = self
            .sessions
            .of(link)
            .map_or(0, |session| session.remote_window);
        let spare = window.saturating_sub(deliveries.saturating_mul(2)) as usize;
        spare.saturating_mul(self.max_frame_size - crate::wire::transfer::OVERHEAD)
    }

    /// The credit event with the numbers of this moment, unless the link has gone since.
    fn current_credit(&mut self, id: LinkId) -> Option<Event> {
        let link = self.sessions.of_mut(id)?.link_by_id(id)?;
        if !link.is_attached() {
            return None;
        }
        let outgoing = link.outgoing()?;
        outgoing.announced = false;
        Some(Event::Credit {
            link: id,
            credit: outgoing.credit,
            drain: outgoing.drain,
        })
    }
}

/// Queues a credit event, once until it is polled: this is what bounds the queue against peers that
/// send flows without end.
pub(crate) fn announce(events: &mut VecDeque<Event>, link: &mut Link) {
    let id = link.id;
    if !link.is_attached() {
        return;
    }
    if let Some(outgoing) = link.outgoing()
        && !outgoing.announced
    {
        outgoing.announced = true;
        events.push_back(Event::Credit {
            link: id,
            credit: 0,
            drain: false,
        });
    }
}
