//! What an assertion asks of the namespace that it is about.

use std::{future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use servicebus_control_api::{Counts, Receiver, Session};

use crate::{
    catalog::Catalog, message::Message, report::AssertionFailed, text, timeline::Timeline,
};

/// How the clients of the harness name their connections. They are the test's own, and not of the code under test.
pub const TEST_CLIENT: &str = "the test";

/// An answer that is waited for, or why there is none.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, AssertionFailed>> + Send + 'a>>;

/// A namespace as an assertion looks at it: over the network, or from within an emulator. Paths are addresses such as
/// `orders` and `orders/$DeadLetterQueue`.
pub trait Namespace: Send + Sync {
    /// The entities that there are.
    fn catalog(&self) -> Answer<'_, Catalog>;

    /// Every message at a path, in order of sequence number.
    fn messages<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<Message>>;

    /// How many messages there are at a path.
    fn counts<'a>(&'a self, path: &'a str) -> Answer<'a, Counts>;

    /// What happened at a path, if asked with the messages that it happened to.
    fn timeline<'a>(&'a self, path: &'a str, with_messages: bool) -> Answer<'a, Timeline>;

    /// The receivers of the code under test at a path.
    fn receivers<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<Receiver>>;

    /// The sessions at a path.
    fn sessions<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<Session>>;

    /// What is kept with a session.
    fn session_state<'a>(&'a self, path: &'a str, session: &'a str) -> Answer<'a, Option<Bytes>>;

    /// Waits until nothing is under way, up to a deadline in real time.
    fn wait_idle(&self, within: Duration) -> Answer<'_, ()>;

    /// Fails where it does not count what is asked for, by the names of the counts.
    fn check_counts(&self, _path: &str, _names: &[&str]) -> Result<(), AssertionFailed> {
        Ok(())
    }

    /// How long the assertion has been looking.
    fn elapsed(&self) -> Duration;
}

/// Says that a namespace did not become idle, and what is busy, a line each.
pub fn not_idle(within: Duration, busy: impl IntoIterator<Item = String>) -> String {
    let busy = busy.into_iter().map(|line| format!("\n  {line}"));
    let within = text::seconds(within);
    format!(
        "the namespace did not become idle within {within}{}",
        String::from_iter(busy)
    )
}
