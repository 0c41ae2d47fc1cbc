//! What holds for a whole namespace: which reading of the documentation, and which tier.

/// When an expired message leaves (decision D1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// At the instant it expires.
    #[default]
    Eager,
    /// When a receiver is active on its queue, as the documentation describes; until then it can be peeked and counted.
    OnReceive,
}

/// What happens to the locks of a link that goes away (decision D2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocksOnDetach {
    /// They run to their end; then the delivery counts as failed.
    #[default]
    Keep,
    /// They end at once; the delivery does not count.
    Release,
}

/// Where a message goes that cannot be forwarded: its target is full, disabled or deleted, or it was forwarded four times
/// already (decision D3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailedForwards {
    /// Into the transfer dead-letter queue of the entity whose forward failed.
    #[default]
    TransferDeadLetter,
    /// Into its ordinary dead-letter queue, as was seen on real namespaces.
    DeadLetter,
}

/// Whether an entity that takes no messages of clients takes forwarded ones: documents and observations differ
/// (spec/observed.md 29).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardToDisabled {
    /// It takes none, as documented: the message is dead-lettered where it comes from.
    #[default]
    Refuse,
    /// It takes them, as was seen on real namespaces.
    Deliver,
}

/// What bounds a batch (spec/observed.md 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchLimit {
    /// Its bytes alone.
    #[default]
    Bytes,
    /// Also 4,500 messages in the basic and the standard tier, as it was until about 2024.
    Messages,
}

/// What becomes of links and connections that are not used (spec/newest.md 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleTimeouts {
    /// They stay.
    #[default]
    None,
    /// A link ends after ten minutes, a connection after one without any and five without one any more, in real time.
    Service,
}

/// What the namespace was bought as; decides limits and what entities can do (decision D15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Messages of 256 KiB that live up to 14 days; no topics, no duplicate detection, no forwarding.
    Basic,
    /// Messages of 256 KiB.
    #[default]
    Standard,
    /// Messages of 1 MiB, or more where an entity allows it.
    Premium,
}

impl Tier {
    /// Largest message, in bytes, headers included (semantics §1).
    pub fn max_message_size(self) -> u64 {
        match self {
            Self::Basic | Self::Standard => 256 * 1024,
            Self::Premium => 1024 * 1024,
        }
    }

    /// Largest message that an entity may be set to take, in bytes (semantics §1).
    pub fn max_large_message_size(self) -> u64 {
        match self {
            Self::Basic | Self::Standard => self.max_message_size(),
            Self::Premium => 100 * 1024 * 1024,
        }
    }

    /// Largest state of a session, in bytes (semantics §1).
    pub fn max_session_state(self) -> u64 {
        match self {
            Self::Basic | Self::Standard => 256 * 1024,
            Self::Premium => 1024 * 1024,
        }
    }

    /// Most messages of a batch under [`BatchLimit::Messages`]; none where only bytes count.
    pub fn max_batch_messages(self) -> Option<usize> {
        match self {
            Self::Basic | Self::Standard => Some(4500),
            Self::Premium => None,
        }
    }

    /// Most messages that one request may delete (semantics §17.3).
    pub fn max_batch_delete(self) -> u32 {
        match self {
            Self::Basic | Self::Standard => 500,
            Self::Premium => 4000,
        }
    }
}

/// The settings of a namespace that change how its entities behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceSettings {
    /// When expired messages leave.
    pub expiry: Expiry,
    /// What a closed link does to its locks.
    pub locks_on_detach: LocksOnDetach,
    /// Where messages go that cannot be forwarded.
    pub failed_forwards: FailedForwards,
    /// Whether a disabled entity takes what is forwarded to it.
    pub forward_to_disabled: ForwardToDisabled,
    /// What bounds a batch.
    pub batch_limit: BatchLimit,
    /// What becomes of what is not used.
    pub idle_timeouts: IdleTimeouts,
    /// Limits.
    pub tier: Tier,
}
