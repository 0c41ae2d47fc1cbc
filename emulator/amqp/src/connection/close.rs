//! Closes the connection (AMQP 1.0 §2.4.3): on request of either side, after an error, or when the socket is lost. In each
//! case the links' events precede [`Event::Closed`], which occurs once.
//!
//! Also handles timeouts: outgoing heartbeats, silent peers, and the wait for the peer's close (AMQP 1.0 §2.4.5).

use std::time::Duration;

use super::{Connection, ConnectionState};
use crate::error::{Error, Fault, condition};
use crate::event::Event;
use crate::wire::{cold, reply};

/// How long a peer may take to answer a close.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Connection {
    /// Closes the connection. Earlier output is still written, nothing after it.
    pub fn close(&mut self, error: Option<Error>) {
        let next = self.close_frame(error.as_ref());
        self.finish(error);
        self.phase = next;
    }

    /// Ends the connection without further output, because the socket is gone.
    pub fn lost(&mut self) {
        self.finish(None);
        self.phase = ConnectionState::Closed;
    }

    pub(crate) fn on_close(&mut self, body: &[u8]) {
        let error = cold::close_frame(body);
        reply::close(self.outbox.buffer(), None);
        self.finish(error);
        self.phase = ConnectionState::Closed;
    }

    /// Handles a peer's error at its scope.
    pub(crate) fn fault(&mut self, channel: u16, fault: Fault) {
        match fault {
            Fault::Link(handle, error) => {
                let error = self.tracked(error);
                self.drop_link(channel, handle, error);
            }
            Fault::Session(error) => {
                let error = self.tracked(error);
                self.end_session(channel, &error);
            }
            Fault::Connection(error) => {
                let error = self.tracked(error);
                self.close(Some(error));
            }
            Fault::Framing(error) => {
                let error = self.tracked(error);
                self.close(Some(error));
                self.phase = ConnectionState::Closed;
            }
        }
    }

    /// Adds the tracking id to an error of the engine, and reports it to the owner.
    pub(crate) fn tracked(&mut self, error: Error) -> Error {
        let error = track(error, &self.config.tracking_id);
        if !matches!(
            self.phase,
            ConnectionState::Closing(_) | ConnectionState::Closed
        ) {
            self.events
                .push_back(Event::Refused(Box::new(error.clone())));
        }
        error
    }

    /// Ends and reports all sessions. Has no effect when repeated.
    pub(crate) fn finish(&mut self, error: Option<Error>) {
        if matches!(
            self.phase,
            ConnectionState::Closing(_) | ConnectionState::Closed
        ) {
            return;
        }
        for session in self.sessions.take() {
            self.drop_session(&session);
        }
        self.pending_flows.clear();
        self.events.push_back(Event::Closed {
            error: error.map(Box::new),
        });
    }

    /// Writes the last frame that the peer can still read; returns the next state.
    fn close_frame(&mut self, error: Option<&Error>) -> ConnectionState {
        match self.phase {
            ConnectionState::Header | ConnectionState::Secured => ConnectionState::Closed,
            ConnectionState::Sasl | ConnectionState::SaslPending => {
                reply::sasl_outcome(self.outbox.buffer(), 2);
                ConnectionState::Closed
            }
            ConnectionState::Opening => {
                reply::open(self.outbox.buffer(), &self.config, false);
                self.outbox.with_error(error, reply::close);
                ConnectionState::Closing(self.now + TIMEOUT)
            }
            ConnectionState::Running => {
                self.outbox.with_error(error, reply::close);
                ConnectionState::Closing(self.now + TIMEOUT)
            }
            ConnectionState::Closing(_) | ConnectionState::Closed => self.phase,
        }
    }
}

/// Appends the tracking id to the text of an error.
pub(crate) fn track(mut error: Error, tracking_id: &str) -> Error {
    if !tracking_id.is_empty() {
        error.description.push_str(" TrackingId:");
        error.description.push_str(tracking_id);
    }
    error
}

impl Connection {
    /// Returns when to call [`Connection::handle_timeout`], on the scale of `now`.
    pub fn next_timeout(&self) -> Option<Duration> {
        match self.phase {
            ConnectionState::Closed => None,
            ConnectionState::Closing(deadline) => Some(deadline),
            ConnectionState::Header
            | ConnectionState::Sasl
            | ConnectionState::SaslPending
            | ConnectionState::Secured
            | ConnectionState::Opening
            | ConnectionState::Running => {
                let silence = self.silent_from();
                let heartbeat = self
                    .heartbeat
                    .map_or(Duration::MAX, |send_heartbeat| send_heartbeat.next);
                Some(silence.min(heartbeat))
            }
        }
    }

    /// Returns from when on the peer counts as silent, if it sends nothing more.
    fn silent_from(&self) -> Duration {
        self.last_received.saturating_add(self.config.idle_timeout)
    }

    /// Returns whether nothing was received for the idle timeout. [`Connection::handle_timeout`] then closes the connection:
    /// call [`Connection::record_input`] before if the peer has sent something that waits to be received.
    pub fn is_silent(&self, now: Duration) -> bool {
        self.silent_from() <= now
    }

    /// Records that the peer is not silent: it has sent something that is received later.
    pub fn record_input(&mut self, now: Duration) {
        self.last_received = self.last_received.max(now);
    }

    /// Handles the timeouts that are due at `now`, if any.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.now = self.now.max(now);
        match self.phase {
            ConnectionState::Closed => {}
            ConnectionState::Closing(deadline) => {
                if deadline <= self.now {
                    self.phase = ConnectionState::Closed;
                }
            }
            ConnectionState::Header
            | ConnectionState::Sasl
            | ConnectionState::SaslPending
            | ConnectionState::Secured
            | ConnectionState::Opening
            | ConnectionState::Running => {
                if self.is_silent(self.now) {
                    // Every SDK then opens a new connection; to them the condition that the standard suggests means an
                    // exceeded quota (spec/wire.md §9).
                    let description = format!(
                        "The connection was inactive for more than the allowed {} milliseconds and is closed by \
                         container '{}'.",
                        self.config.idle_timeout.as_millis(),
                        self.config.container_id
                    );
                    let fault = Fault::connection(condition::CONNECTION_FORCED, description);
                    self.fault(0, fault);
                } else {
                    self.send_heartbeat();
                }
            }
        }
    }

    /// Sends a heartbeat if one is due, unless waiting output serves the same purpose. Also frees memory that a burst has
    /// left.
    fn send_heartbeat(&mut self) {
        let Some(send_heartbeat) = &mut self.heartbeat else {
            return;
        };
        if self.now < send_heartbeat.next {
            return;
        }
        send_heartbeat.next = self.now + send_heartbeat.interval;
        if self.outbox.output().is_empty() {
            self.outbox.output().release();
            self.events.shrink_to_fit();
            reply::heartbeat(self.outbox.buffer());
        }
    }
}
