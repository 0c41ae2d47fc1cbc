//! Holds the output of a connection back until the changes that it acknowledges are committed, if there is a data directory.
//!
//! The output of a turn is taken from the engine and waits; meanwhile the connection takes its next turn, whose output waits
//! in the engine. A third turn waits with them, so that commits limit what clients send.

use std::io;
use std::sync::Arc;

use servicebus_amqp::Output;

use crate::durable::Store;

/// Output that waits for commits.
pub(crate) struct Withheld {
    /// `None` without a data directory: output does not wait.
    store: Option<Arc<Store>>,
    output: Output,
    /// The sequence number of the last change that the output acknowledges.
    sequence: u64,
    /// Whether the output had to wait at the last call.
    is_waiting: bool,
}

impl Withheld {
    pub(crate) fn new(store: Option<Arc<Store>>) -> Self {
        Self {
            store,
            output: Output::default(),
            sequence: 0,
            is_waiting: false,
        }
    }

    /// Returns the bytes of output that the engine no longer has.
    pub(crate) fn len(&self) -> usize {
        self.output.len()
    }

    /// Returns the output that may be written to the stream now, taken in part from the engine's `gathered`; `None` while it
    /// must wait. Fails after a failed commit.
    pub(crate) fn next<'a>(
        &'a mut self,
        gathered: &'a mut Output,
    ) -> io::Result<Option<&'a mut Output>> {
        let Some(store) = &self.store else {
            return Ok(Some(gathered));
        };
        if self.output.is_empty() {
            if gathered.is_empty() {
                // A long output must not keep its memory while the client is idle.
                self.output = Output::default();
                return Ok(Some(&mut self.output));
            }
            std::mem::swap(&mut self.output, gathered);
            self.sequence = store.sequence();
            store.commit_inline(self.sequence);
        }
        self.is_waiting = !store
            .is_committed(self.sequence)
            .map_err(io::Error::other)?;
        Ok((!self.is_waiting).then_some(&mut self.output))
    }

    /// Returns whether output had to wait at the last call; it may be writable by now.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Resolves when the output taken from the engine may be written; fails if the commit has failed.
    pub(crate) fn committed(&self) -> impl Future<Output = io::Result<()>> + use<> {
        let (store, sequence) = (self.store.clone(), self.sequence);
        async move {
            match store {
                Some(store) => store
                    .wait_committed(sequence)
                    .await
                    .map_err(io::Error::other),
                None => Ok(()),
            }
        }
    }

    /// Returns all output in order, once none of it must wait.
    pub(crate) async fn all<'a>(
        &'a mut self,
        gathered: &'a mut Output,
    ) -> io::Result<[&'a mut Output; 2]> {
        if let Some(store) = &self.store
            && !(self.output.is_empty() && gathered.is_empty())
        {
            store.flush().await.map_err(io::Error::other)?;
        }
        Ok([&mut self.output, gathered])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::durable::tests::{Process, State};

    /// Returns the length of what may be written now.
    fn written(withheld: &mut Withheld, gathered: &mut Output) -> usize {
        let mut written = 0;
        while let Some(output) = withheld.next(gathered).expect("it can be written")
            && !output.is_empty()
        {
            written += output.len();
            output.advance(output.len());
        }
        written
    }

    #[tokio::test]
    async fn output_waits_for_the_changes_before_it() {
        let process = Process::start(&Arc::default());
        process.store.flush().await.expect("it can be written");
        let mut withheld = Withheld::new(Some(Arc::clone(&process.store)));
        let mut gathered = Output::default();
        gathered.share(Bytes::from_static(b"nothing was changed"));
        assert_eq!(written(&mut withheld, &mut gathered), 19);

        process.gate.set(State::Closed);
        process.send("b");
        gathered.share(Bytes::from_static(b"one"));
        assert_eq!(written(&mut withheld, &mut gathered), 0);
        assert!(withheld.is_waiting());
        process.send("b");
        gathered.share(Bytes::from_static(b"second"));
        assert_eq!(written(&mut withheld, &mut gathered), 0);
        assert_eq!((withheld.len(), gathered.len()), (3, 6));

        process.gate.set(State::Open);
        withheld.committed().await.expect("it is written");
        let first = withheld.next(&mut gathered).expect("it is written");
        assert_eq!(first.map(|output| output.len()), Some(3));
        assert!(!withheld.is_waiting());
        let all = withheld.all(&mut gathered).await.expect("it is written");
        assert_eq!(all.map(|output| output.len()), [3, 6]);
    }

    #[tokio::test]
    async fn output_for_changes_that_failed_to_write_is_not_sent() {
        let process = Process::start(&Arc::default());
        process.gate.set(State::Broken("no space"));
        process.send("b");
        let mut withheld = Withheld::new(Some(Arc::clone(&process.store)));
        let mut gathered = Output::default();
        gathered.share(Bytes::from_static(b"one"));
        // The writer thread may not have tried yet.
        if let Ok(output) = withheld.next(&mut gathered) {
            assert!(output.is_none());
        }
        withheld.committed().await.expect_err("it is not written");
        withheld.next(&mut gathered).expect_err("it is not written");
        withheld.all(&mut gathered).await.expect_err("nor is that");
    }
}
