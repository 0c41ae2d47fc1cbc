//! What happens by the passing of time: heartbeats out, silence in, and the end of patience for a
//! close (AMQP 1.0 §2.4.5).

use std::time::Duration;

use super::state::{Connection, ConnectionState};
use crate::error::{Fault, condition};
use crate::wire::reply;

impl Connection {
    /// When to call [`Connection::handle_timeout`], on the scale of `now`.
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
                let silence = self.last_received.saturating_add(self.config.idle_timeout);
                let heartbeat = self.heartbeat.map_or(Duration::MAX, |beat| beat.next);
                Some(silence.min(heartbeat))
            }
        }
    }

    /// Does what is due at `now`; harmless when nothing is.
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
                if self.last_received.saturating_add(self.config.idle_timeout) <= self.now {
                    // Every SDK opens a new connection on this one; the condition that the standard
                    // suggests means an exceeded quota to them (spec/wire.md §9).
                    let description = format!(
                        "The connection was inactive for more than the allowed {} milliseconds and is closed by \
                         container '{}'.",
                        self.config.idle_timeout.as_millis(),
                        self.config.container_id
                    );
                    let fault = Fault::connection(condition::CONNECTION_FORCED, description);
                    self.fault(0, fault);
                } else {
                    self.beat();
                }
            }
        }
    }

    /// Sends a heartbeat if one is due, unless bytes that are still waiting do the same service. Also
    /// gives back what a burst has left behind.
    fn beat(&mut self) {
        let Some(beat) = &mut self.heartbeat else {
            return;
        };
        if self.now < beat.next {
            return;
        }
        beat.next = self.now + beat.interval;
        if self.outbox.output().is_empty() {
            self.outbox.output().release();
            self.events.shrink_to_fit();
            reply::heartbeat(self.outbox.buffer());
        }
    }
}
