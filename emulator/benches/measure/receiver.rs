//! A client that receives under locks, accepts, and waits for the answers.

use std::io;
use std::net::SocketAddr;

use crate::connection::Connection;
use crate::frames::{self, Role, code, read_stamp};
use crate::process::QUEUE;

/// A receiving link on a connection of its own.
#[derive(Debug)]
pub(crate) struct Receiver {
    connection: Connection,
    /// Received messages; their delivery ids count from zero.
    received: u32,
    /// Messages accepted so far.
    accepted: u32,
    /// Acceptances answered by the emulator.
    answered: u32,
    /// Messages that the credit granted so far allows.
    allowed: u32,
    output: Vec<u8>,
}

/// When to accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    /// In ranges of exactly this size, and the rest at the end.
    Ranges(u32),
    /// After each read.
    AsItComes,
}

impl Receiver {
    /// A link without credit.
    pub(crate) fn attach(address: SocketAddr) -> io::Result<Self> {
        Self::attach_on(Connection::open(address)?)
    }

    /// The same on a connection that is open.
    pub(crate) fn attach_on(mut connection: Connection) -> io::Result<Self> {
        connection.attach(Role::Receiver, 0, QUEUE)?;
        Ok(Self {
            connection,
            received: 0,
            accepted: 0,
            answered: 0,
            allowed: 0,
            output: Vec::new(),
        })
    }

    /// Gives credit for `credit` messages from now on.
    pub(crate) fn grant(&mut self, credit: u32) -> io::Result<()> {
        self.flow(credit);
        self.connection.write_out(&mut self.output)
    }

    /// Receives `count` messages, accepts them, and returns when the emulator has answered all. Refills the credit to
    /// `credit` at half; zero leaves it unchanged. Calls `seen` with the timestamp of each message.
    pub(crate) fn receive(
        &mut self,
        count: u32,
        credit: u32,
        accept: Accept,
        mut seen: impl FnMut(u64),
    ) -> io::Result<()> {
        let target = self.received + count;
        while self.answered < target {
            self.connection.read()?;
            self.digest(&mut seen)?;
            self.accept(accept, self.received == target);
            if credit > 0 && self.allowed - self.received <= credit / 2 {
                self.flow(credit);
            }
            self.connection.write_out(&mut self.output)?;
        }
        Ok(())
    }

    fn digest(&mut self, seen: &mut impl FnMut(u64)) -> io::Result<()> {
        while let Some(frame) = self.connection.frame()? {
            match frame.code {
                code::TRANSFER => {
                    if frame.delivery_id()? != self.received {
                        return Err(io::Error::other("a delivery id was left out"));
                    }
                    seen(read_stamp(frame.body));
                    self.received += 1;
                }
                code::DISPOSITION => self.answered += frame.accepted()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn accept(&mut self, accept: Accept, all: bool) {
        let range = match accept {
            Accept::Ranges(range) => range,
            Accept::AsItComes => (self.received - self.accepted).max(1),
        };
        while self.received - self.accepted >= range {
            self.accept_next(range);
        }
        if all && self.received > self.accepted {
            self.accept_next(self.received - self.accepted);
        }
    }

    fn accept_next(&mut self, count: u32) {
        let first = self.accepted;
        self.accepted += count;
        frames::accept(&mut self.output, first, self.accepted - 1);
    }

    fn flow(&mut self, credit: u32) {
        self.allowed = self.received + credit;
        frames::flow(&mut self.output, 0, self.received, credit);
    }
}
