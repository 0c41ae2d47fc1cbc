//! One AMQP connection, frame by frame.
//!
//! Received frames are kept until a test asks for them, so that a test only names what it waits for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Instant;

use serde_amqp::Value;

use super::TIMEOUT;
use servicebus_test_support::frame::{
    AMQP_HEADER, ATTACH, BEGIN, CLOSE, END, FLOW, Frame, OPEN, SASL_HEADER, SASL_OUTCOME,
    ServiceError, TRANSFER, performative, sasl_init,
};
use servicebus_test_support::stream::Stream;
use servicebus_test_support::value::{text, uint};

/// Practically no limit.
const WINDOW: u32 = i32::MAX as u32;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: Stream,
    input: Vec<u8>,
    inbox: VecDeque<Frame>,
    ended: bool,
    heartbeats: u32,
    pub(crate) next_handle: u32,
    pub(super) next_delivery: u32,
    /// Deliveries that have arrived on each link, by channel and handle.
    pub(super) arrived: BTreeMap<(u16, u32), u32>,
}

/// How a client introduces itself.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) container_id: String,
    pub(crate) hostname: String,
    /// The fields after the host name.
    pub(crate) rest: Vec<Value>,
    /// Transfers that may arrive before it says more.
    pub(crate) window: u32,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            container_id: "client".into(),
            hostname: "localhost".into(),
            rest: Vec::new(),
            window: WINDOW,
        }
    }
}

impl Open {
    /// With this container id, by which timelines name the client.
    pub(crate) fn named(container_id: &str) -> Self {
        Self {
            container_id: container_id.into(),
            ..Self::default()
        }
    }

    /// To this host.
    pub(crate) fn to(hostname: &str) -> Self {
        Self {
            hostname: hostname.into(),
            ..Self::default()
        }
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut fields = vec![text(&self.container_id), text(&self.hostname)];
        fields.extend_from_slice(&self.rest);
        performative(0, OPEN, &fields, &[])
    }

    fn begin(&self, channel: u16) -> Vec<u8> {
        let fields = [Value::Null, uint(0), uint(self.window), uint(WINDOW)];
        performative(channel, BEGIN, &fields, &[])
    }
}

impl Peer {
    /// A connection over which nothing has been sent.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(Stream::plain(address))
    }

    /// The same over a stream of any kind.
    pub(crate) fn over(stream: Stream) -> Self {
        Self {
            stream,
            input: Vec::new(),
            inbox: VecDeque::new(),
            ended: false,
            heartbeats: 0,
            next_handle: 0,
            next_delivery: 0,
            arrived: BTreeMap::new(),
        }
    }

    /// A connection that is open and has a session on channel 0, and nothing that would let it in.
    pub(crate) fn open(address: SocketAddr, open: &Open) -> Self {
        Self::open_over(Stream::plain(address), open)
    }

    /// The same over a stream of any kind.
    pub(crate) fn open_over(stream: Stream, open: &Open) -> Self {
        let mut peer = Self::over(stream);
        assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
        peer.introduce(open);
        peer
    }

    /// Offers a SASL mechanism and returns the code of the outcome.
    pub(crate) fn sasl(&mut self, mechanism: &str, response: &[u8]) -> u8 {
        self.write(SASL_HEADER);
        self.write(&sasl_init(mechanism, response));
        assert_eq!(self.read_header(), *SASL_HEADER);
        let outcome = self.take("the SASL outcome", |frame| frame.code == SASL_OUTCOME);
        match outcome.field(0) {
            Value::Ubyte(code) => *code,
            other => panic!("the outcome is {other:?}"),
        }
    }

    /// Everything from the AMQP header to the first session.
    pub(crate) fn introduce(&mut self, open: &Open) -> Frame {
        self.write(AMQP_HEADER);
        self.write(&open.frame());
        self.write(&open.begin(0));
        assert_eq!(self.read_header(), *AMQP_HEADER);
        let answer = self.expect(OPEN);
        self.expect(BEGIN);
        answer
    }

    /// Begins another session.
    pub(crate) fn begin(&mut self, channel: u16) {
        self.write(&Open::default().begin(channel));
        self.take("a session", |frame| {
            frame.code == BEGIN && frame.channel == channel
        });
    }

    /// Ends a session.
    pub(crate) fn end(&mut self, channel: u16) {
        self.frame(channel, END, &[]);
        self.expect(END);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream
            .write_all(bytes)
            .expect("the socket can be written");
    }

    /// Writes to a socket that may be closed; returns whether it could.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub(crate) fn frame(&mut self, channel: u16, code: u8, fields: &[Value]) {
        self.write(&performative(channel, code, fields, &[]));
    }

    /// Reads a protocol header.
    pub(crate) fn read_header(&mut self) -> [u8; 8] {
        let deadline = Instant::now() + TIMEOUT;
        while self.input.len() < 8 {
            assert!(self.read_more(deadline), "ended before a header: {self:?}");
        }
        let header: Vec<u8> = self.input.drain(..8).collect();
        header.try_into().expect("eight bytes are eight bytes")
    }

    /// The next frame with this performative, whatever comes before it.
    pub(crate) fn expect(&mut self, code: u8) -> Frame {
        self.take(&format!("performative 0x{code:x}"), |frame| {
            frame.code == code
        })
    }

    /// The first frame that is wanted, arrived or still to come.
    pub(crate) fn take(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            self.sort_input();
            if let Some(index) = self.inbox.iter().position(&wanted) {
                return self.inbox.remove(index).expect("the index was found");
            }
            let more = self.read_more(deadline);
            assert!(
                more,
                "{what} did not come; there are {:?}, ended: {}",
                self.inbox, self.ended
            );
        }
    }

    /// Whether such a frame has arrived.
    pub(super) fn has(&self, wanted: impl Fn(&Frame) -> bool) -> bool {
        self.inbox.iter().any(wanted)
    }

    /// The first wanted disposition. One for a whole range stays available for the rest of it.
    pub(super) fn disposition(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        let found = self.take(what, wanted);
        if found.field(2) != &Value::Null && found.field(2) != found.field(1) {
            self.inbox.push_back(found.clone());
        }
        found
    }

    /// The received frames that were not asked for, once everything sent before is handled.
    pub(crate) fn settle_down(&mut self) -> Vec<Frame> {
        let mut flow = vec![uint(0), uint(WINDOW), uint(0), uint(WINDOW)];
        flow.extend([Value::Null, Value::Null, Value::Null, Value::Null]);
        flow.extend([Value::Bool(false), Value::Bool(true)]);
        self.frame(0, FLOW, &flow);
        self.take("the echo of a flow", |frame| {
            frame.code == FLOW && frame.field(4) == &Value::Null
        });
        self.inbox.drain(..).collect()
    }

    /// Asserts that no such frame arrives, once everything sent before is handled.
    #[track_caller]
    pub(crate) fn assert_no_frame(&mut self, is_unwanted: impl Fn(&Frame) -> bool) {
        let frames = self.settle_down();
        assert!(!frames.iter().any(is_unwanted), "{frames:?}");
    }

    /// The error of the emulator's close, after which the stream must end.
    pub(crate) fn closed(&mut self) -> ServiceError {
        let close = self.expect(CLOSE);
        self.try_write(&performative(0, CLOSE, &[], &[]));
        self.read_to_end();
        close.refusal(0)
    }

    /// Reads until this many empty frames have come.
    pub(crate) fn wait_for_heartbeats(&mut self, count: u32) {
        let deadline = Instant::now() + TIMEOUT;
        while self.heartbeats < count {
            assert!(
                self.read_more(deadline),
                "{} heartbeats came",
                self.heartbeats
            );
            self.sort_input();
        }
    }

    /// Reads until the emulator has closed the stream.
    pub(crate) fn read_to_end(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        while self.read_more(deadline) {}
        assert!(self.ended, "the stream goes on: {self:?}");
    }

    /// Reads until a link is answered; returns whether the connection was closed before.
    pub(crate) fn is_closed_before(&mut self, channel: u16, handle: u32) -> bool {
        let frame = self.take("an attach or a close", |frame| {
            let is_attach = frame.code == ATTACH && frame.channel == channel;
            frame.code == CLOSE || is_attach && frame.number(1) == handle
        });
        let is_closed = frame.code == CLOSE;
        if is_closed {
            self.inbox.push_back(frame);
        }
        is_closed
    }

    /// Closes the connection and waits for the answer.
    pub(crate) fn close(mut self) {
        self.frame(0, CLOSE, &[]);
        self.expect(CLOSE);
    }

    /// Appends what the socket has; false when it has ended or the deadline has passed.
    fn read_more(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if self.ended || left.is_zero() {
            return false;
        }
        self.stream.set_read_timeout(left);
        let mut block = [0; 16 * 1024];
        match self.stream.read(&mut block) {
            Ok(read) => {
                self.ended = read == 0;
                self.input.extend_from_slice(&block[..read]);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            // Closing a socket with unread input resets the connection.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                ) =>
            {
                self.ended = true;
            }
            Err(error) => panic!("{error}"),
        }
        !self.ended
    }

    fn sort_input(&mut self) {
        while let Some(frame) = Frame::split_off(&mut self.input) {
            match frame.code {
                0 => {
                    self.heartbeats += 1;
                    continue;
                }
                // A delivery counts by its first frame, the only one with an id.
                TRANSFER if frame.field(1) != &Value::Null => {
                    *self
                        .arrived
                        .entry((frame.channel, frame.number(0)))
                        .or_default() += 1;
                }
                _ => {}
            }
            self.inbox.push_back(frame);
        }
    }
}
