//! The rights of a connection, and the audiences of tokens.
//!
//! A connection sends several tokens and renews them while it runs. Each audience has one grant, which a later token for the
//! same audience replaces. The connection has the union of all rights that have not expired.
//!
//! SDKs spell the audience of the same entity as `sb://host/orders`, `amqps://host:5671/orders/` or
//! `HTTP://HOST/Orders/$management` (wire.md §2.2). Scheme, host, port and case have no meaning in an emulator, so
//! [`audience_path`] keeps only the lower-case path (decision D14). JavaScript signs the whole URL of an HTTP request: its
//! query has no meaning either, and its path may be encoded twice.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::BitOr;

use percent_encoding::percent_decode_str;

/// The maximum number of audiences of a connection: every entity of a full namespace, and its `$management`.
const MAX_AUDIENCES: usize = 20_000;

/// The rights of a connection.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    by_audience: BTreeMap<String, Grant>,
    /// The total length of the audiences in bytes.
    bytes: usize,
}

/// The rights that a token gives for its audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The rights.
    pub claims: Claims,
    /// When they expire, in seconds since the Unix epoch.
    pub expires_at: i64,
    /// Whether they apply only to one entity, its sub-queues and subscriptions, as those of an entity's key, and not to
    /// longer names with the same prefix.
    pub of_entity: bool,
}

impl Grants {
    /// Grants rights at `audience_path` (as [`super::audience_path`] returns it). Above the maximum number of audiences, the
    /// grant that expires first is removed.
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

    /// Returns the rights at the address at `now`.
    pub fn claims_at(&self, entity_path: &str, now: i64) -> Claims {
        let holding = self.at(entity_path).filter(|grant| now < grant.expires_at);
        holding.fold(Claims::NONE, |claims, grant| claims | grant.claims)
    }

    fn at(&self, entity_path: &str) -> impl Iterator<Item = &Grant> {
        let holds = move |audience: &str, grant: &Grant| {
            covers(audience, entity_path) && (!grant.of_entity || is_within(audience, entity_path))
        };
        let grants = self.by_audience.iter();
        grants.filter_map(move |(audience, grant)| holds(audience, grant).then_some(grant))
    }

    /// Returns when the next right expires after `now`, in seconds since the Unix epoch.
    pub fn next_end(&self, now: i64) -> Option<i64> {
        let ends = self.by_audience.values().map(|grant| grant.expires_at);
        ends.filter(|&end| end > now).min()
    }

    /// Returns the size of the grants in bytes.
    pub fn held(&self) -> usize {
        self.bytes + self.by_audience.len() * size_of::<(String, Grant)>()
    }

    /// Returns whether there are no grants.
    pub fn is_empty(&self) -> bool {
        self.by_audience.is_empty()
    }
}

/// Returns whether an address that the audience covers belongs to the same entity, not to one with a longer name.
fn is_within(audience: &str, entity_path: &str) -> bool {
    let entity = entity_path.trim_matches('/').to_lowercase();
    let below = entity.get(audience.len()..).unwrap_or_default();
    below.is_empty() || below.starts_with("/$") || below.starts_with("/subscriptions/")
}

/// A right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The right to send to an entity.
    Send,
    /// The right to receive from an entity.
    Listen,
    /// The right to create, change and delete entities.
    Manage,
}

/// A set of rights. Manage does not imply the others: the service only grants it together with them.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Claims(u8);

impl Claim {
    /// All rights, in the order of Service Bus.
    pub const ALL: [Self; 3] = [Self::Send, Self::Listen, Self::Manage];

    /// Returns the name in the service.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "Send",
            Self::Listen => "Listen",
            Self::Manage => "Manage",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Send => 0b001,
            Self::Listen => 0b010,
            Self::Manage => 0b100,
        }
    }
}

impl Claims {
    /// All rights.
    pub const ALL: Self = Self(0b111);
    /// Only the right to send.
    pub const SEND: Self = Self(0b001);
    /// Only the right to receive.
    pub const LISTEN: Self = Self(0b010);
    /// No right.
    pub const NONE: Self = Self(0);

    /// Returns whether the set contains the right.
    pub fn contains(self, claim: Claim) -> bool {
        self.0 & claim.bit() != 0
    }

    /// Returns the names of the rights in the set.
    pub fn names(self) -> Vec<&'static str> {
        let held = Claim::ALL.into_iter().filter(|claim| self.contains(*claim));
        held.map(Claim::name).collect()
    }
}

impl BitOr for Claims {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Claim> for Claims {
    fn from_iter<I: IntoIterator<Item = Claim>>(claims: I) -> Self {
        Self(claims.into_iter().fold(0, |bits, claim| bits | claim.bit()))
    }
}

impl fmt::Display for Claims {
    /// Joins the rights with commas, or writes `none`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        match names.is_empty() {
            true => formatter.write_str("none"),
            false => formatter.write_str(&names.join(", ")),
        }
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Claims({self})")
    }
}

/// The suffix of Service Bus hosts; a text without scheme that starts with such a host has an authority.
const SERVICE_SUFFIX: &str = ".servicebus.windows.net";

/// Returns the [path of an audience](path_of_audience) in lower case, for comparison.
pub fn audience_path(audience: &str) -> String {
    path_of_audience(audience).to_lowercase()
}

/// Returns the path of an audience: decoded, without slashes at its ends; empty for a whole namespace.
pub fn path_of_audience(audience: &str) -> String {
    let once = decode(audience);
    // Some SDKs encode twice: then the scheme separator is still encoded.
    let text = match once.contains("://") {
        true => once,
        false => Cow::Owned(decode(&once).into_owned()),
    };
    let path = match text.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => without_authority(&text),
    };
    let path = path.split('?').next().unwrap_or_default();
    decode(path).trim_matches('/').to_owned()
}

/// Returns whether a token for `audience_path` (as [`audience_path`] returns it) applies to the address `entity_path`: to
/// the entity itself and everything below it, such as `$management`, a sub-queue or a subscription.
pub fn covers(audience_path: &str, entity_path: &str) -> bool {
    let entity = entity_path.trim_matches('/').to_lowercase();
    match entity.strip_prefix(audience_path) {
        Some(below) => audience_path.is_empty() || below.is_empty() || below.starts_with('/'),
        None => false,
    }
}

fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// A text without scheme has an authority only if its start looks like one, because entity names may contain dots.
fn without_authority(text: &str) -> &str {
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    if is_authority(first) { rest } else { text }
}

fn is_authority(text: &str) -> bool {
    let host = text.to_ascii_lowercase();
    host == "localhost"
        || host.contains(':')
        || host.ends_with(SERVICE_SUFFIX)
        || host.parse::<IpAddr>().is_ok()
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
    fn the_rights_of_an_entity_key_apply_to_that_entity_only() {
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
    fn the_next_expiry_is_that_of_the_earliest_valid_token() {
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
    fn a_refreshed_token_replaces_the_rights_of_its_audience() {
        let mut grants = Grants::default();
        grants.put("orders".into(), until(100, Claims::ALL));
        grants.put("orders".into(), until(300, only(Claim::Listen)));
        assert!(allows(&grants, "orders", Claim::Listen, 299));
        assert!(!allows(&grants, "orders", Claim::Send, 50));
        assert!(!allows(&grants, "orders", Claim::Listen, 300));
    }

    #[test]
    fn at_the_limit_the_audience_that_expires_first_is_dropped() {
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

    #[test]
    fn a_set_of_claims_contains_the_added_claims() {
        let claims: Claims = [Claim::Send, Claim::Manage].into_iter().collect();
        assert!(claims.contains(Claim::Send) && claims.contains(Claim::Manage));
        assert!(!claims.contains(Claim::Listen));
        assert_eq!(claims.to_string(), "Send, Manage");
        assert_eq!(Claim::ALL.into_iter().collect::<Claims>(), Claims::ALL);
        assert_eq!(Claims::NONE.to_string(), "none");
        let both: Claims = [Claim::Send, Claim::Listen].into_iter().collect();
        assert_eq!(Claims::SEND | Claims::LISTEN, both);
    }

    #[test]
    fn every_spelling_of_an_audience_has_one_path() {
        let table = [
            ("sb://localhost/orders", "orders"),
            (
                "sb://localhost:5672/Orders/$Management",
                "orders/$management",
            ),
            ("amqps://host.servicebus.windows.net:5671/orders/", "orders"),
            ("amqp://127.0.0.1/orders", "orders"),
            ("amqps://[::1]:5671/orders", "orders"),
            ("HTTP://HOST//T/Subscriptions/S", "t/subscriptions/s"),
            ("amqps://host/", ""),
            ("amqps://host", ""),
            ("sb%3A%2F%2Flocalhost%2Forders", "orders"),
            ("sb%253a%252f%252flocalhost%252forders", "orders"),
            ("ns.servicebus.windows.net/orders", "orders"),
            ("localhost:5672/orders", "orders"),
            (
                "https%3a%2f%2flocalhost%3a5300%2fq1%3fapi-version%3d2021-05",
                "q1",
            ),
            (
                "https://localhost:5300/$resources/queues?%24skip=0",
                "$resources/queues",
            ),
            ("https%3A%2F%2Flocalhost%2Fa%252Fq1", "a/q1"),
            ("queue.1", "queue.1"),
            ("/orders", "orders"),
            ("a/b", "a/b"),
            ("localhost", ""),
            ("", ""),
            ("%ff%zz%", "\u{fffd}%zz%"),
        ];
        for (audience, path) in table {
            assert_eq!(audience_path(audience), path, "{audience}");
        }
    }

    #[test]
    fn a_token_covers_its_entity_and_sub_paths() {
        assert!(covers("", "anything/at/all"));
        assert!(covers("orders", "orders"));
        assert!(covers("orders", "Orders/$management"));
        assert!(covers("orders", "/ORDERS/$DeadLetterQueue"));
        assert!(covers("t", "t/Subscriptions/s"));
        assert!(!covers("orders", "orders2"));
        assert!(!covers("orders", "order"));
        assert!(!covers("orders/$management", "orders"));
        assert!(!covers("orders", ""));
    }
}
