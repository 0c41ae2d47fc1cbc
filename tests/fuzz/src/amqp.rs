//! The AMQP engine between a peer that sends any frames and an owner that does what owners do: it never panics, what it
//! writes is frames and bounded by what it was given, and its events make sense together.

pub(crate) mod frames;
mod ledger;

use std::io::IoSlice;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use servicebus_amqp::{
    AttachReply, Config, Connection, Delivery, DeliveryNumber, Error, Event, LinkId, LinkRole,
    Outcome,
};
use servicebus_codec::Reader;

use crate::Input;
use ledger::Ledger;

/// Largest frame of either side.
const FRAME: u32 = 512;
/// How many times longer what the engine writes may be than what it was given, and by how much beside that.
const FACTOR: usize = 64;
const OVERHEAD: usize = 4096;

/// One connection from its first byte.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let mut peer = Peer::new();
    if !input.one_in(8) {
        peer.send(&mut input, &frames::handshake());
    }
    while !input.is_empty() && !peer.connection.is_closed() {
        let frame = frames::next(&mut input);
        peer.send(&mut input, &frame);
        if input.one_in(16) {
            peer.now += Duration::from_secs(input.byte().into());
            peer.connection.handle_timeout(peer.now);
        }
        if input.one_in(8) {
            peer.discharge();
        }
        peer.process_events(&mut input);
    }
    peer.connection.lost();
    peer.process_events(&mut input);
}

/// The engine with its owner.
struct Peer {
    connection: Connection,
    now: Duration,
    unread: BytesMut,
    /// Bytes that were given to the engine, by the peer and by the owner.
    given: usize,
    written: Vec<u8>,
    /// Bytes of what was written that are known to be frames.
    parsed: usize,
    ledger: Ledger,
    /// Deliveries whose settlement was answered and which are not settled yet, as in transactions.
    confirmed: Vec<(LinkId, DeliveryNumber)>,
}

impl Peer {
    fn new() -> Self {
        let config = Config {
            max_frame_size: FRAME,
            channel_max: 3,
            handle_max: 3,
            incoming_credit: 4,
            session_window: 8,
            ..Config::default()
        };
        Self {
            connection: Connection::new(config, Duration::ZERO),
            now: Duration::ZERO,
            unread: BytesMut::new(),
            given: 0,
            written: Vec::new(),
            parsed: 0,
            ledger: Ledger::default(),
            confirmed: Vec::new(),
        }
    }

    fn send(&mut self, input: &mut Input<'_>, bytes: &[u8]) {
        self.given += bytes.len();
        self.unread.extend_from_slice(bytes);
        self.receive(input);
        // A peer that authenticates is heard again when it was answered.
        self.receive(input);
        while self.connection.has_more() {
            self.receive(input);
        }
    }

    fn receive(&mut self, input: &mut Input<'_>) {
        self.connection.receive(self.now, &mut self.unread);
        self.process_events(input);
    }

    /// Does what the owner does: looks at events, acts, and writes.
    fn process_events(&mut self, input: &mut Input<'_>) {
        while let Some(event) = self.connection.poll_event() {
            self.ledger.record(&event);
            self.act(input, event);
        }
        self.connection.flush();
        self.write();
        let bound = FACTOR * self.given + OVERHEAD;
        assert!(
            self.written.len() <= bound,
            "{} bytes for {}",
            self.written.len(),
            self.given
        );
    }

    fn act(&mut self, input: &mut Input<'_>, event: Event) {
        match event {
            Event::Sasl { .. } => {
                if input.one_in(4) {
                    self.connection.repeat_outcomes();
                }
                self.connection.sasl_outcome(!input.one_in(16));
            }
            Event::Attach { link, attach } => self.attached(input, link, attach.role()),
            Event::Transfer(transfer) => {
                let outcome = match input.one_in(4) {
                    true => Outcome::from(error(input)),
                    false => Outcome::Accepted,
                };
                self.given += 64;
                self.connection
                    .outcome(transfer.link, transfer.delivery, outcome);
            }
            Event::TransferTooLarge {
                link,
                delivery,
                settled,
                ..
            } if !settled => {
                self.given += 64;
                self.connection
                    .outcome(link, delivery, Outcome::from(error(input)));
            }
            Event::Credit { link, drain, .. } => self.deliver(input, link, drain),
            Event::Settle(settlement) if !settlement.settled => {
                let (link, delivery) = (settlement.link, settlement.delivery);
                self.given += 64;
                if input.one_in(4) {
                    self.ledger.confirmed(settlement.tag);
                    self.confirmed.push((link, delivery));
                    self.connection
                        .confirm_unsettled(link, delivery, settlement.outcome);
                } else {
                    self.connection.settle(link, delivery, settlement.outcome);
                }
            }
            Event::TransferTooLarge { .. }
            | Event::TransferDropped { .. }
            | Event::Settle(_)
            | Event::Opened(_)
            | Event::Detached { .. }
            | Event::Refused(_)
            | Event::Closed { .. } => {}
        }
    }

    /// Settles what was left unsettled, as at the end of a transaction.
    fn discharge(&mut self) {
        for (link, delivery) in std::mem::take(&mut self.confirmed) {
            self.given += 64;
            self.ledger.settled_by_owner(link, delivery);
            self.connection.settle(link, delivery, Outcome::Accepted);
        }
    }

    fn attached(&mut self, input: &mut Input<'_>, link: LinkId, role: LinkRole) {
        self.given += 64;
        if input.one_in(8) {
            self.ledger.detached_by_owner(link);
            return self.connection.refuse_attach(link, error(input));
        }
        let max_message_size = if input.one_in(4) { 64 } else { 4096 };
        let reply = AttachReply {
            max_message_size,
            ..AttachReply::default()
        };
        self.connection.accept_attach(link, reply);
        if role == LinkRole::Receiver {
            self.deliver(input, link, false);
        }
        if input.one_in(16) {
            self.ledger.detached_by_owner(link);
            self.connection.detach(link, Some(error(input)));
        }
    }

    /// Messages of up to a few frames, for as long as there is credit.
    fn deliver(&mut self, input: &mut Input<'_>, link: LinkId, drain: bool) {
        for _ in 0..input.below(4) {
            let credit = self.connection.credit(link);
            let (head, tail) = (input.bytes(64), vec![7; input.below(2_000)]);
            let tag = self.ledger.next_tag();
            let delivery = Delivery {
                tag,
                settled: input.one_in(4),
                message_format: 0,
                head,
                tail: Bytes::from(tail),
            };
            let (settled, size) = (delivery.settled, head.len() + delivery.tail.len());
            let number = self.connection.deliver(link, delivery);
            assert_eq!(number.is_some(), credit > 0, "credit {credit}");
            let Some(number) = number else {
                break;
            };
            self.given += size + 64;
            assert!(self.connection.credit(link) < credit);
            if !settled {
                self.ledger.delivered(link, number, tag);
                if input.one_in(8) {
                    self.ledger.settled_by_owner(link, number);
                    self.connection.settle(link, number, Outcome::Released);
                }
            }
        }
        if drain {
            self.connection.drained(link);
        }
    }

    /// Takes what the engine has written, and reads it as frames.
    fn write(&mut self) {
        let output = self.connection.output();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 4];
            let filled = output.chunks(&mut slices);
            let before = self.written.len();
            slices[..filled]
                .iter()
                .for_each(|slice| self.written.extend_from_slice(slice));
            output.advance(self.written.len() - before);
        }
        while let Some(length) = whole(&self.written[self.parsed..]) {
            self.parsed += length;
        }
        assert_eq!(self.parsed, self.written.len(), "half a frame was written");
    }
}

/// The length of the header or frame at the beginning.
fn whole(written: &[u8]) -> Option<usize> {
    if written.starts_with(b"AMQP") {
        return Some(8);
    }
    let size = u32::from_be_bytes(*written.first_chunk()?) as usize;
    assert!(
        (8..=FRAME as usize).contains(&size),
        "a frame of {size} bytes"
    );
    assert!(
        size <= written.len(),
        "{size} bytes of which {} are written",
        written.len()
    );
    assert!(written[4] == 2 && written[5] < 2, "{:?}", &written[..8]);
    if size > 8 {
        let mut body = Reader::new(&written[8..size]);
        body.descriptor().expect("a performative");
        body.validate().expect("its fields");
    }
    Some(size)
}

fn error(input: &mut Input<'_>) -> Error {
    Error::new("amqp:internal-error", input.word(32))
}
