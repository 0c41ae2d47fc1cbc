//! The next deadlines of an entity, for display.

use crate::entity::Entity;
use crate::ids::{SequenceNumber, SessionName, SubQueue};
use crate::store::MessageStore;
use crate::time::Timestamp;

/// An upcoming deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upcoming {
    /// When.
    pub at: Timestamp,
    /// The store.
    pub kind: SubQueue,
    /// The kind: `lock-end`, `session-lock-end`, `expiry`, `activation`, `forward-retry` or `auto-delete`.
    pub what: &'static str,
    /// The message, if any.
    pub number: Option<SequenceNumber>,
    /// The session, if any.
    pub session: Option<SessionName>,
}

impl Entity {
    /// Returns the next deadlines, at most `max`, in order.
    pub fn upcoming(&self, max: usize) -> Vec<Upcoming> {
        let mut all: Vec<Upcoming> = Vec::new();
        self.stores()
            .for_each(|store| store.add_upcoming(max, &mut all));
        all.extend(self.idle_at().map(|at| Upcoming {
            at,
            kind: SubQueue::Active,
            what: "auto-delete",
            number: None,
            session: None,
        }));
        all.sort_by_key(|upcoming| upcoming.at);
        all.truncate(max);
        all
    }
}

impl MessageStore {
    fn add_upcoming(&self, max: usize, all: &mut Vec<Upcoming>) {
        let kind = self.policy().kind();
        let upcoming = |at, what| Upcoming {
            at,
            kind,
            what,
            number: None,
            session: None,
        };
        let expires = self.policy().lets_expire(self.has_waiting_receiver());
        for (what, index, happens) in [
            ("lock-end", self.lock_ends(), true),
            ("expiry", self.expiries(), expires),
            ("activation", self.activations(), true),
        ] {
            let instants = index.iter().filter(|_| happens).take(max);
            all.extend(instants.map(|(at, offset)| Upcoming {
                number: self.get(offset).map(|entry| entry.number(offset)),
                ..upcoming(at, what)
            }));
        }
        let ends = self.sessions().into_iter().flat_map(|all| all.ends());
        all.extend(ends.take(max).map(|(at, session)| Upcoming {
            session: Some(session.clone()),
            ..upcoming(at, "session-lock-end")
        }));
        let retry = self.forward_retry_at();
        all.extend(retry.map(|at| upcoming(at, "forward-retry")));
    }
}
