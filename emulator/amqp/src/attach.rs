//! What a peer asks for when it attaches a link, and what the owner answers. Reading and writing the
//! frames is elsewhere; the echo of source and target is byte for byte.

use std::mem;

use serde_amqp::Value;
use serde_amqp::described::Described;

use crate::ids::{LinkRole, SessionId};
use crate::link::Echo;
use crate::wire::cold;
use crate::wire::cold::Lasting;

/// Who settles first, as the sender sees it (AMQP 1.0 §2.8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SenderSettleMode {
    /// Every delivery is sent unsettled.
    Unsettled,
    /// Every delivery is sent settled: receive-and-delete for a Service Bus receiver.
    Settled,
    /// The sender chooses; also when the peer left it out.
    Mixed,
}

/// When the receiver settles (AMQP 1.0 §2.8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiverSettleMode {
    /// At once; also when the peer left it out.
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
    /// Of the terminus that we stand for.
    lasting: Lasting,
    capabilities: Vec<String>,
    desired_capabilities: Vec<String>,
    distribution_mode: Option<String>,
    filter: Vec<(String, Value)>,
    properties: Vec<(String, Value)>,
}

/// How to answer an attach that is accepted.
#[derive(Debug, Clone, Default)]
pub struct AttachReply {
    /// Largest message in bytes. On a link whose peer sends it must not be zero, which some SDKs take
    /// for "no message fits" (spec/wire.md §3.1); zero is written as 2^53 - 1 there.
    pub max_message_size: u64,
    /// Link properties; the map is written even when empty.
    pub properties: Vec<(String, Value)>,
    /// Filter values to write in place of those asked for, under the same keys. The owner mirrors
    /// the shape (plain or described) of the request (spec/wire.md §5).
    pub filter: Vec<(String, Value)>,
    /// The address of a node that was made for the link, in place of none.
    pub address: Option<String>,
    /// What the answer to a receiver without a source has of the durable subscription that it is attached to: the address of the
    /// topic, and whether it is shared and global.
    pub subscription: Option<(String, &'static [&'static str])>,
}

impl AttachRequest {
    /// Name of the link, unique per role on its session.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which end the peer is.
    pub fn role(&self) -> LinkRole {
        self.role
    }

    /// The session that the link is on; equal for links that share one.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The windows of the begin of that session, in frames, coming in to the peer and going out; they tell libraries apart.
    pub fn session_windows(&self) -> (u32, u32) {
        self.session_windows
    }

    /// The address that we stand for: the target of a sender, the source of a receiver.
    pub fn address(&self) -> Option<&str> {
        match self.role {
            LinkRole::Sender => self.target_address(),
            LinkRole::Receiver => self.source_address(),
        }
    }

    /// Address of the source, as sent.
    pub fn source_address(&self) -> Option<&str> {
        self.source_address.as_deref()
    }

    /// Address of the target, as sent.
    pub fn target_address(&self) -> Option<&str> {
        self.target_address.as_deref()
    }

    /// The `distribution-mode` of the source: `move`, `copy`, or what else the peer wrote (AMQP 1.0 §3.5.3).
    pub fn distribution_mode(&self) -> Option<&str> {
        self.distribution_mode.as_deref()
    }

    /// Whether there is a source at all.
    pub fn has_source(&self) -> bool {
        self.has_source
    }

    /// How long the terminus that we stand for lasts, and its node.
    pub fn lasting(&self) -> &Lasting {
        &self.lasting
    }

    /// Whether the terminus that we stand for has this capability (AMQP 1.0 §3.5.3, §3.5.4).
    pub fn has_capability(&self, name: &str) -> bool {
        self.capabilities.iter().any(|own| own == name)
    }

    /// Whether the peer desires this capability of the link.
    pub fn desires(&self, name: &str) -> bool {
        self.desired_capabilities.iter().any(|own| own == name)
    }

    /// Whether the target is a transaction coordinator.
    pub fn is_coordinator(&self) -> bool {
        self.coordinator
    }

    /// The sender settle mode asked for, which is also the one that is answered.
    pub fn sender_settle_mode(&self) -> SenderSettleMode {
        self.modes.0
    }

    /// The receiver settle mode asked for, which is also the one that is answered.
    pub fn receiver_settle_mode(&self) -> ReceiverSettleMode {
        self.modes.1
    }

    /// A link property.
    pub fn property(&self, name: &str) -> Option<&Value> {
        find(&self.properties, name)
    }

    /// The source's filters whose values are described types (AMQP 1.0 §3.5.8), with their keys.
    pub fn described_filters(&self) -> impl Iterator<Item = (&str, &Described<Value>)> {
        self.filter.iter().filter_map(|(key, value)| {
            let Value::Described(described) = value else {
                return None;
            };
            Some((key.as_str(), &**described))
        })
    }

    /// A filter of the source; `Some(Value::Null)` when it is there and null.
    pub fn filter(&self, name: &str) -> Option<&Value> {
        find(&self.filter, name)
    }
}

fn find<'a>(entries: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    let (_, value) = entries.iter().find(|(key, _)| key == name)?;
    Some(value)
}

impl AttachRequest {
    /// Parts the frame into what the owner sees and what the answer repeats.
    ///
    /// Fails with the name of a field that has no meaning.
    pub(crate) fn split(
        attach: cold::Attach,
        session: SessionId,
        session_windows: (u32, u32),
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
        let (lasting, capabilities) = (
            mem::take(&mut own.lasting),
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
            coordinator: target.coordinator,
            has_source,
            lasting,
            capabilities,
            desired_capabilities: attach.desired_capabilities,
            distribution_mode: source.distribution_mode,
            filter: source.filter,
            properties: attach.properties,
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
