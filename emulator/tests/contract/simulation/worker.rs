//! One client of the simulation.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::ledger::Ledger;
use crate::support::*;

/// A client with random actions.
pub(super) struct Worker<'a> {
    bus: &'a Bus,
    ledger: &'a Ledger,
    name: String,
    random: SmallRng,
    messages: u32,
    connection: Option<Connection>,
}

struct Connection {
    peer: Peer,
    sender: Link,
    receiver: Link,
}

impl<'a> Worker<'a> {
    pub(super) fn new(bus: &'a Bus, ledger: &'a Ledger, index: u64, seed: u64) -> Self {
        Self {
            bus,
            ledger,
            name: format!("worker-{index}"),
            random: SmallRng::seed_from_u64(seed),
            messages: 0,
            connection: None,
        }
    }

    pub(super) fn run(mut self, steps: u32) {
        for _ in 0..steps {
            match self.random.random_range(0..10) {
                0..=2 => self.send(),
                3..=6 => self.receive(),
                7 => self.receive_and_delete(),
                8 => self.go_silent(),
                _ => self.connection = None,
            }
        }
        if let Some(connection) = self.connection {
            connection.peer.close();
        }
    }

    fn connection(&mut self) -> &mut Connection {
        self.connection.get_or_insert_with(|| {
            let mut peer = Peer::connect(self.bus.amqp);
            let key = b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE";
            assert_eq!(peer.sasl("PLAIN", key), 0);
            peer.introduce(&Open::named(&self.name));
            let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
            Connection {
                peer,
                sender,
                receiver,
            }
        })
    }

    /// Sends some messages without waiting, then waits for all outcomes or for none.
    fn send(&mut self) {
        let count = self.random.random_range(1..8);
        let patient = self.random.random_bool(0.9);
        let mut pending = Vec::new();
        for _ in 0..count {
            self.messages += 1;
            let id = format!("{}-{}", self.name, self.messages);
            let message = match self.random.random_range(0..4) {
                0 => Message::new(&id).ttl(self.random.random_range(500..20_000)),
                _ => Message::new(&id),
            };
            let Connection { peer, sender, .. } = self.connection();
            pending.push((peer.transfer(sender, 0, false, &message.encode()), id));
        }
        if !patient {
            self.connection = None;
        }
        for (delivery, id) in pending {
            match &mut self.connection {
                Some(Connection { peer, sender, .. }) => {
                    assert_eq!(peer.outcome(sender, delivery), Ok(()));
                    self.ledger.sent(&id);
                }
                None => self.ledger.maybe_sent(&id),
            }
        }
    }

    /// Takes available messages and settles each at random.
    fn receive(&mut self) {
        let wanted = self.random.random_range(1..12);
        let Connection { peer, receiver, .. } = self.connection();
        let receiver = receiver.clone();
        for delivery in peer.drain(&receiver, wanted) {
            if !self.settle(&delivery) {
                self.connection = None;
                return;
            }
        }
    }

    /// Settles a message; returns false if the connection must be dropped.
    fn settle(&mut self, delivery: &Delivery) -> bool {
        let whim = self.random.random_range(0..20);
        let ledger = self.ledger;
        let peer = &mut self.connection().peer;
        let id = delivery.id();
        match whim {
            0..=7 => {
                let answer = peer.settle(delivery, accepted());
                if answer == accepted() {
                    ledger.completed(&id);
                }
            }
            8..=11 => drop(peer.settle(delivery, abandoned())),
            12..=13 => drop(peer.settle(delivery, released())),
            14..=15 => drop(peer.settle(delivery, dead_lettered("whim", ""))),
            16 => {
                peer.dispose(0, delivery.id, delivery.id, true, accepted());
                ledger.maybe_completed(&id);
            }
            17 => {
                peer.dispose(0, delivery.id, delivery.id, false, accepted());
                ledger.maybe_completed(&id);
                return false;
            }
            18 => return false,
            // Forgotten: its lock will end.
            _ => {}
        }
        true
    }

    /// Receives without a lock; reads everything, as unread messages would be lost.
    fn receive_and_delete(&mut self) {
        let wanted = self.random.random_range(1..4);
        let ledger = self.ledger;
        let peer = &mut self.connection().peer;
        let link = peer.attached(&Attach::deleting("q").named("deleting"));
        for delivery in peer.drain(&link, wanted) {
            ledger.completed(&delivery.id());
        }
        peer.detach(&link);
    }

    /// Grants credit and disconnects before messages arrive.
    fn go_silent(&mut self) {
        let Connection { peer, receiver, .. } = self.connection();
        peer.credit(receiver, 10);
        self.connection = None;
    }
}
