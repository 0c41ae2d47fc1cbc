//! Splits the input into frames and passes each performative to its handler.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::{Connection, ConnectionState};
use crate::Event;
use crate::error::{Fault, condition};
use crate::wire::frame::Frame;
use crate::wire::{code, frame};

/// How many deliveries and links one call may visit: a range of dispositions, or a window that opens, affects many.
const STEPS: usize = 1 << 16;

impl Connection {
    /// Consumes the complete frames in `input`. Leaves a partial frame, frames that follow expensive ones, and those that end
    /// links behind events whose outcomes the owner has not given: then [`Self::has_more`] returns true, and the owner must
    /// handle the events and call again.
    ///
    /// Payloads are slices of the block that is taken from `input`. While a SASL outcome is pending nothing is consumed:
    /// call again after [`Connection::sasl_outcome`], as bytes may be waiting.
    pub fn receive(&mut self, now: Duration, input: &mut BytesMut) {
        self.now = self.now.max(now);
        // A frame that stays incomplete counts once.
        if input.len() > self.left_input {
            self.last_received = self.now;
        }
        self.steps = STEPS;
        while self.steps > 0 && self.step(input) {}
        self.left_input = input.len();
    }

    /// Returns whether frames may be left for the next [`Self::receive`].
    pub fn has_more(&self) -> bool {
        self.steps == 0 && self.phase != ConnectionState::Closed
    }

    /// Counts the visits of a frame.
    pub(crate) fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps);
    }

    /// Consumes some input; returns false if no more can be used.
    fn step(&mut self, input: &mut BytesMut) -> bool {
        match self.phase {
            ConnectionState::Header | ConnectionState::Secured => self.header(input),
            ConnectionState::Sasl
            | ConnectionState::Opening
            | ConnectionState::Running
            | ConnectionState::Closing(_) => self.frames(input),
            ConnectionState::SaslPending => {
                if input.len() > self.config.max_frame_size as usize {
                    self.fault(
                        0,
                        Fault::framing("too much was sent ahead of authentication"),
                    );
                }
                false
            }
            ConnectionState::Closed => {
                input.clear();
                false
            }
        }
    }

    fn frames(&mut self, input: &mut BytesMut) -> bool {
        let taken = match frame::complete(input, self.config.max_frame_size) {
            Ok(0) => return false,
            // The bytes after a SASL frame may belong to the next layer.
            Ok(_) if self.phase == ConnectionState::Sasl => frame::size(input),
            Ok(taken) => taken,
            Err(fault) => {
                self.fault(0, fault);
                return true;
            }
        };
        let block = input.split_to(taken).freeze();
        let (mut last, mut position) = (0, 0);
        while self.phase != ConnectionState::Closed {
            if self.steps == 0 {
                let left = match std::mem::take(&mut self.is_postponed) {
                    true => last,
                    false => position,
                };
                let mut rest = BytesMut::from(&block[left..]);
                rest.unsplit(std::mem::take(input));
                *input = rest;
                return false;
            }
            if position >= block.len() {
                break;
            }
            last = position;
            position = self.frame(&block, position);
        }
        true
    }

    /// Handles the frame at `start`; returns its end.
    fn frame(&mut self, block: &Bytes, start: usize) -> usize {
        let frame = match frame::parse(block, start) {
            Ok(frame) => frame,
            Err(fault) => {
                self.fault(0, fault);
                return block.len();
            }
        };
        if let Err(fault) = self.body(block, frame) {
            self.fault(frame.channel, fault);
        }
        frame.end
    }

    /// Postpones a frame that ends links, if the owner has not given the outcomes of earlier frames: these must precede the
    /// answer, or clients that settle and detach at once wait for them in vain.
    fn postpones(&mut self) -> bool {
        self.spend(self.events.len());
        let mut events = self.events.iter();
        self.is_postponed = events.any(|event| {
            matches!(
                event,
                Event::Transfer(_) | Event::TransferTooLarge { .. } | Event::Settle(_)
            )
        });
        if self.is_postponed {
            self.steps = 0;
        }
        self.is_postponed
    }

    fn body(&mut self, block: &Bytes, frame: Frame) -> Result<(), Fault> {
        let body = &block[frame.body..frame.end];
        let layer = if self.phase == ConnectionState::Sasl {
            frame::SASL
        } else {
            frame::AMQP
        };
        if frame.kind != layer {
            return Err(Fault::framing(format!(
                "frame type {} is not due here",
                frame.kind
            )));
        }
        if body.is_empty() {
            return Ok(());
        }
        let performative = frame::performative(body)?;
        match self.phase {
            ConnectionState::Running => self.performative(block, frame, performative),
            ConnectionState::Sasl => self.on_sasl(body, performative),
            ConnectionState::Closing(_) if performative == code::CLOSE => {
                self.phase = ConnectionState::Closed;
                Ok(())
            }
            ConnectionState::Opening if performative == code::OPEN => self.on_open(body),
            ConnectionState::Opening => Err(Fault::connection(
                condition::ILLEGAL_STATE,
                "the first performative must be open",
            )),
            ConnectionState::Closing(_)
            | ConnectionState::Header
            | ConnectionState::SaslPending
            | ConnectionState::Secured
            | ConnectionState::Closed => Ok(()),
        }
    }

    fn performative(&mut self, block: &Bytes, frame: Frame, code: u8) -> Result<(), Fault> {
        let body = &block[frame.body..frame.end];
        let channel = frame.channel;
        match code {
            code::TRANSFER => self.on_transfer(block, frame),
            code::DISPOSITION => self.on_disposition(channel, body),
            code::FLOW => self.on_flow(channel, body),
            code::ATTACH => self.on_attach(channel, body),
            code::DETACH | code::END | code::CLOSE if self.postpones() => Ok(()),
            code::DETACH => self.on_detach(channel, body),
            code::BEGIN => self.on_begin(channel, body),
            code::END => self.on_end(channel),
            code::CLOSE => {
                self.on_close(body);
                Ok(())
            }
            code::OPEN => Err(Fault::connection(
                condition::ILLEGAL_STATE,
                "the connection is open already",
            )),
            code => Err(Fault::connection(
                condition::NOT_IMPLEMENTED,
                format!("0x{code:02x} is not a performative"),
            )),
        }
    }
}
