//! A queue, topic or subscription: its messages, its dead-letter queues, and the moves between them.

pub(crate) mod operation;
mod partition;
pub(crate) mod persistence;

use std::sync::Arc;

use crate::context::Context;
use crate::description::{EntityDescription, EntityKind};
use crate::duplicates::History;
use crate::ids::{EntityId, EntityPath, ReceiverId, SubQueue};
use crate::policy::StorePolicy;
use crate::rules::RuleSet;
use crate::settings::{NamespaceSettings, Tier};
use crate::size_in_use::{PendingBytes, Reservation, SizeInUse};
use crate::store::MessageStore;
use crate::time::{Deadline, Timestamp};
use persistence::RecordedState;

/// A queue, a topic or a subscription. Its operations are in `operation/`.
#[derive(Debug)]
pub struct Entity {
    path: EntityPath,
    role: Role,
    settings: NamespaceSettings,
    description: EntityDescription,
    active: MessageStore,
    /// Messages that could not be forwarded.
    transfer_dead_letters: MessageStore,
    /// Recently seen ids, with duplicate detection.
    history: Option<Box<History>>,
    /// When a client last used the entity (semantics §5).
    used_at: Timestamp,
    /// Whether something due was left to the next call.
    is_behind: bool,
    auto_delete: AutoDelete,
    /// The failure that broke the entity, if any; a thin pointer, because every entity has one.
    broken: Option<Arc<String>>,
    /// Counts messages without a key, which go to the partitions in turn.
    round_robin: u64,
    /// Bytes that open transactions will send to this entity.
    pending_bytes: PendingBytes,
    indexed_deadline: Deadline,
    is_indexed_as_busy: bool,
    /// The stored state, if changes are stored.
    persistence: Option<Box<RecordedState>>,
}

/// The state of an entity in the indexes of its namespace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Indexed {
    pub(crate) deadline: Deadline,
    pub(crate) is_busy: bool,
}

/// Whether an entity must be deleted because it is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AutoDelete {
    /// It stays.
    Active,
    /// It asked to be deleted, but stays if it is used meanwhile, or if its subscriptions were used, which it does not know.
    Pending,
    /// New messages are refused: they would be lost with the entity.
    Deleting,
    /// It was deleted, for this or another reason.
    Deleted,
}

/// The state that differs by kind.
#[derive(Debug)]
enum Role {
    /// Messages stay until they are received or forwarded.
    Queue { dead_letters: MessageStore },
    /// Messages go to the subscriptions at once; only scheduled ones stay (decision D25).
    Topic {
        rules: Arc<RuleSet>,
        /// Bytes that the subscriptions hold.
        held: SizeInUse,
    },
    /// Messages come from the topic, under any status.
    Subscription {
        dead_letters: MessageStore,
        /// The counter of the topic for the bytes of its subscriptions.
        held: Option<SizeInUse>,
        /// The bytes that this subscription last added to the counter.
        reported: u64,
    },
}

/// Message counts, by the categories of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages of the store itself, locked and deferred ones included.
    pub active: usize,
    /// Messages in the dead-letter store.
    pub dead_letter: usize,
    /// Messages that could not be forwarded.
    pub transfer_dead_letter: usize,
    /// Messages that are not active yet.
    pub scheduled: usize,
    /// Messages that wait to be forwarded.
    pub transfer: usize,
    /// Messages under a lock, part of `active`.
    pub locked: usize,
    /// Deferred messages, part of `active`.
    pub deferred: usize,
    /// Size of all messages, dead letters included, in bytes.
    pub size: u64,
}

impl Entity {
    /// Creates an empty entity. A subscription must be added to its topic, as [`crate::create`] does.
    pub fn new(
        kind: EntityKind,
        entity: EntityId,
        path: EntityPath,
        description: EntityDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Self {
        let dead_letters = || store(entity, SubQueue::DeadLetter, &description, settings);
        let role = match kind {
            EntityKind::Queue => Role::Queue {
                dead_letters: dead_letters(),
            },
            EntityKind::Topic => Role::Topic {
                rules: Arc::default(),
                held: SizeInUse::default(),
            },
            EntityKind::Subscription => Role::Subscription {
                dead_letters: dead_letters(),
                held: None,
                reported: 0,
            },
        };
        Self::of_role(role, entity, path, description, settings, now)
    }

    fn of_role(
        role: Role,
        entity: EntityId,
        path: EntityPath,
        description: EntityDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Self {
        let store = |kind| MessageStore::new(entity, role.policy(kind, &description, settings));
        Self {
            path,
            settings: *settings,
            active: store(SubQueue::Active),
            transfer_dead_letters: store(SubQueue::TransferDeadLetter),
            history: History::of(&description).map(Box::new),
            description,
            role,
            used_at: now,
            is_behind: false,
            auto_delete: AutoDelete::Active,
            broken: None,
            round_robin: 0,
            pending_bytes: PendingBytes::default(),
            indexed_deadline: Deadline::NONE,
            is_indexed_as_busy: false,
            persistence: None,
        }
    }

    /// Returns the entity's number in events.
    pub fn id(&self) -> EntityId {
        self.active.entity()
    }

    /// Returns the entity's path.
    pub fn path(&self) -> &EntityPath {
        &self.path
    }

    /// Returns the kind of the entity.
    pub fn kind(&self) -> EntityKind {
        match self.role {
            Role::Queue { .. } => EntityKind::Queue,
            Role::Topic { .. } => EntityKind::Topic,
            Role::Subscription { .. } => EntityKind::Subscription,
        }
    }

    /// Returns the current description.
    pub fn description(&self) -> &EntityDescription {
        &self.description
    }

    /// Returns the counter for the bytes of a topic's subscriptions.
    pub fn held(&self) -> Option<SizeInUse> {
        match &self.role {
            Role::Topic { held, .. } => Some(held.clone()),
            Role::Subscription { held, .. } => held.clone(),
            Role::Queue { .. } => None,
        }
    }

    /// Makes a new subscription count its bytes as its topic's.
    pub fn join(&mut self, topic: SizeInUse) {
        if let Role::Subscription { held, .. } = &mut self.role {
            *held = Some(topic);
        }
    }

    /// Returns the tier of the namespace.
    pub fn tier(&self) -> Tier {
        self.settings.tier
    }

    /// Returns one of the stores. The only dead letters of a topic are those that could not be forwarded; its other
    /// dead-letter store is the same one.
    pub fn store(&self, kind: SubQueue) -> &MessageStore {
        match kind {
            SubQueue::Active => &self.active,
            SubQueue::DeadLetter => self
                .role
                .dead_letters()
                .unwrap_or(&self.transfer_dead_letters),
            SubQueue::TransferDeadLetter => &self.transfer_dead_letters,
        }
    }

    fn store_mut(&mut self, kind: SubQueue) -> &mut MessageStore {
        match (kind, &mut self.role) {
            (SubQueue::Active, _) => &mut self.active,
            (
                SubQueue::DeadLetter,
                Role::Queue { dead_letters } | Role::Subscription { dead_letters, .. },
            ) => dead_letters,
            (SubQueue::DeadLetter | SubQueue::TransferDeadLetter, _) => {
                &mut self.transfer_dead_letters
            }
        }
    }

    fn stores(&self) -> impl Iterator<Item = &MessageStore> {
        let dead_letters = self.role.dead_letters().into_iter();
        let stores = std::iter::once(&self.active).chain(dead_letters);
        stores.chain([&self.transfer_dead_letters])
    }

    /// Returns the counts of one of the stores.
    pub fn counts(&self, kind: SubQueue) -> Counts {
        let store = self.store(kind);
        let whole = kind == SubQueue::Active;
        let beside = |other: &MessageStore| if whole { other.len() } else { 0 };
        Counts {
            active: store.len() - store.scheduled() - store.forwarding(),
            dead_letter: self.role.dead_letters().map_or(0, beside),
            transfer_dead_letter: beside(&self.transfer_dead_letters),
            scheduled: store.scheduled(),
            transfer: store.forwarding(),
            locked: store.locked(),
            deferred: store.deferred(),
            size: if whole { self.size() } else { store.size() },
        }
    }

    /// Returns the bytes that count towards the size of the entity, including a topic's subscriptions and the sends of open
    /// transactions.
    pub fn whole_size(&self) -> u64 {
        let held = match &self.role {
            Role::Topic { held, .. } => held.bytes(),
            Role::Queue { .. } | Role::Subscription { .. } => 0,
        };
        self.size() + held + self.pending_bytes.bytes()
    }

    /// Makes the bytes that a transaction will send here count towards the size.
    pub(crate) fn reserve_bytes(&self, bytes: u64) -> Reservation {
        self.pending_bytes.reserve(bytes)
    }

    /// Returns the bytes of all messages, dead letters included.
    pub fn size(&self) -> u64 {
        self.stores().map(MessageStore::size).sum()
    }

    /// Returns the maximum size in bytes (semantics §1).
    pub fn max_size(&self) -> u64 {
        self.description.capacity_in_megabytes() * 1024 * 1024
    }

    /// Returns the maximum size of a message on a link in bytes, headers included (semantics §1, §17.2).
    pub fn max_message_size(&self) -> u64 {
        let own = self
            .description
            .max_message_size_in_kilobytes
            .map(u64::from);
        own.map_or_else(|| self.settings.tier.max_message_size(), |size| size * 1024)
    }

    /// Returns whether something is reserved for a receiver that has not taken it yet.
    pub fn has_reserved(&self) -> bool {
        self.stores().any(|store| store.receivers().has_reserved())
    }

    /// Returns whether messages wait to be forwarded.
    pub fn is_forwarding(&self) -> bool {
        self.stores().any(|store| store.forwarding() > 0)
    }

    /// Returns whether the entity has reservations or messages to forward.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_reserved() || self.is_forwarding()
    }

    /// Returns whether the indexes of the namespace miss an earlier deadline or that the entity is busy: then the caller
    /// must call [`crate::Namespace::index`].
    pub fn changes_index(&self) -> bool {
        let before = self.indexed_deadline.get();
        let is_before = |at| before.is_none_or(|before| at < before);
        self.next_deadline().is_some_and(is_before) || (!self.is_indexed_as_busy && self.is_busy())
    }

    pub(crate) fn to_be_indexed(&self) -> Indexed {
        Indexed {
            deadline: self.next_deadline().into(),
            is_busy: self.is_busy(),
        }
    }

    /// Records the state of the entity in the indexes; returns the previous one.
    pub(crate) fn set_indexed(&mut self, indexed: Indexed) -> Indexed {
        Indexed {
            deadline: std::mem::replace(&mut self.indexed_deadline, indexed.deadline),
            is_busy: std::mem::replace(&mut self.is_indexed_as_busy, indexed.is_busy),
        }
    }

    /// Returns the holders of the locks of a store, a receiver for each locked message.
    pub fn lock_holders(&self, kind: SubQueue) -> impl Iterator<Item = ReceiverId> {
        let store = Some(self.store(kind)).filter(|store| store.policy().kind() == kind);
        store.into_iter().flat_map(MessageStore::lock_holders)
    }

    /// Returns the receivers of a store that have asked for messages or wait for a session, each with its credit.
    pub fn receivers(&self, kind: SubQueue) -> impl Iterator<Item = (ReceiverId, u32)> {
        let store = self.store(kind);
        let sessions = store.sessions().into_iter();
        let awaiting = sessions.flat_map(|sessions| sessions.awaiting().map(|id| (id, 0)));
        store.receivers().asking().chain(awaiting)
    }

    /// Returns whether a receiver is attached to any store, or waits for a session.
    pub fn has_receivers(&self) -> bool {
        let is_attached = |store: &MessageStore| !store.receivers().is_empty();
        self.stores().any(is_attached) || self.receivers(SubQueue::Active).next().is_some()
    }

    /// Returns whether a message of a sub-queue could be delivered at once if a receiver asked for it.
    pub fn has_ready(&self, kind: SubQueue) -> bool {
        self.store(kind).has_ready()
    }

    /// Returns the next deadline that a client may wait for, and whether it is the end of a lock whose holder is still
    /// attached. Leaves out the expiry of messages and the deletion of an idle entity.
    pub fn next_awaited(&self) -> Option<(Timestamp, bool)> {
        let all = self.stores().filter_map(MessageStore::next_awaited);
        all.min_by_key(|(at, _)| *at)
    }

    /// Returns the next deadline.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = self.stores().filter_map(MessageStore::next_due);
        let due = due.map(|due| due.at()).min();
        due.into_iter().chain(self.idle_at()).min()
    }

    /// Runs an operation of a client: runs what is due, marks the entity as used, and at the end reserves ready messages for
    /// receivers.
    fn client_operation<T>(
        &mut self,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut Self, &mut Context<'_>) -> T,
    ) -> T {
        self.begin(cx);
        let done = work(self, cx);
        self.reserve(cx);
        done
    }

    /// Runs an operation that does not count as a use of the entity: forwarded messages, deadlines, and actions of a test.
    fn follow_up<T>(
        &mut self,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut Self, &mut Context<'_>) -> T,
    ) -> T {
        self.handle_timeout(cx);
        let done = work(self, &mut cx.at(cx.now));
        self.reserve(cx);
        done
    }

    /// Runs what is due and marks the entity as used: the first step of every operation.
    fn begin(&mut self, cx: &mut Context<'_>) {
        self.handle_timeout(cx);
        self.used_at = cx.now;
        if self.auto_delete == AutoDelete::Pending {
            self.auto_delete = AutoDelete::Active;
        }
    }

    /// Reserves ready messages for waiting receivers and asks for forwarding: the last step of every operation. Does nothing
    /// while something is due, because no receiver may get an expired message.
    fn reserve(&mut self, cx: &mut Context<'_>) {
        if self.is_behind {
            // A deletion has no later operation.
            self.report_size();
            return;
        }
        self.active.grant_sessions(cx);
        self.serve(cx);
    }

    /// Reserves messages without granting sessions, whose locks must not begin in the past.
    fn serve(&mut self, cx: &mut Context<'_>) {
        self.active.serve(cx, &self.path);
        if let Role::Queue { dead_letters } | Role::Subscription { dead_letters, .. } =
            &mut self.role
        {
            dead_letters.serve(cx, &self.path);
        }
        self.transfer_dead_letters.serve(cx, &self.path);
        self.report_size();
    }

    /// Counts a subscription's messages as its topic's.
    fn report_size(&mut self) {
        if !matches!(self.role, Role::Subscription { .. }) {
            return;
        }
        let size = self.size();
        if let Role::Subscription {
            held: Some(held),
            reported,
            ..
        } = &mut self.role
        {
            held.changed(std::mem::replace(reported, size), size);
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold, with a description of it.
    #[cfg(any(test, feature = "check"))]
    pub fn check_invariants(&self) {
        self.stores().for_each(MessageStore::check_invariants);
        self.history
            .iter()
            .for_each(|history| history.check_invariants());
    }
}

impl Role {
    fn is_topic(&self) -> bool {
        matches!(self, Self::Topic { .. })
    }

    fn dead_letters(&self) -> Option<&MessageStore> {
        match self {
            Self::Queue { dead_letters } | Self::Subscription { dead_letters, .. } => {
                Some(dead_letters)
            }
            Self::Topic { .. } => None,
        }
    }

    /// Returns the policy of a store in such an entity.
    fn policy(
        &self,
        kind: SubQueue,
        description: &EntityDescription,
        settings: &NamespaceSettings,
    ) -> StorePolicy {
        let policy = StorePolicy::new(kind, description, settings);
        match self {
            Self::Topic { .. } => policy.of_topic(),
            Self::Queue { .. } | Self::Subscription { .. } => policy,
        }
    }
}

/// Creates an empty store of a queue or subscription.
fn store(
    entity: EntityId,
    kind: SubQueue,
    description: &EntityDescription,
    settings: &NamespaceSettings,
) -> MessageStore {
    MessageStore::new(entity, StorePolicy::new(kind, description, settings))
}
