//! Outcomes that must not leave too early.
//!
//! `fe2o3-amqp` 0.14 puts a transfer on the wire before it registers it as unsettled: an outcome that comes
//! back within microseconds is lost and the send hangs for ever (decision D31). To such peers an outcome leaves
//! no earlier than a millisecond after its transfer arrived, and a reply not before its outcome.

use std::collections::VecDeque;
use std::time::Duration;

use servicebus_amqp::{DeliveryNumber, DeliveryState, LinkId};

use super::peer::Peer;

const DELAY: Duration = Duration::from_millis(1);

/// What waits for its time, in order.
pub(super) struct Held {
    delay: Option<Duration>,
    queue: VecDeque<(Duration, Item)>,
    /// Of all replies in the queue.
    bytes: usize,
}

enum Item {
    Outcome(LinkId, DeliveryNumber, DeliveryState),
    Reply(LinkId, Vec<u8>),
}

impl Held {
    pub(super) fn new() -> Self {
        Self {
            delay: None,
            queue: VecDeque::new(),
            bytes: 0,
        }
    }

    /// From now on outcomes wait.
    pub(super) fn delay(&mut self) {
        self.delay = Some(DELAY);
    }

    /// How much waits to be written.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the first of them may leave.
    pub(super) fn due(&self) -> Option<Duration> {
        self.queue.front().map(|&(due, _)| due)
    }
}

impl Peer {
    /// Answers a transfer that arrived in the turn that began at `now`.
    pub(super) fn answer(
        &mut self,
        now: Duration,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        match self.held.delay {
            Some(delay) => {
                let item = Item::Outcome(link, delivery, state.into());
                self.held.queue.push_back((now + delay, item));
            }
            None => self.hand_out(link, delivery, state),
        }
    }

    /// Sends a reply, after the outcomes before it.
    pub(super) fn reply(&mut self, now: Duration, link: LinkId, message: Vec<u8>) {
        match self.held.delay {
            Some(delay) => {
                self.held.bytes += message.len();
                let item = Item::Reply(link, message);
                self.held.queue.push_back((now + delay, item));
            }
            None => {
                // Rust reads a reply only after the outcome of its request (wire.md §2.3).
                self.engine.flush();
                self.send_reply(link, message);
            }
        }
    }

    pub(super) fn release_held(&mut self, now: Duration) {
        while let Some((_, item)) = self.held.queue.pop_front_if(|(due, _)| *due <= now) {
            match item {
                Item::Outcome(link, delivery, state) => {
                    self.hand_out(link, delivery, state);
                }
                Item::Reply(link, message) => {
                    self.held.bytes -= message.len();
                    self.engine.flush();
                    self.send_reply(link, message);
                }
            }
        }
    }
}
