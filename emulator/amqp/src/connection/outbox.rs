//! The output, with the last disposition open so that neighbouring deliveries can join its range.
//!
//! The open range is written before anything else is appended: the peer sees the order of the owner's calls, on which Rust's
//! management client depends (spec/wire.md §10.3).

use crate::ids::LinkId;
use crate::output::Output;
use crate::unsettled::DeliveryState;
use crate::wire::disposition;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    output: Output,
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
            let mut write = |settled| {
                disposition::write(
                    self.output.buffer(),
                    run.link.channel(),
                    run.from_receiver,
                    (run.first, run.last),
                    settled,
                    &run.state,
                );
            };
            if self.repeats_outcomes && run.from_receiver {
                write(false);
            }
            write(run.settled);
        }
    }
}
