//! Outcomes that must not leave too early.
//!
//! `fe2o3-amqp` 0.14 puts a transfer on the wire before it registers it as unsettled: an outcome that comes
//! back within microseconds is lost and the send hangs for ever (decision D31). To such peers an outcome leaves
//! no earlier than a millisecond after its transfer arrived, and a reply not before its outcome.

use std::collections::VecDeque;
use std::time::Duration;

use servicebus_amqp::{DeliveryNumber, DeliveryState, LinkId};

use super::peer::ClientConnection;

const DELAY: Duration = Duration::from_millis(1);

/// What waits for its time, in order.
pub(crate) struct Held {
    delay: Option<Duration>,
    queue: VecDeque<(Duration, Item)>,
    /// Of all replies in the queue.
    bytes: usize,
    /// Outcomes that a fault holds back.
    back: Vec<HeldBack>,
}

/// An outcome that is told behind later ones of its link.
struct HeldBack {
    link: LinkId,
    delivery: DeliveryNumber,
    /// How many of them are still to come.
    behind: u32,
    /// None until it is known.
    state: Option<DeliveryState>,
}

enum Item {
    Outcome(LinkId, DeliveryNumber, DeliveryState),
    Reply(LinkId, Vec<u8>),
}

impl Held {
    pub(crate) fn new() -> Self {
        Self {
            delay: None,
            queue: VecDeque::new(),
            bytes: 0,
            back: Vec::new(),
        }
    }

    /// From now on outcomes wait.
    pub(crate) fn delay(&mut self) {
        self.delay = Some(DELAY);
    }

    /// From when it is known, the outcome of this delivery waits for so many later ones of its link.
    pub(crate) fn hold_back(&mut self, link: LinkId, delivery: DeliveryNumber, behind: u32) {
        self.back.push(HeldBack {
            link,
            delivery,
            behind,
            state: None,
        });
    }

    /// The link is gone.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.back.retain(|held| held.link != link);
    }

    /// How much waits to be written.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that are kept.
    pub(crate) fn held(&self) -> usize {
        let entries = self.queue.len() * size_of::<(Duration, Item)>();
        self.bytes + entries + self.back.len() * size_of::<HeldBack>()
    }

    /// When the first of them may leave.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.queue.front().map(|&(due, _)| due)
    }
}

impl ClientConnection {
    /// Answers a transfer that arrived in the turn that began at `now`.
    pub(crate) fn answer(
        &mut self,
        now: Duration,
        link: LinkId,
        delivery: DeliveryNumber,
        state: impl Into<DeliveryState>,
    ) {
        if self.has_muted_outcomes() {
            return;
        }
        match self.held.delay {
            Some(delay) => {
                let item = Item::Outcome(link, delivery, state.into());
                self.held.queue.push_back((now + delay, item));
            }
            None => self.tell(link, delivery, state.into()),
        }
    }

    /// Sends a reply, after the outcomes before it.
    pub(crate) fn reply(&mut self, now: Duration, link: LinkId, message: Vec<u8>) {
        if self.has_muted_replies() {
            return;
        }
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

    /// Tells an outcome whose time has come, and those that were held back behind it.
    fn tell(&mut self, link: LinkId, delivery: DeliveryNumber, state: DeliveryState) {
        let mut back = self.held.back.iter_mut();
        let own = back.find(|held| held.link == link && held.delivery == delivery);
        if let Some(own) = own {
            own.state = Some(state);
            return;
        }
        self.hand_out(link, delivery, state);
        let known = |held: &HeldBack| held.link == link && held.state.is_some();
        for held in self.held.back.iter_mut().filter(|held| known(held)) {
            held.behind = held.behind.saturating_sub(1);
        }
        let free = |held: &mut HeldBack| known(held) && held.behind == 0;
        let freed: Vec<HeldBack> = self.held.back.extract_if(.., free).collect();
        for held in freed {
            if let Some(state) = held.state {
                self.hand_out(link, held.delivery, state);
            }
        }
    }

    pub(crate) fn release_held(&mut self, now: Duration) {
        while let Some((_, item)) = self.held.queue.pop_front_if(|(due, _)| *due <= now) {
            match item {
                Item::Outcome(link, delivery, state) => {
                    self.tell(link, delivery, state);
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
