//! What holds for the whole namespace of a topology.
//!
//! Each value knows its word in the configuration file; what is not set is not written, so that the
//! emulator's default holds.

use serde_json::{Map, Value};

/// When an expired message leaves its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// At the instant it expires.
    #[default]
    Eager,
    /// When a receiver is active on the queue, as the Service Bus documentation describes.
    OnReceive,
}

/// What happens to a message's lock when its link or connection goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocksOnDetach {
    /// It stays until it expires.
    #[default]
    Keep,
    /// It is dropped at once, and the delivery is not counted.
    Release,
}

/// Where a message goes that cannot be forwarded: its target is full, disabled or deleted, or it was
/// forwarded four times already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailedForwards {
    /// Into the transfer dead-letter queue of the queue that could not forward it.
    #[default]
    TransferDeadLetter,
    /// Into the ordinary dead-letter queue of that queue, as was seen on real namespaces.
    DeadLetter,
}

/// Whether a disabled entity takes what is forwarded to it. Documents say that it does not, real namespaces were seen to
/// deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardToDisabled {
    /// It does not: the message is dead-lettered where it comes from.
    #[default]
    Refuse,
    /// It does.
    Deliver,
}

/// What bounds a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchLimit {
    /// Its bytes alone.
    #[default]
    Bytes,
    /// Also 4,500 messages in the basic and the standard tier, as it was until about 2024.
    Messages,
}

/// What becomes of links and connections that are not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleTimeouts {
    /// They stay.
    #[default]
    None,
    /// They end as at the service, in real time: a link after ten minutes, a connection after one without any link, or
    /// five without one any more.
    Service,
}

/// What the namespace was bought as; decides limits and what entities can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Messages of 256 KiB that live up to 14 days; no topics, no duplicate
    /// detection, no forwarding.
    Basic,
    /// Messages of 256 KiB.
    #[default]
    Standard,
    /// Messages of 1 MiB, or more where a queue or topic allows it.
    Premium,
}

/// The settings that were made.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) expiry: Option<Expiry>,
    pub(super) locks_on_detach: Option<LocksOnDetach>,
    pub(super) failed_forwards: Option<FailedForwards>,
    pub(super) forward_to_disabled: Option<ForwardToDisabled>,
    pub(super) batch_limit: Option<BatchLimit>,
    pub(super) idle_timeouts: Option<IdleTimeouts>,
    pub(super) tier: Option<Tier>,
}

impl Settings {
    /// The `Emulator` block of the namespace; empty when nothing was set.
    pub(super) fn document(&self) -> Map<String, Value> {
        let words = [
            ("Expiry", self.expiry.map(Expiry::word)),
            (
                "LocksOnDetach",
                self.locks_on_detach.map(LocksOnDetach::word),
            ),
            (
                "FailedForwards",
                self.failed_forwards.map(FailedForwards::word),
            ),
            (
                "ForwardToDisabled",
                self.forward_to_disabled.map(ForwardToDisabled::word),
            ),
            ("BatchLimit", self.batch_limit.map(BatchLimit::word)),
            ("IdleTimeouts", self.idle_timeouts.map(IdleTimeouts::word)),
            ("Tier", self.tier.map(Tier::word)),
        ];
        let written = words.into_iter();
        written
            .filter_map(|(key, word)| Some((key.to_owned(), Value::from(word?))))
            .collect()
    }
}

impl Expiry {
    fn word(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::OnReceive => "on-receive",
        }
    }
}

impl LocksOnDetach {
    fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Release => "release",
        }
    }
}

impl FailedForwards {
    fn word(self) -> &'static str {
        match self {
            Self::TransferDeadLetter => "transfer-dead-letter",
            Self::DeadLetter => "dead-letter",
        }
    }
}

impl ForwardToDisabled {
    fn word(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Deliver => "deliver",
        }
    }
}

impl BatchLimit {
    fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Messages => "messages",
        }
    }
}

impl IdleTimeouts {
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Service => "service",
        }
    }
}

impl Tier {
    fn word(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Standard => "standard",
            Self::Premium => "premium",
        }
    }
}
