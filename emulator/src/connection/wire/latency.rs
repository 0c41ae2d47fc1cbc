//! A stream with a simulated latency: data takes half of the round trip in each direction, however much is in flight.
//!
//! Without latency nothing is copied and no timer runs.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use servicebus_amqp::Output;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Unread, Wire};

/// Bytes in flight in one direction, a window of TCP; more must wait.
const WINDOW: usize = 4 * 1024 * 1024;

/// A stream with latency.
pub(crate) struct LatencyTransport<W> {
    wire: W,
    round_trip: Duration,
    incoming: Direction,
    outgoing: Direction,
    /// Output that has passed the latency and is not written yet.
    arrived: Output,
}

/// The data in flight in one direction; an empty block is the end of the stream.
#[derive(Default)]
struct Direction {
    blocks: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    has_ended: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<W> LatencyTransport<W> {
    pub(crate) fn new(wire: W) -> Self {
        Self {
            wire,
            round_trip: Duration::ZERO,
            incoming: Direction::default(),
            outgoing: Direction::default(),
            arrived: Output::default(),
        }
    }

    pub(crate) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    fn is_short(&self, way: &Direction) -> bool {
        self.round_trip.is_zero() && way.blocks.is_empty() && !way.has_ended
    }

    fn arrival(&self) -> Instant {
        Instant::now() + self.round_trip / 2
    }
}

impl<W: Unread> Unread for LatencyTransport<W> {
    fn has_unread(&self) -> bool {
        self.wire.has_unread()
    }
}

impl<W: Wire> Wire for LatencyTransport<W> {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        if self.is_short(&self.incoming) {
            return self.wire.poll_read(cx, input);
        }
        while !self.incoming.has_ended && self.incoming.bytes < WINDOW {
            let mut block = BytesMut::new();
            let Poll::Ready(read) = self.wire.poll_read(cx, &mut block) else {
                break;
            };
            read?;
            let arrival = self.arrival();
            self.incoming.send(arrival, block.freeze());
        }
        let before = input.len();
        loop {
            while let Some(block) = self.incoming.next_arrived() {
                input.extend_from_slice(&block);
            }
            // The end of the stream is reported on its own, after all data.
            let is_over = self.incoming.has_ended && self.incoming.blocks.is_empty();
            if input.len() > before || is_over {
                return Poll::Ready(Ok(input.len() - before));
            }
            ready!(self.incoming.poll_next(cx));
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<io::Result<()>> {
        if self.is_short(&self.outgoing) && self.arrived.is_empty() {
            return self.wire.poll_write(cx, output);
        }
        loop {
            while !output.is_empty() && self.outgoing.bytes < WINDOW {
                let arrival = self.arrival();
                self.outgoing.send(arrival, next(output));
            }
            while let Some(block) = self.outgoing.next_arrived() {
                self.arrived.share(block);
            }
            ready!(self.wire.poll_write(cx, &mut self.arrived))?;
            if output.is_empty() && self.outgoing.blocks.is_empty() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.outgoing.poll_next(cx));
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_close(cx)
    }

    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.wire.poll_refuse(cx)
    }

    /// Data in flight is not the peer's doing, and has its own limit.
    fn held(&self) -> usize {
        self.wire.held()
    }

    fn set_close_reason(&mut self, reason: &str) -> bool {
        self.wire.set_close_reason(reason)
    }

    fn acknowledge(&self) {
        self.wire.acknowledge();
    }
}

impl Direction {
    fn send(&mut self, arrival: Instant, block: Bytes) {
        self.bytes += block.len();
        self.has_ended |= block.is_empty();
        self.blocks.push_back((arrival, block));
    }

    fn next_arrived(&mut self) -> Option<Bytes> {
        let now = Instant::now();
        let (_, block) = self.blocks.pop_front_if(|(arrival, _)| *arrival <= now)?;
        self.bytes -= block.len();
        Some(block)
    }

    /// Ready when the first block has arrived.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(&(arrival, _)) = self.blocks.front() else {
            return Poll::Pending;
        };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(arrival)));
        if timer.deadline() != arrival {
            timer.as_mut().reset(arrival);
        }
        timer.as_mut().poll(cx)
    }
}

/// Returns the first contiguous part.
fn next(output: &mut Output) -> Bytes {
    let mut slices = [IoSlice::new(&[])];
    output.chunks(&mut slices);
    let block = Bytes::copy_from_slice(&slices[0]);
    output.advance(block.len());
    block
}
