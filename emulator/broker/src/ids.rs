//! What names a thing: entities, stores, messages, locks, receivers.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

/// Longest path of a queue or topic, in characters (service-bus-quotas).
pub const MAX_PATH_LENGTH: usize = 260;

/// Longest name of a subscription or rule, in characters (service-bus-quotas).
pub const MAX_NAME_LENGTH: usize = 50;

/// What stands between a topic and a subscription in a path.
const SUBSCRIPTIONS: &str = "/Subscriptions/";

/// The name of a queue or topic, or `topic/Subscriptions/name`: compared without regard to case, shown as it was
/// declared.
#[derive(Debug, Clone)]
pub struct EntityPath(Arc<str>);

/// Why a text is not the name of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathError {
    /// Nothing, or more than [`MAX_PATH_LENGTH`] characters.
    #[error("must have 1 to {MAX_PATH_LENGTH} characters, has {0}")]
    Length(usize),
    /// A character that Service Bus does not allow there.
    #[error("must not contain {0:?}; allowed are letters, digits, '.', '-', '_', '~' and '/'")]
    Character(char),
    /// A first or last character other than a letter or digit.
    #[error("must begin and end with a letter or digit")]
    Edge,
    /// The path of a subscription where that of a queue or topic is meant.
    #[error("must not contain '/Subscriptions/', which stands between a topic and a subscription")]
    Subscription,
}

impl EntityPath {
    /// The path as declared.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of a subscription of this topic.
    pub fn subscription(&self, name: &str) -> Result<Self, NameError> {
        check_name(name)?;
        Ok(Self(format!("{self}{SUBSCRIPTIONS}{name}").into()))
    }

    /// What an address means: the path of a queue, a topic or a subscription.
    pub fn of_address(text: &str) -> Option<Self> {
        match split_subscription(text) {
            Some((topic, name)) => topic.parse::<Self>().ok()?.subscription(name).ok(),
            None => text.parse().ok(),
        }
    }

    /// The queue or topic that an entity belongs to: the topic of a subscription, else the entity itself.
    pub fn top_level(&self) -> Self {
        self.topic()
            .map_or_else(|| self.clone(), |(topic, _)| topic)
    }

    /// The topic of a subscription and its name; none for a queue or topic.
    pub fn topic(&self) -> Option<(Self, &str)> {
        let (topic, name) = split_subscription(&self.0)?;
        Some((Self(topic.into()), name))
    }
}

/// Why a text is not the name of a subscription or rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing, or more than [`MAX_NAME_LENGTH`] characters.
    #[error("must have 1 to {MAX_NAME_LENGTH} characters, has {0}")]
    Length(usize),
    /// A character that Service Bus does not allow there.
    #[error("must not contain {0:?}; allowed are letters, digits, '.', '-', '_' and '$'")]
    Character(char),
    /// An edge that is neither a letter nor a digit.
    #[error("must begin and end with a letter or digit")]
    Edge,
}

/// The rule that a subscription is created with.
const DEFAULT_RULE: &str = "$Default";

/// Whether a text can be the name of a subscription or rule (admin-http.md §11).
pub fn check_name(name: &str) -> Result<(), NameError> {
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME_LENGTH {
        return Err(NameError::Length(length));
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '$');
    if let Some(illegal) = name.chars().find(|&c| !allowed(c)) {
        return Err(NameError::Character(illegal));
    }
    // Behind a '$' stand parts of the name that a client of JMS gave, whose rules are others.
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
        let length = text.chars().count();
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

/// Which of the stores of an entity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubQueue {
    /// The messages of the queue itself.
    #[default]
    Active,
    /// `$DeadLetterQueue`.
    DeadLetter,
    /// `$Transfer/$DeadLetterQueue`: what could not be forwarded.
    TransferDeadLetter,
}

impl SubQueue {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Active, Self::DeadLetter, Self::TransferDeadLetter];

    /// What stands behind the entity's path in the address of the store.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Active => "",
            Self::DeadLetter => "/$DeadLetterQueue",
            Self::TransferDeadLetter => "/$Transfer/$DeadLetterQueue",
        }
    }
}

/// The number of an entity within its process, for events: names are long, events are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

impl EntityId {
    /// The namespace itself, for events that concern no entity.
    pub const NAMESPACE: Self = Self(0);
}

/// The number of a client (a connection) within its process, for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl ClientId {
    /// The emulator itself: expiry, lock ends, purges.
    pub const BROKER: Self = Self(0);
}

/// The number of a message in one store, as clients see it: ascending by arrival, first 1, under the number of its
/// partition where there are partitions (semantics §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u64);

impl fmt::Display for SequenceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Where a message stands in its store: ascending by arrival, first 1. What clients see of it is its [`SequenceNumber`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Offset(pub(crate) u64);

/// Where the partition begins in a number (semantics §8).
const PARTITION_SHIFT: u32 = 48;

impl Offset {
    /// The number of a message at this offset.
    pub(crate) fn in_partition(self, partition: u8) -> SequenceNumber {
        SequenceNumber(self.0 | u64::from(partition) << PARTITION_SHIFT)
    }
}

impl SequenceNumber {
    /// Where a message with this number stands in its store.
    pub(crate) fn offset(self) -> Offset {
        Offset(self.0 & ((1 << PARTITION_SHIFT) - 1))
    }

    /// The partition that it shows.
    pub(crate) fn partition(self) -> u8 {
        (self.0 >> PARTITION_SHIFT) as u8
    }
}

/// Someone with credit on a store; unique in the process, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(pub u64);

/// The id of a session: up to 128 characters, compared exactly (semantics §1, §6). The empty one is a session like any
/// other (observed 14).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(Arc<str>);

impl SessionName {
    /// Longest session id, in characters.
    pub const MAX_LENGTH: usize = 128;

    /// A session id; none when it is too long.
    pub fn new(text: &str) -> Option<Self> {
        Self::fits(text).then(|| Self(text.into()))
    }

    /// Whether a text can be a session id.
    pub(crate) fn fits(text: &str) -> bool {
        // No text of so many bytes has more characters.
        let is_short = text.len() <= Self::MAX_LENGTH;
        is_short || text.chars().nth(Self::MAX_LENGTH).is_none()
    }

    /// The id as it was sent.
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

/// What names a transaction; eight bytes that cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u64);

impl TransactionId {
    pub(crate) fn new(ids: &mut dyn IdSource) -> Self {
        Self(ids.next())
    }

    /// As clients send it back.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// What a client sent; none when it cannot be one of ours.
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

/// Where unpredictable numbers come from; tests and `--seed` make them predictable.
pub trait IdSource {
    /// Sixty-four fresh bits.
    fn next(&mut self) -> u64;
}

/// What proves that its holder received a message and may settle it. 16 bytes; on the wire the delivery
/// tag, in bodies a `uuid` (wire.md §4.2).
///
/// It carries the place of its message beside fresh bits, so that no table from token to message is
/// needed: a million locks cost no memory beyond the entries they lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(Uuid);

/// The fresh half of a token, kept in the entry it locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockNonce(u64);

const PLACE_BITS: u64 = (1 << 62) - 1;
const VARIANT: u64 = 0b10 << 62;
const VERSION: u64 = 0x4000;

impl LockNonce {
    /// That of no token.
    pub(crate) fn of_none() -> Self {
        Self(0)
    }

    pub(crate) fn generate(ids: &mut dyn IdSource) -> Self {
        Self((ids.next() & !0xf000) | VERSION)
    }
}

impl LockToken {
    pub(crate) fn new(nonce: LockNonce, offset: Offset) -> Self {
        let place = (offset.0 ^ scramble(nonce)) & PLACE_BITS;
        Self(Uuid::from_u64_pair(nonce.0, place | VARIANT))
    }

    pub(crate) fn parts(self) -> (LockNonce, Offset) {
        let (high, low) = self.0.as_u64_pair();
        let nonce = LockNonce(high);
        (nonce, Offset((low ^ scramble(nonce)) & PLACE_BITS))
    }

    /// The message that it locks, as far as the token says.
    pub fn sequence_number(self) -> SequenceNumber {
        self.parts().1.in_partition(0)
    }

    /// The token as clients print it.
    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// The token's bytes in the order of .NET, as delivery tags carry them.
    pub fn to_tag(self) -> [u8; 16] {
        self.0.to_bytes_le()
    }

    /// From a delivery tag.
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

/// Spreads the nonce over the place bits (the finaliser of SplitMix64), so that tokens do not show numbers.
fn scramble(nonce: LockNonce) -> u64 {
    let mut bits = nonce.0;
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
    fn a_token_leads_back_to_its_message() {
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
        assert_eq!(path("a$b").unwrap_err(), PathError::Character('$'));
        assert_eq!(path("-a").unwrap_err(), PathError::Edge);
        assert_eq!(path("a/").unwrap_err(), PathError::Edge);
        assert!(path("queue.1").is_ok());
    }

    #[test]
    fn a_session_id_has_up_to_128_characters() {
        assert_eq!(SessionName::new("").unwrap().as_str(), "");
        let longest = "ä".repeat(128);
        assert_eq!(SessionName::new(&longest).unwrap().as_str(), longest);
        assert_eq!(SessionName::new(&"a".repeat(129)), None);
    }
}
