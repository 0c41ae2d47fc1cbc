//! What one connection has proved so far.
//!
//! A connection shows tokens one by one and renews them while it runs: a grant is kept per audience, a
//! later token for the same audience replaces the earlier one, and the rights of the connection are the
//! union of what has not expired.

use std::collections::BTreeMap;

use super::{Claim, Claims, covers};

/// Most audiences of a connection: every entity of a full namespace, and its `$management`.
const MAX_AUDIENCES: usize = 20_000;

/// The rights of a connection.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    by_audience: BTreeMap<String, Grant>,
    /// Bytes of the audiences.
    bytes: usize,
}

/// What one token gives at its audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The rights.
    pub claims: Claims,
    /// Their end, in seconds since the Unix epoch.
    pub expires_at: i64,
    /// Whether they hold at one entity, its sub-queues and subscriptions, and not at entities whose names go on where
    /// its name ends: what a key of the entity gives.
    pub of_entity: bool,
}

impl Grants {
    /// Grants rights at `audience_path` (as [`super::audience_path`] gives it). Beyond the bound of audiences the one
    /// that expires first gives way.
    pub fn put(&mut self, audience_path: String, grant: Grant) {
        let size = audience_path.len();
        if self.by_audience.insert(audience_path, grant).is_none() {
            self.bytes += size;
        }
        if self.by_audience.len() > MAX_AUDIENCES {
            let soonest = self
                .by_audience
                .iter()
                .min_by_key(|(_, grant)| grant.expires_at);
            if let Some(audience) = soonest.map(|(audience, _)| audience.clone()) {
                self.bytes -= audience.len();
                self.by_audience.remove(&audience);
            }
        }
    }

    /// The rights that are held at the address at `now`.
    pub fn claims_at(&self, entity_path: &str, now: i64) -> Claims {
        let holding = self.at(entity_path).filter(|grant| now < grant.expires_at);
        holding.fold(Claims::NONE, |claims, grant| claims | grant.claims)
    }

    /// Until when the right is held at the address, in seconds since the Unix epoch; none when it never was.
    pub fn allowed_until(&self, entity_path: &str, claim: Claim) -> Option<i64> {
        let holding = self
            .at(entity_path)
            .filter(|grant| grant.claims.contains(claim));
        holding.map(|grant| grant.expires_at).max()
    }

    fn at(&self, entity_path: &str) -> impl Iterator<Item = &Grant> {
        let holds = move |audience: &str, grant: &Grant| {
            covers(audience, entity_path) && (!grant.of_entity || is_within(audience, entity_path))
        };
        let grants = self.by_audience.iter();
        grants.filter_map(move |(audience, grant)| holds(audience, grant).then_some(grant))
    }

    /// When the next right ends after `now`, in seconds since the Unix epoch.
    pub fn next_end(&self, now: i64) -> Option<i64> {
        let ends = self.by_audience.values().map(|grant| grant.expires_at);
        ends.filter(|&end| end > now).min()
    }

    /// Bytes that they keep.
    pub fn held(&self) -> usize {
        self.bytes + self.by_audience.len() * size_of::<(String, Grant)>()
    }

    /// Whether nothing was ever granted.
    pub fn is_empty(&self) -> bool {
        self.by_audience.is_empty()
    }
}

/// Whether an address that the audience covers is of the same entity, not of one with a longer name.
fn is_within(audience: &str, entity_path: &str) -> bool {
    let entity = entity_path.trim_matches('/').to_lowercase();
    let below = entity.get(audience.len()..).unwrap_or_default();
    below.is_empty() || below.starts_with("/$") || below.starts_with("/subscriptions/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(claim: Claim) -> Claims {
        [claim].into_iter().collect()
    }

    fn allows(grants: &Grants, path: &str, claim: Claim, now: i64) -> bool {
        grants.claims_at(path, now).contains(claim)
    }

    fn until(expires_at: i64, claims: Claims) -> Grant {
        Grant {
            claims,
            expires_at,
            of_entity: false,
        }
    }

    #[test]
    fn what_a_key_of_an_entity_gives_stays_there() {
        let mut grants = Grants::default();
        let grant = Grant {
            of_entity: true,
            ..until(100, Claims::ALL)
        };
        grants.put("a".into(), grant);
        for (path, is_allowed) in [
            ("A", true),
            ("a/$management", true),
            ("a/$DeadLetterQueue", true),
            ("a/Subscriptions/s", true),
            ("a/b", false),
            ("a/subscription", false),
            ("ab", false),
        ] {
            assert_eq!(
                allows(&grants, path, Claim::Listen, 0),
                is_allowed,
                "{path}"
            );
        }
    }

    #[test]
    fn the_next_end_is_that_of_the_earliest_right_that_still_holds() {
        let mut grants = Grants::default();
        assert_eq!(grants.next_end(0), None);
        grants.put("a".into(), until(100, Claims::ALL));
        grants.put("b".into(), until(200, Claims::ALL));
        assert_eq!(grants.next_end(0), Some(100));
        assert_eq!(grants.next_end(100), Some(200));
        assert_eq!(grants.next_end(200), None);
    }

    #[test]
    fn rights_are_the_union_of_tokens_until_they_expire() {
        let mut grants = Grants::default();
        assert!(grants.is_empty());
        grants.put("orders".into(), until(100, only(Claim::Send)));
        grants.put(
            "orders/$deadletterqueue".into(),
            until(200, only(Claim::Listen)),
        );
        assert!(allows(&grants, "Orders", Claim::Send, 99));
        assert!(!allows(&grants, "orders", Claim::Send, 100));
        assert!(!allows(&grants, "orders", Claim::Listen, 0));
        assert!(allows(
            &grants,
            "orders/$DeadLetterQueue",
            Claim::Listen,
            150
        ));
        assert!(allows(&grants, "orders/$DeadLetterQueue", Claim::Send, 50));
        assert!(!allows(&grants, "other", Claim::Send, 0));
    }

    #[test]
    fn a_refresh_replaces_what_its_audience_had() {
        let mut grants = Grants::default();
        grants.put("orders".into(), until(100, Claims::ALL));
        grants.put("orders".into(), until(300, only(Claim::Listen)));
        assert!(allows(&grants, "orders", Claim::Listen, 299));
        assert!(!allows(&grants, "orders", Claim::Send, 50));
        assert_eq!(grants.allowed_until("orders", Claim::Listen), Some(300));
        assert_eq!(grants.allowed_until("orders", Claim::Send), None);
    }

    #[test]
    fn audiences_are_bounded_and_the_first_to_expire_gives_way() {
        let mut grants = Grants::default();
        for number in 0..=MAX_AUDIENCES {
            grants.put(
                format!("q{number}"),
                until(1_000_000 - number as i64, Claims::ALL),
            );
        }
        assert_eq!(grants.by_audience.len(), MAX_AUDIENCES);
        let names: usize = grants.by_audience.keys().map(String::len).sum();
        assert_eq!(grants.bytes, names);
        assert!(allows(&grants, "q0", Claim::Send, 0));
        assert!(!allows(
            &grants,
            &format!("q{MAX_AUDIENCES}"),
            Claim::Send,
            0
        ));
    }
}
