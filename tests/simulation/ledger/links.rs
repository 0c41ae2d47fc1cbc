//! The links over which clients receive, and the sessions that they hold.

use super::{BEGINNING, Ledger, Link};
use crate::network::Observed;

impl Ledger {
    /// A client is about to attach a link.
    pub(crate) fn attaching(
        &self,
        place: usize,
        is_dead_letters: bool,
        observed: &Observed,
    ) -> usize {
        let from = self.now();
        let mut records = self.records();
        records.links.push(Link {
            place,
            is_dead_letters,
            observed: observed.clone(),
            from,
            credit: 0,
            waits_since: None,
            requested_at: from,
            ended: None,
            session: None,
        });
        records.links.len() - 1
    }

    /// It holds a session until then.
    pub(crate) fn holds(&self, link: usize, session: &str, until: i64) {
        let now = self.now();
        self.say(|| {
            format!(
                "link {link} holds session {session} until {}",
                until - BEGINNING
            )
        });
        let mut records = self.records();
        let place = records.links[link].place;
        let other = records.links.iter().enumerate().find(|(other, held)| {
            let lasts = held
                .session
                .as_ref()
                .is_some_and(|(of, until)| of == session && *until > now);
            *other != link
                && held.place == place
                && lasts
                && held.ended.is_none()
                && held.observed.is_healthy()
        });
        let other = other.map(|(other, _)| other);
        records.links[link].session = Some((session.to_owned(), until));
        drop(records);
        // A client that stood still may hear of a lock that is over.
        if let Some(other) = other.filter(|_| now < until) {
            self.find(format!(
                "session {session} is locked by links {other} and {link}"
            ));
        }
    }

    /// The lock of its session was renewed.
    pub(crate) fn session_renewed(&self, link: usize, renewed: i64) {
        if let Some((_, until)) = &mut self.records().links[link].session {
            *until = renewed;
        }
    }

    /// Until when it holds its session.
    pub(crate) fn session_until(&self, link: usize) -> i64 {
        let records = self.records();
        records.links[link]
            .session
            .as_ref()
            .map_or(0, |(_, until)| *until)
    }

    /// It asks for so many messages and waits.
    pub(crate) fn grant_credit(&self, link: usize, credit: u32) {
        let now = self.now();
        let link = &mut self.records().links[link];
        link.credit = credit;
        link.requested_at = now;
        link.waits_since = Some(now);
    }

    /// Its client waits for a message, or does something else.
    pub(crate) fn waits(&self, link: usize, does: bool) {
        let now = self.now();
        let since = &mut self.records().links[link].waits_since;
        *since = does.then(|| since.unwrap_or(now));
    }

    /// It is about to be closed.
    pub(crate) fn closing(&self, link: usize) {
        let now = self.now();
        let link = &mut self.records().links[link];
        link.ended.get_or_insert((now, link.credit));
        link.waits_since = None;
    }
}
