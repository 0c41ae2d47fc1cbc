//! Many receiving links on one connection that accept their deliveries: from a queue, or each from a session.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::connection::Connection;
use crate::frames::{self, code};

/// Credit of each link, granted again after each message, as by SDKs without prefetch. With more, a plain queue would give
/// one link many messages at once, which come one by one in sessions.
const CREDIT: u32 = 1;
/// How often readers check whether all is done: others may have got the last message.
const GLANCE: Duration = Duration::from_millis(5);

/// The session that a link asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedSession {
    /// None: the queue has no sessions.
    Nothing,
    /// The next available.
    Next,
}

/// The links of one connection.
#[derive(Debug)]
pub(crate) struct Readers {
    connection: Connection,
    /// Deliveries on each link.
    links: Vec<u32>,
    /// Deliveries on all links; their ids count from zero.
    received: u32,
    accepted: u32,
    output: Vec<u8>,
}

impl Readers {
    /// Attaches `count` links without credit, and waits for the answers to all of them.
    pub(crate) fn attach(
        address: SocketAddr,
        queue: &str,
        wanted: RequestedSession,
        count: u32,
    ) -> io::Result<Self> {
        let mut connection = Connection::open(address)?;
        let attaches: Vec<u8> = (0..count)
            .flat_map(|handle| match wanted {
                RequestedSession::Nothing => frames::attach(frames::Role::Receiver, handle, queue),
                RequestedSession::Next => frames::attach_to_next_session(handle, queue),
            })
            .collect();
        connection.write(&attaches)?;
        let mut attached = 0;
        while attached < count {
            connection.read()?;
            while let Some(frame) = connection.frame()? {
                attached += u32::from(frame.code == code::ATTACH);
            }
        }
        Ok(Self {
            connection,
            links: vec![0; count as usize],
            received: 0,
            accepted: 0,
            output: Vec::new(),
        })
    }

    /// Gives every link its first credit.
    pub(crate) fn grant(&mut self) -> io::Result<()> {
        for handle in 0..self.links.len() {
            self.ask(handle as u32);
        }
        self.connection.write_out(&mut self.output)
    }

    /// Receives and accepts until all readers together have got `left` answers.
    pub(crate) fn receive(&mut self, left: &AtomicU32) -> io::Result<()> {
        while left.load(Ordering::Relaxed) > 0 {
            if !self.connection.read_within(GLANCE)? {
                continue;
            }
            let mut answered = 0;
            while let Some(frame) = self.connection.frame()? {
                match frame.code {
                    code::TRANSFER => {
                        let handle = frame.handle()?;
                        self.received += 1;
                        if let Some(link) = self.links.get_mut(handle as usize) {
                            *link += 1;
                        }
                        self.ask(handle);
                    }
                    code::DISPOSITION => answered += frame.accepted()?,
                    _ => {}
                }
            }
            if self.received > self.accepted {
                frames::accept(&mut self.output, self.accepted, self.received - 1);
                self.accepted = self.received;
            }
            self.connection.write_out(&mut self.output)?;
            left.fetch_sub(answered, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Grants credit for the next message of a link.
    fn ask(&mut self, handle: u32) {
        if let Some(&own) = self.links.get(handle as usize) {
            let credit = (own, CREDIT);
            frames::flow_of(&mut self.output, handle, self.received, credit);
        }
    }
}
