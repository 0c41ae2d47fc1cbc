//! The attach of a peer and the owner's answer. Other modules read and write the frames; source and target are echoed byte
//! for byte.

use std::mem;

use serde_amqp::Value;
use serde_amqp::described::Described;

use crate::ids::{LinkRole, SessionId};
use crate::link::Echo;
use crate::wire::cold;
use crate::wire::cold::TerminusLifetime;

/// Who settles first, as the sender sees it (AMQP 1.0 §2.8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SenderSettleMode {
    /// The peer sends every delivery unsettled.
    Unsettled,
    /// The peer sends every delivery settled: receive-and-delete for a Service Bus receiver.
    Settled,
    /// The sender chooses per delivery; also the default.
    Mixed,
}

/// When the receiver settles (AMQP 1.0 §2.8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiverSettleMode {
    /// At once; also the default.
    First,
    /// After the sender has settled.
    Second,
}

/// A peer's attach (AMQP 1.0 §2.7.3).
#[derive(Debug)]
pub struct AttachRequest {
    name: Box<str>,
    role: LinkRole,
    session: SessionId,
    session_windows: (u32, u32),
    modes: (SenderSettleMode, ReceiverSettleMode),
    source_address: Option<String>,
    target_address: Option<String>,
    coordinator: bool,
    has_source: bool,
    /// Of the terminus on this side.
    terminus_lifetime: TerminusLifetime,
    capabilities: Vec<String>,
    desired_capabilities: Vec<String>,
    distribution_mode: Option<String>,
    filter: Vec<(String, Value)>,
    properties: Vec<(String, Value)>,
    encoded_size: usize,
}

/// The answer to an accepted attach.
#[derive(Debug, Clone, Default)]
pub struct AttachReply {
    /// Largest message in bytes. It must not be zero on a link whose peer sends: some SDKs would read that as "no message
    /// fits" (spec/wire.md §3.1), so that zero is written as 2^53 - 1 there.
    pub max_message_size: u64,
    /// Link properties; the map is written even if empty.
    pub properties: Vec<(String, Value)>,
    /// Filter values that replace the requested ones of the same keys. The owner keeps the shape (plain or described) of the
    /// request (spec/wire.md §5).
    pub filter: Vec<(String, Value)>,
    /// The address of a node that was created for the link, which had none.
    pub address: Option<String>,
    /// The durable subscription of a receiver without a source: the address of the topic, and capabilities for shared and
    /// global.
    pub subscription: Option<(String, &'static [&'static str])>,
}

impl AttachRequest {
    /// Returns the link's name, unique per role on its session.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the peer's role.
    pub fn role(&self) -> LinkRole {
        self.role
    }

    /// Returns the bytes of the attach as sent. Its decoded values may take many times as much memory.
    pub fn encoded_size(&self) -> usize {
        self.encoded_size
    }

    /// Returns the session of the link; equal for links that share one.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the incoming and outgoing window of the session's begin, in frames; they differ between libraries.
    pub fn session_windows(&self) -> (u32, u32) {
        self.session_windows
    }

    /// Returns the address of the terminus on this side: the target of a sender, the source of a receiver.
    pub fn address(&self) -> Option<&str> {
        match self.role {
            LinkRole::Sender => self.target_address(),
            LinkRole::Receiver => self.source_address(),
        }
    }

    /// Returns the address of the source, as sent.
    pub fn source_address(&self) -> Option<&str> {
        self.source_address.as_deref()
    }

    /// Returns the address of the target, as sent.
    pub fn target_address(&self) -> Option<&str> {
        self.target_address.as_deref()
    }

    /// Returns the `distribution-mode` of the source: `move`, `copy`, or what else the peer wrote (AMQP 1.0 §3.5.3).
    pub fn distribution_mode(&self) -> Option<&str> {
        self.distribution_mode.as_deref()
    }

    /// Returns whether the attach has a source.
    pub fn has_source(&self) -> bool {
        self.has_source
    }

    /// Returns how long the terminus on this side and its node last.
    pub fn terminus_lifetime(&self) -> &TerminusLifetime {
        &self.terminus_lifetime
    }

    /// Returns whether the terminus on this side has this capability (AMQP 1.0 §3.5.3, §3.5.4).
    pub fn has_capability(&self, name: &str) -> bool {
        self.capabilities.iter().any(|own| own == name)
    }

    /// Returns whether the peer desires this capability of the link.
    pub fn desires(&self, name: &str) -> bool {
        self.desired_capabilities.iter().any(|own| own == name)
    }

    /// Returns whether the target is a transaction coordinator.
    pub fn is_coordinator(&self) -> bool {
        self.coordinator
    }

    /// Returns the requested sender settle mode, which is also the answered one.
    pub fn sender_settle_mode(&self) -> SenderSettleMode {
        self.modes.0
    }

    /// Returns the requested receiver settle mode, which is also the answered one.
    pub fn receiver_settle_mode(&self) -> ReceiverSettleMode {
        self.modes.1
    }

    /// Returns a link property.
    pub fn property(&self, name: &str) -> Option<&Value> {
        find(&self.properties, name)
    }

    /// Returns the source's filters with described types (AMQP 1.0 §3.5.8), with their keys.
    pub fn described_filters(&self) -> impl Iterator<Item = (&str, &Described<Value>)> {
        self.filter.iter().filter_map(|(key, value)| {
            let Value::Described(described) = value else {
                return None;
            };
            Some((key.as_str(), &**described))
        })
    }

    /// Returns a filter of the source; `Some(Value::Null)` if it is present and null.
    pub fn filter(&self, name: &str) -> Option<&Value> {
        find(&self.filter, name)
    }
}

fn find<'a>(entries: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    let (_, value) = entries.iter().find(|(key, _)| key == name)?;
    Some(value)
}

impl AttachRequest {
    /// Splits the frame into the part for the owner and the part that the answer repeats.
    ///
    /// Fails with the name of a field whose value has no meaning.
    pub(crate) fn split(
        attach: cold::Attach,
        session: SessionId,
        session_windows: (u32, u32),
        encoded_size: usize,
    ) -> Result<(Self, Echo), &'static str> {
        let sender = match attach.snd_settle_mode {
            Some(0) => SenderSettleMode::Unsettled,
            Some(1) => SenderSettleMode::Settled,
            None | Some(2) => SenderSettleMode::Mixed,
            Some(_) => return Err("snd-settle-mode"),
        };
        let receiver = match attach.rcv_settle_mode {
            None | Some(0) => ReceiverSettleMode::First,
            Some(1) => ReceiverSettleMode::Second,
            Some(_) => return Err("rcv-settle-mode"),
        };
        let has_source = attach.source.is_some();
        let mut source = attach.source.unwrap_or_default();
        let mut target = attach.target.unwrap_or_default();
        let own = match attach.peer_receives {
            true => &mut source,
            false => &mut target,
        };
        let (terminus_lifetime, capabilities) = (
            mem::take(&mut own.terminus_lifetime),
            mem::take(&mut own.capabilities),
        );
        let request = Self {
            name: attach.name.into(),
            role: match attach.peer_receives {
                true => LinkRole::Receiver,
                false => LinkRole::Sender,
            },
            session,
            session_windows,
            modes: (sender, receiver),
            source_address: source.address,
            target_address: target.address,
            coordinator: target.coordinator && !attach.peer_receives,
            has_source,
            terminus_lifetime,
            capabilities,
            desired_capabilities: attach.desired_capabilities,
            distribution_mode: source.distribution_mode,
            filter: source.filter,
            properties: attach.properties,
            encoded_size,
        };
        let echo = Echo {
            snd_settle_mode: sender as u8,
            rcv_settle_mode: receiver as u8,
            source: Some(source.encoded).filter(|encoded| !encoded.is_empty()),
            target: Some(target.encoded).filter(|encoded| !encoded.is_empty()),
        };
        Ok((request, echo))
    }
}
