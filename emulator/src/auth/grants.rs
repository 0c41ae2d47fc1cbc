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
}

#[derive(Debug, Clone, Copy)]
struct Grant {
    claims: Claims,
    expires_at: i64,
}

impl Grants {
    /// Grants `claims` at `audience_path` (as [`super::audience_path`] gives it) until `expires_at`, in
    /// seconds since the Unix epoch. Beyond the bound of audiences the one that expires first gives way.
    pub fn put(&mut self, audience_path: String, claims: Claims, expires_at: i64) {
        self.by_audience
            .insert(audience_path, Grant { claims, expires_at });
        if self.by_audience.len() > MAX_AUDIENCES {
            let soonest = self
                .by_audience
                .iter()
                .min_by_key(|(_, grant)| grant.expires_at);
            let audience = soonest.map(|(audience, _)| audience.clone());
            audience.map(|audience| self.by_audience.remove(&audience));
        }
    }

    /// Whether the right is held at the address at `now`.
    pub fn allows(&self, entity_path: &str, claim: Claim, now: i64) -> bool {
        self.allowed_until(entity_path, claim)
            .is_some_and(|end| now < end)
    }

    /// Until when the right is held at the address, in seconds since the Unix epoch; none when it never was.
    pub fn allowed_until(&self, entity_path: &str, claim: Claim) -> Option<i64> {
        let holds = |audience: &str, grant: &Grant| {
            grant.claims.contains(claim) && covers(audience, entity_path)
        };
        let grants = self.by_audience.iter();
        let holding = grants.filter(|(audience, grant)| holds(audience, grant));
        holding.map(|(_, grant)| grant.expires_at).max()
    }

    /// Whether nothing was ever granted.
    pub fn is_empty(&self) -> bool {
        self.by_audience.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(claim: Claim) -> Claims {
        [claim].into_iter().collect()
    }

    #[test]
    fn rights_are_the_union_of_tokens_until_they_expire() {
        let mut grants = Grants::default();
        assert!(grants.is_empty());
        grants.put("orders".into(), only(Claim::Send), 100);
        grants.put("orders/$deadletterqueue".into(), only(Claim::Listen), 200);
        assert!(grants.allows("Orders", Claim::Send, 99));
        assert!(!grants.allows("orders", Claim::Send, 100));
        assert!(!grants.allows("orders", Claim::Listen, 0));
        assert!(grants.allows("orders/$DeadLetterQueue", Claim::Listen, 150));
        assert!(grants.allows("orders/$DeadLetterQueue", Claim::Send, 50));
        assert!(!grants.allows("other", Claim::Send, 0));
    }

    #[test]
    fn a_refresh_replaces_what_its_audience_had() {
        let mut grants = Grants::default();
        grants.put("orders".into(), Claims::ALL, 100);
        grants.put("orders".into(), only(Claim::Listen), 300);
        assert!(grants.allows("orders", Claim::Listen, 299));
        assert!(!grants.allows("orders", Claim::Send, 50));
        assert_eq!(grants.allowed_until("orders", Claim::Listen), Some(300));
        assert_eq!(grants.allowed_until("orders", Claim::Send), None);
    }

    #[test]
    fn audiences_are_bounded_and_the_first_to_expire_gives_way() {
        let mut grants = Grants::default();
        for number in 0..=MAX_AUDIENCES {
            grants.put(format!("q{number}"), Claims::ALL, 1_000_000 - number as i64);
        }
        assert_eq!(grants.by_audience.len(), MAX_AUDIENCES);
        assert!(grants.allows("q0", Claim::Send, 0));
        assert!(!grants.allows(&format!("q{MAX_AUDIENCES}"), Claim::Send, 0));
    }
}
