//! Messages of 100 MiB, as the premium tier takes them: gathered once on their way in, shared on their way out.

use std::io::IoSlice;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use servicebus_amqp::{Config, Connection, Event, LinkId};

use crate::peer::*;

const SIZE: usize = 100 << 20;
/// Payload of a frame of 64 KiB that any client would write.
const PIECE: usize = 65_000;
/// What the engine writes before the payload of a frame.
const OVERHEAD: usize = 54;

/// Something that shows when a piece of it is lost, repeated or moved.
fn payload(size: usize) -> Vec<u8> {
    let mut payload = Vec::with_capacity(size);
    let mut pattern: Vec<u8> = (0..251u8).cycle().take(251 * 1021).collect();
    pattern.push(255);
    while payload.len() < size {
        let count = pattern.len().min(size - payload.len());
        payload.extend_from_slice(&pattern[..count]);
    }
    payload
}

/// A link that takes messages of this size.
fn sender(limit: usize) -> (Peer, LinkId) {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("sender", 0, SENDER);
    peer.accept_up_to(link, limit as u64);
    peer.frames();
    (peer, link)
}

/// Sends the payload in frames, each in a block of its own, and calls `look` after each but the last.
fn send(peer: &mut Peer, payload: &[u8], mut look: impl FnMut(&mut Connection, &mut BytesMut)) {
    let mut pieces = payload.chunks(PIECE).peekable();
    while let Some(piece) = pieces.next() {
        let more = pieces.peek().is_some();
        let frame = performative(0, TRANSFER, &transfer(0, Some(1), false, more), piece);
        let mut block = BytesMut::from(&*frame);
        peer.connection.receive(peer.now, &mut block);
        assert!(block.is_empty());
        if more {
            look(&mut peer.connection, &mut block);
        }
    }
}

#[test]
fn a_message_of_many_frames_does_not_keep_the_input_blocks() {
    let (mut peer, _) = sender(SIZE);
    let sent = payload(SIZE);
    send(&mut peer, &sent, |_, block| {
        assert!(block.try_reclaim(PIECE), "the block is kept");
    });
    let received = peer.received().payload;
    assert!(received == sent);
    let memory = received.try_into_mut().expect("the only reference");
    assert!(memory.capacity() <= 2 * SIZE, "{}", memory.capacity());
}

#[test]
fn a_reassembled_message_allocates_only_its_size() {
    let (mut peer, _) = sender(SIZE);
    let sent = payload(1_000_000);
    send(&mut peer, &sent, |_, _| ());
    let received = peer.received().payload;
    assert!(received == sent);
    let memory = received.try_into_mut().expect("the only reference");
    assert_eq!(memory.capacity(), 1_000_000, "not a byte too many");
}

#[test]
fn an_oversized_message_is_discarded_and_the_link_stays_attached() {
    let (mut peer, link) = sender(SIZE - 1);
    let sent = payload(SIZE);
    let mut most = 0;
    send(&mut peer, &sent, |connection, _| {
        most = most.max(connection.held())
    });
    let size = most as f64 / SIZE as f64;
    assert!((0.99..1.01).contains(&size), "{most} bytes at most");
    let event = peer.event();
    let Event::TransferTooLarge {
        size, limit, head, ..
    } = event
    else {
        panic!("expected a refusal, got {event:?}");
    };
    assert_eq!((size, limit), (SIZE as u64, SIZE as u64 - 1));
    assert_eq!(*head, sent[..4096]);
    send(&mut peer, &sent[..1000], |_, _| {});
    assert_eq!(peer.received().link, link);
}

#[test]
fn frames_beyond_the_message_size_limit_are_not_kept() {
    let (mut peer, _) = sender(PIECE);
    let mut held = Vec::new();
    send(&mut peer, &payload(10 * PIECE), |connection, _| {
        held.push(connection.held());
    });
    assert!(held[0] > PIECE);
    assert!(held[1..].iter().all(|&held| held < PIECE), "{held:?}");
}

/// A delivery in progress, and what has come of it.
struct Reception {
    peer: Peer,
    /// Where the shared part lies.
    tail: Range<*const u8>,
    frames: u32,
    copied: usize,
    shared: usize,
    largest: usize,
}

impl Reception {
    /// Delivers `head` and `tail` to a peer with these limits.
    fn begin(max_frame: u32, window: u32, head: &[u8], tail: &Bytes) -> Self {
        let mut peer = Peer::with(Config::default(), &[uint(max_frame)], window);
        let link = peer.receiver(1);
        peer.frame(0, FLOW, &[uint(0), uint(window), uint(0), uint(0)]);
        let delivered = peer.deliver_bytes(link, 1, false, head, tail.clone());
        assert!(delivered.is_some());
        Self {
            peer,
            tail: tail.as_ptr_range(),
            frames: 0,
            copied: 0,
            shared: 0,
            largest: 0,
        }
    }

    /// Takes all output, which must be at most `window` frames, and says whether there was any.
    fn take(&mut self, window: u32) -> bool {
        self.peer.connection.flush();
        let output = self.peer.connection.output();
        let waiting = output.len();
        let (mut frames, mut left) = (0, 0);
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 16];
            let filled = output.chunks(&mut slices);
            let mut written = 0;
            for slice in &slices[..filled] {
                written += slice.len();
                if self.tail.contains(&slice.as_ptr()) {
                    self.shared += slice.len();
                    left -= slice.len();
                    continue;
                }
                self.copied += slice.len();
                let mut own: &[u8] = slice;
                while let Some(size) = own.first_chunk::<4>() {
                    assert_eq!(left, 0, "a frame begins where one ended");
                    let size = u32::from_be_bytes(*size) as usize;
                    self.largest = self.largest.max(size);
                    frames += 1;
                    let here = size.min(own.len());
                    own = &own[here..];
                    left = size - here;
                }
            }
            output.advance(written);
        }
        assert!(frames <= window, "{frames} frames for a window of {window}");
        self.frames += frames;
        waiting > 0
    }

    /// Opens the window again and again until all has come; returns how often.
    fn finish(&mut self, window: u32) -> u32 {
        let mut rounds = 0;
        while self.take(window) {
            rounds += 1;
            let flow = [uint(self.frames), uint(window), uint(0), uint(0)];
            self.peer.frame(0, FLOW, &flow);
        }
        rounds
    }

    fn assert_shared(&self, head: &[u8], tail: &Bytes, max_frame: usize) {
        let own = head.len() + self.frames as usize * OVERHEAD;
        assert_eq!(self.copied + self.shared, own + tail.len());
        // The end may be copied when the window has cut it off.
        let copied = tail.len() - self.shared;
        assert!(
            copied <= 16 * 1024,
            "{copied} bytes are not from their own place"
        );
        assert_eq!(self.largest, max_frame, "frames are filled");
        assert!(tail.is_unique(), "nothing is held behind its last byte");
    }
}

#[test]
fn a_large_outgoing_message_shares_the_memory_of_its_payload() {
    let tail = Bytes::from(vec![7; SIZE]);
    let head = [8; 300];
    let mut reception = Reception::begin(65_536, 5000, &head, &tail);
    assert_eq!(reception.finish(5000), 1);
    reception.assert_shared(&head, &tail, 65_536);
}

#[test]
fn the_session_window_limits_the_pending_output() {
    let tail = Bytes::from(vec![7; SIZE]);
    let head = [8; 300];
    let mut reception = Reception::begin(65_536, 16, &head, &tail);
    assert_eq!(reception.finish(16), 101);
    reception.assert_shared(&head, &tail, 65_536);
}

#[test]
fn a_window_that_cuts_the_head_off_does_not_copy_the_tail() {
    let tail = Bytes::from(vec![7; 1 << 20]);
    let head: Vec<u8> = vec![8; 2000];
    let mut reception = Reception::begin(512, 2, &head, &tail);
    reception.finish(2);
    reception.assert_shared(&head, &tail, 512);
}

#[test]
fn the_output_releases_a_payload_once_it_is_written() {
    let tail = Bytes::from(vec![7; SIZE]);
    let mut reception = Reception::begin(65_536, 5000, &[], &tail);
    reception.peer.connection.flush();
    let output = reception.peer.connection.output();
    let all = output.len();
    let own = all - SIZE;
    assert!(own < 100 * 1024, "{own} bytes beside the payload");
    output.advance(all - 1);
    assert!(!tail.is_unique());
    output.advance(1);
    assert!(tail.is_unique());
}

/// No client has credit for this; what was dropped must not be missing in a message that counts as whole.
#[test]
fn a_message_that_was_cut_before_its_link_was_accepted_is_too_large() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("a", 0, SENDER);
    let part = vec![1; 60_000];
    for _ in 0..18 {
        peer.transfer(&transfer(0, Some(0), false, true), &part);
    }
    peer.accept_up_to(link, 10 << 20);
    peer.transfer(&transfer(0, Some(0), false, false), &part);
    let event = peer.event();
    let size = 19 * 60_000;
    assert!(
        matches!(event, Event::TransferTooLarge { size: found, .. } if found == size),
        "{event:?}"
    );
}
