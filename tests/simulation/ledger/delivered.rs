//! What is judged when a message arrives, and when none does.

use super::{Arrival, BEGINNING, Held, Ledger, Records, SendState, TransactionState, owner_of};
use crate::entities::{DEAD_LETTERS, ENTITIES, FULL_TARGET, HOP_LIMIT};

/// How long a message may take to who waits for it, delays of the network included.
const DELIVERY_TIMEOUT: i64 = 3_000;

impl Ledger {
    /// A message has arrived at a link, locked until then or gone from the emulator.
    pub(crate) fn delivered(&self, link: usize, arrival: &mut Arrival) {
        let now = self.now();
        let mut records = self.records();
        records.deliveries += 1;
        arrival.delivery = records.deliveries;
        let arrival = &*arrival;
        let own = &mut records.links[link];
        own.credit = own.credit.saturating_sub(1);
        let place = own.place;
        let locked = arrival.locked_until.map(|until| until - BEGINNING);
        self.say(|| {
            let Arrival { key, count, number, reason, .. } = arrival;
            let at = ENTITIES[place].address;
            format!("m{key} arrives on link {link} at {at}: number {number}, {count} failed, until {locked:?}, {reason:?}")
        });
        let mut findings = records.check_arrival(link, arrival, now);
        findings.extend(records.check_order(link, arrival));
        records.take(link, arrival);
        drop(records);
        for finding in findings {
            let at = ENTITIES[place].address;
            self.find(format!("m{} at {at}: {finding}", arrival.key));
        }
    }

    /// A client has waited since `since` on a link, and nothing came.
    pub(crate) fn nothing_came(&self, link: usize, since: i64) {
        let until = self.now() - DELIVERY_TIMEOUT;
        if until < since {
            return;
        }
        let records = self.records();
        let own = &records.links[link];
        let place = own.place;
        if own.is_dead_letters || ENTITIES[place].ttl.is_some() || !own.observed.is_healthy() {
            return;
        }
        let Some(lost_deliveries) = records.lost_deliveries(self, link, until) else {
            return;
        };
        let missed = records.copies.iter().find(|((key, _), copy)| {
            let session = own.session.as_ref().map(|(session, _)| session);
            copy.available
                .is_some_and(|(at, from)| at == place && from < until)
                && copy.failed + lost_deliveries < ENTITIES[place].max_delivery
                && (session.is_none() || records.messages[*key].session.as_ref() == session)
        });
        let missed = missed.map(|((key, _), _)| *key);
        drop(records);
        if let Some(key) = missed {
            let at = ENTITIES[place].address;
            self.find(format!("m{key} at {at}: link {link} waits for it in vain"));
        }
    }
}

impl Records {
    fn check_arrival(&self, link: usize, arrival: &Arrival, now: i64) -> Vec<String> {
        let mut findings = Vec::new();
        let own = &self.links[link];
        let place = ENTITIES[own.place];
        let sent = &self.messages[arrival.key];
        let Some(copy) = self.copies.get(&(arrival.key, owner_of(own.place))) else {
            return vec!["it was sent elsewhere".into()];
        };
        let locked_at = arrival.locked_until.map(|until| until - place.lock);
        // Before this instant it was not delivered.
        let earliest = own
            .from
            .max(locked_at.filter(|_| !place.sessions).unwrap_or(own.from));
        let is_rolled_back = sent
            .group
            .is_some_and(|group| self.groups[group] == TransactionState::RolledBack);
        if matches!(sent.state, SendState::Refused | SendState::Cancelled) || is_rolled_back {
            findings.push(format!("it was {:?} or rolled back", sent.state));
        }
        if let Some(completed) = copy.completed.filter(|completed| earliest > *completed) {
            findings.push(format!("it was completed at {} ms", completed - BEGINNING));
        }
        if let Some(due) = sent.due.filter(|due| now < *due) {
            findings.push(format!("it is scheduled for {} ms", due - BEGINNING));
        }
        let is_dead = own.is_dead_letters || own.place == DEAD_LETTERS;
        match (is_dead, &arrival.reason) {
            (true, reason) => {
                findings.extend(self.check_reason(link, arrival, reason.as_deref(), now))
            }
            (false, Some(reason)) => findings.push(format!("it is a dead letter: {reason}")),
            (false, None) => {}
        }
        if !own.is_dead_letters && arrival.count >= place.max_delivery {
            findings.push(format!("{} deliveries have failed", arrival.count));
        }
        if let (Some(ttl), false, SendState::Accepted(at)) = (place.ttl, is_dead, sent.state)
            && earliest > at.max(sent.due.unwrap_or(at)) + ttl
        {
            findings.push("it had expired".into());
        }
        if let (Some(held), Some(locked_at), false) = (copy.held, locked_at, place.sessions) {
            let holder = &self.links[held.link];
            let lasts = holder.ended.is_none() && holder.observed.is_healthy();
            let is_within = held.from <= locked_at && locked_at < held.until;
            if lasts && !held.is_settling && is_within && holder.place == own.place {
                findings.push(format!("link {} has it locked", held.link));
            }
        }
        if let (Some((last, count)), Some(locked_at)) = (copy.last, locked_at)
            && locked_at > last
            && arrival.count < count
            && !place.sessions
            && !is_dead
        {
            findings.push(format!("{count} deliveries had failed before"));
        }
        findings
    }

    /// Whether a dead letter may have died of what it says.
    fn check_reason(
        &self,
        link: usize,
        arrival: &Arrival,
        reason: Option<&str>,
        now: i64,
    ) -> Option<String> {
        let own = &self.links[link];
        let owner = owner_of(own.place);
        let place = ENTITIES[owner];
        let sent = &self.messages[arrival.key];
        let may_be = match reason {
            None => false,
            Some("MaxDeliveryCountExceeded") => {
                owner != own.place || arrival.count >= place.max_delivery
            }
            Some("TTLExpiredException") => place.ttl.is_some_and(|ttl| now >= sent.begun + ttl),
            Some("MaxTransferHopCountExceeded") => owner == HOP_LIMIT,
            Some("MessagingEntityDisabledException") => owner == FULL_TARGET,
            Some(reason) => self.copies[&(arrival.key, owner)].reasons.contains(reason),
        };
        (!may_be).then(|| format!("it is not a dead letter for the reason {reason:?}"))
    }

    /// Whether it comes in the order of its sender, and of its session.
    fn check_order(&mut self, link: usize, arrival: &Arrival) -> Vec<String> {
        let mut findings = Vec::new();
        let own = &self.links[link];
        let (key, place) = (arrival.key, own.place);
        if own.is_dead_letters || place == DEAD_LETTERS {
            return findings;
        }
        if let Some((run, ordinal)) = self.messages[key].order {
            let run = self.runs.entry((place, run)).or_default();
            run.insert(ordinal, arrival.number);
            let before = run.range(..ordinal).next_back();
            let after = run.range(ordinal + 1..).next();
            if before.is_some_and(|(_, number)| *number >= arrival.number)
                || after.is_some_and(|(_, number)| *number <= arrival.number)
            {
                findings.push(format!(
                    "its number {} is not in the order of its sender",
                    arrival.number
                ));
            }
        }
        if let Some((session, _)) = &own.session {
            let earlier = self.copies.iter().find(|((other, at), copy)| {
                *other != key
                    && *at == place
                    && self.messages[*other].session.as_ref() == Some(session)
                    && copy
                        .available
                        .is_some_and(|(_, from)| from < own.requested_at)
                    && self.is_before(*other, copy.number, key, arrival.number)
            });
            if let Some(((other, _), _)) = earlier {
                findings.push(format!("m{other} of its session comes first"));
            }
        }
        findings
    }

    fn is_before(&self, one: usize, number: Option<i64>, other: usize, other_number: i64) -> bool {
        match (number, self.messages[one].order, self.messages[other].order) {
            (Some(number), ..) => number < other_number,
            (None, Some((run, one)), Some((other_run, other))) => run == other_run && one < other,
            _ => false,
        }
    }

    /// Writes down what follows from an arrival.
    fn take(&mut self, link: usize, arrival: &Arrival) {
        let own = &self.links[link];
        let (at, is_dead_letters) = (own.place, own.is_dead_letters);
        let place = ENTITIES[at];
        let Some(copy) = self.copy(arrival.key, at) else {
            return;
        };
        copy.seen = true;
        if !is_dead_letters && at != DEAD_LETTERS {
            copy.number = Some(arrival.number);
        }
        let Some(until) = arrival.locked_until else {
            copy.available = None;
            copy.held = None;
            copy.maybe_gone = true;
            return;
        };
        if copy.held.is_some_and(|held| until < held.until) {
            // It was long on its way, and another lock has begun since.
            return;
        }
        copy.available = None;
        copy.failed = arrival.count + 1;
        copy.held = Some(Held {
            delivery: arrival.delivery,
            link,
            from: until - place.lock,
            until,
            is_settling: false,
            is_dead_letter: is_dead_letters,
        });
        if place.sessions || is_dead_letters {
            return;
        }
        let locked_at = until - place.lock;
        if copy.last.is_none_or(|(last, _)| last <= locked_at) && at != DEAD_LETTERS {
            copy.last = Some((locked_at, arrival.count));
        }
        if arrival.count + 1 < place.max_delivery {
            copy.available = Some((at, until + 1));
        }
    }

    /// How many deliveries at most have gone to links whose clients did not see them; none when such a link, or a client
    /// that does not look, may hold a message at `until` that could have come to this one.
    fn lost_deliveries(&self, ledger: &Ledger, link: usize, until: i64) -> Option<u32> {
        let place = self.links[link].place;
        let lock = ENTITIES[place].lock;
        let mut lost_deliveries = 0;
        for (number, other) in self.links.iter().enumerate() {
            if number == link || other.place != place || other.is_dead_letters {
                continue;
            }
            let unseen = other.ended.map_or(other.credit, |(_, credit)| credit);
            let is_free = if !other.observed.is_healthy() {
                lost_deliveries += unseen;
                let gone = other.observed.server_gone().map(|at| ledger.at(at));
                gone.is_some_and(|gone| gone + lock < until)
            } else if let Some((at, _)) = other.ended {
                lost_deliveries += unseen;
                unseen == 0 || at + lock + DELIVERY_TIMEOUT < until
            } else {
                unseen == 0 || other.waits_since.is_some_and(|since| since < until)
            };
            if !is_free {
                return None;
            }
        }
        Some(lost_deliveries)
    }
}
