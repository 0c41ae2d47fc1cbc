//! What can happen in a history: as it is drawn ([`Transition`]), and with real names in it ([`Step`]).
//!
//! A transition names consumers and tokens by index, so that it still means something after proptest has
//! removed others before it.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use servicebus_broker::{
    Expiry, LocksOnDetach, NamespaceSettings, QueueDescription, ReceiveMode, StoreKind,
};

pub(crate) const STORES: [StoreKind; 2] = [StoreKind::Active, StoreKind::DeadLetters];

/// The rules of one history.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) queue: QueueDescription,
    pub(crate) settings: NamespaceSettings,
}

#[derive(Debug, Clone)]
pub(crate) enum Transition {
    /// Times to live of the messages of a batch, in milliseconds.
    Send(Vec<Option<u32>>),
    Open(StoreKind, ReceiveMode),
    Close(Index),
    Credit(Index, u32),
    Take(Index, usize),
    /// With the token's own store, or with the other one.
    Settle(Token, bool, Outcome),
    Renew(Vec<Token>, StoreKind),
    Advance(By),
    Timeout,
    Browse(StoreKind, u64, usize),
    Reset,
}

/// How far time moves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Milliseconds(i64),
    /// Onto the next deadline, or this many milliseconds off it.
    Deadline(i64),
}

#[derive(Debug, Clone)]
pub(crate) enum Token {
    /// One that was given out, most likely a late one; it may have lost its meaning since.
    Given(Index),
    /// One of the last few, which are most likely still good.
    Recent(usize),
    /// One that was given out, with one bit changed.
    Forged(Index, u8),
    /// Any sixteen bytes.
    Garbage(u128),
}

/// What becomes of a message, with the properties that are set (all of them texts).
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Complete,
    Abandon(Properties),
    Release,
    DeadLetter(Option<String>, Option<String>, Properties),
}

pub(crate) type Properties = BTreeMap<String, String>;

/// A transition whose names are known.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<(String, Option<u32>)>),
    Open(StoreKind, u64, ReceiveMode),
    Close(StoreKind, u64),
    Credit(StoreKind, u64, u32),
    Take(StoreKind, u64, usize),
    Settle(StoreKind, Key, Outcome),
    Renew(StoreKind, Vec<Key>),
    /// Time is now this.
    Advance(i64),
    Timeout,
    Browse(StoreKind, u64, usize),
    Reset,
}

/// A token by its place among those given out, or one that never was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Given(usize),
    Forged(usize, u8),
    Garbage(u128),
}

/// What an operation answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Sent(u64),
    Messages(Vec<Seen>),
    /// Why not, if not.
    Settled(Option<&'static str>),
    /// The ends of the locks, or the place of the first that is lost.
    Renewed(Result<Vec<i64>, usize>),
}

/// A message as somebody sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) number: u64,
    pub(crate) enqueued_number: u64,
    pub(crate) id: String,
    pub(crate) delivery_count: u32,
    pub(crate) enqueued_at: i64,
    pub(crate) time_to_live: Option<u64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) locked_until: Option<i64>,
    pub(crate) properties: Properties,
}

/// Rules and what happens under them.
pub(crate) fn history(longest: usize) -> impl Strategy<Value = (Rules, Vec<Transition>)> {
    (rules(), prop::collection::vec(transition(), 1..longest))
}

fn rules() -> impl Strategy<Value = Rules> {
    let queue = (
        select(vec![5, 30, 60]),
        1..=5u32,
        select(vec![None, None, Some(1), Some(20), Some(60)]),
        any::<bool>(),
    );
    let settings = (any::<bool>(), any::<bool>());
    (queue, settings).prop_map(
        |((lock, max, default, dead_letters), (eager, keep))| Rules {
            queue: QueueDescription {
                lock_duration: Duration::from_secs(lock),
                max_delivery_count: max,
                default_message_time_to_live: default.map(Duration::from_secs),
                dead_lettering_on_message_expiration: dead_letters,
            },
            settings: NamespaceSettings {
                expiry: if eager {
                    Expiry::Eager
                } else {
                    Expiry::OnReceive
                },
                locks_on_detach: if keep {
                    LocksOnDetach::Keep
                } else {
                    LocksOnDetach::Release
                },
                ..NamespaceSettings::default()
            },
        },
    )
}

fn transition() -> impl Strategy<Value = Transition> {
    prop_oneof![
        5 => prop::collection::vec(time_to_live(), 1..4).prop_map(Transition::Send),
        2 => (store(), mode()).prop_map(|(store, mode)| Transition::Open(store, mode)),
        1 => any::<Index>().prop_map(Transition::Close),
        6 => (any::<Index>(), 0..6u32).prop_map(|(who, credit)| Transition::Credit(who, credit)),
        8 => (any::<Index>(), 0..5usize).prop_map(|(who, max)| Transition::Take(who, max)),
        8 => (token(), prop::bool::weighted(0.9), outcome())
            .prop_map(|(token, own, outcome)| Transition::Settle(token, own, outcome)),
        2 => (prop::collection::vec(token(), 0..3), store())
            .prop_map(|(tokens, store)| Transition::Renew(tokens, store)),
        6 => by().prop_map(Transition::Advance),
        1 => Just(Transition::Timeout),
        1 => (store(), 0..20u64, 0..5usize)
            .prop_map(|(store, from, max)| Transition::Browse(store, from, max)),
        1 => prop::bool::weighted(0.2)
            .prop_map(|reset| if reset { Transition::Reset } else { Transition::Timeout }),
    ]
}

/// Lengths that meet those of locks, so that deadlines coincide.
fn time_to_live() -> impl Strategy<Value = Option<u32>> {
    select(vec![
        None,
        None,
        Some(1),
        Some(5_000),
        Some(10_000),
        Some(30_000),
        Some(60_000),
        Some(100_000),
    ])
}

fn store() -> impl Strategy<Value = StoreKind> {
    prop::bool::weighted(0.7).prop_map(|active| STORES[usize::from(!active)])
}

fn mode() -> impl Strategy<Value = ReceiveMode> {
    select(vec![
        ReceiveMode::PeekLock,
        ReceiveMode::PeekLock,
        ReceiveMode::ReceiveAndDelete,
    ])
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![
        10 => (0..3usize).prop_map(Token::Recent),
        4 => any::<Index>().prop_map(Token::Given),
        1 => (any::<Index>(), 0..128u8).prop_map(|(index, bit)| Token::Forged(index, bit)),
        1 => any::<u128>().prop_map(Token::Garbage),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let text = || prop::option::of("[a-z]{0,3}");
    let properties = || prop::collection::btree_map("[a-c]", "[a-z]{0,2}", 0..3);
    prop_oneof![
        3 => Just(Outcome::Complete),
        5 => properties().prop_map(Outcome::Abandon),
        2 => Just(Outcome::Release),
        3 => (text(), text(), properties()).prop_map(|(reason, description, properties)| {
            Outcome::DeadLetter(reason, description, properties)
        }),
    ]
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![
        3 => (-1..=1i64).prop_map(By::Deadline),
        2 => (0..20_000i64).prop_map(By::Milliseconds),
        1 => (0..200_000i64).prop_map(By::Milliseconds),
    ]
}
