//! A minimal RabbitMQ client over AMQP 0-9-1 that publishes to a durable queue and waits for the confirm of each message.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::connection::connect;
use crate::process::QUEUE;

/// Ends every frame.
const END: u8 = 0xce;
const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
/// `delivery-mode` is present, and persistent.
const PERSISTENT: [u8; 3] = [0x10, 0, 2];

/// A class and a method.
type Method = (u16, u16);

/// A channel in confirm mode.
#[derive(Debug)]
pub(crate) struct Publisher {
    stream: TcpStream,
    publish: Vec<u8>,
}

impl Publisher {
    /// Opens a channel for messages with bodies of so many bytes.
    pub(crate) fn open(address: SocketAddr, body: usize) -> io::Result<Self> {
        let mut opened = Self {
            stream: connect(address)?,
            publish: publish(body),
        };
        opened.stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        opened.wait_for((10, 10))?;
        let login = [
            &[0; 4][..],
            &short("PLAIN"),
            &long(b"\0guest\0guest"),
            &short("en_US"),
        ];
        opened.say(0, (10, 11), &login.concat())?;
        opened.wait_for((10, 30))?;
        // No limit of channels of its own, frames of 128 KiB, no heartbeats.
        opened.say(0, (10, 31), &[0x07, 0xff, 0, 2, 0, 0, 0, 0])?;
        opened.ask(0, (10, 40), &[&short("/")[..], &[0, 0]].concat())?;
        opened.ask(1, (20, 10), &[0])?;
        let durable = [&[0, 0][..], &short(QUEUE), &[2], &[0; 4]];
        opened.ask(1, (50, 10), &durable.concat())?;
        opened.ask(1, (85, 10), &[0])?;
        Ok(opened)
    }

    /// Publishes one message after the other, each after the confirm of the one before it.
    pub(crate) fn publish(&mut self, count: u32) -> io::Result<()> {
        for _ in 0..count {
            self.stream.write_all(&self.publish)?;
            self.wait_for((60, 80))?;
        }
        Ok(())
    }

    /// Calls a method and waits for its answer, the next method.
    fn ask(&mut self, channel: u8, (class, method): Method, arguments: &[u8]) -> io::Result<()> {
        self.say(channel, (class, method), arguments)?;
        self.wait_for((class, method + 1))
    }

    fn say(&mut self, channel: u8, method: Method, arguments: &[u8]) -> io::Result<()> {
        self.stream.write_all(&call(channel, method, arguments))
    }

    fn wait_for(&mut self, wanted: Method) -> io::Result<()> {
        loop {
            let mut head = [0; 7];
            self.stream.read_exact(&mut head)?;
            let [kind, _, _, a, b, c, d] = head;
            let mut rest = vec![0; u32::from_be_bytes([a, b, c, d]) as usize + 1];
            self.stream.read_exact(&mut rest)?;
            if let (METHOD, [a, b, c, d, ..]) = (kind, rest.as_slice()) {
                let found = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
                if found == wanted {
                    return Ok(());
                }
                if matches!(found, (10, 50) | (20, 40) | (60, 120)) {
                    let text = String::from_utf8_lossy(&rest).into_owned();
                    return Err(io::Error::other(format!("RabbitMQ refuses: {text}")));
                }
            }
        }
    }
}

/// Everything that publishes one message.
fn publish(body: usize) -> Vec<u8> {
    let method = [&[0, 0, 0][..], &short(QUEUE), &[0]].concat();
    let class = [0, 60, 0, 0];
    let length = (body as u64).to_be_bytes();
    [
        call(1, (60, 40), &method),
        frame(HEADER, 1, &[&class[..], &length, &PERSISTENT].concat()),
        frame(BODY, 1, &vec![b'x'; body]),
    ]
    .concat()
}

fn call(channel: u8, (class, method): Method, arguments: &[u8]) -> Vec<u8> {
    let method = [class.to_be_bytes(), method.to_be_bytes()].concat();
    frame(METHOD, channel, &[&method[..], arguments].concat())
}

fn frame(kind: u8, channel: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&[kind, 0, channel][..], &length, payload, &[END]].concat()
}

fn short(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}
