//! A client that peeks: `peek-message` on the `$management` node of the queue.

use std::io;
use std::net::SocketAddr;

use servicebus_codec::Writer;

use crate::connection::Connection;
use crate::frames::{self, Role, Transfers, code};
use crate::process::QUEUE;

/// Links of the requests and of the replies.
const REQUESTS: u32 = 0;
const REPLIES: u32 = 1;
/// Frames of a session's window; replies of a megabyte take several.
const CREDIT: u32 = 1_000_000;

/// A pair of links to the node.
#[derive(Debug)]
pub(crate) struct Peeker {
    connection: Connection,
    requests: u32,
}

impl Peeker {
    /// Attaches both links.
    pub(crate) fn attach(address: SocketAddr) -> io::Result<Self> {
        let node = format!("{QUEUE}/$management");
        let mut connection = Connection::open(address)?;
        connection.attach(Role::Sender, REQUESTS, &node)?;
        connection.attach(Role::Listener, REPLIES, &node)?;
        let mut credit = Vec::new();
        frames::flow(&mut credit, REPLIES, 0, CREDIT);
        connection.write(&credit)?;
        Ok(Self {
            connection,
            requests: 0,
        })
    }

    /// Peeks up to `count` messages from the sequence number `from`; returns the size of the reply.
    pub(crate) fn peek(&mut self, from: u64, count: u32) -> io::Result<usize> {
        let request = Transfers::of(&request(from, count), 1)
            .numbered(self.requests, 1)
            .to_vec();
        self.connection.write(&request)?;
        self.requests += 1;
        let mut size = 0;
        loop {
            while let Some(frame) = self.connection.frame()? {
                if frame.code == code::TRANSFER {
                    size += frame.body.len();
                    if !frame.continues()? {
                        return Ok(size);
                    }
                }
            }
            self.connection.read()?;
        }
    }
}

fn request(from: u64, count: u32) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut out = Writer::new(&mut encoded);
    out.descriptor(0x73);
    let properties = out.begin_list();
    out.string("peek");
    out.end(properties, 1);
    out.descriptor(0x74);
    let application = out.begin_map();
    out.string("operation");
    out.string("com.microsoft:peek-message");
    out.end(application, 2);
    out.descriptor(0x77);
    let body = out.begin_map();
    out.string("from-sequence-number");
    out.long(from as i64);
    out.string("message-count");
    out.int(count as i32);
    out.end(body, 4);
    encoded
}
