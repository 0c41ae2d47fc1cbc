//! Output with the last disposition still open, so that neighbours can join its range.
//!
//! The open range is written before anything else is appended: what the peer sees has the order of the
//! owner's calls, and Rust's management client depends on that (spec/wire.md §10.3).

use crate::wire::disposition;
use crate::{DeliveryState, LinkId, Output};

#[derive(Debug, Default)]
pub(super) struct Outbox {
    output: Output,
    run: Option<Run>,
}

/// Consecutive deliveries of one link with one state.
#[derive(Debug)]
struct Run {
    link: LinkId,
    from_receiver: bool,
    first: u32,
    last: u32,
    state: DeliveryState,
}

impl Outbox {
    /// The buffer for the next frame.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        self.output().buffer()
    }

    /// The output with nothing held back.
    pub(super) fn output(&mut self) -> &mut Output {
        if self.run.is_some() {
            self.end_run();
        }
        &mut self.output
    }

    /// Writes that a delivery is settled in this state, now or as part of a range.
    pub(super) fn settled(
        &mut self,
        link: LinkId,
        from_receiver: bool,
        id: u32,
        state: DeliveryState,
    ) {
        if let Some(run) = &mut self.run
            && run.link == link
            && run.last.wrapping_add(1) == id
            && run.state == state
        {
            run.last = id;
            return;
        }
        self.end_run();
        self.run = Some(Run {
            link,
            from_receiver,
            first: id,
            last: id,
            state,
        });
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            disposition::write(
                self.output.buffer(),
                run.link.channel(),
                run.from_receiver,
                (run.first, run.last),
                &run.state,
            );
        }
    }
}
