//! What a connection tells while what it tells is being written, where what namespaces hold outlives the process.
//!
//! The output of a turn is taken from the engine and waits; meanwhile the connection takes its next turn, whose output waits in
//! the engine. A third turn has to wait with them: what clients send is bounded by what is written.

use std::io;
use std::sync::Arc;

use servicebus_amqp::Output;

use crate::durable::Store;

/// Output that waits until what was changed before it is written.
pub(crate) struct Withheld {
    /// None where nothing outlives the process: output does not wait.
    store: Option<Arc<Store>>,
    output: Output,
    /// How many changes are to be written first.
    until: u64,
    /// Whether it had to wait when it was last asked for.
    is_waiting: bool,
}

impl Withheld {
    pub(crate) fn new(store: Option<Arc<Store>>) -> Self {
        Self {
            store,
            output: Output::default(),
            until: 0,
            is_waiting: false,
        }
    }

    /// Bytes of output that the engine no longer has.
    pub(crate) fn len(&self) -> usize {
        self.output.len()
    }

    /// The output that may be written to the stream now, of which some was taken from `gathered`, the engine's; none while it
    /// has to wait. Fails where it will wait for ever.
    pub(crate) fn next<'a>(
        &'a mut self,
        gathered: &'a mut Output,
    ) -> io::Result<Option<&'a mut Output>> {
        let Some(store) = &self.store else {
            return Ok(Some(gathered));
        };
        if self.output.is_empty() {
            if gathered.is_empty() {
                // One that was long keeps no memory while the client is idle.
                self.output = Output::default();
                return Ok(Some(&mut self.output));
            }
            std::mem::swap(&mut self.output, gathered);
            self.until = store.said();
            store.write_until(self.until);
        }
        self.is_waiting = !store.is_written(self.until).map_err(io::Error::other)?;
        Ok((!self.is_waiting).then_some(&mut self.output))
    }

    /// Whether output had to wait when it was last asked for; it may be written meanwhile.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Resolves when what was taken from the engine need not wait; fails where it will wait for ever.
    pub(crate) fn written(&self) -> impl Future<Output = io::Result<()>> + use<> {
        let (store, until) = (self.store.clone(), self.until);
        async move {
            match store {
                Some(store) => store.written_until(until).await.map_err(io::Error::other),
                None => Ok(()),
            }
        }
    }

    /// All output, in order, once none of it has to wait.
    pub(crate) async fn all<'a>(
        &'a mut self,
        gathered: &'a mut Output,
    ) -> io::Result<[&'a mut Output; 2]> {
        if let Some(store) = &self.store
            && !(self.output.is_empty() && gathered.is_empty())
        {
            store.written().await.map_err(io::Error::other)?;
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

    /// Everything that may be written now.
    fn told(withheld: &mut Withheld, gathered: &mut Output) -> usize {
        let mut told = 0;
        while let Some(output) = withheld.next(gathered).expect("it can be written")
            && !output.is_empty()
        {
            told += output.len();
            output.advance(output.len());
        }
        told
    }

    #[tokio::test]
    async fn the_output_of_a_turn_waits_for_what_was_changed_by_then_and_that_of_the_next_with_it()
    {
        let process = Process::start(&Arc::default());
        process.store.written().await.expect("it can be written");
        let mut withheld = Withheld::new(Some(Arc::clone(&process.store)));
        let mut gathered = Output::default();
        gathered.share(Bytes::from_static(b"nothing was changed"));
        assert_eq!(told(&mut withheld, &mut gathered), 19);

        process.gate.set(State::Closed);
        process.send("b");
        gathered.share(Bytes::from_static(b"one"));
        assert_eq!(told(&mut withheld, &mut gathered), 0);
        assert!(withheld.is_waiting());
        process.send("b");
        gathered.share(Bytes::from_static(b"second"));
        assert_eq!(told(&mut withheld, &mut gathered), 0);
        assert_eq!((withheld.len(), gathered.len()), (3, 6));

        process.gate.set(State::Open);
        withheld.written().await.expect("it is written");
        let first = withheld.next(&mut gathered).expect("it is written");
        assert_eq!(first.map(|output| output.len()), Some(3));
        assert!(!withheld.is_waiting());
        let all = withheld.all(&mut gathered).await.expect("it is written");
        assert_eq!(all.map(|output| output.len()), [3, 6]);
    }

    #[tokio::test]
    async fn nothing_is_told_of_what_will_never_be_written() {
        let process = Process::start(&Arc::default());
        process.gate.set(State::Broken("no space"));
        process.send("b");
        let mut withheld = Withheld::new(Some(Arc::clone(&process.store)));
        let mut gathered = Output::default();
        gathered.share(Bytes::from_static(b"one"));
        // The thread that writes may not have tried yet.
        if let Ok(output) = withheld.next(&mut gathered) {
            assert!(output.is_none());
        }
        withheld.written().await.expect_err("it is not written");
        withheld.next(&mut gathered).expect_err("it is not written");
        withheld.all(&mut gathered).await.expect_err("nor is that");
    }
}
