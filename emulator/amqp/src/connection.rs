//! The engine: one peer's connection from its first byte to its last.
//!
//! This file has its state and the read-only calls; each operation of the protocol has a file of its own. Invariant: there
//! are not sessions after `ConnectionState::Closing` or `ConnectionState::Closed` is entered, so that later calls have
//! nothing to act on.

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
use crate::session::Session;

pub use deliver::Delivery;

#[cfg(test)]
mod tests;

/// The server side of one AMQP connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) config: Config,
    pub(crate) phase: ConnectionState,
    /// The latest time from the owner.
    pub(crate) now: Duration,
    pub(crate) last_received: Duration,
    /// Bytes of input that the last call has left.
    pub(crate) left_input: usize,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Highest channel that both sides allow.
    pub(crate) channel_max: u16,
    pub(crate) sessions: Sessions,
    /// The number of sessions and links created so far, from which their ids come.
    pub(crate) generation: u32,
    pub(crate) link_count: usize,
    /// Bytes of incomplete deliveries.
    pub(crate) reassembly: usize,
    pub(crate) events: VecDeque<Event>,
    /// Bytes of the payloads in `events`.
    pub(crate) unreported: usize,
    pub(crate) outbox: Outbox,
    /// Whether the peer gives credit before it has the answer to its drain.
    pub(crate) credits_while_draining: bool,
    /// Flows that the next flush writes.
    pub(crate) pending_flows: Vec<PendingFlow>,
    /// How many more deliveries and links a received frame may visit before the owner's other peers get their turn.
    pub(crate) steps: usize,
    /// Whether the last frame waits for the owner, and was not handled.
    pub(crate) is_postponed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Nothing has been read.
    Header,
    /// The mechanisms have been offered.
    Sasl,
    /// The owner has the peer's credentials.
    SaslPending,
    /// Authenticated; the AMQP header is expected.
    Secured,
    /// Headers are exchanged; the peer's open is expected.
    Opening,
    /// Both opens are exchanged.
    Running,
    /// This side's close is sent; the peer's is awaited until this time.
    Closing(Duration),
    /// Nothing more is read.
    Closed,
}

/// When to send heartbeats.
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
    /// Creates a connection that has read no byte. `now` counts from any fixed origin.
    pub fn new(config: Config, now: Duration) -> Self {
        let config = config.bounded();
        Self {
            phase: ConnectionState::Header,
            now,
            last_received: now,
            left_input: 0,
            heartbeat: None,
            channel_max: config.channel_max,
            sessions: Sessions::new(&config.container_id),
            generation: 0,
            link_count: 0,
            reassembly: 0,
            events: VecDeque::new(),
            unreported: 0,
            outbox: Outbox::default(),
            credits_while_draining: false,
            pending_flows: Vec::new(),
            steps: 0,
            is_postponed: false,
            config,
        }
    }

    /// Returns the next event, in the order of the peer's frames.
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

    /// Returns the bytes to write. Call [`Connection::flush`] before.
    pub fn output(&mut self) -> &mut Output {
        self.outbox.output()
    }

    /// Returns the number of bytes to write so far. An open disposition, which later deliveries may join, does not count and
    /// stays open.
    pub fn output_len(&self) -> usize {
        self.outbox.len()
    }

    /// Returns the bytes that this side keeps for the peer: incomplete deliveries, sessions and links, unsettled deliveries,
    /// events that were not polled, and output that was not written. The engine enforces no limit: its owner may
    /// [`Connection::close`] the connection.
    pub fn held(&self) -> usize {
        let events = self.events.len() * size_of::<Event>() + self.unreported;
        self.reassembly + self.sessions.held() + events + self.output_len()
    }

    /// Returns the container id in this side's `open`.
    pub fn container_id(&self) -> &str {
        &self.config.container_id
    }

    /// Returns whether the peer's open has been read.
    pub fn is_opened(&self) -> bool {
        matches!(
            self.phase,
            ConnectionState::Running | ConnectionState::Closing(_) | ConnectionState::Closed
        )
    }

    /// Returns whether nothing more will be read or appended: the owner should write the rest and drop the socket.
    pub fn is_closed(&self) -> bool {
        self.phase == ConnectionState::Closed
    }

    /// Returns the peer's name of a link.
    pub fn link_name(&self, link: LinkId) -> Option<&str> {
        Some(&self.sessions.of(link)?.get(link)?.name)
    }

    /// Returns how many more deliveries may be sent now, by the link's credit and the session's window.
    pub fn credit(&self, link: LinkId) -> u32 {
        match self.sessions.of(link) {
            Some(session) if session.backlog.is_none() => {
                credit_of(session, link).min(session.remote_window)
            }
            _ => 0,
        }
    }

    /// Returns the link's credit, also if the session's window is closed. An event reports the credit when the window opens.
    pub fn link_credit(&self, link: LinkId) -> u32 {
        let session = self.sessions.of(link);
        session.map_or(0, |session| credit_of(session, link))
    }

    /// Returns how many bytes of messages can be sent at once if `deliveries` messages are delivered, the last of which may
    /// be longer: the engine finishes one delivery that its session's window interrupts, not two.
    ///
    /// Two frames per delivery are reserved: one that is not full, and one for what is added to a stored message.
    pub fn room(&self, link: LinkId, deliveries: u32) -> usize {
        let window = self
            .sessions
            .of(link)
            .map_or(0, |session| session.remote_window);
        let spare = window.saturating_sub(deliveries.saturating_mul(2)) as usize;
        spare.saturating_mul(self.outbox.max_frame_size - crate::wire::transfer::OVERHEAD)
    }

    /// Returns the credit event with current numbers, unless the link is gone.
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

fn credit_of(session: &Session, link: LinkId) -> u32 {
    match session.get(link) {
        Some(found) if found.is_attached() => match &found.side {
            Side::Outgoing(outgoing) => outgoing.credit,
            Side::Incoming(_) => 0,
        },
        _ => 0,
    }
}

/// Queues one credit event until it is polled, which limits the queue against peers that send flows without end.
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
