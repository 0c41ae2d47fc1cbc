//! The memory account of this connection, and its end when a limit is exceeded.

use super::links::Link;
use super::peer::ClientConnection;
use super::tokens::TokenState;
use crate::memory::{Account, Exceeded};
use crate::nodes::{Condition, ServiceError};

/// The account of a connection, and the parts of it that are counted only after a change.
pub(crate) struct MemoryAccount {
    account: Account,
    /// Bytes of the replies that wait for credit, on all links.
    replies: usize,
    /// Whether that has changed since it was counted.
    are_replies_changed: bool,
    /// Whether a limit was exceeded, which is reported once.
    is_closed: bool,
}

impl MemoryAccount {
    pub(crate) fn new(account: Account) -> Self {
        Self {
            account,
            replies: 0,
            are_replies_changed: false,
            is_closed: false,
        }
    }

    /// Returns whether the connection was closed because it exceeded a limit.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Marks the pending replies as changed.
    pub(crate) fn mark_replies_changed(&mut self) {
        self.are_replies_changed = true;
    }
}

impl ClientConnection {
    /// Records what the connection holds; `outside` are the bytes of its stream and its input. Closes a connection that
    /// exceeds a limit, and returns the limit.
    pub(crate) fn update_account(&mut self, outside: usize) -> Option<Exceeded> {
        let held = outside + self.held_bytes();
        if self.memory.is_closed {
            self.memory.account.set(held);
            return None;
        }
        // Most turns change nothing, and what does not grow was checked.
        if held == self.memory.account.held() {
            return None;
        }
        let exceeded = self
            .memory
            .account
            .hold(held, self.largest_message())
            .err()?;
        self.memory.is_closed = true;
        let refusal = ServiceError::new(Condition::ResourceLimitExceeded, exceeded.to_string());
        let text = self.client.track_quietly(&refusal, None);
        tracing::warn!(
            connection = self.client.id.0,
            text,
            "closed: memory limit reached"
        );
        self.engine.close(Some(refusal.error(text)));
        Some(exceeded)
    }

    /// Returns how many bytes of messages a reply may have: half the limit of the connection, so that the largest message fits.
    pub(crate) fn largest_reply(&self) -> usize {
        let largest = self.client.tier().max_large_message_size();
        self.memory.account.limit(largest) / 2
    }

    /// Returns the largest message of the namespace, once the client has an accepted token.
    fn largest_message(&self) -> Option<u64> {
        let is_authenticated =
            matches!(self.client.token_state, TokenState::Accepted(_)) || self.client.is_open();
        is_authenticated.then(|| self.client.tier().max_large_message_size())
    }

    fn held_bytes(&mut self) -> usize {
        if std::mem::take(&mut self.memory.are_replies_changed) {
            self.memory.replies = self.links.values().map(waiting).sum();
        }
        let parts = self.outcomes.held() + self.client.grants.held() + self.transactions.held();
        self.engine.held() + parts + self.memory.replies
    }
}

/// Returns the bytes of the replies that wait on a link.
fn waiting(link: &Link) -> usize {
    let Link::Replies(replies) = link else {
        return 0;
    };
    replies.waiting.iter().map(Vec::len).sum()
}

/// Bytes read at once; small payloads are copied out of the block, so that it is reused.
pub(crate) const READ_BLOCK: usize = 64 * 1024;
/// Bytes read in one turn before other connections get theirs.
pub(crate) const READ_TURN: usize = 512 * 1024;
/// Events handled in one turn: as many attaches as take about 2 ms, and more transfers than one turn reads.
pub(crate) const HANDLED_AT_ONCE: usize = 1024;
/// Above this much unwritten output nothing more is taken from a store.
pub(crate) const OUTPUT_HIGH: usize = 512 * 1024;
/// Above this much unwritten output nothing more is read either.
pub(crate) const OUTPUT_FULL: usize = 1024 * 1024;
