//! The output, with the last disposition open so that neighbouring deliveries can join its range.
//!
//! The open range is written before anything else is appended: the peer sees the order of the owner's calls, on which Rust's
//! management client depends (spec/wire.md §10.3).

use crate::error::Error;
use crate::ids::LinkId;
use crate::output::Output;
use crate::unsettled::DeliveryState;
use crate::wire::{disposition, frame};

#[derive(Debug)]
pub(crate) struct Outbox {
    output: Output,
    /// Largest frame that may be sent.
    pub(crate) max_frame_size: usize,
    run: Option<Run>,
    /// Whether the outcomes of the peer's deliveries are written unsettled first.
    pub(crate) repeats_outcomes: bool,
}

/// Consecutive deliveries of one link with one state.
#[derive(Debug)]
struct Run {
    link: LinkId,
    from_receiver: bool,
    settled: bool,
    first: u32,
    last: u32,
    state: DeliveryState,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            output: Output::default(),
            max_frame_size: frame::SMALLEST_LIMIT,
            run: None,
            repeats_outcomes: false,
        }
    }
}

impl Outbox {
    /// Returns the buffer for the next frame.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.output().buffer()
    }

    /// Returns the length of the output without the open range, which stays open.
    pub(crate) fn len(&self) -> usize {
        self.output.len()
    }

    /// Closes the range and returns the output.
    pub(crate) fn output(&mut self) -> &mut Output {
        if self.run.is_some() {
            self.end_run();
        }
        &mut self.output
    }

    /// Writes the state of a delivery, settled or not, at once or as part of a range.
    pub(crate) fn state(
        &mut self,
        link: LinkId,
        from_receiver: bool,
        id: u32,
        settled: bool,
        state: DeliveryState,
    ) {
        if let Some(run) = &mut self.run
            && run.link == link
            && run.last.wrapping_add(1) == id
            && run.settled == settled
            && run.state == state
        {
            run.last = id;
            return;
        }
        self.end_run();
        self.run = Some(Run {
            link,
            from_receiver,
            settled,
            first: id,
            last: id,
            state,
        });
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            let (channel, range) = (run.link.channel(), (run.first, run.last));
            if self.repeats_outcomes && run.from_receiver {
                self.disposition(channel, run.from_receiver, range, false, &run.state);
            }
            self.disposition(channel, run.from_receiver, range, run.settled, &run.state);
        }
    }

    /// Appends a disposition, whose error is shortened if it does not fit.
    fn disposition(
        &mut self,
        channel: u16,
        from_receiver: bool,
        range: (u32, u32),
        settled: bool,
        state: &DeliveryState,
    ) {
        let write = |out: &mut Vec<u8>, state: &DeliveryState| {
            disposition::write(out, channel, from_receiver, range, settled, state);
        };
        self.fit(|out, excess| match excess {
            0 => write(out, state),
            _ => write(out, &state.shortened(excess)),
        });
    }

    /// Appends a frame with an error, which is shortened if it does not fit.
    pub(crate) fn with_error(
        &mut self,
        error: Option<&Error>,
        write: impl Fn(&mut Vec<u8>, Option<&Error>),
    ) {
        self.end_run();
        self.fit(|out, excess| match excess {
            0 => write(out, error),
            _ => write(out, error.map(|error| error.shortened(excess)).as_ref()),
        });
    }

    /// Appends the frame that `write` writes for an excess of 0, or for the bytes by which that would be too long.
    fn fit(&mut self, write: impl Fn(&mut Vec<u8>, usize)) {
        let out = self.output.buffer();
        let start = out.len();
        write(out, 0);
        let excess = (out.len() - start).saturating_sub(self.max_frame_size);
        if excess > 0 {
            out.truncate(start);
            write(out, excess);
        }
    }
}
