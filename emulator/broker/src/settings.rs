//! The settings of a whole namespace: the variants of documented behaviour, and the tier.

/// When an expired message is removed (decision D1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// At the instant it expires.
    #[default]
    Eager,
    /// When a receiver is active on its queue, as documented; until then it can be peeked and counted.
    OnReceive,
}

/// What happens to the locks of a detached link (decision D2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocksOnDetach {
    /// They run to their end; then the delivery counts as failed.
    #[default]
    Keep,
    /// They end at once; the delivery does not count.
    Release,
}

/// Where a message goes that cannot be forwarded because its target is full, disabled or deleted, or because it was
/// forwarded four times already (decision D3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailedForwards {
    /// Into the transfer dead-letter queue of the entity whose forward failed.
    #[default]
    TransferDeadLetter,
    /// Into its ordinary dead-letter queue, as was seen on real namespaces.
    DeadLetter,
}

/// Whether an entity that accepts no messages from clients accepts forwarded ones: the documentation and observations differ
/// (spec/observed.md 29).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardToDisabled {
    /// It accepts none, as documented: the source dead-letters the message.
    #[default]
    Refuse,
    /// It accepts them, as seen on real namespaces.
    Deliver,
}

/// The limits of a batch (spec/observed.md 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchLimit {
    /// Only its size in bytes.
    #[default]
    Bytes,
    /// Also 4,500 messages in the basic and the standard tier, as until about 2024.
    Messages,
}

/// What happens to idle links and connections (spec/newest.md 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleTimeouts {
    /// They stay open.
    #[default]
    None,
    /// A link closes after ten minutes. A connection closes after one minute if it never had a link, and five minutes after
    /// its last one. In real time.
    Service,
}

/// The tier of a namespace, which determines limits and features (decision D15).
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
    /// Every tier.
    pub const ALL: [Self; 3] = [Self::Basic, Self::Standard, Self::Premium];

    /// Returns the name in resources and the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "Basic",
            Self::Standard => "Standard",
            Self::Premium => "Premium",
        }
    }

    /// Returns the tier of this name in any case.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|tier| tier.name().eq_ignore_ascii_case(name))
    }

    /// Returns the maximum size of a message in bytes, headers included (semantics §1).
    pub fn max_message_size(self) -> u64 {
        match self {
            Self::Basic | Self::Standard => 256 * 1024,
            Self::Premium => 1024 * 1024,
        }
    }

    /// Returns the largest maximum message size that an entity may have, in bytes (semantics §1).
    pub fn max_large_message_size(self) -> u64 {
        match self {
            Self::Basic | Self::Standard => self.max_message_size(),
            Self::Premium => 100 * 1024 * 1024,
        }
    }

    /// Returns the maximum size of a session state in bytes, which is that of a message (semantics §1).
    pub fn max_session_state(self) -> u64 {
        self.max_message_size()
    }

    /// Returns the maximum number of messages in a batch under [`BatchLimit::Messages`]; `None` where only bytes count.
    pub fn max_batch_messages(self) -> Option<usize> {
        match self {
            Self::Basic | Self::Standard => Some(4500),
            Self::Premium => None,
        }
    }

    /// Returns the maximum number of messages that one request may delete (semantics §17.3).
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
    /// When expired messages are removed.
    pub expiry: Expiry,
    /// What happens to the locks of a detached link.
    pub locks_on_detach: LocksOnDetach,
    /// Where messages go that cannot be forwarded.
    pub failed_forwards: FailedForwards,
    /// Whether a disabled entity accepts forwarded messages.
    pub forward_to_disabled: ForwardToDisabled,
    /// The limits of a batch.
    pub batch_limit: BatchLimit,
    /// What happens to idle links and connections.
    pub idle_timeouts: IdleTimeouts,
    /// The tier, which has the limits.
    pub tier: Tier,
}
