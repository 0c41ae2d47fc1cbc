//! A queue, topic or subscription: its messages, its dead-letter queues, and the moves between them.

pub(crate) mod kept;
pub(crate) mod operation;
mod partition;

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
use kept::Kept;

/// A queue, a topic or a subscription. The verbs are in `operation/`.
#[derive(Debug)]
pub struct Entity {
    path: EntityPath,
    role: Role,
    settings: NamespaceSettings,
    description: EntityDescription,
    active: MessageStore,
    /// What could not be forwarded.
    transfer_dead_letters: MessageStore,
    /// Ids seen of late, where duplicates are dropped.
    history: Option<Box<History>>,
    /// When a client last did something here (semantics §5).
    used_at: Timestamp,
    /// Whether something due was left to the next call.
    is_behind: bool,
    auto_delete: AutoDelete,
    /// Why nothing can be done here any more, if that is so: a thin pointer, because every entity has one.
    broken: Option<Arc<String>>,
    /// How many messages without a key went to the partitions in turn.
    round_robin: u64,
    /// What open transactions are to send here.
    pending_bytes: PendingBytes,
    indexed_deadline: Deadline,
    is_indexed_as_busy: bool,
    /// Where changes are kept beyond the process.
    kept: Option<Box<Kept>>,
}

/// What the indexes of a namespace have of an entity.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Indexed {
    pub(crate) deadline: Deadline,
    pub(crate) is_busy: bool,
}

/// Whether an entity is to be deleted because it is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AutoDelete {
    /// No.
    Active,
    /// It has asked, but may stay if its subscriptions were used, which it does not know, or if it is used meanwhile.
    Pending,
    /// What is sent from now on comes too late: it would be lost if it were accepted.
    Deleting,
    /// It was deleted, for this reason or another.
    Deleted,
}

/// What an entity has by its kind.
#[derive(Debug)]
enum Role {
    /// Messages stay until they are received, or go on.
    Queue { dead_letters: MessageStore },
    /// Messages go to the subscriptions at once; only scheduled ones stay (decision D25).
    Topic {
        rules: Arc<RuleSet>,
        /// What the subscriptions hold.
        held: SizeInUse,
    },
    /// Messages come from the topic, under any status.
    Subscription {
        dead_letters: MessageStore,
        /// Where the subscriptions of the topic say what they hold.
        held: Option<SizeInUse>,
        /// What this one last said that it holds.
        reported: u64,
    },
}

/// How many messages there are, by what the service counts.
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
    /// Messages on their way to another entity.
    pub transfer: usize,
    /// Messages under a lock, part of `active`.
    pub locked: usize,
    /// Messages set aside, part of `active`.
    pub deferred: usize,
    /// Size of everything held, dead letters included, in bytes.
    pub size: u64,
}

impl Entity {
    /// An empty entity. The topic of a subscription must be told of it, which [`crate::create`] does.
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
            kept: None,
        }
    }

    /// Its number in events.
    pub fn id(&self) -> EntityId {
        self.active.entity()
    }

    /// The entity's path.
    pub fn path(&self) -> &EntityPath {
        &self.path
    }

    /// What the entity belongs to.
    pub fn kind(&self) -> EntityKind {
        match self.role {
            Role::Queue { .. } => EntityKind::Queue,
            Role::Topic { .. } => EntityKind::Topic,
            Role::Subscription { .. } => EntityKind::Subscription,
        }
    }

    /// What the entity was declared as, or updated to.
    pub fn description(&self) -> &EntityDescription {
        &self.description
    }

    /// Where the subscriptions of a topic say what they hold.
    pub fn held(&self) -> Option<SizeInUse> {
        match &self.role {
            Role::Topic { held, .. } => Some(held.clone()),
            Role::Subscription { held, .. } => held.clone(),
            Role::Queue { .. } => None,
        }
    }

    /// Lets a new subscription say what it holds to its topic, which counts it as its own.
    pub fn join(&mut self, topic: SizeInUse) {
        if let Role::Subscription { held, .. } = &mut self.role {
            *held = Some(topic);
        }
    }

    /// The tier of the namespace.
    pub fn tier(&self) -> Tier {
        self.settings.tier
    }

    /// One of the stores. A topic has no dead letters but those that could not be forwarded; what would be another one
    /// is among them.
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

    /// Counts as seen from one of the stores.
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

    /// Bytes that count towards the size of the entity: a topic's subscriptions are part of it, and so is what was sent
    /// in transactions that are still open.
    pub fn whole_size(&self) -> u64 {
        let held = match &self.role {
            Role::Topic { held, .. } => held.bytes(),
            Role::Queue { .. } | Role::Subscription { .. } => 0,
        };
        self.size() + held + self.pending_bytes.bytes()
    }

    /// Lets bytes that a transaction is to send here count towards the size.
    pub(crate) fn reserve_bytes(&self, bytes: u64) -> Reservation {
        self.pending_bytes.reserve(bytes)
    }

    /// Bytes of everything held, dead letters included.
    pub fn size(&self) -> u64 {
        self.stores().map(MessageStore::size).sum()
    }

    /// How many bytes may be held (semantics §1).
    pub fn max_size(&self) -> u64 {
        self.description.capacity_in_megabytes() * 1024 * 1024
    }

    /// Largest message that a link may be sent, in bytes, headers included (semantics §1, §17.2).
    pub fn max_message_size(&self) -> u64 {
        let own = self
            .description
            .max_message_size_in_kilobytes
            .map(u64::from);
        own.map_or_else(|| self.settings.tier.max_message_size(), |size| size * 1024)
    }

    /// Whether something is reserved to a receiver that has yet to take it.
    pub fn has_reserved(&self) -> bool {
        self.stores().any(|store| store.receivers().has_reserved())
    }

    /// Whether something is on its way to another entity.
    pub fn is_forwarding(&self) -> bool {
        self.stores().any(|store| store.forwarding() > 0)
    }

    /// Whether it is busy in either way.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_reserved() || self.is_forwarding()
    }

    /// Whether something happens earlier than the indexes of the namespace have it, or the entity is busy and they have not:
    /// then [`crate::Namespace::index`] is to be called.
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

    /// Records what the indexes have of it from now on; returns what they had.
    pub(crate) fn set_indexed(&mut self, indexed: Indexed) -> Indexed {
        Indexed {
            deadline: std::mem::replace(&mut self.indexed_deadline, indexed.deadline),
            is_busy: std::mem::replace(&mut self.is_indexed_as_busy, indexed.is_busy),
        }
    }

    /// Who holds the locks of a store, a receiver for each locked message.
    pub fn lock_holders(&self, kind: SubQueue) -> impl Iterator<Item = ReceiverId> {
        let store = Some(self.store(kind)).filter(|store| store.policy().kind() == kind);
        store.into_iter().flat_map(MessageStore::lock_holders)
    }

    /// The receivers of a store that have asked for messages or wait for a session, each with its credit.
    pub fn receivers(&self, kind: SubQueue) -> impl Iterator<Item = (ReceiverId, u32)> {
        let store = self.store(kind);
        let sessions = store.sessions().into_iter();
        let awaiting = sessions.flat_map(|sessions| sessions.awaiting().map(|id| (id, 0)));
        store.receivers().asking().chain(awaiting)
    }

    /// Whether a message could be delivered at once, if a receiver asked for it.
    pub fn has_ready(&self) -> bool {
        let counts = self.counts(SubQueue::Active);
        counts.active > counts.locked + counts.deferred
    }

    /// When time next does something that a client may wait for, and whether it is the end of a lock whose holder is still
    /// attached: neither expiry of messages nor deletion of an idle entity.
    pub fn next_awaited(&self) -> Option<(Timestamp, bool)> {
        let all = self.stores().filter_map(MessageStore::next_awaited);
        all.min_by_key(|(at, _)| *at)
    }

    /// When time will next bring something about.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = self.stores().filter_map(MessageStore::next_due);
        let due = due.map(|due| due.at()).min();
        due.into_iter().chain(self.idle_at()).min()
    }

    /// One verb of a client: what is due happens first, the entity is in use, and at last receivers get what is ready.
    fn verb<T>(
        &mut self,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut Self, &mut Context<'_>) -> T,
    ) -> T {
        self.begin(cx);
        let done = work(self, cx);
        self.reserve(cx);
        done
    }

    /// The same for what the entity is not used by: messages that come from elsewhere, and what time or a test does.
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

    /// Does what is due, and records that the entity is in use: the first thing that every verb does.
    fn begin(&mut self, cx: &mut Context<'_>) {
        self.handle_timeout(cx);
        self.used_at = cx.now;
        if self.auto_delete == AutoDelete::Pending {
            self.auto_delete = AutoDelete::Active;
        }
    }

    /// Hands what is ready to those who wait, and asks for what must be carried elsewhere: the last thing that
    /// every verb does. Not while something is due: what has expired is for no receiver.
    fn reserve(&mut self, cx: &mut Context<'_>) {
        if self.is_behind {
            return;
        }
        self.active.grant_sessions(cx);
        self.serve(cx);
    }

    /// The same without granting sessions, whose locks begin when they are granted: not in the past.
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

    /// A subscription's messages count as its topic's.
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

    /// Panics with what is wrong if anything is.
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

    /// The rules of a store in such an entity.
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

/// An empty store of a queue or subscription.
fn store(
    entity: EntityId,
    kind: SubQueue,
    description: &EntityDescription,
    settings: &NamespaceSettings,
) -> MessageStore {
    MessageStore::new(entity, StorePolicy::new(kind, description, settings))
}
