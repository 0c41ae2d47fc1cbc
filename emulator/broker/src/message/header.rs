//! The header section: what the sender asked for, and the fresh one that each delivery gets.

use servicebus_codec::{DecodeError, Writer};

use super::properties::Glance;
use super::{MessageError, sections};

/// The header as sent (AMQP 1.0 §3.2.1); the delivery count in it belongs to the broker and is not read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Header {
    durable: Option<bool>,
    first_acquirer: Option<bool>,
    priority: Option<u32>,
    time_to_live: Option<u32>,
}

impl Header {
    pub(crate) fn parse(section: &[u8]) -> Result<Self, DecodeError> {
        if section.is_empty() {
            return Ok(Self::default());
        }
        let mut fields = sections::content(section)?.fields()?;
        Ok(Self {
            durable: fields.bool()?,
            priority: fields.u32()?,
            time_to_live: fields.u32()?,
            first_acquirer: fields.bool()?,
        })
    }

    /// The time to live in milliseconds. The field ends at 49.7 days; longer ones stand there as its
    /// maximum and are told by creation and expiry time (semantics §4); these cannot shorten it,
    /// because clients compute them carelessly (wire.md §7.2).
    pub(crate) fn time_to_live(&self, properties: &Glance) -> Result<Option<u64>, MessageError> {
        match (self.time_to_live, properties.lifetime) {
            (Some(0), _) => Err(MessageError::ZeroTimeToLive),
            (Some(u32::MAX), Some(lifetime)) => Ok(Some(lifetime.max(u64::from(u32::MAX)))),
            (time_to_live, _) => Ok(time_to_live.map(u64::from)),
        }
    }

    /// Appends the header of a delivery: what the sender did not say is null (observed 2).
    pub(crate) fn write(
        &self,
        delivery_count: u32,
        time_to_live: Option<u64>,
        out: &mut Writer<'_>,
    ) {
        out.descriptor(sections::HEADER as u8);
        let list = out.begin_list();
        optional(self.durable, out);
        match self.priority {
            Some(priority) => out.ubyte(u8::try_from(priority).unwrap_or(u8::MAX)),
            None => out.null(),
        }
        match time_to_live {
            Some(milliseconds) => out.uint(u32::try_from(milliseconds).unwrap_or(u32::MAX)),
            None => out.null(),
        }
        optional(self.first_acquirer, out);
        out.uint(delivery_count);
        out.end(list, 5);
    }
}

fn optional(flag: Option<bool>, out: &mut Writer<'_>) {
    match flag {
        Some(flag) => out.bool(flag),
        None => out.null(),
    }
}
