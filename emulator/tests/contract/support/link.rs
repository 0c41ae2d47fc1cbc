//! Links of a peer: attached, refused, detached.

use serde_amqp::Value;

use super::peer::Peer;
use servicebus_test_support::frame::{ATTACH, DETACH, Frame, ServiceError};
use servicebus_test_support::value::{composite, text, uint};

/// What a peer asks for.
#[derive(Debug, Clone)]
pub(crate) struct Attach {
    pub(crate) name: String,
    pub(crate) channel: u16,
    pub(crate) receives: bool,
    pub(crate) snd_settle_mode: u8,
    pub(crate) rcv_settle_mode: u8,
    pub(crate) source: Value,
    pub(crate) target: Value,
    /// Capabilities that are desired of the link.
    pub(crate) desired: Value,
    /// Of the link; null when there are none.
    pub(crate) properties: Value,
}

/// A link that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) channel: u16,
    pub(crate) handle: u32,
    /// The emulator's half.
    pub(crate) answer: Frame,
}

impl Attach {
    /// A link to send on, as Python asks for it.
    pub(crate) fn sender(address: &str) -> Self {
        Self {
            name: format!("sender-{address}"),
            channel: 0,
            receives: false,
            snd_settle_mode: 0,
            rcv_settle_mode: 1,
            source: composite(0x28, [text("sender-link-made-up")]),
            target: composite(0x29, [text(address)]),
            desired: Value::Null,
            properties: Value::Null,
        }
    }

    /// A link to receive on under locks.
    pub(crate) fn receiver(address: &str) -> Self {
        Self {
            name: format!("receiver-{address}"),
            receives: true,
            source: composite(0x28, [text(address)]),
            target: composite(0x29, [text("receiver-link-made-up")]),
            ..Self::sender(address)
        }
    }

    /// A link to receive and delete on.
    pub(crate) fn deleting(address: &str) -> Self {
        Self {
            snd_settle_mode: 1,
            rcv_settle_mode: 0,
            ..Self::receiver(address)
        }
    }

    pub(crate) fn on(self, channel: u16) -> Self {
        Self { channel, ..self }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// With the identifier that other SDKs than Python give their links.
    pub(crate) fn identified(self, identifier: &str) -> Self {
        let given = [text(identifier)];
        match self.receives {
            true => Self {
                target: composite(0x29, given),
                ..self
            },
            false => Self {
                source: composite(0x28, given),
                ..self
            },
        }
    }

    pub(crate) fn fields(&self, handle: u32) -> Vec<Value> {
        let count = if self.receives { Value::Null } else { uint(0) };
        vec![
            text(&self.name),
            uint(handle),
            Value::Bool(self.receives),
            Value::Ubyte(self.snd_settle_mode),
            Value::Ubyte(self.rcv_settle_mode),
            self.source.clone(),
            self.target.clone(),
            Value::Null,
            Value::Null,
            count,
            Value::Null,
            Value::Null,
            self.desired.clone(),
            self.properties.clone(),
        ]
    }
}

impl Peer {
    /// Attaches a link and returns it, or the error.
    pub(crate) fn attach(&mut self, attach: &Attach) -> Result<Link, ServiceError> {
        let handle = self.ask_to_attach(attach);
        self.answer_to(attach, handle)
    }

    /// Asks for a link, and waits for nothing; returns its handle.
    pub(crate) fn ask_to_attach(&mut self, attach: &Attach) -> u32 {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.frame(attach.channel, ATTACH, &attach.fields(handle));
        handle
    }

    /// The answer to an attach.
    pub(crate) fn answer_to(&mut self, attach: &Attach, handle: u32) -> Result<Link, ServiceError> {
        let channel = attach.channel;
        let ours = |code| {
            move |frame: &Frame| {
                let index = if code == ATTACH { 1 } else { 0 };
                frame.code == code
                    && frame.channel == channel
                    && frame.field(index) == &uint(handle)
            }
        };
        let answer = self.take("the answer to an attach", ours(ATTACH));
        assert_eq!(answer.field(0), &text(&attach.name));
        let terminus = if attach.receives { 5 } else { 6 };
        if answer.field(terminus) != &Value::Null {
            return Ok(Link {
                channel,
                handle,
                answer,
            });
        }
        let detach = self.take("the detach of a refused link", ours(DETACH));
        assert!(detach.flag(1), "a refused link is closed: {detach:?}");
        Err(detach.refusal(2))
    }

    pub(crate) fn sender(&mut self, address: &str) -> Link {
        self.attached(&Attach::sender(address))
    }

    /// A link that receives, with this much credit.
    pub(crate) fn receiver_with_credit(&mut self, address: &str, credit: u32) -> Link {
        let receiver = self.receiver(address);
        self.credit(&receiver, credit);
        receiver
    }

    pub(crate) fn receiver(&mut self, address: &str) -> Link {
        self.attached(&Attach::receiver(address))
    }

    /// A link that must be accepted.
    pub(crate) fn attached(&mut self, attach: &Attach) -> Link {
        self.attach(attach)
            .unwrap_or_else(|refusal| panic!("{refusal:?}: {attach:?}"))
    }

    /// Why a link is refused, as it must be.
    pub(crate) fn refused(&mut self, attach: &Attach) -> ServiceError {
        match self.attach(attach) {
            Ok(link) => panic!("accepted: {link:?}"),
            Err(refusal) => refusal,
        }
    }

    pub(crate) fn detach(&mut self, link: &Link) {
        self.frame(
            link.channel,
            DETACH,
            &[uint(link.handle), Value::Bool(true)],
        );
        self.detached(link);
    }

    /// The emulator's detach of a link.
    pub(crate) fn detached(&mut self, link: &Link) -> Frame {
        self.take("a detach", |frame| {
            frame.code == DETACH && frame.channel == link.channel && frame.number(0) == link.handle
        })
    }
}
