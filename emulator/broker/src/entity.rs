//! A queue, topic or subscription: its messages, its dead-letter queues, and the moves between them.

pub(crate) mod description;
pub(crate) mod role;
pub(crate) mod topic;

use std::sync::Arc;

use crate::duplicates::History;
use crate::entity::role::{EntityKind, Role, Subscription};
use crate::operation::idle::AutoDelete;
use crate::size_in_use::{PendingBytes, SizeInUse};
use crate::store::MessageStore;
use crate::{
    Context, Effect, EntityId, EntityPath, NamespaceSettings, QueueDescription, ReceiverId,
    StorePolicy, SubQueue, SubscriptionDescription, Tier, Timestamp, TopicDescription,
};

/// A queue's messages, its dead letters and what it could not forward. The verbs are in `operation/`.
#[derive(Debug)]
pub struct Entity {
    pub(crate) path: EntityPath,
    pub(crate) role: Role,
    pub(crate) settings: NamespaceSettings,
    pub(crate) description: QueueDescription,
    pub(crate) active: MessageStore,
    pub(crate) dead_letters: MessageStore,
    pub(crate) transfer_dead_letters: MessageStore,
    /// Ids seen of late, where duplicates are dropped.
    pub(crate) history: Option<History>,
    /// When somebody last did something here (semantics §5).
    pub(crate) used_at: Timestamp,
    /// Whether something due was left to the next call.
    pub(crate) is_behind: bool,
    /// Whether the entity has asked to be deleted.
    pub(crate) idleness: AutoDelete,
    /// Why nothing can be done here any more, if that is so: a thin pointer, because every entity has one.
    pub(crate) broken: Option<Arc<String>>,
    /// How many messages without a key were spread over the partitions.
    pub(crate) spread: u64,
    /// What the subscriptions of the topic hold: that of the topic itself, or of the topic of a subscription.
    pub(crate) held: Option<SizeInUse>,
    /// What this subscription last said that it holds.
    pub(crate) told: u64,
    /// What open transactions are to send here.
    pub(crate) pending_bytes: PendingBytes,
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
    /// An empty queue.
    pub fn new(
        entity: EntityId,
        path: EntityPath,
        description: QueueDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Self {
        Self::of_role(Role::Queue, entity, path, description, settings, now)
    }

    /// A topic without subscriptions.
    pub fn topic(
        entity: EntityId,
        path: EntityPath,
        description: &TopicDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Self {
        let role = Role::Topic(Arc::default());
        Self::of_role(
            role,
            entity,
            path,
            description.queue_description(),
            settings,
            now,
        )
    }

    /// An empty subscription; its topic must be told of it ([`Entity::subscribe`]).
    pub fn subscription(
        entity: EntityId,
        path: EntityPath,
        description: &SubscriptionDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Self {
        let role = Role::Subscription(Subscription {
            dead_letters_filter_errors: description.dead_lettering_on_filter_evaluation_exceptions,
        });
        Self::of_role(
            role,
            entity,
            path,
            description.queue_description(),
            settings,
            now,
        )
    }

    pub(crate) fn of_role(
        role: Role,
        entity: EntityId,
        path: EntityPath,
        description: QueueDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Self {
        let is_topic = role.is_topic();
        let policy = |kind| policy(&role, kind, &description, settings);
        let store = |kind| MessageStore::new(entity, policy(kind));
        Self {
            path,
            settings: *settings,
            active: store(SubQueue::Active),
            dead_letters: store(SubQueue::DeadLetter),
            transfer_dead_letters: store(SubQueue::TransferDeadLetter),
            history: History::of(&description),
            description,
            role,
            used_at: now,
            is_behind: false,
            idleness: AutoDelete::Used,
            broken: None,
            spread: 0,
            held: is_topic.then(SizeInUse::default),
            told: 0,
            pending_bytes: PendingBytes::default(),
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
            Role::Queue => EntityKind::Queue,
            Role::Topic(_) => EntityKind::Topic,
            Role::Subscription(_) => EntityKind::Subscription,
        }
    }

    /// What the entity was declared as, or updated to.
    pub fn description(&self) -> &QueueDescription {
        &self.description
    }

    /// What a topic was declared as, or updated to.
    pub fn topic_description(&self) -> Option<TopicDescription> {
        let is_topic = self.role.is_topic();
        is_topic.then(|| TopicDescription::of_mailbox(&self.description))
    }

    /// What a subscription was declared as, or updated to.
    pub fn subscription_description(&self) -> Option<SubscriptionDescription> {
        let Role::Subscription(own) = self.role else {
            return None;
        };
        let flag = own.dead_letters_filter_errors;
        Some(SubscriptionDescription::of_mailbox(&self.description, flag))
    }

    /// Where the subscriptions of a topic say what they hold.
    pub fn held(&self) -> Option<SizeInUse> {
        self.held.clone()
    }

    /// Lets a new subscription say what it holds to its topic, which counts it as its own.
    pub fn join(&mut self, held: SizeInUse) {
        self.held = Some(held);
    }

    /// The tier of the namespace.
    pub fn tier(&self) -> Tier {
        self.settings.tier
    }

    /// One of the stores.
    pub fn store(&self, kind: SubQueue) -> &MessageStore {
        match kind {
            SubQueue::Active => &self.active,
            SubQueue::DeadLetter => &self.dead_letters,
            SubQueue::TransferDeadLetter => &self.transfer_dead_letters,
        }
    }

    pub(crate) fn store_mut(&mut self, kind: SubQueue) -> &mut MessageStore {
        match kind {
            SubQueue::Active => &mut self.active,
            SubQueue::DeadLetter => &mut self.dead_letters,
            SubQueue::TransferDeadLetter => &mut self.transfer_dead_letters,
        }
    }

    pub(crate) fn stores(&self) -> [&MessageStore; 3] {
        [
            &self.active,
            &self.dead_letters,
            &self.transfer_dead_letters,
        ]
    }

    /// Counts as seen from one of the stores.
    pub fn counts(&self, kind: SubQueue) -> Counts {
        let store = self.store(kind);
        let whole = kind == SubQueue::Active;
        let beside = |other: &MessageStore| if whole { other.len() } else { 0 };
        Counts {
            active: store.len() - store.scheduled() - store.forwarding(),
            dead_letter: beside(&self.dead_letters),
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
        let held = self.held.as_ref().filter(|_| self.role.is_topic());
        self.size() + held.map_or(0, SizeInUse::bytes) + self.pending_bytes.bytes()
    }

    /// Bytes of everything held, dead letters included.
    pub fn size(&self) -> u64 {
        self.stores().iter().map(|store| store.size()).sum()
    }

    /// How many bytes may be held (semantics §1).
    pub fn max_size(&self) -> u64 {
        self.description.capacity_in_megabytes() * 1024 * 1024
    }

    /// Largest message that a link may be sent, in bytes, headers included (semantics §1, §17.2).
    pub fn max_message_size(&self) -> u64 {
        let own = self.description.max_message_size_in_kilobytes;
        own.map_or_else(|| self.settings.tier.max_message_size(), |size| size * 1024)
    }

    /// Whether something is reserved to a receiver that has yet to take it.
    pub fn has_reserved(&self) -> bool {
        let mut stores = self.stores().into_iter();
        stores.any(|store| store.receivers.has_reserved())
    }

    /// Whether something is on its way to another entity.
    pub fn is_forwarding(&self) -> bool {
        self.stores().iter().any(|store| store.forwarding() > 0)
    }

    /// Who holds the locks of a store, a receiver for each locked message.
    pub fn lock_holders(&self, kind: SubQueue) -> impl Iterator<Item = ReceiverId> {
        let store = self.store(kind);
        let numbers = store.locks.numbers();
        let locks = numbers.filter_map(|number| store.entries.get(number.0)?.lock());
        locks.map(|lock| lock.receiver)
    }

    /// The receivers of a store that have asked for messages or wait for a session, each with its credit.
    pub fn receivers(&self, kind: SubQueue) -> impl Iterator<Item = (ReceiverId, u32)> {
        let store = self.store(kind);
        let sessions = store.sessions.iter();
        let awaiting = sessions.flat_map(|sessions| sessions.awaiting().map(|id| (id, 0)));
        store.receivers.asking().chain(awaiting)
    }

    /// Whether a message could be delivered at once, if a receiver asked for it.
    pub fn has_ready(&self) -> bool {
        let counts = self.counts(SubQueue::Active);
        counts.active > counts.locked + counts.deferred
    }

    /// When time will next bring something about.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = self.stores().into_iter().filter_map(MessageStore::next_due);
        let due = due.map(|due| due.at()).min();
        due.into_iter().chain(self.idle_at()).min()
    }

    /// Lets happen what is due, and notes that somebody uses the entity: the first thing that every verb does.
    pub(crate) fn begin(&mut self, cx: &mut Context<'_>) {
        self.handle_timeout(cx);
        self.used_at = cx.now;
        if self.idleness == AutoDelete::Asks {
            self.idleness = AutoDelete::Used;
        }
    }

    /// Hands what is ready to those who wait, and asks for what must be carried elsewhere: the last thing that
    /// every verb does. Not while something is due: what has expired is for no receiver.
    pub(crate) fn reserve(&mut self, cx: &mut Context<'_>) {
        if self.is_behind {
            return;
        }
        self.active.grant_sessions(cx);
        self.serve(cx);
    }

    /// The same without granting sessions, whose locks begin when they are granted: not in the past.
    pub(crate) fn serve(&mut self, cx: &mut Context<'_>) {
        for kind in SubQueue::ALL {
            let store = self.store_mut(kind);
            store.reserve(cx);
            if store.forwards.must_announce() {
                let path = self.path.clone();
                cx.effects.push(Effect::Forward(path, kind));
            }
        }
        self.tell_size();
    }

    /// A subscription's messages count as its topic's.
    fn tell_size(&mut self) {
        if let (Role::Subscription(_), Some(held)) = (&self.role, &self.held) {
            let size = self.size();
            held.changed(self.told, size);
            self.told = size;
        }
    }
}

/// The rules of a store in such an entity.
pub(crate) fn policy(
    role: &Role,
    kind: SubQueue,
    description: &QueueDescription,
    settings: &NamespaceSettings,
) -> StorePolicy {
    let policy = StorePolicy::new(kind, description, settings);
    match role {
        Role::Topic(_) => policy.of_topic(),
        Role::Queue | Role::Subscription(_) => policy,
    }
}
