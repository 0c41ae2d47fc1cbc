//! Identifiers of entities, stores, messages, locks and receivers.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

/// Longest path of a queue or topic, in characters (service-bus-quotas). Here and in all limits of texts, characters are those
/// of .NET, in which the service is written: UTF-16 code units.
pub const MAX_PATH_LENGTH: usize = 260;

/// Longest name of a subscription or rule, in characters (service-bus-quotas).
pub const MAX_NAME_LENGTH: usize = 50;

/// The separator between a topic and a subscription in a path.
const SUBSCRIPTIONS: &str = "/Subscriptions/";

/// The name of a queue or topic, or `topic/Subscriptions/name`. Comparison ignores case; the spelling is kept.
#[derive(Debug, Clone)]
pub struct EntityPath(Arc<str>);

/// Why a text is not the name of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathError {
    /// It is empty or has more than [`MAX_PATH_LENGTH`] characters.
    #[error("must have 1 to {MAX_PATH_LENGTH} characters, has {0}")]
    Length(usize),
    /// Service Bus does not allow this character.
    #[error("must not contain {0:?}; allowed are letters, digits, '.', '-', '_', '~' and '/'")]
    Character(char),
    /// The first or last character is not a letter or digit.
    #[error("must begin and end with a letter or digit")]
    Edge,
    /// It is the path of a subscription, not of a queue or topic.
    #[error("must not contain '/Subscriptions/', which stands between a topic and a subscription")]
    Subscription,
}

impl EntityPath {
    /// Returns the path as declared.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of a subscription of this topic.
    pub fn subscription(&self, name: &str) -> Result<Self, NameError> {
        check_name(name)?;
        Ok(Self(format!("{self}{SUBSCRIPTIONS}{name}").into()))
    }

    /// Parses an address: the path of a queue, a topic or a subscription.
    pub fn of_address(text: &str) -> Option<Self> {
        match split_subscription(text) {
            Some((topic, name)) => topic.parse::<Self>().ok()?.subscription(name).ok(),
            None => text.parse().ok(),
        }
    }

    /// Returns the queue or topic that an entity belongs to: the topic of a subscription, else the entity itself.
    pub fn top_level(&self) -> Self {
        self.topic()
            .map_or_else(|| self.clone(), |(topic, _)| topic)
    }

    /// Returns the topic of a subscription and its name; `None` for a queue or topic.
    pub fn topic(&self) -> Option<(Self, &str)> {
        let (topic, name) = split_subscription(&self.0)?;
        Some((Self(topic.into()), name))
    }
}

/// Why a text is not the name of a subscription or rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameError {
    /// It is empty or has more than [`MAX_NAME_LENGTH`] characters.
    #[error("must have 1 to {MAX_NAME_LENGTH} characters, has {0}")]
    Length(usize),
    /// Service Bus does not allow this character.
    #[error("must not contain {0:?}; allowed are letters, digits, '.', '-', '_' and '$'")]
    Character(char),
    /// The first or last character is not a letter or digit.
    #[error("must begin and end with a letter or digit")]
    Edge,
}

/// The rule with which a subscription is created.
const DEFAULT_RULE: &str = "$Default";

/// Checks whether a text can be the name of a subscription or rule (admin-http.md §11).
pub fn check_name(name: &str) -> Result<(), NameError> {
    let length = name.encode_utf16().count();
    if length == 0 || length > MAX_NAME_LENGTH {
        return Err(NameError::Length(length));
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '$');
    if let Some(illegal) = name.chars().find(|&c| !allowed(c)) {
        return Err(NameError::Character(illegal));
    }
    // After a '$' follow parts of the name that a JMS client gave, which has other rules.
    let is_plain = name
        .split_once('$')
        .is_none_or(|(before, _)| before.is_empty());
    let is_edge_legal =
        name.starts_with(char::is_alphanumeric) && name.ends_with(char::is_alphanumeric);
    match is_plain && !is_edge_legal && !name.eq_ignore_ascii_case(DEFAULT_RULE) {
        true => Err(NameError::Edge),
        false => Ok(()),
    }
}

fn split_subscription(text: &str) -> Option<(&str, &str)> {
    let length = SUBSCRIPTIONS.len();
    let is_here = |at: &usize| {
        let found = text.get(*at..*at + length);
        found.is_some_and(|found| found.eq_ignore_ascii_case(SUBSCRIPTIONS))
    };
    let at = (0..text.len().saturating_sub(length)).find(is_here)?;
    Some((&text[..at], &text[at + length..]))
}

impl FromStr for EntityPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let length = text.encode_utf16().count();
        if length == 0 || length > MAX_PATH_LENGTH {
            return Err(PathError::Length(length));
        }
        if split_subscription(text).is_some() {
            return Err(PathError::Subscription);
        }
        let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '/');
        if let Some(illegal) = text.chars().find(|&c| !allowed(c)) {
            return Err(PathError::Character(illegal));
        }
        if text.starts_with(char::is_alphanumeric) && text.ends_with(char::is_alphanumeric) {
            Ok(Self(text.into()))
        } else {
            Err(PathError::Edge)
        }
    }
}

impl fmt::Display for EntityPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Ord for EntityPath {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.0 == other.0 {
            return Ordering::Equal;
        }
        if self.0.is_ascii() && other.0.is_ascii() {
            let (own, other) = (self.0.bytes(), other.0.bytes());
            return own
                .map(|byte| byte.to_ascii_lowercase())
                .cmp(other.map(|byte| byte.to_ascii_lowercase()));
        }
        let fold = |c: char| c.to_lowercase();
        self.0
            .chars()
            .flat_map(fold)
            .cmp(other.0.chars().flat_map(fold))
    }
}

impl PartialOrd for EntityPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for EntityPath {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for EntityPath {}

impl Hash for EntityPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0
            .chars()
            .flat_map(char::to_lowercase)
            .for_each(|c| c.hash(state));
    }
}

/// One of the stores of an entity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubQueue {
    /// The messages of the entity itself.
    #[default]
    Active,
    /// `$DeadLetterQueue`.
    DeadLetter,
    /// `$Transfer/$DeadLetterQueue`: messages that could not be forwarded.
    TransferDeadLetter,
}

impl SubQueue {
    /// All stores.
    pub const ALL: [Self; 3] = [Self::Active, Self::DeadLetter, Self::TransferDeadLetter];

    /// Returns the suffix of the store's address after the entity's path.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Active => "",
            Self::DeadLetter => "/$DeadLetterQueue",
            Self::TransferDeadLetter => "/$Transfer/$DeadLetterQueue",
        }
    }
}

/// The number of an entity within its process, which keeps events small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

impl EntityId {
    /// The namespace itself, for events without an entity.
    pub const NAMESPACE: Self = Self(0);
}

/// The number of a client (a connection) within its process, for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl ClientId {
    /// The emulator itself: expiry, lock ends, purges.
    pub const BROKER: Self = Self(0);
}

/// The number of a message in one store, as clients see it: ascending by arrival from 1, prefixed with the partition's
/// number in a partitioned entity (semantics §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u64);

impl fmt::Display for SequenceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A long of AMQP: a client may ask for a negative one.
        self.0.cast_signed().fmt(formatter)
    }
}

/// The position of a message in its store: ascending by arrival from 1. Clients see it as a [`SequenceNumber`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Offset(pub(crate) u64);

/// The first bit of the partition in a sequence number (semantics §8).
const PARTITION_SHIFT: u32 = 48;

impl Offset {
    /// Returns the sequence number of the message at this offset.
    pub(crate) fn in_partition(self, partition: u8) -> SequenceNumber {
        SequenceNumber(self.0 | u64::from(partition) << PARTITION_SHIFT)
    }
}

impl SequenceNumber {
    /// Returns the offset of the message with this sequence number.
    pub(crate) fn offset(self) -> Offset {
        Offset(self.0 & ((1 << PARTITION_SHIFT) - 1))
    }

    /// Returns the partition in the sequence number.
    pub(crate) fn partition(self) -> u8 {
        (self.0 >> PARTITION_SHIFT) as u8
    }
}

/// A receiver on a store; unique in the process, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(pub u64);

/// The id of a session: up to 128 characters, compared exactly (semantics §1, §6). The empty id is a session like any other
/// (observed 14).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(Arc<str>);

impl SessionName {
    /// Longest session id, in characters.
    pub const MAX_LENGTH: usize = 128;

    /// Creates a session id; `None` if it is too long.
    pub fn new(text: &str) -> Option<Self> {
        Self::fits(text).then(|| Self(text.into()))
    }

    /// Returns whether a text can be a session id.
    pub(crate) fn fits(text: &str) -> bool {
        // A text has at most as many characters as bytes.
        let is_short = text.len() <= Self::MAX_LENGTH;
        is_short || text.encode_utf16().nth(Self::MAX_LENGTH).is_none()
    }

    /// Returns the id as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SessionName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The id of a transaction; eight unpredictable bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u64);

impl TransactionId {
    pub(crate) fn new(ids: &mut dyn IdSource) -> Self {
        Self(ids.next())
    }

    /// Returns the bytes that clients send back.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Parses a client's bytes; `None` if the emulator cannot have issued them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.try_into().ok()?;
        Some(Self(u64::from_be_bytes(bytes)))
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// A source of unpredictable numbers; tests and `--seed` make them predictable.
pub trait IdSource {
    /// Returns 64 new bits.
    fn next(&mut self) -> u64;
}

/// The proof that a receiver got a message and may settle it. 16 bytes; on the wire the delivery tag, in bodies a `uuid`
/// (wire.md §4.2).
///
/// It has the offset of its message beside random bits, so that no table from tokens to messages is needed: a million locks
/// cost no memory beyond the entries they lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(Uuid);

/// The random half of a token, stored in the locked entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockNonce(u64);

const PLACE_BITS: u64 = (1 << 62) - 1;
const VARIANT: u64 = 0b10 << 62;
const VERSION: u64 = 0x4000;

impl LockNonce {
    /// Returns a nonce that no token has.
    pub(crate) fn of_none() -> Self {
        Self(0)
    }

    pub(crate) fn generate(ids: &mut dyn IdSource) -> Self {
        Self((ids.next() & !0xf000) | VERSION)
    }
}

impl LockToken {
    pub(crate) fn new(nonce: LockNonce, offset: Offset) -> Self {
        // Tokens do not reveal sequence numbers, because the nonce is mixed into their bits.
        let place = (offset.0 ^ mix(nonce.0)) & PLACE_BITS;
        Self(Uuid::from_u64_pair(nonce.0, place | VARIANT))
    }

    pub(crate) fn parts(self) -> (LockNonce, Offset) {
        let (high, low) = self.0.as_u64_pair();
        (LockNonce(high), Offset((low ^ mix(high)) & PLACE_BITS))
    }

    /// Returns the message that it locks according to the token.
    pub fn sequence_number(self) -> SequenceNumber {
        self.parts().1.in_partition(0)
    }

    /// Returns the token as clients print it.
    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// Returns the token's bytes in the order of .NET, as in delivery tags.
    pub fn to_tag(self) -> [u8; 16] {
        self.0.to_bytes_le()
    }

    /// Reads a token from a delivery tag.
    pub fn from_tag(tag: [u8; 16]) -> Self {
        Self(Uuid::from_bytes_le(tag))
    }
}

impl From<Uuid> for LockToken {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl fmt::Display for LockToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): numbers that follow from a seed, each only once.
#[derive(Debug)]
pub struct SplitMix64(pub u64);

impl IdSource for SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// Mixes the states of [`SplitMix64`].
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u64);
    impl IdSource for Fixed {
        fn next(&mut self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_lock_token_identifies_its_message() {
        for number in [1, 2, 1 << 40, PLACE_BITS] {
            let nonce = LockNonce::generate(&mut Fixed(0x0123_4567_89ab_cdef));
            let token = LockToken::new(nonce, Offset(number));
            assert_eq!(token.parts(), (nonce, Offset(number)));
            assert_eq!(token.uuid().get_version_num(), 4);
            assert_eq!(LockToken::from_tag(token.to_tag()), token);
        }
    }

    #[test]
    fn paths_are_compared_without_case_and_checked() {
        let path = |text: &str| text.parse::<EntityPath>();
        assert_eq!(path("Orders/Eu").unwrap(), path("orders/EU").unwrap());
        assert_eq!(path("").unwrap_err(), PathError::Length(0));
        assert_eq!(path(&"a".repeat(261)).unwrap_err(), PathError::Length(261));
        let beyond_the_bmp = "𝐀".repeat(131);
        assert_eq!(path(&beyond_the_bmp).unwrap_err(), PathError::Length(262));
        assert!(path(&beyond_the_bmp[4..]).is_ok());
        assert_eq!(path("a$b").unwrap_err(), PathError::Character('$'));
        assert_eq!(path("-a").unwrap_err(), PathError::Edge);
        assert_eq!(path("a/").unwrap_err(), PathError::Edge);
        assert!(path("queue.1").is_ok());
    }

    #[test]
    fn a_session_id_has_up_to_128_utf_16_units() {
        assert_eq!(SessionName::new("").unwrap().as_str(), "");
        let longest = "ä".repeat(128);
        assert_eq!(SessionName::new(&longest).unwrap().as_str(), longest);
        assert!(SessionName::new(&"😀".repeat(64)).is_some());
        for long in ["a".repeat(129), "😀".repeat(65)] {
            assert_eq!(SessionName::new(&long), None);
        }
    }

    #[test]
    fn a_name_has_up_to_50_utf_16_units() {
        assert_eq!(check_name(&"𝐀".repeat(25)), Ok(()));
        let refused = check_name(&"𝐀".repeat(26));
        assert_eq!(refused, Err(NameError::Length(52)));
    }
}
