//! The access of assertions to a namespace.

use std::{future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use servicebus_control_api::{Counts, Event, Receiver, Session};

use crate::{
    catalog::Catalog, message::Message, report::AssertionFailed, text, timeline::Timeline,
};

/// The container id of the harness's connections, which distinguishes them from the code under test.
pub const TEST_CLIENT: &str = "the test";

/// A future answer, or why there is none.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, AssertionFailed>> + Send + 'a>>;

/// A namespace as assertions poll it: over the network, or from within an emulator. Paths are addresses such as `orders` and
/// `orders/$DeadLetterQueue`.
pub trait Namespace: Send + Sync {
    /// Lists the entities.
    fn catalog(&self) -> BoxFuture<'_, Catalog>;

    /// Returns every message at a path, in order of sequence number.
    fn messages<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Message>>;

    /// Counts the messages at a path.
    fn counts<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Counts>;

    /// Returns the events at a path, with their messages if requested.
    fn timeline<'a>(&'a self, path: &'a str, with_messages: bool) -> BoxFuture<'a, Timeline>;

    /// Returns the newest events of all entities, deleted ones included, the oldest first.
    fn newest_events(&self) -> BoxFuture<'_, Vec<Event>>;

    /// Lists the receivers of the code under test at a path.
    fn receivers<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Receiver>>;

    /// Lists the sessions at a path.
    fn sessions<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Session>>;

    /// Returns the state of a session.
    fn session_state<'a>(&'a self, path: &'a str, session: &'a str)
    -> BoxFuture<'a, Option<Bytes>>;

    /// Waits until the namespace is idle, up to a deadline in real time.
    fn wait_idle(&self, within: Duration) -> BoxFuture<'_, ()>;

    /// Returns an error if the namespace does not support one of these counts.
    fn check_counts(&self, _path: &str, _names: &[&str]) -> Result<(), AssertionFailed> {
        Ok(())
    }

    /// Returns the time since the start of the check.
    fn elapsed(&self) -> Duration;
}

/// Describes a namespace that did not become idle, with a line for each busy part.
pub fn not_idle(within: Duration, busy: impl IntoIterator<Item = String>) -> String {
    let busy = busy.into_iter().map(|line| format!("\n  {line}"));
    let within = text::seconds(within);
    format!(
        "the namespace did not become idle within {within}{}",
        String::from_iter(busy)
    )
}
