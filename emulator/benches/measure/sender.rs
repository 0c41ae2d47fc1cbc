//! A client that sends with a given number of outstanding messages, within its credit.

use std::io;
use std::net::SocketAddr;

use crate::connection::Connection;
use crate::frames::{Role, Transfers, code};
use crate::process::QUEUE;

/// Transfers written at once: about 56 KiB of the usual messages.
const BLOCK: usize = 50;

/// A sending link on a connection of its own.
#[derive(Debug)]
pub(crate) struct Sender {
    connection: Connection,
    transfers: Transfers,
    sent: u32,
    answered: u32,
    /// How many messages the credit allows, counted from the first.
    allowed: u32,
}

impl Sender {
    /// A link on which `message` can be sent again and again.
    pub(crate) fn attach(address: SocketAddr, message: &[u8]) -> io::Result<Self> {
        Self::attach_to(address, QUEUE, Transfers::of(message, BLOCK))
    }

    /// A link to a queue on which these can be sent again and again.
    pub(crate) fn attach_to(
        address: SocketAddr,
        queue: &str,
        transfers: Transfers,
    ) -> io::Result<Self> {
        Self::begin(Connection::open(address)?, queue, transfers)
    }

    /// The first on a connection that is open.
    pub(crate) fn attach_on(connection: Connection, message: &[u8]) -> io::Result<Self> {
        Self::begin(connection, QUEUE, Transfers::of(message, BLOCK))
    }

    fn begin(mut connection: Connection, queue: &str, transfers: Transfers) -> io::Result<Self> {
        connection.attach(Role::Sender, 0, queue)?;
        let mut sender = Self {
            connection,
            transfers,
            sent: 0,
            answered: 0,
            allowed: 0,
        };
        while sender.allowed == 0 {
            sender.digest()?;
            if sender.allowed == 0 {
                sender.connection.read()?;
            }
        }
        Ok(sender)
    }

    /// Sends `count` messages with at most `in_flight` outstanding; returns when all are accepted.
    pub(crate) fn send(&mut self, count: u32, in_flight: u32) -> io::Result<()> {
        let target = self.sent + count;
        while self.answered < target {
            let open = (self.answered + in_flight).min(self.allowed).min(target);
            let room = open.saturating_sub(self.sent) as usize;
            let block = room.min(self.transfers.count());
            // Only whole blocks, or the rest.
            if block == self.transfers.count().min(in_flight as usize)
                || (block > 0 && self.sent as usize + block == target as usize)
            {
                let bytes = self.transfers.numbered(self.sent, block);
                self.connection.write(bytes)?;
                self.sent += block as u32;
            } else {
                self.connection.read()?;
                self.digest()?;
            }
        }
        Ok(())
    }

    /// Sends one message with `stamp` without waiting.
    pub(crate) fn post(&mut self, stamp: u64) -> io::Result<()> {
        self.transfers.stamp(stamp);
        let bytes = self.transfers.numbered(self.sent, 1);
        self.connection.write(bytes)?;
        self.sent += 1;
        Ok(())
    }

    /// Reads answers that have come.
    pub(crate) fn glance(&mut self) -> io::Result<()> {
        self.connection.read_if_ready()?;
        self.digest()
    }

    /// Waits until everything sent is accepted.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        self.digest()?;
        while self.answered < self.sent {
            self.connection.read()?;
            self.digest()?;
        }
        Ok(())
    }

    fn digest(&mut self) -> io::Result<()> {
        while let Some(frame) = self.connection.frame()? {
            match frame.code {
                code::DISPOSITION => self.answered += frame.accepted()?,
                code::FLOW => self.allowed = frame.credit_limit()?.unwrap_or(self.allowed),
                _ => {}
            }
        }
        Ok(())
    }
}
